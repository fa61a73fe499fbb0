"""Simulated fleets against the formulas, source by source and together, whatever the number of threads."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.poisson_orders import Order, order_age, order_freshness
from unstale.core.processes.named import named
from unstale.core.staleness import age, freshness
from unstale.errors import InputError
from unstale.sim import fleet_run as fleet_module
from unstale.sim import kernels
from unstale.sim.fleet_run import simulate_fleet

RATES = np.random.default_rng(1).lognormal(0, 1, 600)
SYNC = np.random.default_rng(2).lognormal(0, 1, 600)


@pytest.mark.parametrize("order", ["fixed", "random", "purely-random"])
def test_poisson_fleets_in_every_order(order: Order) -> None:
    run = simulate_fleet(RATES, SYNC, order, horizon=20.0, seed=3, runs=60)
    fresh, old = order_freshness(RATES, SYNC, order), order_age(RATES, SYNC, order)
    for got, want in ((run.freshness, fresh), (run.age, old)):
        z = got.z(want)
        # sixty runs each, skewed where polls or changes are few
        assert np.mean(np.abs(z) > 3) < 0.02
        assert np.median(np.abs(z)) == pytest.approx(0.68, abs=0.1)
        assert np.abs(z).max() < 10
    assert abs(run.fleet_freshness.z(fresh.mean())) < 5
    assert abs(run.fleet_age.z(old.mean())) < 5
    assert run.fleet_freshness.error < 0.002
    polls = run.time * SYNC
    assert run.polls.sum() == pytest.approx(polls.sum(), rel=0.01)
    assert run.changes.sum() == pytest.approx((run.time * RATES).sum(), rel=0.01)
    assert np.all(run.found <= run.polls)


def test_two_runs_are_enough_for_the_error_of_a_fleet() -> None:
    many = [simulate_fleet(RATES, SYNC, horizon=3.0, seed=s) for s in range(40)]
    means = [run.fleet_freshness.value for run in many]
    stated = np.mean([run.fleet_freshness.error for run in many])
    assert stated == pytest.approx(np.std(means, ddof=1), rel=0.4)


@pytest.mark.parametrize(
    "kind", ["constant", "uniform", "pareto:1.5", "pareto:3", "weibull:0.5", "gamma:3", "lognormal:1"]
)
def test_other_processes(kind: str) -> None:
    rate, sync = np.array([0.3, 1.0, 4.0]), np.array([math.sqrt(2), 0.7, 1.1])
    run = simulate_fleet(rate, sync, horizon=40.0, seed=4, runs=300, process=kind)
    for i in range(3):
        assert abs(run.freshness.z(freshness(named(kind, rate[i]), sync[i]))[i]) < 5
        assert abs(run.age.z(age(named(kind, rate[i]), sync[i]))[i]) < 5


def test_each_source_its_own_process() -> None:
    kinds = np.array(["poisson", "pareto:3", "constant"], dtype=object)
    run = simulate_fleet([1.0, 1.0, 1.0], math.sqrt(2), horizon=100.0, seed=5, runs=200, process=kinds)
    want = [freshness(named(k, 1.0), math.sqrt(2)) for k in kinds]
    assert np.all(np.abs(run.freshness.z(want)) < 5)
    assert np.ptp(want) > 0.05


def test_short_horizons_are_stationary_too() -> None:
    """A hundredth of an interval: nobody waits for a poll, and still the average is right."""
    run = simulate_fleet(np.full(20_000, 2.0), 1.0, horizon=0.01, seed=6)
    assert abs(run.fleet_freshness.z(order_freshness(2.0, 1.0))) < 5
    assert abs(run.fleet_age.z(order_age(2.0, 1.0))) < 5


def test_threads_and_parts_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for threads, part in ((1, 256), (2, 256), (5, 7)):
        monkeypatch.setattr(kernels, "THREADS", threads)
        monkeypatch.setattr(fleet_module, "PART", part)
        runs.append(simulate_fleet(RATES, SYNC, "random", horizon=5.0, seed=7))
    for run in runs[1:]:
        np.testing.assert_array_equal(run.freshness.value, runs[0].freshness.value)
        np.testing.assert_array_equal(run.age.error, runs[0].age.error)
        assert run.fleet_freshness == runs[0].fleet_freshness


def test_sources_keep_their_history_in_a_bigger_fleet() -> None:
    small = simulate_fleet(RATES[:10], SYNC[:10], horizon=5.0, seed=8)
    big = simulate_fleet(RATES, SYNC, horizon=5.0, seed=8)
    np.testing.assert_array_equal(small.freshness.value, big.freshness.value[:10])
    other = simulate_fleet(RATES[:10], SYNC[:10], horizon=5.0, seed=9)
    assert not np.array_equal(small.freshness.value, other.freshness.value)


def test_sources_that_never_change_or_are_never_polled() -> None:
    run = simulate_fleet([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], horizon=10.0, weight=[1.0, 0.0, 1.0])
    np.testing.assert_array_equal(run.freshness.value, [1.0, 0.0, 1.0])
    np.testing.assert_array_equal(run.age.value, [0.0, math.inf, 0.0])
    assert run.fleet_freshness.value == 1.0
    assert run.fleet_age.value == 0.0, "a weight of 0 counts for nothing, however old"
    assert simulate_fleet([1.0], [0.0], horizon=1.0).fleet_age.value == math.inf


def test_weights_and_progress() -> None:
    heard: list[float] = []
    run = simulate_fleet(RATES, SYNC, horizon=5.0, weight=SYNC, done=heard.append)
    assert run.fleet_freshness.value == pytest.approx(np.average(run.freshness.value, weights=SYNC), rel=1e-12)
    assert heard == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert run.events == run.polls.sum() + run.changes.sum()


def test_refusals() -> None:
    for wrong, text in (
        ({"horizon": 0.0}, "horizon 0.0 must be"),
        ({"horizon": 1e15}, r"horizon 1e\+15 with about 4e\+15 events must give 1e\+11 events at most: simulate less"),
        ({"horizon": 1.0, "order": "sorted"}, "order 'sorted' is unknown"),
        ({"horizon": 1.0, "process": "levy"}, "process 'levy' is not known"),
        ({"horizon": 1.0, "process": ["poisson"] * 3}, r"process of shape \(3,\) must be one name or 1"),
        ({"horizon": 1.0, "runs": 1}, "runs 1.0 must be"),
        ({"horizon": 1.0, "weight": -1}, "weight -1.0 must be"),
    ):
        with pytest.raises(InputError, match=text):
            simulate_fleet([1.0], [1.0], **wrong)  # type: ignore[arg-type]
