"""Policies: the polls they make in a world where nothing goes wrong."""

import numpy as np
import pytest

from unstale.core.carousel import carousel
from unstale.core.fleet import Fleet
from unstale.core.orders import even_times, fixed_order, phases
from unstale.core.price import plan
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.core.windows import Windows
from unstale.errors import InputError
from unstale.sim.changes import Still
from unstale.sim.loop import run
from unstale.sim.measure import Log
from unstale.sim.policies import CarouselPolicy, OpenLoop, Policy, ScheduledPolicy, Timetable, baseline
from unstale.sim.world import Host, World


def polls(policy: Policy, n: int, horizon: float, **options: object) -> Log:
    return run(World([Still()] * n, **options), policy, horizon, seed=3).log  # type: ignore[arg-type]


def test_a_timetable_is_kept() -> None:
    times, source = fixed_order(3, cycle=3.0, cycles=4)
    log = polls(Timetable(times, source), 3, 12.0)
    np.testing.assert_array_equal(log.started, times)
    np.testing.assert_array_equal(log.source, source)


def test_even_polls_fall_where_orders_puts_them() -> None:
    log = polls(OpenLoop([0.5, 0.2]), 2, 100.0)
    for i, interval in enumerate((2.0, 5.0)):
        phase = phases([2.0, 5.0])[i]
        np.testing.assert_allclose(log.started[log.source == i], even_times(interval, 0.0, 100.0, phase), rtol=1e-15)


def test_jittered_gaps() -> None:
    log = polls(OpenLoop([0.5], spread=0.2), 1, 4000.0)
    gaps = np.diff(log.started)
    assert 1.6 <= gaps.min() < 1.61 < 2.39 < gaps.max() <= 2.4
    assert abs(gaps.mean() - 2.0) < 5 * 0.8 / np.sqrt(12 * len(gaps))


def test_windows_hold_all_polls() -> None:
    days = np.arange(10.0)
    nights = Windows(days, days + 0.5)
    log = polls(OpenLoop([8.0], windows=nights), 1, 5.0)
    assert len(log.started) == 40
    assert nights.is_open(log.started).all()
    # half a day is open: polls come every 1/16
    gaps = np.diff(log.started)
    assert np.median(gaps) == pytest.approx(1 / 16, rel=1e-9)


def test_the_carousel_has_its_own_order_and_an_even_beat() -> None:
    log = polls(CarouselPolicy([1.0, 0.6, 0.4]), 3, 50.0)
    np.testing.assert_array_equal(log.source, carousel([1.0, 0.6, 0.4], 100))
    np.testing.assert_allclose(np.diff(log.started), 0.5, rtol=1e-12)


def test_an_abandoned_source_gets_no_polls() -> None:
    for policy in (OpenLoop([1.0, 0.0]), ScheduledPolicy(0.2, [1.0, 9.0]), CarouselPolicy([1.0, 0.0])):
        assert not np.any(polls(policy, 2, 50.0).source == 1)


def test_baselines_spend_the_budget() -> None:
    world = World([Still()] * 3, cost=[1.0, 2.0, 4.0])
    for rule, shares in {"uniform": [1, 1, 1], "proportional": [4, 3, 2]}.items():
        ran = run(world, baseline(rule, world, [4.0, 3.0, 2.0], budget=50.0), 400.0)
        assert ran.spent == pytest.approx(50.0, rel=1e-3)
        np.testing.assert_allclose(ran.polls / ran.polls[0], np.array(shares) / shares[0], rtol=1e-3)


def test_the_keeper_spends_what_the_plan_does() -> None:
    """The intervals at the plan's price and surcharges have the plan's means, and their first polls no burst."""
    rng = np.random.default_rng(2)
    n = 200
    rate, weight, cost = rng.lognormal(0, 1, n), rng.uniform(0.5, 2, n), rng.uniform(0.5, 2, n)
    host = rng.integers(0, 2, n)
    made = plan(Fleet.of(PoissonFreshness(rate), weight=weight, cost=cost, host=host, cap=[30.0, 1e6]), 150.0)
    assert made.host_price is not None
    policy = ScheduledPolicy(made.price, rate, surcharge=made.host_price)
    world = World([Still()] * n, weight=weight, cost=cost, host=host, hosts=[Host(), Host()])
    ran = run(world, policy, 200.0)
    assert ran.spent == pytest.approx(150.0, rel=0.01)
    on_first = np.sum(ran.polls[host == 0]) / 200.0
    assert on_first == pytest.approx(30.0, rel=0.01)
    early, _ = np.histogram(ran.log.started, bins=20, range=(0.0, 10.0))
    expected = 0.5 * made.sync_rate.sum()
    assert np.abs(early / expected - 1).max() < 0.25


def test_the_keeper_takes_other_objectives() -> None:
    value = PoissonAge([0.5, 2.0])
    policy = ScheduledPolicy(0.7, [0.5, 2.0], objective="age", longest=[9.0, 0.4])
    log = polls(policy, 2, 2000.0)
    expected = [float(value.interval(np.array([0.7, 0.7]))[0]), 0.4]
    for i in range(2):
        gaps = np.diff(log.started[log.source == i])
        assert gaps.mean() == pytest.approx(expected[i], rel=0.02)
        assert policy.scheduler.answered[i] == log.started[log.source == i][-1]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Timetable([1.0, 2.0], [0]), "source of shape"),
        (lambda: OpenLoop([-1.0]), r"sync_rate\[0\] -1.0 must be"),
        (lambda: polls(Timetable([1.0], [5]), 2, 9.0), "source 5 must be one of the world's 2"),
        (lambda: polls(Timetable([1.0], [-1]), 2, 9.0), "source -1 must be one of the world's 2"),
        (lambda: polls(OpenLoop([1.0, 1.0, 1.0]), 2, 9.0), "sync_rate of shape"),
        (lambda: polls(CarouselPolicy([1.0, 1.0, 1.0]), 2, 9.0), "sync_rate of shape"),
        (lambda: polls(OpenLoop([1.0], order="zigzag"), 1, 9.0), "order 'zigzag' is unknown"),  # type: ignore[arg-type]
        (lambda: ScheduledPolicy(0.1, 1.0, shortest=3.0, longest=2.0), "shortest 3.0 must not exceed longest"),
        (lambda: polls(ScheduledPolicy(0.1, [1.0, 1.0, 1.0]), 2, 9.0), "change_rate of shape"),
        (
            lambda: ScheduledPolicy(0.0, [1.0, 1.0]),
            "price 0.0 must be a finite number above 0: a free poll is due all the time",
        ),
        (lambda: baseline("newest", World([Still()]), 1.0, 1.0), "rule 'newest' is unknown"),
    ],
)
def test_what_policies_refuse(build: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()  # type: ignore[operator]
