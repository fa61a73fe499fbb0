"""Playing collections from listing to listing, compiled: what listings show, and the polls that follow from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers, observe, wait
from unstale.core.learning.compiled import compiled
from unstale.core.learning.mixture import foretold, gather
from unstale.core.signals.choices import Mind, next_unasked, worth_polling
from unstale.core.signals.trust import forget, late, lesson

#: a listing that signals more than this share of its members, where beliefs foretold less than half, says nothing
_SHOUTED, _EXPECTED = 0.9, 0.5
#: what the shares signalled and foretold keep from listing to listing
_KEPT = 0.8
#: what the count of entries, and the time in which they came, keep from listing to listing
_PACE = 0.95
_MOST_SIGNALS = 1000


class World(NamedTuple):
    """What happens: changes by source, how many of them the copy has seen, and whether polls say when the last one was.

    Members of collection g are `which[starts[g]:starts[g+1]]`, its signals those from `signals_from[g]` on, of which
    `place[g]` is the first not shown yet. `always`: every listing signals every member. `marks` is room to count.
    """

    changes_from: Integers
    changes: Floats
    seen: Integers
    modified: bool
    starts: Integers
    which: Integers
    told_at: Floats
    shown_at: Floats
    member: Integers
    signals_from: Integers
    place: Integers
    always: bool
    marks: Floats


class Made(NamedTuple):
    """Polls made: which source and when; listing polls: when and at what cost; and how `many` there are of both."""

    which: Integers
    polled: Floats
    listing: Floats
    many: Integers


@compiled
def play(now: float, until: float, price: float, world: World, mind: Mind, made: Made) -> None:
    """All polls from now until then at a price."""
    collections = mind.collections
    for g in range(len(world.starts) - 1):
        begun = now
        while True:
            end = min(collections.due[g], until)
            for j in range(world.starts[g], world.starts[g + 1]):
                if collections.used[g]:
                    _wait_for_signals(world.which[j], g, begun, end, price, world, mind, made)
                else:
                    _wait_alone(world.which[j], g, now, end, price, world, mind, made)
            if collections.due[g] >= until:
                break
            begun = collections.due[g]
            if made.many[1] < len(made.listing):
                made.listing[made.many[1], 0] = begun
                made.listing[made.many[1], 1] = collections.cost[g]
            made.many[1] += 1
            _list(g, begun, price, world, mind, made)
            collections.due[g] = begun + collections.interval[g]


@compiled
def _wait_alone(i: int, g: int, now: float, end: float, price: float, world: World, mind: Mind, made: Made) -> None:
    """A source whose collection is not used is polled as if there were none."""
    columns = mind.columns
    while True:
        pause = wait(i, price, columns, mind.shared, mind.timing, mind.at) - columns.head_start[i]
        due = max(columns.last[i] + pause, now)
        if due >= end:
            return
        _poll(i, g, due, world, mind, made)


@compiled
def _wait_for_signals(
    i: int, g: int, begun: float, end: float, price: float, world: World, mind: Mind, made: Made
) -> None:
    """Until the next listing: blind polls, safety polls, and another look at members that were not worth a poll."""
    members = mind.members
    while True:
        due = max(next_unasked(i, g, mind), begun)
        again = max(members.told[i] + members.check[i], begun) if members.signals[i] > 0 else math.inf
        if min(due, again) >= end:
            return
        if again < due:
            if not worth_polling(i, g, again, price, mind):
                continue
            due = again
        _poll(i, g, due, world, mind, made)


@compiled
def _poll(i: int, g: int, now: float, world: World, mind: Mind, made: Made) -> None:
    """Poll one source: what is found teaches trust, then the belief."""
    columns, members = mind.columns, mind.members
    first, last = world.seen[i], world.changes_from[i + 1]
    while world.seen[i] < last and world.changes[world.seen[i]] <= now:
        world.seen[i] += 1
    changed = world.seen[i] > first
    said = world.changes[world.seen[i] - 1] if changed and world.modified else math.nan
    copied, told = columns.last[i], members.told[i]
    if now > copied:
        gather(columns.rows[i], mind.shared, mind.at)
        without = foretold(mind.at, now - copied, changed)
        lesson(i, g, now, copied, changed, without, members, mind.collections, mind.fleet)
    if mind.collections.used[g] and changed and members.signals[i] > 0 and copied < told <= now:
        # A poll made because of a signal is no fair sample: nothing until the signal, then the change.
        observe(i, told - 1e-3, False, math.nan, columns, mind.shared, mind.timing, mind.at)
        said = told
    forget(i, g, members, mind.collections)
    observe(i, now, changed, said, columns, mind.shared, mind.timing, mind.at)
    if made.many[0] < len(made.which):
        made.which[made.many[0]] = i
        made.polled[made.many[0]] = now
    made.many[0] += 1


@compiled
def _list(g: int, now: float, price: float, world: World, mind: Mind, made: Made) -> None:
    """Poll one collection: what is on show since the last time, and the members that this makes worth a poll."""
    columns, members, collections = mind.columns, mind.members, mind.collections
    before, last = collections.asof[g], world.place[g]
    while last < world.signals_from[g + 1] and world.shown_at[last] <= now:
        last += 1
    first, world.place[g] = world.place[g], last
    entries = int(collections.entries[g])
    count = last - first
    if entries > 0 and count > entries:
        # What scrolled out is seen: the oldest entry on show is newer than the last listing.
        first, count = last - entries, entries
        collections.uncovered[g] += max(world.told_at[first] - before, 0.0)
    collections.came[g] = _PACE * collections.came[g] + count
    collections.within[g] = _PACE * collections.within[g] + now - before
    collections.asof[g] = now
    begin = world.starts[g]
    count = world.starts[g + 1] - begin if world.always else count
    if _shouted(g, now, before, first, count, world, mind):
        collections.uncovered[g] += now - before
        return
    for k in range(count):
        i, told = (world.which[begin + k], now) if world.always else (world.member[first + k], world.told_at[first + k])
        if told < before - collections.late[g]:
            late(g, told, before, collections)
        if told > columns.last[i]:
            if members.signals[i] == 0 or members.told[i] <= before:
                members.signals[i] = min(members.signals[i] + 1, _MOST_SIGNALS)
            members.told[i] = told
    if collections.used[g]:
        for k in range(count):
            i = world.which[begin + k] if world.always else world.member[first + k]
            told = now if world.always else world.told_at[first + k]
            if members.signals[i] > 0 and members.told[i] == told and worth_polling(i, g, now, price, mind):
                _poll(i, g, now, world, mind, made)


@compiled
def _shouted(g: int, now: float, before: float, first: int, count: int, world: World, mind: Mind) -> bool:
    """Whether a listing has long signalled nearly all its members, and far more than beliefs foretell."""
    collections, begin, size = mind.collections, world.starts[g], world.starts[g + 1] - world.starts[g]
    expected, heard = 0.0, 0
    for j in range(begin, begin + size):
        expected += -math.expm1(-mind.members.rate[world.which[j]] * (now - before))
    for k in range(count):
        i = world.which[begin + k] if world.always else world.member[first + k]
        if world.marks[i] < now:
            world.marks[i] = now
            heard += 1
    collections.spoken[g] = _KEPT * collections.spoken[g] + (1.0 - _KEPT) * heard / size
    collections.foretold[g] = _KEPT * collections.foretold[g] + (1.0 - _KEPT) * expected / size
    return bool(collections.spoken[g] > _SHOUTED and collections.foretold[g] < _EXPECTED)


def room(size: int) -> Made:
    """Room for so many polls."""
    return Made(np.empty(size, np.int64), np.empty(size), np.empty((size, 2)), np.zeros(2, np.int64))
