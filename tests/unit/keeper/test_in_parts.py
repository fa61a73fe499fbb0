"""A large fleet is looked at a part at a time, and what is alike is kept once: it comes to the same."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.prior import ENOUGH, fit_prior, thinned
from unstale.core.learning.said import said
from unstale.keeper import rows
from unstale.keeper.collected import Collected
from unstale.keeper.host_caps import binding
from unstale.keeper.scheduler import Scheduler

COUNT, NOW = 500, 1e6


def fleet(caps: tuple[float, ...] = (np.inf,), count: int = COUNT) -> Scheduler:
    """Sources that were polled twice, some of them while others slept."""
    rng = np.random.default_rng(3)
    learner = Learner(count, 1e4, start=NOW - 4e4, weight=rng.uniform(0.5, 2.0, count))
    for day in (3.0, 1.0):
        learner.observe(np.arange(count), NOW - 1e4 * (day - rng.random(count)), rng.random(count) < 0.4)
    return Scheduler.of(
        learner,
        np.arange(1, count + 1),
        due=NOW + rng.uniform(-1e4, 3e4, count),
        answered=learner.columns.last.copy(),
        failures=(rng.random(count) < 0.1).astype(np.int64),
        paused=rng.random(count) < 0.1,
        host=rng.integers(0, len(caps), count),
        cap=np.array(caps),
    )


@pytest.mark.parametrize("size", [1, 7, COUNT - 1, COUNT])
def test_who_falls_due_at_another_time_is_found_part_by_part(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, parted = fleet((0.001, np.inf)), fleet((0.001, np.inf))
    # The first price is found without a cap that would bind.
    prices = [whole.plan(400.0, NOW, NOW + 1e4) for _ in range(2)]
    moved, due = whole.moves(NOW, NOW + 2e4)
    monkeypatch.setattr(rows, "_PART", size)
    assert len(parted.parts()) == -(-COUNT // size)
    assert [parted.plan(400.0, NOW, NOW + 1e4) for _ in range(2)] == prices
    assert np.array_equal(parted.surcharge, whole.surcharge)
    assert whole.surcharge[0] > 1.0
    again, then = parted.moves(NOW, NOW + 2e4)
    assert again.tolist() == moved.tolist()
    assert then.tolist() == due.tolist()
    assert len(moved) > 10


def test_nobody_has_parts_too() -> None:
    nobody = Scheduler.of(Learner(0, 60.0), np.empty(0, np.int64), due=np.empty(0))
    assert [column.tolist() for column in nobody.moves(0.0, 60.0)] == [[], []]


def test_weights_are_kept_twice_only_under_surcharges_and_come_back_after_them() -> None:
    scheduler = fleet((np.inf, np.inf))
    given = scheduler.weight.copy()
    assert scheduler.weight is scheduler.learner.columns.weight
    scheduler.surcharge_hosts(np.array([1.0, 4.0]))
    assert scheduler.weight.tolist() == given.tolist()
    pressed = np.where(scheduler.host == 1, given / 4.0, given)
    assert scheduler.learner.columns.weight.tolist() == pressed.tolist()
    scheduler.plan(50.0, NOW, NOW + 1e4)
    assert scheduler.learner.columns.weight.tolist() == given.tolist()
    scheduler.surcharge_hosts(np.array([2.0, 1.0]))
    scheduler.surcharge_hosts(np.ones(2))
    assert scheduler.learner.columns.weight.tolist() == given.tolist()


def test_which_caps_bind_is_judged_without_the_surcharges_of_before() -> None:
    scheduler = fleet((0.001, np.inf))
    scheduler.price = 1000.0
    scheduler.surcharge_hosts(np.array([1e6, 1.0]))
    # By these nobody at that host would be due so soon.
    assert not binding(scheduler, NOW, NOW + 1e4)
    assert scheduler.press_hosts(NOW, NOW + 1e4)[0] > scheduler.price


def test_what_signals_taught_is_one_column_only_where_there_are_signals() -> None:
    scheduler, one = fleet(), np.array([4])
    yes, at = np.array([True]), np.array([NOW])
    scheduler.decide(one, yes, at, yes)
    assert np.isnan(scheduler.told).all()
    assert scheduler.told.strides == (0,)
    scheduler.collected = Collected(scheduler.learner, scheduler.ids, (), NOW)
    scheduler.decide(one, yes, at + 60.0, yes)
    assert scheduler.told.shape == (COUNT,)
    scheduler.told[4] = 7.0
    scheduler.decide(one, ~yes, at + 120.0, ~yes)
    assert np.isnan(scheduler.told[4])


def test_a_replica_that_is_followed_no_longer_is_not_waited_for() -> None:
    scheduler, pair = fleet(), np.array([4, 5])
    answered, at = np.ones(2, np.bool_), np.full(2, NOW)
    later = np.full(2, NOW + 900.0)
    scheduler.decide(pair, answered, at, answered, not_before=later, followed=np.array([True, False]))
    assert scheduler.lasting[pair].tolist() == [900.0, 0.0]
    scheduler.decide(pair, answered, at + 1e3, answered, followed=np.zeros(2, np.bool_))
    assert scheduler.lasting[pair].tolist() == [0.0, 0.0]


def test_a_prior_is_that_of_a_part_of_the_fleet() -> None:
    count = 2 * ENOUGH + 5
    seen = fleet(count=count).learner.columns.rows
    part = said(seen[:: thinned(count)], len(HALF_LIVES))
    assert len(part.shape) <= ENOUGH
    assert fit_prior(part, (1.0, 1e4), 1e4) == fit_prior(said(seen, len(HALF_LIVES)), (1.0, 1e4), 1e4)
