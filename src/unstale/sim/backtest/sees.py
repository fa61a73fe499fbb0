"""What a poller is shown besides the polls of its sources: made from the trace, with noise if told."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers
from unstale.sim.backtest.setting import Setting

LIARS = ("random", "never", "always")


@dataclass(frozen=True, slots=True)
class Sees:
    """How much is seen: signals of collections, or only (`modified`) when a polled source says it last changed.

    `groups` holds the collection of each source, -1 for none; None is one collection of all. `entries` is the length of
    a feed, 0 for a listing of all members. A change is signalled with probability `recall`, `delay` seconds late; of the
    signals `precision` are true. A `liar` signals at random, never or always instead.
    """

    listing: bool = True
    modified: bool = False
    groups: tuple[int, ...] | None = None
    entries: int = 0
    cost: float = 1.0
    precision: float = 1.0
    recall: float = 1.0
    delay: float = 0.0
    liar: str | None = None


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
    n, rng = len(setting), np.random.default_rng([seed, 77])
    group = np.zeros(n, np.int64) if sees.groups is None else np.asarray(sees.groups, dtype=np.int64)
    count = int(group.max()) + 1 if sees.listing else 0
    inside = np.flatnonzero(group >= 0)
    which = inside[np.argsort(group[inside], kind="stable")].astype(np.int64)
    starts = np.searchsorted(group[which], np.arange(max(count, 0) + 1)).astype(np.int64)
    if not sees.listing:
        # All sources are played as one collection that is never listed.
        which, starts = np.arange(n, dtype=np.int64), np.array([0, n], dtype=np.int64)
        group, count = np.zeros(n, np.int64), 1
    member, told = _signals(setting, sees, rng)
    kept = group[member] >= 0
    member, told = member[kept], told[kept]
    at = told + sees.delay
    order = np.lexsort((at, group[member]))
    member, told, at = member[order], told[order], at[order]
    return Shown(starts, which, told, at, member, np.searchsorted(group[member], np.arange(count + 1)).astype(np.int64))


def _signals(setting: Setting, sees: Sees, rng: np.random.Generator) -> tuple[Integers, Floats]:
    trace = setting.trace
    member, told = np.repeat(np.arange(len(trace), dtype=np.int64), np.diff(trace.starts)), trace.times.copy()
    if not sees.listing or sees.liar == "never":
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
