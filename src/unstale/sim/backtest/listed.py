"""Our policy where one look tells about many sources: listing polls and polls of members, decided by one price.

Rules of this file:
1. A listing shows what `sees` made of the trace, never the trace; every listing poll is paid for.
2. Between two looks at the price collections stand alone, and each is played from listing to listing.
3. Collections that are not trusted or do not pay are polled on trial, and their members as if there were none.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core import orders
from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers, LearnerColumns, SharedTiming, expected_cost, observe, wait
from unstale.core.learning.compiled import compiled
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.mixture import Scratch, Shared, foretold, gather
from unstale.core.signals.choices import look, next_unasked, renew_rates, worth_polling
from unstale.core.signals.scalars import plain_table
from unstale.core.signals.trust import (
    CollectionColumns,
    MemberColumns,
    collection_columns,
    forget,
    judge,
    late,
    lesson,
    member_columns,
)
from unstale.sim.backtest.polls import Polls
from unstale.sim.backtest.sees import Sees, Shown, shown
from unstale.sim.backtest.setting import Setting

#: looks at the price over the window, and at the fleet as a whole
_LOOKS, _REVIEWS = 400, 40
#: trial listings take at most this share of the budget
_TRIAL = 0.005
#: half-lives compete in units of the mean interval, or of this many mean gaps where signals show every change
_UNIT = 0.3
#: intervals that are tried for a listing
_GRID = 32
#: what was spent too much is saved within so many looks; more than so many looks' worth is forgiven
_REPAID, _FORGIVEN = 25.0, 10.0
#: what the ratio of spent to foretold keeps from look to look
_KEPT = 0.96
#: in logarithms: the price moves no further in one look
_FARTHEST = 0.7
#: a listing that signals more than this share of its members, where beliefs foretold less than half, says nothing
_SHOUTED, _EXPECTED = 0.9, 0.5


def listed(setting: Setting, polls_per_change: float, seed: int, sees: Sees) -> tuple[Polls, Floats]:
    """The polls of a learner that sees signals, and the listing polls: a row of time and cost for each."""
    told = shown(setting, sees, seed)
    return _Player(setting, polls_per_change, seed, sees, told).play()


class _Player:
    def __init__(self, setting: Setting, polls_per_change: float, seed: int, sees: Sees, told: Shown) -> None:
        n = len(setting)
        self.setting, self.told, self.modified, self.always = setting, told, sees.modified, sees.liar == "always"
        self.marks = np.full(n, -np.inf)
        self.budget = setting.budget(polls_per_change)
        mean = n / self.budget
        self.mean = mean
        self.learner = Learner(n, mean, start=setting.start, weight=setting.weight, objective=setting.objective)
        rng = np.random.default_rng(seed)
        self.learner.columns.head_start[:] = mean * ((orders.phases(np.full(n, mean)) + rng.random()) % 1.0)
        count = len(told.starts) - 1
        cost = np.full(count, sees.cost)
        self.members = member_columns(n, setting.start)
        self.members.rate[:] = 1.0 / mean
        self.collections = collection_columns(cost, np.full(count, float(sees.entries)), setting.start)
        self.fleet = np.zeros(5)
        self.listed = np.zeros(n, np.bool_)
        self.listed[told.which] = True
        self.trial = max(float(cost.sum()) / (_TRIAL * self.budget), mean)
        self.grid = np.geomspace(max(0.5 * sees.cost / self.budget, 1e-4 * mean), max(self.trial, 3.0 * mean), _GRID)
        #: the first listings come at once, but not all of them
        self.collections.due[:] = setting.start + min(mean, self.trial) * 0.1 * rng.random(count)
        self.table, self.row = plain_table(), np.zeros(3 * len(HALF_LIVES))

    def play(self) -> tuple[Polls, Floats]:
        setting, learner, told = self.setting, self.learner, self.told
        span, n = setting.end - setting.start, len(setting)
        seen, place = setting.trace.starts[:-1].copy(), told.signals_from.copy()
        price = 0.5 * learner.typical_price()
        which, times, listings = [np.empty(0, np.int64)], [np.empty(0)], [np.empty((0, 2))]
        owed, spent_lately, foretold_lately = 0.0, 2.0, 2.0
        each = self.budget * span / _LOOKS
        for k in range(_LOOKS):
            now, until = setting.start + span * k / _LOOKS, setting.start + span * (k + 1) / _LOOKS
            if k and k % (_LOOKS // _REVIEWS) == 0:
                learner.review()
                unit = self.mean
                if self.collections.used.any():
                    unit = min(unit, _UNIT / float(self.members.rate[self.listed].mean()))
                learner.shared.half_lives[:] = unit * np.array(HALF_LIVES)
            judge(self.collections, self.fleet)
            renew_rates(told.starts, told.which, now, *self._known(), self.members, self.collections, learner._room, self.row)
            correction = min(max(spent_lately / foretold_lately, 0.3), 3.0)
            wanted = self.budget * min(max(1.0 - owed / _REPAID, 0.5), 1.5) / correction
            price = self._price(wanted, price, now, until)
            foretold_now = self._foretold(price, now, until)
            self._appoint(now)
            rows, at, listing = self._played(seen, place, now, until, price)
            which.append(rows)
            times.append(at)
            listings.append(listing)
            spent = float(len(rows) + listing[:, 1].sum())
            owed = min(max(owed + spent / each - 1.0, -_FORGIVEN), _FORGIVEN)
            spent_lately = _KEPT * spent_lately + spent / each
            foretold_lately = _KEPT * foretold_lately + foretold_now / self.budget
        polled, source = np.concatenate(times), np.concatenate(which)
        order = np.lexsort((polled, source))
        polls = Polls(np.searchsorted(source[order], np.arange(n + 1)), polled[order])
        return polls, np.concatenate(listings)

    def _known(self) -> tuple[LearnerColumns, Shared]:
        return self.learner.columns, self.learner.shared

    def _foretold(self, price: float, now: float, until: float) -> float:
        """What will be spent per second at a price; sets intervals and levels."""
        learner, told = self.learner, self.told
        spent = look(
            price, now, told.starts, told.which, self.grid, self.table, *self._known(),
            self.members, self.collections, self.fleet, learner._room, self.row,
        )  # fmt: skip
        rows = np.flatnonzero(~(self.listed & self._used()))
        if len(rows):
            due = expected_cost(rows, price, now, until, *self._known(), learner.timing, learner._room)
            spent += due / (until - now)
        idle = ~self.collections.used
        return spent + float(self.collections.cost[idle].sum()) / self.trial

    def _used(self) -> np.ndarray:
        used = np.zeros(len(self.setting), np.bool_)
        used[self.told.which] = np.repeat(self.collections.used, np.diff(self.told.starts))
        return used

    def _price(self, wanted: float, guess: float, now: float, until: float) -> float:
        """The price at which so much will be spent per second, no further from the last than one look allows."""

        def excess(x: float) -> float:
            return math.log(max(self._foretold(math.exp(x), now, until), 1e-300) / wanted)

        middle = math.log(guess)
        x, at = middle, excess(middle)
        y = middle + math.copysign(0.2, at)
        for _ in range(3):
            there = excess(y)
            if (there > 0.0) != (at > 0.0) or abs(y - middle) >= _FARTHEST:
                break
            x, at, y = y, there, min(max(y + 2.0 * (y - middle), middle - _FARTHEST), middle + _FARTHEST)
        if (there > 0.0) == (at > 0.0):
            return math.exp(y)
        for _ in range(6):
            if abs(y - x) < 0.01 or min(abs(at), abs(there)) < 0.005:
                break
            m = x - at * (y - x) / (there - at)
            m = min(max(m, min(x, y) + 0.1 * abs(y - x)), max(x, y) - 0.1 * abs(y - x))
            between = excess(m)
            if (between > 0.0) == (at > 0.0):
                x, at = m, between
            else:
                y, there = m, between
        return math.exp(x if abs(at) < abs(there) else y)

    def _appoint(self, now: float) -> None:
        """When each collection is listed next: an interval after the last time, and on trial at least."""
        collections = self.collections
        pause = np.minimum(collections.interval, self.trial)
        first = collections.asof <= self.setting.start
        collections.due[:] = np.where(
            first, np.minimum(collections.due, now + pause), np.maximum(collections.asof + pause, now)
        )
        np.minimum(collections.interval, self.trial, out=collections.interval)

    def _played(
        self, seen: Integers, place: Integers, now: float, until: float, price: float
    ) -> tuple[Integers, Floats, Floats]:
        setting, learner, told = self.setting, self.learner, self.told
        size = int(self.budget * (until - now) * 40 + 60 * len(setting) + 1000)
        which, polled, listing = np.empty(size, np.int64), np.empty(size), np.empty((size, 2))
        made, looked = _play(
            now, until, price, setting.trace.starts, setting.trace.times, seen, self.modified, told.starts, told.which,
            told.told_at, told.shown_at, told.member, told.signals_from, place, self.always, self.marks,
            *self._known(), learner.timing, self.members,
            self.collections, self.fleet, learner._room, self.row, which, polled, listing,
        )  # fmt: skip
        if made > size or looked > size:
            raise RuntimeError("more polls in one look than the budget can ever mean")
        return which[:made], polled[:made], listing[:looked]


@compiled
def _poll(
    i: int, g: int, now: float, starts: Integers, times: Floats, seen: Integers, modified: bool,
    columns: LearnerColumns, shared: Shared, timing: SharedTiming, members: MemberColumns,
    collections: CollectionColumns, fleet: Floats, at: Scratch, which: Integers, polled: Floats, made: int,
) -> int:  # fmt: skip
    """Poll one source: what is found teaches trust, then the belief."""
    first = seen[i]
    while seen[i] < starts[i + 1] and times[seen[i]] <= now:
        seen[i] += 1
    changed = seen[i] > first
    said = times[seen[i] - 1] if changed and modified else math.nan
    if g >= 0:
        copied = columns.last[i]
        if now > copied:
            gather(columns.rows[i], shared, at)
            lesson(i, g, now, copied, changed, foretold(at, now - copied, changed), members, collections, fleet)
        told = members.told[i]
        if collections.used[g] and changed and members.signals[i] > 0 and copied < told <= now:
            # A poll made because of a signal is no fair sample: nothing until the signal, then the change.
            observe(i, told - 1e-3, False, math.nan, columns, shared, timing, at)
            said = told
        forget(i, g, members, collections)
    observe(i, now, changed, said, columns, shared, timing, at)
    if made < len(which):
        which[made] = i
        polled[made] = now
    return made + 1


@compiled
def _play(
    now: float, until: float, price: float, starts: Integers, times: Floats, seen: Integers, modified: bool,
    groups: Integers, grouped: Integers, told_at: Floats, shown_at: Floats, member: Integers, signals_from: Integers,
    place: Integers, always: bool, marks: Floats, columns: LearnerColumns, shared: Shared, timing: SharedTiming, members: MemberColumns,
    collections: CollectionColumns, fleet: Floats, at: Scratch, row: Floats,
    which: Integers, polled: Floats, listing: Floats,
) -> tuple[int, int]:  # fmt: skip
    made, looked = 0, 0
    for g in range(len(groups) - 1):
        begun = now
        while True:
            end = min(collections.due[g], until)
            for j in range(groups[g], groups[g + 1]):
                i = grouped[j]
                while True:
                    if collections.used[g]:
                        due = max(next_unasked(i, g, columns, members, collections, fleet), begun)
                        again = max(members.told[i] + members.check[i], begun) if members.signals[i] > 0 else math.inf
                        if again < due:
                            if again >= end:
                                break
                            if not worth_polling(
                                i, g, again, price, columns, shared, members, collections, fleet, at, row
                            ):
                                continue
                            due = again
                    else:
                        due = max(columns.last[i] + wait(i, price, columns, shared, timing, at) - columns.head_start[i], now)
                    if due >= end:
                        break
                    made = _poll(
                        i, g, due, starts, times, seen, modified, columns, shared, timing, members, collections, fleet,
                        at, which, polled, made,
                    )  # fmt: skip
            if collections.due[g] >= until:
                break
            begun = collections.due[g]
            if looked < len(listing):
                listing[looked, 0] = begun
                listing[looked, 1] = collections.cost[g]
            looked += 1
            made = _list(
                g, begun, price, starts, times, seen, modified, groups, grouped, told_at, shown_at, member, signals_from,
                place, always, marks, columns, shared, timing, members, collections, fleet, at, row, which, polled, made,
            )  # fmt: skip
            collections.due[g] = begun + collections.interval[g]
    return made, looked


@compiled
def _list(
    g: int, now: float, price: float, starts: Integers, times: Floats, seen: Integers, modified: bool,
    groups: Integers, grouped: Integers, told_at: Floats, shown_at: Floats, member: Integers, signals_from: Integers,
    place: Integers, always: bool, marks: Floats, columns: LearnerColumns, shared: Shared, timing: SharedTiming, members: MemberColumns,
    collections: CollectionColumns, fleet: Floats, at: Scratch, row: Floats, which: Integers, polled: Floats, made: int,
) -> int:  # fmt: skip
    """Poll one collection: what is on show since the last time, and the members that this makes worth a poll."""
    before = collections.asof[g]
    first = place[g]
    last = first
    while last < signals_from[g + 1] and shown_at[last] <= now:
        last += 1
    place[g] = last
    size = groups[g + 1] - groups[g]
    entries = int(collections.entries[g])
    if entries > 0 and last - first > entries:
        first = last - entries
        # What scrolled out is seen: the oldest entry on show is newer than the last listing.
        collections.uncovered[g] += max(told_at[first] - before, 0.0)
    expected, heard = 0.0, 0
    for j in range(groups[g], groups[g + 1]):
        expected += -math.expm1(-members.rate[grouped[j]] * (now - before))
    count = size if always else last - first
    for k in range(count):
        i = grouped[groups[g] + k] if always else member[first + k]
        if marks[i] < now:
            marks[i] = now
            heard += 1
    collections.spoken[g] = 0.8 * collections.spoken[g] + 0.2 * heard / size
    collections.foretold[g] = 0.8 * collections.foretold[g] + 0.2 * expected / size
    collections.asof[g] = now
    if collections.spoken[g] > _SHOUTED and collections.foretold[g] < _EXPECTED:
        collections.uncovered[g] += now - before
        return made
    for k in range(count):
        i, told = (grouped[groups[g] + k], now) if always else (member[first + k], told_at[first + k])
        if told < before - collections.late[g]:
            late(g, told, before, collections)
        if told > columns.last[i]:
            if members.signals[i] == 0 or members.told[i] <= before:
                members.signals[i] = min(members.signals[i] + 1, 1000)
            members.told[i] = told
    if collections.used[g]:
        for k in range(count):
            i, told = (grouped[groups[g] + k], now) if always else (member[first + k], told_at[first + k])
            if members.signals[i] > 0 and members.told[i] == told and worth_polling(
                i, g, now, price, columns, shared, members, collections, fleet, at, row
            ):  # fmt: skip
                made = _poll(
                    i, g, now, starts, times, seen, modified, columns, shared, timing, members, collections, fleet, at,
                    which, polled, made,
                )  # fmt: skip
    return made
