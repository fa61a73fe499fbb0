"""Collections of a fleet: what their listings told of members, what that was worth, and when both are due.

Rules of this file:
1. A collection is a row of the fleet like any source; its members are rows too. A source that several collections tell
   of goes by the first of them.
2. What is kept goes by sources' numbers, and survives edits of the fleet; decisions are those of `signals`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers
from unstale.core.learning.learner import Learner
from unstale.core.signals.saved import polls_for
from unstale.core.signals.scalars import pushed
from unstale.core.signals.trust import own_precision, shared_precision, silence_of, unproven
from unstale.keeper.signals import Signals

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
    "counted",
    "often",
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
    #: polls a second, in units of cost, that it would take more to be as fresh without it
    saved: float


class Collected(Signals):
    """The collections of one fleet, in columns beside its learner's."""

    def __init__(self, learner: Learner, ids: Integers, groups: Sequence[Group], now: float) -> None:
        self._ids = ids
        known = [g for g in groups if _rows(ids, np.array([g.collection])).size]
        self.rows = _rows(ids, np.array([g.collection for g in known], dtype=np.int64))
        #: the collection that each row is; -1: none
        self.number = np.full(len(ids), -1, np.int64)
        self.number[self.rows] = np.arange(len(known))
        free, parts = self.number < 0, []
        for group in known:
            rows = _rows(ids, np.unique(group.members))
            rows = rows[free[rows]]
            free[rows] = False
            parts.append(rows)
        entries = np.array([float(g.entries) for g in known])
        super().__init__(learner, parts, learner.columns.cost[self.rows], entries, now)
        for group in known:
            self._remember(group)

    def hear(self, row: int, now: float, members: Integers, told: Floats, hole: float, price: float) -> Integers:
        """A listing poll told that these rows changed at these times; which of them are worth a poll at once."""
        g = int(self.number[row])
        mine = self.home[members] == g
        return self.told(g, now, members[mine].astype(np.int64), np.asarray(told, np.float64)[mine], hole, price)

    def shows(self, row: int, entries: int) -> None:
        """The collection in this row shows only so many of its last changes."""
        self.collections.entries[self.number[row]] = float(entries)

    def price_for(self, cost: float, now: float, until: float, guess: float, failing: Bits) -> float:
        """The price at which polls and listing polls between now and `until` cost so much; sets all intervals."""
        awake = np.isfinite(self._learner.columns.last) & (self.number < 0)
        return self.price_to(cost, now, until, guess, awake, failing[self.rows])

    def due(self, rows: Integers, now: float, price: float, planned: Floats) -> Floats:
        """When these rows are due, given when they would be without collections."""
        due, columns = planned.copy(), self._learner.columns
        mine = self.listed()[rows]
        due[mine] = self.members_due(rows[mine], now, price)
        own = self.number[rows] >= 0
        which = rows[own]
        pause = np.clip(self.intervals()[self.number[which]], columns.shortest[which], columns.longest[which])
        due[own] = columns.last[which] + pause
        return due

    def worth(self, row: int) -> Worth:
        """What is known of the collection that a row is."""
        g, columns = int(self.number[row]), self.collections
        whole = self.which[self.starts[g] : self.starts[g + 1]]
        some = whole[:1000]
        shared, silence = shared_precision(g, columns, self.fleet), silence_of(g, columns, self.fleet)
        counts = zip(self.members.hits[some].tolist(), self.members.tries[some].tolist(), strict=True)
        precise = [own_precision(hits, tries, shared) for hits, tries in counts]
        return Worth(
            len(whole),
            bool(columns.trusted[g]),
            bool(columns.used[g]),
            unproven(g, columns),
            float(self.intervals()[g]),
            float(np.mean(precise)) if precise else math.nan,
            silence,
            float(columns.late[g]),
            float(columns.credit[g]),
            float(columns.asof[g]),
            self._saved(g, some, precise, silence) * len(whole) / max(len(some), 1) if columns.used[g] else 0.0,
        )

    def _saved(self, g: int, some: Integers, precise: Sequence[float], silence: float) -> float:
        """What these members would cost a second without their collection, as fresh as they are, less what they do."""
        span = float(self.intervals()[g])
        cost = self._learner.columns.cost[some].tolist()
        rates, levels = self.members.rate[some].tolist(), self.members.level[some].tolist()
        fresh, polls = np.zeros(len(some)), np.zeros(len(some))
        for k, (rate, level) in enumerate(zip(rates, levels, strict=True)):
            if rate > 0.0 and level < math.inf:
                worth, cycle = pushed(rate, silence, precise[k], level)
                kept = -math.expm1(-rate * span) / (rate * span)
                # A member is as fresh as what it brings and what its polls must bring make together.
                fresh[k], polls[k] = kept * (math.exp(-level) + worth / cycle), kept / cycle
        total = float(((polls_for(rates, fresh) - polls) * cost).sum())
        share = len(some) / max(int(self.starts[g + 1] - self.starts[g]), 1)
        return max(total - share * float(self.collections.cost[g]) / span, 0.0)

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


def _rows(ids: Integers, numbers: Integers) -> Integers:
    """The rows of those numbers that are in the fleet, in the order given."""
    at = np.searchsorted(ids, numbers)
    inside = at < len(ids)
    rows: Integers = at[inside][ids[at[inside]] == numbers[inside]].astype(np.int64)
    return rows


def _plain(value: float) -> float | None:
    return value if math.isfinite(value) else None
