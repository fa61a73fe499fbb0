"""Collections of a fleet: what their listings told of members, what that was worth, and when both are due.

Rules of this file:
1. A collection is a row of the fleet like any source; its members are rows too. A source that several collections tell
   of goes by the best of them (`overlap`).
2. What is kept goes by sources' numbers, and survives edits of the fleet; decisions are those of `signals`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits, Integers
from unstale.core.learning.learner import Learner
from unstale.core.signals.columns import CollectionColumns
from unstale.core.signals.saved import polls_for
from unstale.core.signals.scalars import pushed
from unstale.core.signals.trust import judge, own_precision, shared_precision, silence_of, unproven
from unstale.frozen import dataclass
from unstale.keeper.followed import FollowedSignals
from unstale.listings.records import CHANNELS

#: what is kept of a collection: all that was learned, and what the last plan made of it
_KEPT = tuple(name for name in CollectionColumns._fields if name not in ("cost", "since", "due", "push"))


#: what is counted of each member, as it is kept
_COUNTS = np.dtype([("source", "<i8"), ("hits", "<f4"), ("tries", "<f4"), ("heard", "<u2")])


@dataclass(frozen=True, slots=True)
class Group:
    """A collection and its members by their numbers in the fleet; `entries` is a feed's length, 0: it shows all.

    A number below 0 is that of a channel by which signals are pushed.
    """

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


class Collected(FollowedSignals):
    """The collections and channels of one fleet, in columns beside its learner's."""

    def __init__(self, learner: Learner, ids: Integers, groups: Sequence[Group], now: float) -> None:
        self._ids = ids
        known = [g for g in groups if _rows(ids, np.array([g.collection])).size]
        self.rows = _rows(ids, np.array([g.collection for g in known], dtype=np.int64))
        told = {group.collection: group for group in groups}
        self.channels = {number: len(known) + k for k, number in enumerate(CHANNELS.values())}
        #: the collection that each row is; -1: none
        self.number = np.full(len(ids), -1, np.int64)
        self.number[self.rows] = np.arange(len(known))
        known += [told.get(number, Group(number, np.empty(0, np.int64))) for number in CHANNELS.values()]
        #: the number of each collection, in the fleet or as a channel
        self.numbers = [group.collection for group in known]
        free = self.number < 0
        parts = [rows[free[rows]] for rows in (_rows(ids, np.unique(group.members)) for group in known)]
        entries = np.array([float(g.entries) for g in known])
        push = np.array([group.collection < 0 for group in known], dtype=np.bool_)
        cost = np.zeros(len(known))
        cost[~push] = learner.columns.cost[self.rows]
        super().__init__(learner, parts, cost, entries, now, push)
        self.begin_channels()
        for group in known:
            self._remember(group)

    def hear(self, row: int, now: float, members: Integers, told: Floats, hole: float, price: float) -> Integers:
        """A listing poll told that these rows changed at these times; which of them are worth a poll at once."""
        mine = self.home[members] >= 0
        told = np.asarray(told, np.float64)[mine]
        return self.told(int(self.number[row]), now, members[mine].astype(np.int64), told, hole, price)

    def costs(self, rows: Integers) -> None:
        """What polls of these rows cost was learned: listing polls among them cost that."""
        mine = self.number[rows] >= 0
        self.collections.cost[self.number[rows[mine]]] = self._learner.columns.cost[rows[mine]]

    def shows(self, row: int, entries: int) -> None:
        """The collection in this row shows only so many of its last changes."""
        self.collections.entries[self.number[row]] = float(entries)

    def finds(self, row: int, worth: float, elapsed: float) -> None:
        """A poll of the collection in this row has found new members that are worth so much, after so long."""
        if self.number[row] >= 0:
            self.found(int(self.number[row]), worth, elapsed)

    def price_for(self, cost: float, now: float, until: float, guess: float, failing: Bits) -> float:
        """The price at which polls and listing polls between now and `until` cost so much; sets all intervals."""
        self.attend(now)
        awake = np.isfinite(self._learner.columns.last) & (self.number < 0)
        dead = np.zeros(len(self.numbers), np.bool_)
        dead[: len(self.rows)] = failing[self.rows]
        return self.price_to(cost, now, until, guess, awake, dead)

    def speaks(self) -> bool:
        """Whether anything is to be planned by signals: there is a collection, or a channel that is trusted."""
        judge(self.collections, self.fleet)
        self.collections.used[~self.collections.trusted] = False
        return len(self.rows) > 0 or bool(self.collections.trusted.any())

    def learn(self, rows: Integers, polled_at: Floats, changed: Bits, modified: Floats) -> Floats:
        """Teach what polls found; the times of the signals by which beliefs were taught, NaN elsewhere."""
        self.attend(float(polled_at.max(initial=-np.inf)))
        return super().learn(rows, polled_at, changed, modified)

    def due(self, rows: Integers, now: float, price: float, planned: Floats) -> Floats:
        """When these rows are due, given when they would be without collections."""
        self.attend(now)
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
        return self.worth_of(int(self.number[row]))

    def worth_of(self, g: int) -> Worth:
        """What is known of a collection or channel by its place."""
        columns = self.collections
        whole = self.which[self.starts[g] : self.starts[g + 1]]
        some = whole[:1000]
        shared, silence = shared_precision(g, columns, self.fleet), silence_of(g, columns, self.fleet)
        counts = zip(self.members.hits[some].tolist(), self.members.tries[some].tolist(), strict=True)
        precise = [own_precision(hits, tries, shared) for hits, tries in counts]
        return Worth(
            self.tells_of(g),
            bool(columns.trusted[g]),
            bool(columns.used[g]),
            unproven(g, columns),
            float(self.intervals()[g]),
            float(np.mean(precise)) if precise else shared,
            silence,
            float(columns.late[g]),
            float(columns.credit[g]),
            float(columns.asof[g]),
            self._saved(g, some, precise, silence) * len(whole) / max(len(some), 1)
            if columns.used[g] and not self._aged
            else 0.0,
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
        said = {
            str(number): {
                **self.learned_of(g),
                # For those who only read.
                "worth": {name: _plain(value) for name, value in asdict(worth).items()},
            }
            for g, number in enumerate(self.numbers)
            if (worth := self.worth_of(g)).members or number >= 0
        }
        return json.dumps({"fleet": self.fleet.tolist(), "collections": said}).encode()

    def learned_of(self, g: int) -> dict[str, float | None]:
        """What was learned of a collection or channel by its place, in plain JSON."""
        columns = self.collections._asdict()
        return {name: _plain(float(columns[name][g])) for name in (*_KEPT, "since")}

    def restore(self, state: bytes) -> None:
        """Go on with what was kept; collections that it does not name are new."""
        if not state:
            return
        said: Mapping[str, Mapping[str, float | None]] = (whole := json.loads(state))["collections"]
        self.fleet[:] = whole["fleet"]
        columns = self.collections._asdict()
        for g, number in enumerate(self.numbers):
            own = said.get(str(number), {})
            for name in _KEPT:
                if name in own:
                    columns[name][g] = math.inf if own[name] is None else own[name]
            rows = self.which[self.starts[g] : self.starts[g + 1]]
            self.members.uncovered[rows] = self.collections.uncovered[g]
        self.overlap.words.uncovered[:] = self.collections.uncovered[self.overlap.of]
        self._settle()

    def counts(self, of: int | None = None) -> bytes:
        """How often each source was signalled, and how often that was true: rows of number, hits, tries and signals.

        All, or the members of one collection by its place.

        >>> import numpy as np
        >>> learner = Learner(2, 60.0)
        >>> mine = Collected(learner, np.array([1, 2]), [Group(1, np.array([2]))], now=0.0)
        >>> mine.members.hits[1], mine.members.tries[1] = 2.0, 3.0
        >>> again = Collected(learner, np.array([1, 2]), [Group(1, np.array([2]))], now=0.0)
        >>> again.recount(mine.counts())
        >>> again.members.tries.tolist()
        [0.0, 3.0]
        """
        known = (self.members.tries > 0.0) | (self.members.heard > 0)
        rows = np.flatnonzero(known if of is None else known & (self.home == of))
        told = np.empty(len(rows), _COUNTS)
        told["source"] = self._ids[rows]
        for name in ("hits", "tries", "heard"):
            told[name] = getattr(self.members, name)[rows]
        return told.tobytes()

    def recount(self, counts: bytes) -> None:
        """Go on with what was counted; sources that are gone are passed over."""
        told = np.frombuffer(counts, _COUNTS) if len(counts) % _COUNTS.itemsize == 0 else np.empty(0, _COUNTS)
        told = told[np.isin(told["source"], self._ids)]
        rows = _rows(self._ids, told["source"].astype(np.int64))
        for name in ("hits", "tries", "heard"):
            getattr(self.members, name)[rows] = told[name]

    def told_of(self, numbers: Integers) -> Floats:
        """When the last signal that is not dealt with says that each of these sources changed; -inf: there is none."""
        told = np.full(len(numbers), -np.inf)
        inside = np.isin(numbers, self._ids)
        rows = _rows(self._ids, numbers)
        told[inside] = np.where(self.members.signals[rows] > 0, self.members.told[rows], -np.inf)
        return told

    def pushed_groups(self) -> list[Group]:
        """The channels that have told of anybody, with their members and the signals that are not dealt with."""
        groups = []
        for number, g in self.channels.items():
            rows = np.union1d(np.flatnonzero(self.home == g), self.overlap.row[self.overlap.of == g])
            if len(rows):
                groups.append(Group(number, self._ids[rows], 0, self.told_of(self._ids[rows])))
        return groups

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
