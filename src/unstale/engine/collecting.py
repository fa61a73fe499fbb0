"""From a store's members to a scheduler that knows its collections, and how both are kept."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from itertools import groupby

import numpy as np

from unstale.engine.pushing import channel_groups
from unstale.keeper.collected import Collected, Group
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CollectionMember
from unstale.ports import Trust

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


def go_on(
    scheduler: Scheduler,
    members: Sequence[CollectionMember],
    pushes: Sequence[CollectionMember],
    settings: Mapping[str, bytes],
    kept: Sequence[Trust],
    now: float,
) -> None:
    """`collect` where many workers hold a fleet: with what holders have kept of collections since."""
    known = with_trust(settings, kept)
    collect(scheduler, members, pushes, known, now)
    if scheduler.collected is not None:
        said = json.loads(known[SIGNALS])["collections"] if known.get(SIGNALS) else {}
        scheduler.collected.go_on({int(number): own["since"] for number, own in said.items() if "since" in own})


def with_trust(settings: Mapping[str, bytes], kept: Sequence[Trust]) -> Mapping[str, bytes]:
    """Settings in which collections stand as whoever holds them has learned since.

    >>> found = with_trust({}, [Trust(0, "[1.0, 1.0, 0.0, 0.0, 9.0]"), Trust(7, '{"credit": 3.0}')])
    >>> json.loads(found[SIGNALS])
    {'fleet': [1.0, 1.0, 0.0, 0.0, 9.0], 'collections': {'7': {'credit': 3.0}}}
    """
    if not kept:
        return settings
    whole = json.loads(settings.get(SIGNALS) or b'{"fleet": [0, 0, 0, 0, 0], "collections": {}}')
    for one in kept:
        if one.collection == 0:
            whole["fleet"] = json.loads(one.state)
        else:
            whole["collections"].setdefault(str(one.collection), {}).update(json.loads(one.state))
    counts = settings.get(COUNTS, b"") + b"".join(one.counts for one in kept)
    return {**settings, SIGNALS: json.dumps(whole).encode(), COUNTS: counts}
