"""Collections of a fleet: what their listings told of members, what that was worth, and when both are due.

Rules of this file:
1. A collection is a row of the fleet like any source; its members are rows too. A source that several collections tell
   of goes by the first of them.
2. Members of a collection that is not trusted, does not pay or fails are due as if there were none.
3. All is columns beside the learner's; what is kept of them goes by sources' numbers, and survives edits of the fleet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers, expected_cost
from unstale.core.learning.learner import Learner
from unstale.core.signals.choices import Mind, look, next_unasked, pending, renew_rates, worth_polling
from unstale.core.signals.hearing import hear, taught
from unstale.core.signals.pricing import price_near
from unstale.core.signals.scalars import plain_table
from unstale.core.signals.trust import collection_columns, judge, member_columns, precision_of, silence_of, unproven

#: trial listings take at most this share of the budget, those of collections that are new another
_TRIAL, _NEW = 0.005, 0.05
#: in logarithms: the price moves no further at once while signals are used, and while they are not
_FARTHEST, _FREE = 0.7, 12.0
#: intervals that are tried for a listing
_GRID = 32
#: what is kept of a collection: all that was learned, and what the last plan made of it
_KEPT = (
    "entries",
    "asof",
    "uncovered",
    "hits",
    "tries",
    "silent",
    "watched",
    "credit",
    "found",
    "expected",
    "lessons",
    "late",
    "spoken",
    "foretold",
    "came",
    "within",
    "trusted",
    "used",
    "interval",
)


@dataclass(frozen=True, slots=True)
class Group:
    """A collection and its members by their numbers in the fleet; `entries` is a feed's length, 0: it shows all."""

    collection: int
    members: Integers
    entries: int = 0
    #: when its last signal says that each member changed; -inf: never, None: no signal is known
    told: Floats | None = None


@dataclass(frozen=True, slots=True)
class Worth:
    """What is known of a collection: its trust, and what it brings at today's price."""

    members: int
    #: whether its signals are believed, whether it pays to list it, whether it is still to be found out
    trusted: bool
    used: bool
    new: bool
    #: seconds between listing polls
    interval: float
    #: share of its signals that are true, share of changes that it does not signal, seconds it may be late
    precision: float
    silence: float
    late: float
    credit: float
    heard_at: float


class Collected:
    """The collections of one fleet, in columns beside its learner's."""

    def __init__(self, learner: Learner, ids: Integers, groups: Sequence[Group], now: float) -> None:
        self._learner, self._ids = learner, ids
        known = [g for g in groups if _rows(ids, np.array([g.collection])).size]
        self.rows = _rows(ids, np.array([g.collection for g in known], dtype=np.int64))
        count = len(ids)
        #: the collection of each row, and of each row that is one; -1: none
        self.home, self.number = np.full(count, -1, np.int64), np.full(count, -1, np.int64)
        self.number[self.rows] = np.arange(len(known))
        parts = []
        for g, group in enumerate(known):
            rows = _rows(ids, np.unique(group.members))
            rows = rows[(self.home[rows] < 0) & (self.number[rows] < 0)]
            self.home[rows] = g
            parts.append(rows)
        self.which = np.concatenate([*parts, np.empty(0, np.int64)]).astype(np.int64)
        self.starts = np.concatenate([[0], np.cumsum([len(part) for part in parts])]).astype(np.int64)
        cost = learner.columns.cost[self.rows]
        self.members = member_columns(count, now)
        self.members.rate[:] = 1.0 / learner.scale
        self.collections = collection_columns(cost, np.array([float(g.entries) for g in known]), now)
        self.fleet = np.zeros(5)
        self._budget = max(float(learner.columns.cost.sum()) / learner.scale, 1e-300)
        scale = learner.scale
        self._trial = max(float(cost.sum()) / (_TRIAL * self._budget), scale)
        self._pause = np.full(len(known), self._trial)
        least = max(0.5 * float(cost.min(initial=1.0)) / self._budget, 1e-4 * scale)
        self._grid = np.geomspace(least, max(self._trial, 3.0 * scale, 2.0 * least), _GRID)
        self._table, self._row = plain_table(), np.zeros(learner.columns.rows.shape[1])
        for group in known:
            self._remember(group)
        self._settle()

    def hear(self, row: int, now: float, members: Integers, told: Floats, hole: float, price: float) -> Integers:
        """A listing poll told that these rows changed at these times; which of them are worth a poll at once."""
        g = int(self.number[row])
        mine = self.home[members] == g
        rows, times = members[mine].astype(np.int64), np.asarray(told, np.float64)[mine]
        whole, mind = self.which[self.starts[g] : self.starts[g + 1]], self._mind()
        if not hear(g, now, rows, np.minimum(times, now), hole, whole, mind) or not self.collections.used[g]:
            return np.empty(0, np.int64)
        awake = np.isfinite(self._learner.columns.last[rows])
        return np.array(
            [i for i in np.unique(rows[awake]).tolist() if worth_polling(i, g, now, price, mind)], dtype=np.int64
        )

    def shows(self, row: int, entries: int) -> None:
        """The collection in this row shows only so many of its last changes."""
        self.collections.entries[self.number[row]] = float(entries)

    def learn(self, rows: Integers, polled_at: Floats, changed: Bits, modified: Floats) -> Floats:
        """Teach what polls found; the times of the signals by which beliefs were taught, NaN elsewhere."""
        by = np.full(len(rows), np.nan)
        alone = self.home[rows] < 0
        self._learner.observe(rows[alone], polled_at[alone], changed[alone], modified[alone])
        mind = self._mind()
        for k in np.flatnonzero(~alone).tolist():
            i = int(rows[k])
            by[k] = taught(i, int(self.home[i]), float(polled_at[k]), bool(changed[k]), float(modified[k]), mind)
        return by

    def price_for(self, cost: float, now: float, until: float, guess: float, failing: Bits) -> float:
        """The price at which polls and listing polls between now and `until` cost so much; sets all intervals."""
        mind, collections, columns = self._mind(), self.collections, self._learner.columns
        judge(collections, self.fleet)
        self._settle()
        renew_rates(self.starts, self.which, mind)
        trusted, dead = collections.trusted.copy(), failing[self.rows]
        # A listing that fails tells nothing: its members are on their own until it is back.
        collections.trusted[dead] = False
        awake = np.isfinite(columns.last) & (self.number < 0)

        def spending(price: float) -> float:
            spent = look(price, self.starts, self.which, self._grid, self._table, mind) * (until - now)
            spent += pending(price, now, self.starts, self.which, mind)
            idle = ~collections.used & ~dead
            spent += float((collections.cost / self._pause)[idle].sum()) * (until - now)
            alone = np.flatnonzero(awake & ~self._listed())
            return spent + expected_cost(alone, price, now, until, columns, mind.shared, mind.timing, mind.at)

        farthest = _FARTHEST if collections.trusted.any() else _FREE
        price = price_near(guess, farthest, spending, max(cost, 1e-9))
        spending(price)
        collections.trusted[:] = trusted
        return price

    def due(self, rows: Integers, now: float, price: float, planned: Floats) -> Floats:
        """When these rows are due, given when they would be without collections."""
        due, columns, mind, collections = planned.copy(), self._learner.columns, self._mind(), self.collections
        listed = self._listed()
        for k in np.flatnonzero(listed[rows] | (self.number[rows] >= 0)).tolist():
            i = int(rows[k])
            if (g := int(self.number[i])) >= 0:
                pause = min(collections.interval[g], self._pause[g])
                due[k] = columns.last[i] + min(max(pause, columns.shortest[i]), columns.longest[i])
                continue
            g = int(self.home[i])
            # Since it was told, and not since now: who waits longest comes first.
            told = self.members.signals[i] > 0 and worth_polling(i, g, now, price, mind)
            at = min(float(self.members.told[i]), now) if told else next_unasked(i, g, mind)
            due[k] = max(at, columns.last[i] + columns.shortest[i])
        return due

    def worth(self, row: int) -> Worth:
        """What is known of the collection that a row is."""
        g, columns = int(self.number[row]), self.collections
        whole = self.which[self.starts[g] : self.starts[g + 1]]
        some = whole[:1000]
        precise = [precision_of(int(i), g, self.members, columns, self.fleet) for i in some]
        return Worth(
            len(whole),
            bool(columns.trusted[g]),
            bool(columns.used[g]),
            unproven(g, columns),
            float(min(columns.interval[g], self._pause[g])),
            float(np.mean(precise)) if precise else math.nan,
            silence_of(g, columns, self.fleet),
            float(columns.late[g]),
            float(columns.credit[g]),
            float(columns.asof[g]),
        )

    def kept(self) -> bytes:
        """What was learned of collections, by their numbers, in plain JSON."""
        columns = self.collections._asdict()
        said = {
            str(int(self._ids[row])): {
                **{name: _plain(float(columns[name][g])) for name in _KEPT},
                # For those who only read.
                "worth": {name: _plain(value) for name, value in asdict(self.worth(row)).items()},
            }
            for g, row in enumerate(self.rows.tolist())
        }
        return json.dumps({"fleet": self.fleet.tolist(), "collections": said}).encode()

    def restore(self, state: bytes) -> None:
        """Go on with what was kept; collections that it does not name are new."""
        if not state:
            return
        said: Mapping[str, Mapping[str, float | None]] = (whole := json.loads(state))["collections"]
        self.fleet[:] = whole["fleet"]
        columns = self.collections._asdict()
        for g, row in enumerate(self.rows.tolist()):
            own = said.get(str(int(self._ids[row])), {})
            for name in _KEPT:
                if name in own:
                    columns[name][g] = math.inf if own[name] is None else own[name]
            rows = self.which[self.starts[g] : self.starts[g + 1]]
            self.members.uncovered[rows] = self.collections.uncovered[g]
        self._settle()

    def told_of(self, numbers: Integers) -> Floats:
        """When the last signal that is not dealt with says that each of these sources changed; -inf: there is none."""
        told = np.full(len(numbers), -np.inf)
        inside = np.isin(numbers, self._ids)
        rows = _rows(self._ids, numbers)
        told[inside] = np.where(self.members.signals[rows] > 0, self.members.told[rows], -np.inf)
        return told

    def _remember(self, group: Group) -> None:
        """Signals that came before and are not dealt with."""
        if group.told is None:
            return
        order = np.argsort(group.members)
        inside = np.isin(group.members[order], self._ids)
        rows, told = _rows(self._ids, group.members[order]), group.told[order][inside]
        last = self._learner.columns.last[rows]
        pending = (told > last) & (self.home[rows] >= 0)
        self.members.told[rows[pending]], self.members.signals[rows[pending]] = told[pending], 1

    def _settle(self) -> None:
        """How long each collection may go without a listing poll: on trial, or while it is new."""
        new = np.array([unproven(g, self.collections) for g in range(len(self.rows))], dtype=np.bool_)
        often = float(self.collections.cost[new].sum()) / (_NEW * self._budget)
        self._pause[:] = np.where(new, often, self._trial)

    def _listed(self) -> Bits:
        """Which rows go by signals now."""
        listed = np.zeros(len(self.home), np.bool_)
        listed[self.which] = np.repeat(self.collections.used, np.diff(self.starts))
        return listed

    def _mind(self) -> Mind:
        learner = self._learner
        return Mind(
            learner.columns,
            learner.shared,
            learner.timing,
            self.members,
            self.collections,
            self.fleet,
            learner._room,
            self._row,
        )


def _rows(ids: Integers, numbers: Integers) -> Integers:
    """The rows of those numbers that are in the fleet, in the order given."""
    at = np.searchsorted(ids, numbers)
    inside = at < len(ids)
    rows: Integers = at[inside][ids[at[inside]] == numbers[inside]].astype(np.int64)
    return rows


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
