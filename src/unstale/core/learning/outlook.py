"""What is believed of copies at a moment: how likely each is fresh, how old it is, how often its source changes."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import SharedTiming, all_passed
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.mixture import Shared, parts
from unstale.core.learning.said import rates_between, said
from unstale.core.learning.state import WIDTH, unpacked
from unstale.frozen import dataclass

__all__ = [
    "WIDTH",
    "BelievedColumns",
    "BelievedSources",
    "Outlook",
    "even_freshness",
    "evidence",
    "fresh_now",
    "outlook",
    "rates_within",
]

#: the interval for the change rate holds so much of what is believed
LEVEL = 0.9
_CHUNK = 10_000


class BelievedSources(Protocol):
    """Sources in columns, as a store holds them."""

    @property
    def beliefs(self) -> Floats: ...
    @property
    def last(self) -> Floats: ...
    @property
    def found(self) -> Floats: ...
    @property
    def settings(self) -> Mapping[str, bytes]: ...


@dataclass(frozen=True, slots=True)
class BelievedColumns:
    """The same by themselves, for who has them from elsewhere than a store."""

    beliefs: Floats
    last: Floats
    found: Floats
    settings: Mapping[str, bytes]


@dataclass(frozen=True, slots=True)
class Outlook:
    """Believed at a moment, a row per source. Rates are per second, ages in seconds.

    `fresh` is the probability that the copy equals its source, `age` the expected time since the first change that it
    lacks. Without a copy: 0 and infinite.
    """

    change_rate: Floats
    fresh: Floats
    age: Floats


def outlook(held: BelievedSources, now: float) -> Outlook:
    """What is believed at `now` of sources as they stand.

    A copy is still fresh with the probability that nothing changed since its source last answered: the mean over
    the half-lives of (1 + t/exposure)^−shape, t the time since then on the fleet's clock. Its expected age is the
    integral of one minus that.
    """
    shared, timing = _state(held)
    passed, none = all_passed(held.last, held.found, now, timing), np.isneginf(held.last)
    # Some at a time, so that what is computed of them fits the processor's cache.
    rate, fresh, age = (np.empty(len(passed)) for _ in range(3))
    for begin in _begins(len(passed)):
        part = slice(begin, begin + _CHUNK)
        rate[part], fresh[part], age[part] = _outlook(held.beliefs[part], passed[part], shared)
    # Weights add up to 1 but for rounding, and a probability is none above it.
    np.minimum(fresh, 1.0, out=fresh)
    fresh[none], age[none] = 0.0, np.inf
    return Outlook(rate, fresh, age)


def rates_within(held: BelievedSources, change_rate: Floats) -> tuple[Floats, Floats]:
    """The rates between which each `change_rate` lies with probability 0.9, as read from what polls said (`said`).

    It takes many times as long as all of `outlook`: it is asked of those that are shown.
    """
    low, high = rates_between(said(held.beliefs, len(HALF_LIVES)), _state(held)[0].prior, LEVEL)
    return np.minimum(low, change_rate), np.maximum(high, change_rate)


def fresh_now(held: BelievedSources, now: float) -> tuple[Floats, Floats]:
    """How likely each copy is fresh, and its change rate: of `outlook` the part that costs little."""
    shared, timing = _state(held)
    shape, exposure, weight = _beliefs(held.beliefs, shared)
    passed = all_passed(held.last, held.found, now, timing)
    fresh = (weight * np.exp(-shape * np.log1p(passed[:, None] / exposure))).sum(axis=1)
    return np.where(np.isneginf(held.last), 0.0, np.minimum(fresh, 1.0)), (weight * shape / exposure).sum(axis=1)


def age_now(held: BelievedSources, now: float) -> Floats:
    """The expected age of each copy, infinite without one: of `outlook` another part that costs little."""
    shared, timing = _state(held)
    age = _outlook(held.beliefs, all_passed(held.last, held.found, now, timing), shared)[2]
    return np.where(np.isneginf(held.last), np.inf, age)


def even_freshness(held: BelievedSources, weight: Floats, interval: float) -> float:
    """The freshness by weight if these sources were all polled at one even interval, as far as rates are known.

    The mean over the interval of the probability to be fresh, 1 − (expected age at its end)/interval, under the same
    beliefs as the freshness it is compared with: at the mean rates alone it would be too low.
    """
    total = float(weight.sum())
    if total <= 0.0 or interval <= 0.0:
        return 0.0
    age = _outlook(held.beliefs, np.full(len(weight), interval), _state(held)[0])[2]
    return float(weight @ (1.0 - age / interval)) / total


def evidence(held: BelievedSources) -> tuple[Floats, float]:
    """How many changes each belief rests on, and how many of them are the prior's.

    A rate that rests on so many changes has the relative variance 1/count.
    """
    shared = _state(held)[0]

    def counted(rows: Floats) -> Floats:
        shape, _, weight = _beliefs(rows, shared)
        found: Floats = (weight * shape).sum(axis=1)
        return found

    found = np.empty(len(held.beliefs))
    for begin in _begins(len(found)):
        part = slice(begin, begin + _CHUNK)
        found[part] = counted(held.beliefs[part])
    return found, float(shared.prior[0])


def _begins(count: int) -> range:
    """Where parts begin that fit the processor's cache; there is one at least."""
    return range(0, max(count, 1), _CHUNK)


def _state(held: BelievedSources) -> tuple[Shared, SharedTiming]:
    return _read(held.settings.get("learner", b""))


@lru_cache(maxsize=4)
def _read(state: bytes) -> tuple[Shared, SharedTiming]:
    # Nobody here writes to it, and it is asked for at every look.
    read = unpacked(state)
    if read is None:
        blank = Learner(0, 1.0)
        read = blank.shared, blank.timing
    return read


def _outlook(rows: Floats, passed: Floats, shared: Shared) -> tuple[Floats, Floats, Floats]:
    shape, exposure, weight = _beliefs(rows, shared)
    mean = (weight * shape / exposure).sum(axis=1)
    stretch, more = np.log1p(passed[:, None] / exposure), np.where(shape == 1.0, 1e-12, 1.0 - shape)
    fresh = (weight * np.exp(-shape * stretch)).sum(axis=1)
    # exposure·∫ e^((1−shape)·l) dl up to log(1 + t/exposure) is the time for which it is fresh
    age = passed - (weight * exposure * np.expm1(more * stretch) / more).sum(axis=1)
    return mean, fresh, np.maximum(age, 0.0)


def _beliefs(rows: Floats, shared: Shared) -> tuple[Floats, Floats, Floats]:
    shape, exposure, standing = parts(rows)
    shape, exposure, standing = shared.prior[0] + shape, shared.prior[1] + exposure, standing + shared.favour
    weight = np.exp(standing - standing.max(axis=1, keepdims=True))
    return shape, exposure, weight / weight.sum(axis=1, keepdims=True)
