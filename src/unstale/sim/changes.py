"""Changes of sources that no law of gaps describes: drifting, bursty, self-exciting, recorded.

A stream gives its event times in [0, horizon] by `sample_path`, as every `Process` of the pure room does; each
member here starts in its stationary state where it has one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.processes import WeeklyPoisson
from unstale.errors import require


class Changes(Protocol):
    """Anything that can draw the times of a source's changes."""

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        """Event times in [0, horizon], ascending."""
        ...


def change_times(changes: Changes | WeeklyPoisson, rng: np.random.Generator, horizon: float) -> Floats:
    """The times of the changes in [0, horizon], ascending, of any stream a world may hold."""
    if isinstance(changes, WeeklyPoisson):
        return changes.sample_times(rng, 0.0, horizon)
    return changes.sample_path(rng, horizon)


class Recorded:
    """Changes that happened at known times: a trace.

    >>> Recorded([3.0, 1.0, 9.0]).sample_path(np.random.default_rng(1), 5.0)
    array([1., 3.])
    """

    def __init__(self, times: ArrayLike) -> None:
        self.times = np.sort(np.atleast_1d(numbers("times", times, least=0, remedy="count from the run's start")))

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        return self.times[: np.searchsorted(self.times, horizon, side="right")]


class Still:
    """A source that never changes."""

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        return np.empty(0)


class Drifting:
    """Poisson changes whose rate wanders: every `step` of time its logarithm moves by a normal amount.

    rate·exp(X), X a random walk that starts at 0 with standard deviation `volatility`·√(time/step), pulled back
    by nothing: after long times it can be anywhere, so averages over time do not settle.
    """

    def __init__(self, rate: float, step: float, volatility: float) -> None:
        self.rate = number("rate", rate, above=0)
        self.step = number("step", step, above=0, remedy="give the time between moves of the rate")
        self.volatility = number("volatility", volatility, least=0, remedy="0.1 moves the rate by about 10 % a step")

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        steps = int(np.ceil(horizon / self.step)) or 1
        walk = np.append(0.0, np.cumsum(rng.normal(0.0, self.volatility, steps - 1)))
        return _within(
            rng, self.rate * np.exp(walk), self.step * np.arange(steps, dtype=np.float64), self.step, horizon
        )


class Bursty:
    """Poisson changes that switch between a quiet and a busy rate at exponential times: bursts and silences.

    Mean rate (quiet·quiet_time + busy·busy_time)/(quiet_time + busy_time), the times being the mean stays.
    """

    def __init__(self, quiet: float, busy: float, quiet_time: float, busy_time: float) -> None:
        self._rates = (number("quiet", quiet, least=0), number("busy", busy, above=0))
        self._stays = (number("quiet_time", quiet_time, above=0), number("busy_time", busy_time, above=0))
        self.rate = float(np.dot(self._rates, self._stays) / sum(self._stays))

    def as_poisson(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """The two Poisson rates as a mixture of which a poll at any moment finds this source, and their shares.

        P(no change for t) = π·e^((Q − Λ)t)·1 = share·e^(−rate·t) + share'·e^(−rate'·t): the rates are the eigenvalues
        of Λ − Q, the shares those that make it 1 at 0 and its slope the mean rate. Freshness and age at even polls are
        therefore these mixtures of Poisson's. Holds from any moment that the source does not know of, not from a
        change on. One that changes at 9 for a tenth of the time and sleeps otherwise:

        >>> rates, shares = Bursty(0.0, 9.0, 0.9, 0.1).as_poisson()
        >>> [round(x, 4) for x in (*rates, *shares)]
        [0.5102, 19.6009, 0.9796, 0.0204]
        """
        leaving = 1.0 / np.array(self._stays)
        away = leaving + np.array(self._rates)
        half, apart = away.sum() / 2.0, np.sqrt((away[0] - away[1]) ** 2 / 4.0 + leaving.prod())
        slow, fast = float(half - apart), float(half + apart)
        share = (fast - self.rate) / (fast - slow)
        return (slow, fast), (share, 1.0 - share)

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        first = int(rng.random() * sum(self._stays) >= self._stays[0])
        starts: list[float] = []
        lengths: list[float] = []
        now = 0.0
        # Stays are memoryless, so the one met at time 0 has the law of a whole one.
        while now <= horizon:
            length = float(rng.exponential(self._stays[(first + len(starts)) % 2]))
            starts.append(now)
            lengths.append(length)
            now += length
        rates = np.array(self._rates)[(first + np.arange(len(starts))) % 2]
        return _within(rng, rates, np.array(starts), np.array(lengths), horizon)


class SelfExciting:
    """Changes that provoke changes: each starts on average `offspring` others, after exponential delays.

    A Hawkes process as a branching one: founders are Poisson with rate·(1 − offspring), so that `rate` is the
    overall rate. Founders before time 0 are drawn too, back to 20·delay/(1 − offspring): what is left out
    would have added less than e^(−20) of a change per founder.
    """

    def __init__(self, rate: float, offspring: float, delay: float) -> None:
        self.rate = number("rate", rate, above=0)
        self.offspring = number("offspring", offspring, least=0, most=0.99, remedy="from 1 on bursts never end")
        self.delay = number("delay", delay, above=0, remedy="give the mean time from a change to one it provokes")

    def sample_path(self, rng: np.random.Generator, horizon: float) -> Floats:
        past = 20.0 * self.delay / (1.0 - self.offspring)
        founders = rng.poisson(self.rate * (1.0 - self.offspring) * (past + horizon))
        parents = rng.uniform(-past, horizon, founders)
        born = [parents]
        while len(parents):
            parents = np.repeat(parents, rng.poisson(self.offspring, len(parents)))
            parents = parents + rng.exponential(self.delay, len(parents))
            parents = parents[parents <= horizon]
            born.append(parents)
        times = np.sort(np.concatenate(born))
        return times[np.searchsorted(times, 0.0) :]


def _within(rng: np.random.Generator, rates: Floats, starts: Floats, lengths: Floats | float, horizon: float) -> Floats:
    """Poisson events whose rate is constant on each stretch, up to the horizon."""
    lengths = np.minimum(starts + lengths, horizon) - starts
    expected = rates * np.maximum(lengths, 0.0)
    require(
        expected.sum() < 1e9,
        "changes",
        f"{expected.sum():.0e}",
        "are too many to draw",
        "shorten the horizon or lower the rates",
    )
    row = np.repeat(np.arange(len(rates)), rng.poisson(expected))
    return np.sort(starts[row] + lengths[row] * rng.random(len(row)))
