"""From a store's members to a scheduler that knows its collections, and how both are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from unstale.engine.pushing import channel_groups
from unstale.keeper.collected import Collected, Group
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CollectionMember

#: the settings that hold what was learned of collections, what was counted of their members, and what siblings foretell
SIGNALS, COUNTS, SIBLINGS = "signals", "signal_counts", "siblings"


def collect(
    scheduler: Scheduler,
    members: Sequence[CollectionMember],
    pushes: Sequence[CollectionMember],
    settings: Mapping[str, bytes],
    now: float,
) -> None:
    """Tell a scheduler of the collections in a store, and of what was pushed; without any it is as it was."""
    groups = channel_groups(pushes)
    for collection, own in groupby(members, key=lambda member: member.collection):
        mine = list(own)
        if all(member.time is None and member.tag is None for member in mine):
            # It tells who is there and of no change: a source like any other, polled by what it is itself.
            continue
        told = np.array([-math.inf if member.told is None else member.told for member in mine])
        groups.append(Group(collection, np.array([member.source for member in mine], dtype=np.int64), 0, told))
    if not groups:
        return
    scheduler.collected = Collected(scheduler.learner, scheduler.ids, groups, now)
    scheduler.collected.restore(settings.get(SIGNALS, b""))
    scheduler.collected.recount(settings.get(COUNTS, b""))


def learned(scheduler: Scheduler, *, whole: bool) -> dict[str, bytes]:
    """What a scheduler has learned of its collections, as settings; `whole`: with counts of members and of siblings."""
    said = dict[str, bytes]()
    if whole and (siblings := scheduler.learner.siblings) is not None:
        said[SIBLINGS] = siblings.kept()
    if (collected := scheduler.collected) is not None:
        said |= {SIGNALS: collected.kept(), **({COUNTS: collected.counts()} if whole else {})}
    return said
