"""Finding a price by what is remembered of sources spends what counting every source anew would."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.learning.columns import expected_cost
from unstale.core.learning.due import jittered_cost
from unstale.core.learning.learner import Learner
from unstale.core.learning.mixture import scratch
from unstale.core.learning.outlay import look_again, nothing_known, outlay

COUNT, SCALE = 2500, 3600.0
#: the share by which spending may be off; more where many sources fall due together
CLOSE, STEPS = 0.005, 0.01


def fleet(objective: str) -> tuple[Learner, float]:
    """A learner of sources that change from hourly to never, all polled about once an hour."""
    rng = np.random.default_rng(5)
    learner = Learner(COUNT, SCALE, objective=objective, weight=rng.lognormal(0.0, 1.0, COUNT))
    rate = rng.lognormal(0.0, 1.5, COUNT) / SCALE
    at = np.zeros(COUNT)
    for _ in range(8):
        gap = SCALE * rng.uniform(0.6, 1.4, COUNT)
        at = at + gap
        learner.observe(np.arange(COUNT), at, rng.random(COUNT) < -np.expm1(-rate * gap))
    learner.review()
    return learner, float(at.max())


def spent(learner: Learner, price: float, now: float, until: float) -> float:
    everybody = np.arange(COUNT)
    room = scratch(len(learner.shared.half_lives))
    return expected_cost(everybody, price, now, until, learner.columns, learner.shared, learner.timing, room)


def spent_jittered(learner: Learner, price: float, now: float, until: float) -> float:
    everybody = np.arange(COUNT)
    room = scratch(len(learner.shared.half_lives))
    return jittered_cost(everybody, everybody, price, now, until, learner.columns, learner.shared, learner.timing, room)


@pytest.mark.parametrize(
    ("objective", "close"), [("freshness", CLOSE), ("age", CLOSE), ("missed", CLOSE), ("deadline:2h", STEPS)]
)
def test_the_budget_is_spent_as_it_was_wanted(objective: str, close: float) -> None:
    learner, now = fleet(objective)
    until, price, rng = now + SCALE, learner.typical_price(), np.random.default_rng(6)
    for wanted in (0.3 * COUNT, 0.31 * COUNT, 0.6 * COUNT, 0.4 * COUNT):
        price = learner.price_for(wanted, now, until, price)
        jittered = learner.price_for(wanted, now, until, price, ids=np.arange(COUNT))
        assert spent_jittered(learner, jittered, now, until) == pytest.approx(wanted, rel=close, abs=2.0)
        assert spent(learner, price, now, until) == pytest.approx(wanted, rel=close, abs=2.0)
        some = np.flatnonzero(rng.random(COUNT) < 0.1)
        learner.observe(some, np.full(len(some), now), rng.random(len(some)) < 0.5)
        now, until = now + 300.0, until + 300.0


def test_weights_that_a_host_presses_are_taken_as_they_are() -> None:
    learner, now = fleet("freshness")
    price = learner.price_for(0.5 * COUNT, now, now + SCALE, learner.typical_price())
    learner.columns.weight[::2] *= 0.5
    price = learner.price_for(0.5 * COUNT, now, now + SCALE, price)
    assert spent(learner, price, now, now + SCALE) == pytest.approx(0.5 * COUNT, rel=CLOSE)


def test_only_who_has_learned_is_looked_at_again() -> None:
    learner, now = fleet("freshness")
    everybody, known, price = np.arange(COUNT), nothing_known(COUNT, False), learner.typical_price()
    room = scratch(len(learner.shared.half_lives))

    def looked(price: float) -> int:
        return look_again(everybody, price, learner.columns, learner.shared, learner.timing, room, known)

    assert looked(price) == COUNT
    assert looked(price) == 0
    learner.observe([3, 8], [now, now], [True, False])
    assert looked(price) == 2
    assert 0 < looked(2.0 * price) < COUNT
    assert looked(2.0 * price) == 0
    assert outlay(everybody, everybody, 0.0, 2.0 * price, now, now + SCALE, learner.columns, known) == pytest.approx(
        spent(learner, 2.0 * price, now, now + SCALE), rel=CLOSE, abs=2.0
    )


def test_sources_without_weight_wait_as_long_as_they_may() -> None:
    learner = Learner(2, SCALE, weight=[0.0, 1.0])
    learner.observe([0, 1], [SCALE, SCALE], [True, True])
    price = learner.price_for(1.0, SCALE, 2.0 * SCALE, learner.typical_price())
    assert 0.0 < price < math.inf
    assert learner.waits(price)[0] == learner.columns.longest[0]
