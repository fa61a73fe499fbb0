"""The event loop against closed forms, within five standard errors: orders × changes, failures, delays, the keeper."""

from collections.abc import Callable

import numpy as np
import pytest

from unstale.core.fleet import Fleet
from unstale.core.orders import fixed_order, purely_random, random_order
from unstale.core.penalties import Linear, Saturating
from unstale.core.phase import SPREAD, jittered
from unstale.core.poisson_orders import order_freshness
from unstale.core.price import plan
from unstale.core.processes import Constant, Pareto, Poisson, Process, Triangular, WeeklyPoisson
from unstale.core.staleness import age, consistency, freshness, missed_changes, staleness, update_staleness
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.sim.changes import Still
from unstale.sim.loop import run
from unstale.sim.measure import Measure, Measured
from unstale.sim.policies import CarouselPolicy, OpenLoop, Policy, ScheduledPolicy, Timetable
from unstale.sim.statistics import Estimate
from unstale.sim.world import Shock, World

N, HORIZON, WARMUP = 40, 1600.0, 50.0
INTERVAL = 0.8

CHANGES: dict[str, Process] = {
    "poisson": Poisson(1.3),
    "pareto": Pareto(3.5, 2.0),
    # not in step with the polls: the ratio of gap and interval is irrational
    "constant": Constant(0.8 * np.sqrt(2.0)),
}


def sweep(order: Callable[..., tuple[np.ndarray, np.ndarray]]) -> Policy:
    return Timetable(*order(np.random.default_rng(3), N, cycle=INTERVAL, cycles=int(HORIZON / INTERVAL)))


#: the policy, and the process that describes the polls of one source
ORDERS: dict[str, tuple[Callable[[], Policy], Process]] = {
    "fixed": (lambda: OpenLoop(1 / INTERVAL), Constant(INTERVAL)),
    "random": (lambda: OpenLoop(1 / INTERVAL, "random"), Triangular(INTERVAL)),
    "purely-random": (lambda: OpenLoop(1 / INTERVAL, "purely-random"), Poisson(1 / INTERVAL)),
    "jittered": (lambda: OpenLoop(1 / INTERVAL, spread=0.4), jittered(INTERVAL, 0.4)),
    "carousel": (lambda: CarouselPolicy(np.full(N, 1 / INTERVAL)), Constant(INTERVAL)),
    "sweep in fixed order": (
        lambda: Timetable(*fixed_order(N, cycle=INTERVAL, cycles=int(HORIZON / INTERVAL))),
        Constant(INTERVAL),
    ),
    "sweep in random order": (lambda: sweep(random_order), Triangular(INTERVAL)),
}


def agree(measure: Measure | Estimate, expected: float) -> None:
    fleet = measure.fleet if isinstance(measure, Measure) else measure
    assert abs(fleet.z(expected)) < 5
    # and the error is small enough for that to mean something
    assert fleet.error < 0.03 * expected


@pytest.mark.parametrize("changes", CHANGES)
@pytest.mark.parametrize("order", ORDERS)
def test_orders_and_changes(order: str, changes: str) -> None:
    build, polls = ORDERS[order]
    source = CHANGES[changes]
    ran = run(World([source] * N, requests=1.0), build(), HORIZON, WARMUP, seed=11)
    agree(ran.freshness, float(freshness(source, polls)))
    agree(ran.age, float(age(source, polls)))
    agree(ran.missed, float(missed_changes(source, polls)))
    agree(ran.lag, float(update_staleness(source, polls, Linear())))
    agree(ran.penalty(Saturating(0.5)), float(staleness(source, polls, Saturating(0.5))))
    agree(ran.consistency(0.3), float(consistency(0.3, source, polls)))
    agree(ran.request_freshness, float(freshness(source, polls)))


def test_polls_at_random_slots_are_nearly_exponential() -> None:
    """[000 Algorithm B.3]: a slot is ours with chance 1/N, so gaps are geometric, and the copy survives one with
    chance z = e^(−rate·cycle/N): freshness is (1 − z)·N/(rate·cycle) · Σ ((1 − 1/N)·z)^k / N.
    """
    ran = run(World([Poisson(1.3)] * N), sweep(purely_random), HORIZON, WARMUP, seed=4)
    slot = 1.3 * INTERVAL / N
    survives = np.exp(-slot)
    exact = -np.expm1(-slot) / slot / N / (1 - (1 - 1 / N) * survives)
    agree(ran.freshness, exact)
    assert exact == pytest.approx(float(order_freshness(1.3, 1 / INTERVAL, "purely-random")), rel=0.02)


def test_failures_thin_the_polls() -> None:
    """Of Poisson polls that fail with chance p a Poisson stream of rate (1 − p)·f is left."""
    world = World([Poisson(1.3)] * N, failure=0.4)
    ran = run(world, OpenLoop(1 / INTERVAL, "purely-random"), HORIZON, WARMUP, seed=5)
    agree(ran.freshness, float(freshness(Poisson(1.3), Poisson(0.6 / INTERVAL))))
    agree(ran.age, float(age(Poisson(1.3), Poisson(0.6 / INTERVAL))))


def test_a_delay_ages_every_copy() -> None:
    """A copy in use is between d and d + D old: freshness is e^(−rate·d)·(1 − e^(−rate·D))/(rate·D)."""
    ran = run(World([Poisson(1.3)] * N, delay=0.3), OpenLoop(1 / INTERVAL), HORIZON, WARMUP, seed=6)
    agree(ran.freshness, float(np.exp(-1.3 * 0.3) * freshness(1.3, 1 / INTERVAL)))
    # every change waits for the rest of an interval, then for the delay: by Little's law rate·(D/2 + d) are unseen
    agree(ran.missed, 1.3 * (INTERVAL / 2 + 0.3))


def test_shocks_add_their_rate() -> None:
    """Thinned common shocks are Poisson for each source; only the fleet's spread shows that they are common."""
    own = World([Poisson(1.3)] * N)
    shared = World([Still()] * N, shocks=[Shock(Poisson(2.6), rows=range(N), chance=0.5)])
    apart, together = (run(w, OpenLoop(1 / INTERVAL), HORIZON, WARMUP, seed=8) for w in (own, shared))
    for ran in (apart, together):
        agree(ran.freshness, float(freshness(1.3, 1 / INTERVAL)))
    assert together.freshness.fleet.error > 2 * apart.freshness.fleet.error


def test_weekly_changes_average_over_the_week() -> None:
    """Day and night of equal length, rates 2 and 0.6, polls many times a day: the mean of the two freshnesses."""
    world = World([WeeklyPoisson(1.3, [2.0, 0.6], week=400.0)] * N)
    ran = run(world, OpenLoop(1 / INTERVAL), HORIZON, 0.0, seed=9, batches=4)
    expected = (freshness(2.0, 1 / INTERVAL) + freshness(0.6, 1 / INTERVAL)) / 2
    agree(ran.freshness, float(expected))


def run_keeper(
    value: PoissonFreshness | PoissonAge, rate: np.ndarray, weight: np.ndarray
) -> tuple[Measured, float, float]:
    made = plan(Fleet.of(value, weight=weight), budget=1.5 * len(rate))
    policy = ScheduledPolicy(made.price, rate, objective="freshness" if isinstance(value, PoissonFreshness) else "age")
    ran = run(World([Poisson(r) for r in rate], weight=weight), policy, HORIZON / 2, WARMUP, seed=10)
    polled = made.interval < np.inf
    objective = freshness if isinstance(value, PoissonFreshness) else age
    each = np.array(
        [
            float(objective(Poisson(r), jittered(t, SPREAD))) if p else 0.0
            for r, t, p in zip(rate, made.interval, polled, strict=True)
        ]
    )
    return ran, float(weight @ each / weight.sum()), made.spent


def test_the_keeper_is_as_fresh_as_its_plan() -> None:
    rng = np.random.default_rng(12)
    rate, weight = rng.lognormal(0, 1, N), rng.uniform(0.5, 2, N)
    ran, expected, spent = run_keeper(PoissonFreshness(rate), rate, weight)
    agree(ran.freshness, expected)
    assert ran.spent == pytest.approx(spent, rel=0.005)


def test_the_keeper_minimises_age_too() -> None:
    rng = np.random.default_rng(13)
    rate, weight = rng.lognormal(0, 1, N), rng.uniform(0.5, 2, N)
    ran, expected, spent = run_keeper(PoissonAge(rate), rate, weight)
    agree(ran.age, expected)
    assert ran.spent == pytest.approx(spent, rel=0.005)


def test_jitter_breaks_a_lock_that_even_polls_keep() -> None:
    """Polls in step with changes see whatever phase they began with; jittered ones the average, 1/2."""
    world = World([Constant(1.0)] * 3)
    even = run(world, OpenLoop(1.0), 20_000.0, 10.0, seed=2).freshness.source
    loose = run(world, OpenLoop(1.0, spread=0.05), 20_000.0, 10.0, seed=2).freshness.source
    assert np.all(np.asarray(even.error) < 1e-4)
    assert np.ptp(even.value) > 0.1
    assert np.all(np.abs(loose.z(0.5)) < 5)
    assert np.all(np.asarray(loose.error) < 0.05)
