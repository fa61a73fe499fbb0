"""Hearing and checking: a listing poll tells of members, and a poll of a member shows what was true.

Rules of this file:
1. What a listing says is kept; nothing is believed because of it before polls have shown what it is worth.
2. A listing that signals nearly all its members, where beliefs foretold few, has said nothing.
3. A poll made because of a signal is no fair sample of a rate: nothing changed until the signal, then the change.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers, observe
from unstale.core.learning.compiled import compiled, compiled_loop
from unstale.core.learning.mixture import foretold, gather
from unstale.core.signals.choices import Mind
from unstale.core.signals.columns import MemberColumns
from unstale.core.signals.trust import forget, late, lesson, open_time, precision_of

#: a listing that signals more than this share of its members, where beliefs foretold less than half, says nothing
_SHOUTED, _EXPECTED = 0.9, 0.5
#: what the shares signalled and foretold keep from listing to listing
_KEPT = 0.8
#: what the count of entries, and the time in which they came, keep from listing to listing
_PACE = 0.95
_MOST_SIGNALS, _MOST_HEARD = 1000, 65_535
#: a signal teaches when a change came if more than this share of them is true: a liar's times would make beliefs
#: foretell too little, and itself look good beside them
_TAUGHT = 0.6
#: seconds before a signal until which nothing had changed
BEFORE = 1e-3


@compiled_loop
def hear(g: int, now: float, rows: Integers, told: Floats, hole: float, whole: Integers, mind: Mind) -> bool:
    """A listing poll: its collection tells that these members changed at these times; whether it said anything.

    `hole` is time since the last listing of which this one tells nothing, because entries have scrolled out.
    `whole` are all the members.
    """
    columns, members, collections = mind.columns, mind.members, mind.collections
    before = collections.asof[g]
    collections.uncovered[g] += hole
    collections.came[g] = _PACE * collections.came[g] + len(rows)
    collections.within[g] = _PACE * collections.within[g] + now - before
    collections.missed[g] = _PACE * collections.missed[g] + hole
    collections.asof[g] = now
    if _shouted(g, now - before, rows, whole, mind):
        collections.uncovered[g] += now - before - hole
        return False
    for k in range(len(rows)):
        i = rows[k]
        members.heard[i] = min(members.heard[i] + 1, _MOST_HEARD)
        if told[k] < before - collections.late[g]:
            late(g, told[k], before, collections)
        if told[k] > columns.last[i] or columns.last[i] == math.inf:
            if members.signals[i] == 0 or members.told[i] <= before:
                members.signals[i] = min(members.signals[i] + 1, _MOST_SIGNALS)
            members.told[i] = told[k]
    return True


@compiled
def _shouted(g: int, span: float, rows: Integers, whole: Integers, mind: Mind) -> bool:
    """Whether a listing has long signalled nearly all its members, and far more than beliefs foretell."""
    collections, size = mind.collections, len(whole)
    if size == 0:
        return False
    expected = 0.0
    for i in whole:
        expected += -math.expm1(-mind.members.rate[i] * span)
    spoken = len(distinct(rows)) / size
    # The first listing speaks for itself.
    kept = _KEPT if collections.foretold[g] > 0.0 else 0.0
    collections.spoken[g] = kept * collections.spoken[g] + (1.0 - kept) * spoken
    collections.foretold[g] = kept * collections.foretold[g] + (1.0 - kept) * expected / size
    return bool(collections.spoken[g] > _SHOUTED and collections.foretold[g] < _EXPECTED)


@compiled
def distinct(rows: Integers) -> Integers:
    """Each of these rows once, rising; most listings name them so."""
    for k in range(1, len(rows)):
        if rows[k] <= rows[k - 1]:
            return np.unique(rows)
    return rows


@compiled
def taught(i: int, g: int, now: float, changed: bool, said: float, mind: Mind) -> float:
    """A poll of a member: what it found teaches trust, then the belief.

    Returns the time of the signal that it was taught by, or NaN; `said` is when the source says that it last changed.
    """
    columns, members = mind.columns, mind.members
    copied, told = columns.last[i], members.told[i]
    signalled = math.nan
    if copied < now < math.inf:
        gather(columns.rows[i], mind.shared, mind.at)
        without = foretold(mind.at, now - copied, changed)
        quiet = foretold(mind.at, open_time(i, g, now, copied, members, mind.collections, mind.fleet), False)
        lesson(i, g, now, copied, changed, without, quiet, members, mind.collections, mind.fleet)
    believed = mind.collections.used[g] and precision_of(i, g, members, mind.collections, mind.fleet) > _TAUGHT
    if believed and changed and members.signals[i] > 0 and copied < told - BEFORE and told <= now:
        observe(i, told - BEFORE, False, math.nan, columns, mind.shared, mind.timing, mind.at)
        said = signalled = told
    newer = members.signals[i] > 0 and told > now
    forget(i, g, members, mind.collections)
    if newer:
        # It was told while the poll was under way: what was polled may be older.
        members.signals[i] = 1
    observe(i, now, changed, said, columns, mind.shared, mind.timing, mind.at)
    return signalled


@compiled_loop
def taught_all(rows: Integers, homes: Integers, polled_at: Floats, changed: Bits, said: Floats, mind: Mind) -> Floats:
    """`taught` of many polls of members of the collections `homes`, in the order given."""
    by = np.empty(len(rows))
    for k in range(len(rows)):
        by[k] = taught(rows[k], homes[k], polled_at[k], changed[k], said[k], mind)
    return by


@compiled_loop
def taught_beside(
    rows: Integers,
    first: Integers,
    end: Integers,
    of: Integers,
    polled_at: Floats,
    changed: Bits,
    words: MemberColumns,
    mind: Mind,
) -> None:
    """What polls of members teach of collections that told of them too: pairs first[k] to end[k] are those of rows[k].

    Beliefs learn nothing here: `taught` does that, once, after this.
    """
    for k in range(len(rows)):
        i, now = rows[k], polled_at[k]
        copied = mind.columns.last[i]
        if not copied < now < math.inf:
            continue
        gather(mind.columns.rows[i], mind.shared, mind.at)
        without = foretold(mind.at, now - copied, changed[k])
        for pair in range(first[k], end[k]):
            g = of[pair]
            words.rate[pair] = mind.members.rate[i]
            quiet = foretold(mind.at, open_time(pair, g, now, copied, words, mind.collections, mind.fleet), False)
            lesson(pair, g, now, copied, changed[k], without, quiet, words, mind.collections, mind.fleet)
            newer = words.signals[pair] > 0 and words.told[pair] > now
            forget(pair, g, words, mind.collections)
            if newer:
                words.signals[pair] = 1
