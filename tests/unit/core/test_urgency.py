"""Who is first when not all that is due can be polled: numbers that the closed form of freshness gives."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.learning.gamma import freshness_value
from unstale.core.learning.learner import Learner
from unstale.keeper.scheduler import Scheduler

HOUR = 3600.0
BOTH = np.array([0, 1])


def learned(changed_each: tuple[int, int], weight: tuple[float, float] = (1.0, 1.0)) -> Learner:
    """Two sources polled 200 times every hour, of which every so manieth poll finds a change."""
    learner = Learner(2, HOUR, weight=weight)
    for n in range(1, 201):
        learner.observe([0, 1], [HOUR * n] * 2, [n % every == 0 for every in changed_each])
    return learner


def test_it_is_one_when_due_and_then_what_the_belief_says_of_waiting_longer() -> None:
    learner = learned((8, 8))
    price = 300.0
    even = learner.waits(price)
    assert learner.urgency(BOTH, np.zeros(2), price) == pytest.approx(1.0)
    # One belief alone, with nothing faded, has its closed form.
    learner.shared.favour[1:] = -1e3
    learner.waits(price)
    shape, exposure = learner.shared.prior[0] + learner.columns.rows[0, 0], learner.shared.prior[1]
    exposure += learner.columns.rows[0, len(learner.shared.half_lives)]
    even = learner.columns.interval[0]
    worth = freshness_value(shape, exposure, even + HOUR)[0] / freshness_value(shape, exposure, even)[0]
    assert learner.urgency(BOTH, np.full(2, HOUR), price)[0] == pytest.approx(worth)


def test_who_cannot_become_more_stale_gives_way_and_a_promise_does_not() -> None:
    # The first changes at every poll: after an hour nearly all is lost already. The second does so every eighth time.
    learner = learned((1, 8))
    price = float(learner.typical_price()) * 0.15
    learner.waits(price)
    fast, slow = learner.urgency(BOTH, np.full(2, 3 * HOUR), price)
    assert 1.0 < fast < slow
    # Beyond the longest interval it grows without bound.
    late = np.full(2, 300 * HOUR)
    assert learner.urgency(BOTH, late, price)[0] > learner.urgency(BOTH, 0.5 * late, price)[0] > fast
    assert np.all(np.isfinite(learner.urgency(BOTH, np.full(2, 1e12), price)))


def test_those_worth_most_come_first_however_many_are_due() -> None:
    count = 5_000
    weight = np.where(np.arange(count) % 10 == 3, 100.0, 1.0)
    scheduler = Scheduler.of(Learner(count, HOUR, weight=weight), np.arange(count), due=np.zeros(count))
    rows = np.arange(count)
    scheduler.decide(rows, np.ones(count, bool), np.full(count, HOUR), rows % 2 == 0)
    # All are as late: who is polled more often has missed more of its polls.
    scheduler.due_at[:] = 10 * HOUR
    first = scheduler.foremost(rows, 12 * HOUR, 100)
    assert len(set(first.tolist())) == 100
    assert np.all(weight[first] == 100.0)
    # Whoever is asked for at once is due since ever.
    scheduler.due_at[:], scheduler.due_at[7] = 1.7e9 - 50 * HOUR, 0.0
    assert scheduler.foremost(rows, 1.7e9, 100)[0] == 7
    # All that can be polled are in the order in which they fell due.
    scheduler.due_at[:3] = [5.0, 4.0, 6.0]
    assert scheduler.foremost(np.arange(3), 12 * HOUR, 3).tolist() == [1, 0, 2]
