"""Decisions about a whole fleet, row by row: what polls taught, and when each source is due at today's price.

Rules of this file:
1. A row is *awake* while it waits for a poll whose time the price decides. One that has never answered, that failed,
   that is being polled or paused is asleep: its `last` is infinite for the learner, so the price does not count on it.
2. A failure teaches nothing: `answered` stays, so the next answer covers the whole time since the last one.
3. The formula of a due time is in `core.learning.due`, for the live fleet and the backtest alike.
"""

from __future__ import annotations

from typing import Any, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.keeper.collected import Collected
from unstale.keeper.due_times import DueTimes
from unstale.keeper.paying import PaidRows
from unstale.keeper.pressing import PressedRows

Integers = NDArray[np.int64]
#: whole numbers of any size
Wholes = NDArray[np.integer[Any]]
Bits = NDArray[np.bool_]

#: sources beyond this many are thinned by how late they are, before it is asked what they are worth
_WEIGHED = 1_000
#: seconds: who is asked for at once is due since ever
_LATEST = 1e12
#: a due time is moved when it is wrong by more than this share of the time that is planned
_MOVED = 0.1
#: rows that are looked at together, and all of them
_PART, _ALL = 100_000, slice(0, None)


class RowState(TypedDict, total=False):
    """What a store knows of each row; without it nothing was polled, nothing is paused, and hosts have no caps."""

    answered: Floats
    found: Floats
    failures: Wholes
    paused: Bits
    host: Wholes
    cap: Floats
    #: whose costs somebody has stated: they are not learned
    stated: Bits


class FleetRows(PaidRows, PressedRows):
    """A fleet in columns; row i is source number `ids[i]`, ids rising. `unstale.Scheduler` gives them names and life.

    `due_at` is when each is due as far as was told. `host` numbers the hosts, `cap` are their most polls per second.
    """

    def __init__(self, learner: Learner, ids: Integers, *, due: Floats, **state: Unpack[RowState]) -> None:
        count, none = len(ids), np.zeros(len(ids), np.int64)
        self.learner, self.ids, self.due_at = learner, ids, np.array(due, dtype=np.float64)
        self.answered = np.array(state.get("answered", np.full(count, -np.inf)), dtype=np.float64)
        # A large fleet has a few bytes less of each source: nobody fails two billion times.
        self.failures = state.get("failures", none).astype(np.int32)
        self.paused = state.get("paused", np.zeros(count, np.bool_))
        self.stated = state.get("stated", np.zeros(count, np.bool_))
        host = state.get("host", none)
        self.cap = state.get("cap", np.full(int(host.max(initial=0)) + 1, np.inf))
        self.host: Wholes = host.astype(np.min_scalar_type(-len(self.cap)))
        self.surcharge = np.ones(len(self.cap))
        #: what collections tell of sources; None where there is no collection
        self.collected: Collected | None = None
        #: the time of the signal by which the last poll of each source taught its belief, NaN if by none; one for all
        #: where there is no collection
        self.told: Floats = np.broadcast_to(np.nan, count)
        #: whether polls teach; if not, beliefs stay what they are
        self.learns = True
        #: the time until which a source was asked, or its host had, to be left alone
        self.not_before = np.full(count, -np.inf)
        #: who was asked for before its time: due then, whatever the price is, until it is polled
        self.asked = np.zeros(count, np.bool_)
        #: for how long what is known then stays all that a replica that we follow can tell; one for all until we do
        self.lasting: Floats = np.broadcast_to(0.0, count)
        #: any will do where nothing weighs, as long as it is one
        self.price = (learner.typical_price() if count else 0.0) or 1.0
        #: without surcharges; the learner's own column as long as there were none
        self.weight = learner.columns.weight
        columns = learner.columns
        known = np.isfinite(self.answered)
        columns.found[:] = np.where(
            known, np.maximum(state["found"], 0.0) if "found" in state else self.answered, np.inf
        )
        columns.last[:] = np.where(known & (self.failures == 0) & ~self.paused, self.answered, np.inf)
        #: what a poll of each cost when the fleet was made, by which its mean interval was found
        self._cost = float(columns.cost[~self.paused].sum())

    def awake(self) -> Bits:
        """Which sources wait for a poll whose time the price decides."""
        return np.isfinite(self.learner.columns.last)

    def hold(self, rows: Integers) -> None:
        """These are being polled."""
        self.learner.columns.last[rows] = np.inf

    def put_back(self, rows: Integers, due: Floats) -> None:
        """These were held and not polled; they are due at these times."""
        fine = np.isfinite(self.answered[rows]) & (self.failures[rows] == 0)
        self.learner.columns.last[rows] = np.where(fine, self.answered[rows], np.inf)
        self.due_at[rows] = self.not_before[rows] = due

    def ask(self, rows: Integers, due: Floats) -> None:
        """Somebody else has said when these are due: who is asked for sooner than planned is not moved any more."""
        self.asked[rows] |= due < self.due_at[rows]
        self.due_at[rows] = due

    def due_times(self) -> DueTimes:
        """When everybody is due, and after which poll."""
        return DueTimes(self.ids, self.due_at, self.answered, self.failures, self.asked)

    def asked_since(self, before: DueTimes) -> None:
        """This fleet was read before: who is due sooner now, without having been polled, was asked for."""
        _, mine, its = np.intersect1d(self.ids, before.ids, assume_unique=True, return_indices=True)
        same = (self.answered[mine] == before.answered[its]) & (self.failures[mine] == before.failures[its])
        # Who was paused is due again when it would have been.
        sooner = (self.due_at[mine] < before.due[its]) & np.isfinite(before.due[its])
        self.asked[mine] = same & (before.asked[its] | sooner)

    def foremost(self, rows: Integers, now: float, most: int) -> Integers:
        """At most so many of these rows, which are due: those worth the most times their price, the most first.

        Between equals, who was due first.
        """
        late = now - self.due_at[rows]
        if len(rows) > max(_WEIGHED, 2 * most):
            # By how late they are in their own intervals, which is about the same while values grow.
            share = late / self.learner.columns.interval[rows]
            chosen = np.argpartition(-share, max(_WEIGHED, 2 * most))[: max(_WEIGHED, 2 * most)]
            rows, late = rows[chosen], late[chosen]
        if len(rows) <= most:
            urgent = np.zeros(len(rows))
        else:
            urgent = self.learner.urgency(rows, np.clip(late, 0.0, _LATEST), self.price)
        first: Integers = rows[np.lexsort((rows, -late, -urgent))[:most]]
        return first

    def decide(
        self,
        rows: Integers,
        answered: Bits,
        polled_at: Floats,
        changed: Bits,
        modified: Floats | None = None,
        not_before: Floats | None = None,
        by_peers: Bits | None = None,
        followed: Bits | None = None,
    ) -> Floats:
        """When sources are due again after polls: one jittered interval after the look, at today's price.

        A failed poll takes the same road, from the third in a row on with a longer interval: doubled for each of them,
        64-fold at most, and spread by half of itself. `not_before` is a time that the source asked to be left alone
        until; it may exceed `longest`. What others saw, `by_peers`, teaches, but leaves our own turn where it was: else
        all who were told by one would look at once when that is old, and never again between. Of a replica that is
        `followed`, `not_before` is when it looks next, and nothing new comes from then until it looks again: so we look
        then.
        """
        columns, good, bad = self.learner.columns, rows[answered], rows[~answered]
        before, turn = self.answered[good], self.answered[good] - columns.head_start[good]
        columns.last[good] = np.where(np.isfinite(before), before, np.inf)
        told = np.full(len(rows), np.nan) if modified is None else modified
        if self.told.flags.writeable:
            self.told[rows] = np.nan
        if self.learns and self.collected is not None:
            if not self.told.flags.writeable:
                self.told = np.full(len(self.ids), np.nan)
            self.told[good] = self.collected.learn(good, polled_at[answered], changed[answered], told[answered])
        elif self.learns:
            self.learner.observe(good, polled_at[answered], changed[answered], told[answered])
        else:
            columns.last[good] = polled_at[answered]
        columns.found[good] = np.where(np.isfinite(columns.found[good]), columns.found[good], polled_at[answered])
        self.answered[good] = polled_at[answered]
        self.failures[rows] = np.where(answered, 0, self.failures[rows] + 1)
        columns.last[bad] = np.inf
        planned, ids = np.empty(len(rows)), self.ids
        if by_peers is not None:
            kept = by_peers[answered] & np.isfinite(turn)
            columns.head_start[good[kept]] = (polled_at[answered] - turn)[kept]
        if len(good):
            planned[answered] = self._after_answers(good, float(polled_at[answered].max()))
        if len(bad):
            planned[~answered] = self.learner.due_after_failures(
                bad, ids[bad], polled_at[~answered], self.failures[bad].astype(np.int64), self.price
            )
        self.not_before[rows] = -np.inf if not_before is None else not_before
        self.asked[rows] = False
        if followed is not None and (followed.any() or self.lasting[rows].any()):
            if not self.lasting.flags.writeable:
                self.lasting = np.zeros(len(self.ids))
            self.lasting[rows] = 0.0
            self.lasting[rows[followed]] = np.maximum(self.not_before[rows] - polled_at, 0.0)[followed]
        due = self._awaited(rows, planned)
        self.due_at[rows] = due
        return due

    def plan(self, cost: float, now: float, until: float) -> float:
        """The price at which what falls due until then costs so much, hosts' caps kept by surcharges."""
        columns = self.learner.columns
        waiting = (self.failures > 0) & ~self.paused & (self.due_at < until)
        left = max(cost - float(columns.cost[waiting].sum()), 0.0)
        if self.awake().any() and self.weight.any():
            held = self.press_hosts(now, until)
            if self.collected is None or not self.collected.speaks():
                self.price = self.learner.price_for(left, now, until, self.price, ids=self.ids)
            else:
                self.price = self.collected.price_for(left, now, until, self.price, self.failures > 0)
            self.press(held)
        return self.price

    def put_aside(self, now: float = np.inf) -> float:
        """What of the budget is kept until now for polls that listings will bring at once; without it, at the most."""
        return 0.0 if self.collected is None else self.collected.put_aside(now)

    def horizon(self, now: float, until: float) -> float:
        """The time up to which a plan made now should spend the budget, if the next one is made then."""
        return until if self.collected is None else max(until, now + self.collected.ahead)

    def review(self) -> None:
        """Look at the fleet as a whole: its prior, its week and its bursts, and what signals mean for half-lives."""
        (self.learner if self.collected is None else self.collected).review()

    def moves(self, now: float, until: float) -> tuple[Integers, Floats]:
        """Which waiting sources fall due at other times than the store was told, and when, as far as it matters soon.

        Only times before `until`, told or new, are looked at: what is far off will be planned again before it comes.
        """
        found = [self._moves(part, now, until) for part in self.parts()]
        rows, due = (np.concatenate(column) for column in zip(*found, strict=True))
        return rows, due

    def moved(self, rows: Integers, due: Floats) -> None:
        """The store has been told of new due times."""
        self.due_at[rows] = due

    def hear(self, row: int, now: float, members: Integers, told: Floats, hole: float = 0.0) -> Integers:
        """A listing poll of the collection in this row, but for a `hole`: these changed then. Those now due."""
        if self.collected is None or self.collected.number[row] < 0:
            return np.empty(0, np.int64)
        rows = self.collected.hear(row, now, members, told, hole, self.price)
        rows = rows[~self.paused[rows] & (self.due_at[rows] > now) & (self.not_before[rows] <= now)]
        at = self.collected.members.told[rows]
        # Who is told of what is known already may be worth a poll for what nobody tells.
        self.due_at[rows] = np.where(np.isfinite(at), np.minimum(at, now), now)
        return rows

    def push(self, channel: int, rows: Integers, now: float) -> Integers:
        """A channel (`pushing`) says that these rows, each once, have changed. Those to be polled now."""
        if self.collected is None:
            self.collected = Collected(self.learner, self.ids, (), now)
        follow = self.collected.push(channel, rows, now, self.price, self.collected.number[rows] < 0)
        return rows[follow & ~self.paused[rows] & (self.not_before[rows] <= now)]

    def planned(self, now: float, part: slice = _ALL) -> Floats:
        """When each source that is awake is due at today's price; the others never. Of a part of all rows."""
        awake = self.awake()[part]
        due, mine = np.full(len(awake), np.inf), np.flatnonzero(awake)
        rows = mine + part.start
        due[mine] = self._awaited(rows, self._after_answers(rows, now))
        return due

    def parts(self) -> list[slice]:
        """All rows, a part at a time: columns of all that is looked at would be as much again as is known."""
        size = _PART if self.collected is None else max(len(self.ids), 1)
        return [slice(begin, begin + size) for begin in range(0, len(self.ids) or 1, size)]

    def _moves(self, part: slice, now: float, until: float) -> tuple[Integers, Floats]:
        new, told = self.planned(now, part), self.due_at[part]
        soon = np.minimum(new, told) < until
        wrong = np.abs(np.minimum(new, until) - np.minimum(told, until)) > _MOVED * (until - now)
        mine = np.flatnonzero(self.awake()[part] & soon & wrong & ~self.asked[part])
        return mine + part.start, new[mine]

    def _awaited(self, rows: Integers, planned: Floats) -> Floats:
        """Planned times, not before whoever is asked may know more, and right then if it will not until much later."""
        when: Floats = np.where(planned < self.not_before[rows] + self.lasting[rows], self.not_before[rows], planned)
        return when

    def _after_answers(self, rows: Integers, now: float) -> Floats:
        """When sources that answered are due at today's price."""
        planned, columns = self.learner.due_after_answers(rows, self.ids[rows], self.price), self.learner.columns
        if self.learner.siblings is not None:
            # Whatever siblings foretell, bounds are promises.
            last, told = columns.last[rows], self.learner.siblings.sooner[rows] != 0.0
            kept = np.clip(planned, last + columns.shortest[rows], last + columns.longest[rows])
            planned = np.where(told, kept, planned)
        return planned if self.collected is None else self.collected.due(rows, now, self.price, planned)
