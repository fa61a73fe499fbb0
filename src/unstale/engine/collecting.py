"""From a store's members to a scheduler that knows its collections, and how both are kept."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from unstale.keeper.collected import Collected, Group
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CollectionMember

#: the setting that holds what was learned of collections
SIGNALS = "signals"


def collect(
    scheduler: Scheduler, members: Sequence[CollectionMember], settings: Mapping[str, bytes], now: float
) -> None:
    """Tell a scheduler of the collections in a store; without one it is as it was."""
    if not members:
        return
    groups = []
    for collection, own in groupby(members, key=lambda member: member.collection):
        mine = list(own)
        told = np.array([-math.inf if member.told is None else member.told for member in mine])
        groups.append(Group(collection, np.array([member.source for member in mine], dtype=np.int64), 0, told))
    scheduler.collected = Collected(scheduler.learner, scheduler.ids, groups, now)
    scheduler.collected.restore(settings.get(SIGNALS, b""))
