"""Measures of histories small enough to add up by hand, and against a slow integrator that knows no tricks."""

from itertools import pairwise

import numpy as np
import pytest

from unstale.core.penalties import Constant, Deadline, Linear, Power, Saturating
from unstale.sim.changes import Recorded, Still
from unstale.sim.loop import run
from unstale.sim.measure import Log, Measured
from unstale.sim.policies import Timetable
from unstale.sim.world import World


def measured(changes: list[float], polls: list[float], delay: float = 0.0, **options: float) -> Measured:
    world = World([Recorded(changes)], delay=delay)
    return run(world, Timetable(polls, [0] * len(polls)), 6.0, batches=2, **options)  # type: ignore[arg-type]


def test_by_hand() -> None:
    """Changes at 1, 2, 4, polls at 3, 5, end at 6: stale on [1, 3) and [4, 5)."""
    ran = measured([1.0, 2.0, 4.0], [3.0, 5.0])
    assert ran.freshness.source.value[0] == pytest.approx(3 / 6)
    assert ran.age.fleet.value == pytest.approx((2 + 0.5) / 6)
    assert ran.missed.fleet.value == pytest.approx((2 + 1 + 1) / 6)
    assert ran.lag.fleet.value == pytest.approx((2 + 0.5 + 0.5) / 6)
    assert ran.penalty(Power(2.0)).fleet.value == pytest.approx((8 / 3 + 1 / 3) / 6)
    assert ran.consistency(1.0).fleet.value == pytest.approx(5 / 6)
    assert ran.consistency(0.0).fleet.value == ran.freshness.fleet.value
    # fresh for 1 of the first 3, and 2 of the last 3: batch means 1/3 and 2/3 differ from 1/2 by 1/6 each
    assert ran.freshness.fleet.error == pytest.approx(np.sqrt(2 * (1 / 6) ** 2 / 1 / 2))


def test_warmup_is_dropped() -> None:
    ran = measured([1.0, 2.0, 4.0], [3.0, 5.0], warmup=2.0)
    assert ran.freshness.fleet.value == pytest.approx(2 / 4)
    # on [2, 3) the age runs from 1 to 2
    assert ran.age.fleet.value == pytest.approx((1.5 + 0.5) / 4)
    assert ran.polls.tolist() == [2]
    assert measured([1.0], [1.5, 3.0], warmup=2.0).polls.tolist() == [1]


def test_a_copy_is_what_was_read_when_the_poll_began() -> None:
    """Delay 0.75: read at 3, there at 3.75; read at 5, there at 5.75. The change at 3.5 is not in the first copy."""
    ran = measured([1.0, 3.5], [3.0, 5.0], delay=0.75)
    assert ran.freshness.fleet.value == pytest.approx(1 - (2.75 + 2.0) / 6)
    # from 1 to 3.75 on, then the age since 3.5, from 0.25 to 2.25
    assert ran.age.fleet.value == pytest.approx((2.75**2 / 2 + (2.25**2 - 0.25**2) / 2) / 6)
    assert ran.missed.fleet.value == pytest.approx((2.75 + 2.25) / 6)


def test_requests_meet_the_copy_of_their_moment() -> None:
    world = World([Recorded([1.0, 4.0]), Still()], requests=[[0.5, 1.5, 2.5, 3.5, 4.5], [3.0]])
    ran = run(world, Timetable([3.0], [0]), 6.0, batches=2)
    assert ran.request_freshness.source.value.tolist() == [2 / 5, 1.0]
    assert ran.request_freshness.fleet.value == pytest.approx(3 / 6)


def test_nobody_asked() -> None:
    assert np.isnan(measured([1.0], [2.0]).request_freshness.fleet.value)


def naive(changes: np.ndarray, read: np.ndarray, there: np.ndarray, begin: float, end: float) -> dict[str, float]:
    """Integrals by walking from event to event, the state of the copy looked up at each step's middle."""
    cuts = np.unique(np.clip(np.concatenate([changes, there, [begin, end]]), begin, end))
    fresh = age = missed = lag = deadline = 0.0
    for a, b in pairwise(cuts.tolist()):
        middle, length = (a + b) / 2, b - a
        have = max([0.0, *read[there <= middle]])
        lacking = changes[(changes > have) & (changes <= middle)]
        missed += len(lacking) * length
        lag += sum((middle - c) * length for c in lacking)
        if len(lacking):
            age += (middle - lacking[0]) * length
            deadline += max(b - max(a, lacking[0] + 0.3), 0.0)
        else:
            fresh += length
    return {"fresh": fresh, "age": age, "missed": missed, "lag": lag, "deadline": deadline}


def test_against_a_slow_integrator() -> None:
    rng = np.random.default_rng(4)
    n, horizon, warmup, batches = 5, 20.0, 3.0, 4
    changes = [np.sort(rng.uniform(0, horizon, rng.integers(0, 60))) for _ in range(n)]
    source = np.sort(rng.integers(0, n, 70))
    started = rng.uniform(0, horizon, 70)
    started = started[np.lexsort((started, source))]
    # copies arrive in the order in which they were read
    arrived = started + 0.4
    answered = rng.random(70) < 0.8
    log = Log(source, started, arrived, answered)
    weight = rng.uniform(1, 2, n)
    ran = Measured(weight, np.ones(n), changes, [np.empty(0)] * n, log, horizon, warmup, batches)
    per_batch = np.linspace(warmup, horizon, batches + 1)
    sums = {name: np.zeros((n, batches)) for name in ("fresh", "age", "missed", "lag", "deadline")}
    for i in range(n):
        ok = answered & (source == i)
        for j in range(batches):
            walked = naive(changes[i], started[ok], arrived[ok], per_batch[j], per_batch[j + 1])
            for name, value in walked.items():
                sums[name][i, j] = value
    found = {
        "fresh": ran.freshness,
        "age": ran.age,
        "missed": ran.missed,
        "lag": ran.lag,
        "deadline": ran.penalty(Deadline(0.3)),
    }
    length = (horizon - warmup) / batches
    for name, measure in found.items():
        means = sums[name] / length
        np.testing.assert_allclose(measure.source.value, means.mean(axis=1), rtol=1e-12)
        np.testing.assert_allclose(measure.source.error, means.std(axis=1, ddof=1) / 2, rtol=1e-9, atol=1e-15)
        fleet = weight @ means / weight.sum()
        assert measure.fleet.value == pytest.approx(fleet.mean(), rel=1e-12)
        assert measure.fleet.error == pytest.approx(fleet.std(ddof=1) / 2, rel=1e-9)


def test_measures_agree_with_each_other() -> None:
    """Conservation: fresh and stale share all time, the age is the linear penalty, w ≤ 1 costs at most staleness."""
    rng = np.random.default_rng(6)
    world = World([Recorded(rng.uniform(0, 6, 50)), Recorded(rng.uniform(0, 6, 5))], cost=[2.0, 0.5])
    ran = run(world, Timetable(rng.uniform(0, 6, 40), rng.integers(0, 2, 40)), 6.0, warmup=1.0, batches=3)
    stale = ran.penalty(Constant()).source.value
    np.testing.assert_allclose(stale + ran.freshness.source.value, 1.0, rtol=1e-12)
    np.testing.assert_allclose(ran.penalty(Linear()).source.value, ran.age.source.value, rtol=1e-12)
    assert np.all(ran.penalty(Saturating(0.1)).source.value <= 1 - ran.freshness.source.value)
    assert np.all(ran.missed.source.value >= 1 - ran.freshness.source.value - 1e-12)
    assert np.all(ran.lag.source.value >= ran.age.source.value - 1e-12)
    inside = ran.log.started >= 1.0
    assert ran.polls.sum() == inside.sum()
    cost = np.array([2.0, 0.5])[ran.log.source[inside]]
    assert ran.spent == pytest.approx(cost.sum() / 5.0, rel=1e-12)


def test_a_poll_at_the_moment_of_a_change_sees_it() -> None:
    ran = measured([3.0], [3.0])
    assert (ran.freshness.fleet.value, ran.missed.fleet.value) == (1.0, 0.0)
    just_before = measured([np.nextafter(3.0, 4.0)], [3.0])
    assert just_before.freshness.fleet.value == pytest.approx(0.5)
    assert just_before.missed.fleet.value == pytest.approx(0.5)
