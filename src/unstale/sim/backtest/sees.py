"""What a poller is shown besides the polls of its sources: made from the trace, with noise if told.

Rules of this file:
1. Signals are changes of the trace: some are left out (recall), some added (precision), all shown `delay` late.
2. A liar shows none of them: it signals at random as often as changes come, never, or every member in every listing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.sim.backtest.setting import Setting
from unstale.units import DAY, parse_duration

LIARS = ("random", "never", "always")
KINDS = "bits, modified, listing, feed:20, groups:COLUMN or groups:25"


@dataclass(frozen=True, slots=True)
class Sees:
    """How much is seen: signals of collections, or only (`modified`) when a polled source says it last changed.

    `groups` holds the collection of each source by name, or how many neighbours share one; None is one collection of
    all. `entries` is the length of a feed, 0 for a listing of all members. A change is signalled with probability
    `recall`, `delay` seconds late; of the signals `precision` are true. A `liar` takes no heed of changes.
    """

    listing: bool = True
    modified: bool = False
    groups: Mapping[str, str] | int | None = None
    entries: int = 0
    cost: float = 1.0
    precision: float = 1.0
    recall: float = 1.0
    delay: float = 0.0
    liar: str | None = None


def sees(kind: str, cost: float = 1.0, noise: str | None = None, liar: str | None = None) -> Sees | None:
    """What a few words mean; None for bits, which polls show by themselves. A column is for the caller to read.

    >>> seen = sees("feed:20", noise="precision=.7,delay=1h")
    >>> seen.entries, seen.precision, seen.recall, round(seen.delay)
    (20, 0.7, 1.0, 3600)
    """
    require(liar is None or liar in LIARS, "liar", repr(liar), f"must be one of {', '.join(LIARS)}", "choose one")
    require(0 < cost < np.inf, "listing cost", cost, "must be above 0", "1 is what a poll costs")
    name, _, argument = kind.partition(":")
    shape: Sees | None = None
    if name == "listing" and not argument:
        shape = Sees()
    elif name == "feed" and argument.isdecimal() and int(argument) > 0:
        shape = Sees(entries=int(argument))
    elif name == "groups" and argument:
        shape = Sees(groups=int(argument) if argument.isdecimal() and int(argument) else None)
    if shape is None:
        require(kind in ("bits", "modified"), "sees", repr(kind), "is not known", f"use {KINDS}")
        require(
            noise is None and liar is None and cost == 1.0,
            "sees",
            repr(kind),
            "has no listing that could cost, err or lie",
            "add --sees listing",
        )
        return None if kind == "bits" else Sees(listing=False, modified=True)
    told = {"precision": 1.0, "recall": 1.0, "delay": 0.0} | _noise(noise)
    return replace(shape, cost=cost, liar=liar, precision=told["precision"], recall=told["recall"], delay=told["delay"])


def _noise(text: str | None) -> dict[str, float]:
    told: dict[str, float] = {}
    for part in text.split(",") if text else ():
        name, _, value = part.strip().partition("=")
        try:
            if name == "delay":
                told[name] = DAY * parse_duration(value, "delay")
                continue
            share = float(value)
        except ValueError:
            share = np.nan
        if name not in ("precision", "recall") or not 0.0 <= share <= 1.0 or (name == "precision" and share == 0.0):
            rule = "is not a noise"
            raise InputError(sentence("noise", repr(part), rule, "write precision=.7,recall=.8,delay=1h"))
        told[name] = share
    return told


@dataclass(frozen=True, slots=True, eq=False)
class Shown:
    """Members by collection, and signals by collection in the order in which they are shown."""

    starts: Integers
    which: Integers
    told_at: Floats
    shown_at: Floats
    member: Integers
    signals_from: Integers


def shown(setting: Setting, sees: Sees, seed: int) -> Shown:
    """The signals that listings of a trace would show."""
    rng = np.random.default_rng([seed, 77])
    group = _groups(setting, sees.groups)
    count = int(group.max()) + 1
    which = np.argsort(group, kind="stable").astype(np.int64)
    starts = np.searchsorted(group[which], np.arange(count + 1)).astype(np.int64)
    member, told = _signals(setting, sees, rng)
    at = told + sees.delay
    order = np.lexsort((at, group[member]))
    member, told, at = member[order], told[order], at[order]
    return Shown(starts, which, told, at, member, np.searchsorted(group[member], np.arange(count + 1)).astype(np.int64))


def _groups(setting: Setting, groups: Mapping[str, str] | int | None) -> Integers:
    """The number of each source's collection. Every source has one; the last of equal size takes what is left over."""
    n = len(setting)
    if groups is None:
        return np.zeros(n, np.int64)
    if isinstance(groups, int):
        return np.minimum(np.arange(n, dtype=np.int64) // groups, max(n // groups - 1, 0))
    named = [groups.get(name, "") for name in setting.trace.names]
    return np.unique(np.array(named, dtype=str), return_inverse=True)[1].astype(np.int64).ravel()


def _signals(setting: Setting, sees: Sees, rng: np.random.Generator) -> tuple[Integers, Floats]:
    trace = setting.trace
    member, told = np.repeat(np.arange(len(trace), dtype=np.int64), np.diff(trace.starts)), trace.times.copy()
    if not sees.listing or sees.liar in ("never", "always"):
        return member[:0], told[:0]
    if sees.liar == "random":
        return member, rng.uniform(setting.start, setting.end, len(told))
    kept = rng.random(len(told)) < sees.recall
    member, told = member[kept], told[kept]
    if sees.precision < 1.0:
        false = round(len(told) * (1.0 - sees.precision) / sees.precision)
        member = np.concatenate([member, rng.choice(member, false)])
        told = np.concatenate([told, rng.uniform(setting.start, setting.end, false)])
    return member, told
