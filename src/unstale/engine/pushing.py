"""Pushed signals in an engine: who was made due by somebody's word is polled as far as that word has proved good.

Rules of this file:
1. Whoever hints writes down who said it, and makes the source due at that moment: without an engine that knows better,
   and for workers, a hint is followed as it always was.
2. A source that somebody has asked to be polled was made due at another moment than any word of it: it is polled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.keeper.collected import Group
from unstale.keeper.rows import Integers
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CHANNELS, CollectionMember


def channel_groups(pushes: Sequence[CollectionMember]) -> list[Group]:
    """The channels that told of sources in a store, as a scheduler is told of them."""
    groups = []
    for name, number in CHANNELS.items():
        mine = [one for one in pushes if one.address == name]
        if mine:
            told = np.array([-np.inf if one.told is None else one.told for one in mine])
            groups.append(Group(number, np.array([one.source for one in mine], dtype=np.int64), 0, told))
    return groups


def still_hinted(scheduler: Scheduler, pushes: Sequence[CollectionMember]) -> Integers:
    """The rows that are due because of a hint while nobody was there to hear it: they have not been polled since."""
    told = {one.source: one.told for one in pushes if one.told is not None}
    rows = np.flatnonzero(np.isin(scheduler.ids, list(told)))
    at = np.array([told[source] for source in scheduler.ids[rows].tolist()], dtype=np.float64)
    found: Integers = rows[(scheduler.due_at[rows] <= at) & (scheduler.answered[rows] < at)]
    return found


def unworthy(
    scheduler: Scheduler, rows: Integers, due: Floats, pushes: Mapping[int, CollectionMember], now: float
) -> Integers:
    """Of rows that others have made due at these times, which were only hinted at, and are not worth a poll for it."""
    ids, passed = scheduler.ids[rows].tolist(), [np.empty(0, np.int64)]
    for name, number in CHANNELS.items():
        said = [
            source in pushes and pushes[source].address == name and pushes[source].told == at
            for source, at in zip(ids, due.tolist(), strict=True)
        ]
        told = rows[np.array(said, dtype=np.bool_)]
        if len(told):
            passed.append(np.setdiff1d(told, scheduler.push(number, told, now)))
    return np.sort(np.concatenate(passed))
