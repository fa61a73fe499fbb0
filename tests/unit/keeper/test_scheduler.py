"""The keeper of a fleet under any order of polls, failures, put-backs and plans, with times that jump."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from unstale.core.learning.learner import Learner
from unstale.keeper.outcomes import Outcome
from unstale.keeper.scheduler import Scheduler

START = 1_700_000_000.0
#: seconds by which sums of times since the epoch may be rounded, also ten years on
ROUNDED = 2e-6

waits = st.floats(-3.0, 8.5).map(lambda x: 10.0**x)
one_source = st.fixed_dictionaries(
    {
        "weight": st.sampled_from([0.0, 1e-6, 0.3, 1.0, 1e6]),
        "cost": st.sampled_from([1e-3, 1.0, 40.0]),
        "shortest": st.sampled_from([0.0, 0.0, 0.5, 30.0]),
        "longest": st.sampled_from([0.01, 0.7, 2.0, 30.0, 1e300]),
        "host": st.integers(0, 2),
        "paused": st.sampled_from([False, False, False, True]),
        "answered": st.sampled_from([-math.inf, 0.0, 0.5, 5.0]),
        "failures": st.sampled_from([0, 0, 1, 7, 200]),
    }
)
poll_of_one = st.fixed_dictionaries(
    {
        "answered": st.sampled_from([True, True, False]),
        "changed": st.booleans(),
        "modified": st.sampled_from([math.nan, math.nan, 0.0, 1.0, 1e4]),
        "asked": st.sampled_from([0.0, 0.0, 0.0, 3.0, 1e7]),
    }
)


class KeeperMachine(RuleBasedStateMachine):
    """A keeper beside the little that everybody can work out by hand: who answered when, who failed how often."""

    @initialize(
        sources=st.lists(one_source, min_size=1, max_size=6),
        scale=st.sampled_from([0.02, 60.0, 1e5]),
        objective=st.sampled_from(["freshness", "age"]),
        caps=st.lists(st.sampled_from([math.inf, 1e-3, 0.5, 3.0]), min_size=3, max_size=3),
    )
    def begin(self, sources: list[dict[str, Any]], scale: float, objective: str, caps: list[float]) -> None:
        column = {name: np.array([source[name] for source in sources]) for name in sources[0]}
        count = len(sources)
        shortest = column["shortest"] * scale
        longest = np.maximum(np.minimum(column["longest"] * scale, 1e300), shortest)
        learner = Learner(
            count,
            scale,
            weight=column["weight"],
            cost=column["cost"],
            shortest=shortest,
            longest=longest,
            objective=objective,
        )
        learner.columns.longest[:] = np.maximum(learner.columns.longest, learner.columns.shortest)
        self.now, self.scale = START, scale
        self.answered = np.where(np.isfinite(column["answered"]), START - column["answered"] * scale, -math.inf)
        self.failures, self.paused = column["failures"].astype(np.int64), column["paused"]
        self.taken = np.zeros(count, dtype=np.bool_)
        self.asked = np.full(count, -math.inf)
        self.due = np.where(self.paused, math.inf, START)
        self.scheduler = Scheduler.of(
            learner,
            np.arange(3, 3 + count),
            due=self.due.copy(),
            answered=self.answered.copy(),
            failures=self.failures.copy(),
            paused=self.paused,
            host=column["host"],
            cap=np.array(caps) / scale,
        )

    @rule(wait=waits)
    def time_passes(self, wait: float) -> None:
        self.now += wait * self.scale if wait < 1e4 else min(wait, 3e8)

    @rule(wait=st.sampled_from([0.1, 1.0, 1e3]))
    def the_clock_goes_back(self, wait: float) -> None:
        self.now -= wait * self.scale

    @precondition(lambda self: not np.all(self.taken | self.paused))
    @rule(data=st.data())
    def take(self, data: st.DataObject) -> None:
        rows = self._some(data, ~self.taken & ~self.paused)
        self.scheduler.hold(rows)
        self.taken[rows] = True

    @precondition(lambda self: self.taken.any())
    @rule(data=st.data())
    def decide(self, data: st.DataObject) -> None:
        rows = self._some(data, self.taken)
        polls = [data.draw(poll_of_one) for _ in rows]
        answered = np.array([poll["answered"] for poll in polls], dtype=np.bool_)
        asked = np.array([self.now + poll["asked"] for poll in polls])
        before = self.scheduler.learner.columns.rows.copy()
        due = self.scheduler.decide(
            rows,
            answered,
            np.full(len(rows), self.now),
            np.array([poll["changed"] for poll in polls], dtype=np.bool_),
            np.array([self.now - poll["modified"] * self.scale for poll in polls]),
            asked,
        )
        taught = np.zeros(len(self.taken), dtype=np.bool_)
        taught[rows[answered]] = np.isfinite(self.answered[rows[answered]]) & (self.answered[rows[answered]] < self.now)
        # A failure, a first answer and a clock that went back teach nothing, nor does a poll teach of other sources.
        assert np.array_equal(self.scheduler.learner.columns.rows[~taught], before[~taught])
        assert np.all(np.any(self.scheduler.learner.columns.rows[taught] != before[taught], axis=1))
        self.answered[rows[answered]] = self.now
        self.failures[rows] = np.where(answered, 0, self.failures[rows] + 1)
        self.taken[rows] = False
        self.asked[rows] = asked
        self._keeps_bounds(rows, np.full(len(rows), self.now), due)
        assert np.all(due >= asked)
        self.due[rows] = due

    @precondition(lambda self: self.taken.any())
    @rule(data=st.data(), wait=waits)
    def put_back(self, data: st.DataObject, wait: float) -> None:
        rows = self._some(data, self.taken)
        due = np.full(len(rows), self.now + min(wait, 1e5))
        self.scheduler.put_back(rows, due)
        self.taken[rows] = False
        self.due[rows] = self.asked[rows] = due

    @rule(share=st.sampled_from([0.0, 1e-3, 0.5, 1.0, 30.0]), ahead=st.sampled_from([0.05, 1.0, 40.0]))
    def plan(self, share: float, ahead: float) -> None:
        until = self.now + ahead * self.scale
        cost = share * ahead * float(self.scheduler.learner.columns.cost.sum())
        price = self.scheduler.plan(cost, self.now, until)
        assert price == self.scheduler.price
        rows, due = self.scheduler.moves(self.now, until)
        assert np.all(self.scheduler.awake()[rows])
        self._keeps_bounds(rows, self.answered[rows], due)
        self.scheduler.moved(rows, due)
        self.due[rows] = due
        # Once the store has been told there is nothing more to tell, beyond how exactly an interval is found.
        rows, due = self.scheduler.moves(self.now, until)
        assert np.all(np.abs(due - self.due[rows]) <= 1e-3 * (due - self.answered[rows]) + ROUNDED)
        settled, dues, surcharge = self.scheduler.awake(), self.scheduler.due_at.copy(), self.scheduler.surcharge
        planned = self.scheduler.planned(self.now)[settled]
        again = self.scheduler.plan(cost, self.now, until)
        assert np.array_equal(self.scheduler.due_at, dues)
        # At the same prices times are the same: nothing is drawn.
        if again == price and np.array_equal(self.scheduler.surcharge, surcharge):
            step = 1e-3 * (planned - self.answered[settled]) + ROUNDED
            assert np.all(np.abs(self.scheduler.planned(self.now)[settled] - planned) <= step)

    @invariant()
    def everything_is_as_it_must_be(self) -> None:
        if not hasattr(self, "keeper"):
            return
        keeper, columns = self.scheduler, self.scheduler.learner.columns
        assert np.array_equal(keeper.answered, self.answered)
        assert np.array_equal(keeper.failures, self.failures)
        assert np.array_equal(keeper.due, self.due)
        assert np.all(np.isfinite(keeper.due) | self.paused)
        awake = np.isfinite(self.answered) & (self.failures == 0) & ~self.taken & ~self.paused
        assert np.array_equal(keeper.awake(), awake)
        assert np.array_equal(columns.last[awake], self.answered[awake])
        assert 0.0 < keeper.price < math.inf
        assert np.all((keeper.surcharge >= 1.0) & np.isfinite(keeper.surcharge))
        assert np.allclose(columns.weight, keeper.weight / keeper.surcharge[keeper.host], rtol=1e-12)
        for name in ("rows", "interval", "weight", "cost", "shortest", "longest"):
            assert np.all(np.isfinite(getattr(columns, name))), name
        assert not np.any(np.isnan(columns.found) | np.isnan(columns.last) | np.isnan(keeper.not_before))

    def _some(self, data: st.DataObject, among: np.ndarray) -> np.ndarray:
        """Some of these rows, rising; perhaps none."""
        rows = np.flatnonzero(among)
        kept = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
        return rows[np.array(kept, dtype=np.bool_)]

    def _keeps_bounds(self, rows: np.ndarray, since: np.ndarray, due: np.ndarray) -> None:
        columns = self.scheduler.learner.columns
        earliest, latest = since + columns.shortest[rows], since + columns.longest[rows]
        assert np.all(due >= earliest - ROUNDED)
        assert np.all(due <= np.maximum(latest, self.asked[rows]) + ROUNDED)


TestKeeperMachine = KeeperMachine.TestCase


def test_what_a_peer_saw_teaches_but_leaves_our_turn() -> None:
    ours, told = (Scheduler(price=1.0, mean_interval=100.0) for _ in range(2))
    for scheduler in (ours, told):
        scheduler.add("news", 0.0)
        scheduler.record([Outcome("news", "unchanged", 100.0 * n) for n in range(1, 6)])
    before = told.due_of("news")
    told.record(Outcome("news", "unchanged", 560.0, by_peer=True))
    ours.record(Outcome("news", "unchanged", 560.0))
    # both know as much, so both want the same wait, within jitter; ours is counted from the look, not from our turn
    assert told.due_of("news") == pytest.approx(ours.due_of("news") - 60.0, rel=1e-6)
    assert abs(told.due_of("news") - before) < 30.0
    told.record(Outcome("news", "unchanged", 580.0, by_peer=True))
    assert abs(told.due_of("news") - before) < 40.0, "however many tell us"
    told.record(Outcome("news", "unchanged", 640.0))
    ours.record([Outcome("news", "unchanged", 580.0), Outcome("news", "unchanged", 640.0)])
    assert told.due_of("news") == pytest.approx(ours.due_of("news"), rel=1e-6), "our own look begins our turn anew"


def test_who_follows_looks_when_the_upstream_has_looked() -> None:
    scheduler = Scheduler(price=1.0, mean_interval=100.0)
    scheduler.add(["near", "far"], 0.0)
    scheduler.record([Outcome(name, "unchanged", 100.0 * n) for n in range(1, 6) for name in ("near", "far")])
    planned = scheduler.due_of("near")
    # it looks again before our time, and not again until after it: what we saw then is what we would see at our time
    soon = 0.8 * (planned - 500.0)
    scheduler.record(Outcome("near", "unchanged", 600.0, not_before=600.0 + soon, followed=True))
    assert scheduler.due_of("near") == 600.0 + soon
    # one that looks many times before our time is asked in our time
    scheduler.record(Outcome("far", "unchanged", 600.0, not_before=600.0 + 0.1 * soon, followed=True))
    assert scheduler.due_of("far") > 600.0 + 0.5 * soon
