"""Playing collections from listing to listing, compiled: what listings show, and the polls that follow from it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers, wait
from unstale.core.learning.compiled import compiled, compiled_loop
from unstale.core.signals.choices import Mind, look_again, next_unasked, worth_polling
from unstale.core.signals.hearing import hear, taught


class World(NamedTuple):
    """What happens: changes by source, how many of them the copy has seen, and whether polls say when the last one was.

    Members of collection g are `which[starts[g]:starts[g+1]]`, its signals those from `signals_from[g]` on, of which
    `place[g]` is the first not shown yet. `always`: every listing signals every member.
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


class Made(NamedTuple):
    """Polls made: which source and when; listing polls: when and at what cost; and how `many` there are of both.

    `left` is what may still be spent: polls that cannot be paid for wait; and what those at hand cost that did.
    `turn` is where members' turns begin.
    """

    which: Integers
    polled: Floats
    listing: Floats
    many: Integers
    left: Floats
    turn: int


@compiled_loop
def play(now: float, until: float, price: float, world: World, mind: Mind, made: Made) -> None:
    """All polls from now until then at a price, as far as they can be paid."""
    collections = mind.collections
    count = len(world.starts) - 1
    for h in range(count):
        g = (h + made.turn) % count
        begun, size = now, world.starts[g + 1] - world.starts[g]
        while True:
            end = min(collections.due[g], until)
            for j in range(size):
                i = world.which[world.starts[g] + (j + made.turn) % size]
                if collections.used[g]:
                    _wait_for_signals(i, g, begun, end, price, world, mind, made)
                else:
                    _wait_alone(i, g, begun, end, price, world, mind, made)
            if collections.due[g] >= until:
                break
            if made.left[0] < collections.cost[g]:
                made.left[1] += collections.cost[g]
                collections.due[g] = until
                break
            made.left[0] -= collections.cost[g]
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
        # Without jitter: what falls due is then just what the price has counted.
        pause = wait(i, price, columns, mind.shared, mind.timing, mind.at) - columns.head_start[i]
        due = max(columns.last[i] + pause, now)
        if due >= end:
            return
        if made.left[0] < columns.cost[i]:
            made.left[1] += columns.cost[i]
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
                look_again(i, again, price, mind)
                continue
            due = again
        if made.left[0] < mind.columns.cost[i]:
            made.left[1] += mind.columns.cost[i]
            return
        _poll(i, g, due, world, mind, made)


@compiled
def _poll(i: int, g: int, now: float, world: World, mind: Mind, made: Made) -> None:
    """Poll one source: what is found teaches trust, then the belief."""
    first, last = world.seen[i], world.changes_from[i + 1]
    while world.seen[i] < last and world.changes[world.seen[i]] <= now:
        world.seen[i] += 1
    changed = world.seen[i] > first
    taught(i, g, now, changed, world.changes[world.seen[i] - 1] if changed and world.modified else math.nan, mind)
    made.left[0] -= mind.columns.cost[i]
    if made.many[0] < len(made.which):
        made.which[made.many[0]] = i
        made.polled[made.many[0]] = now
    made.many[0] += 1


@compiled
def _list(g: int, now: float, price: float, world: World, mind: Mind, made: Made) -> None:
    """Poll one collection: what is on show since the last time, and the members that this makes worth a poll."""
    columns, members, collections = mind.columns, mind.members, mind.collections
    first, last = world.place[g], world.place[g]
    while last < world.signals_from[g + 1] and world.shown_at[last] <= now:
        last += 1
    world.place[g] = last
    entries, hole = int(collections.entries[g]), 0.0
    if entries > 0 and last - first > entries:
        # What scrolled out is seen: the oldest entry on show is newer than the last listing.
        first = last - entries
        hole = max(world.told_at[first] - collections.asof[g], 0.0)
    whole = world.which[world.starts[g] : world.starts[g + 1]]
    rows, told = world.member[first:last], world.told_at[first:last]
    if world.always:
        rows, told = whole, np.full(len(whole), now)
    if not hear(g, now, rows, told, hole, whole, mind) or not collections.used[g]:
        return
    for k in range(len(rows)):
        i = rows[k]
        if members.signals[i] == 0 or members.told[i] != told[k]:
            continue
        if not worth_polling(i, g, now, price, mind):
            look_again(i, now, price, mind)
        elif made.left[0] < columns.cost[i]:
            # It is looked at again as soon as there is something to spend.
            members.check[i] = 0.0
            made.left[1] += columns.cost[i]
        else:
            _poll(i, g, now, world, mind, made)


def room(size: int, left: float, turn: int) -> Made:
    """Room for so many polls, which may cost so much together."""
    many = np.zeros(2, np.int64)
    return Made(np.empty(size, np.int64), np.empty(size), np.empty((size, 2)), many, np.array([left, 0.0]), turn)
