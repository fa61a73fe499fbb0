"""One simulated copy: histories measured by hand, formulas within errors, the two ways of simulating agree."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Deadline, Linear, Power, Reciprocal, Saturating
from unstale.core.poisson_orders import order_age, order_freshness
from unstale.core.processes import (
    Constant,
    Empirical,
    LogNormal,
    Pareto,
    Poisson,
    Superposition,
    Triangular,
    WeeklyPoisson,
)
from unstale.core.staleness import age, consistency, freshness, missed_changes, staleness, update_staleness
from unstale.errors import InputError
from unstale.sim import draws, kernels
from unstale.sim.copy import CopyHistory, Sweep, draw, simulate_copy


def test_a_history_by_hand() -> None:
    """Polled at −1, 2 and 5; changed at −0.5, 1, 3; seen from 0 to 6: stale on [0, 2] and [3, 5]."""
    seen = CopyHistory(np.array([-1.0, 2.0, 5.0]), np.array([-0.5, 1.0, 3.0]), 6.0)
    assert seen.collected(Indicator()) == 4.0
    assert seen.collected(Linear()) == pytest.approx((2.5**2 - 0.5**2) / 2 + 2**2 / 2)
    assert seen.collected(Deadline(1.5)) == pytest.approx(1.0 + 0.5)
    assert seen.collected_by_all(Indicator()) == pytest.approx(2 + 1 + 2)
    assert seen.collected_by_all(Linear()) == pytest.approx(3.0 + 0.5 + 2.0)
    assert seen.within(0.0) == 2.0
    assert seen.within(0.75) == pytest.approx(2 + 0.25 + 0.75)
    assert seen.within(1.5) == pytest.approx(6 - seen.collected(Deadline(1.5)))


def test_a_change_at_the_time_of_a_poll_counts_as_after_it() -> None:
    seen = CopyHistory(np.array([0.0, 1.0, 2.0]), np.array([1.0]), 3.0)
    assert seen.collected(Indicator()) == 1.0
    assert seen.collected_by_all(Indicator()) == 1.0


def test_every_measure_is_near_its_formula() -> None:
    u, d, w = Pareto(3.5, 2.0), Poisson(0.9), Saturating(0.5)
    run = simulate_copy(u, d, w, polls_count=200_000, seed=3, tau=0.4)
    assert abs(run.freshness.z(freshness(u, d))) < 5
    assert abs(run.age.z(age(u, d))) < 5
    assert abs(run.lag.z(age(u, d) / (1 - freshness(u, d)))) < 5
    assert abs(run.missed_changes.z(missed_changes(u, d))) < 5
    assert abs(run.consistency.z(consistency(0.4, u, d))) < 5
    assert abs(run.staleness.z(staleness(u, d, w))) < 5
    assert abs(run.update_staleness.z(update_staleness(u, d, w))) < 5
    assert run.freshness.error < 0.005
    assert run.polls == pytest.approx(200_000, rel=0.02)
    assert run.changes == pytest.approx(200_000 * u.rate / d.rate, rel=0.05)


def test_compiled_and_drawn_runs_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    u, d = LogNormal.from_rate(0.8, 1.0), Constant(1.3)
    compiled = simulate_copy(u, d, seed=1, tau=0.2)
    monkeypatch.setattr(draws, "law_of", lambda _: None)
    drawn = simulate_copy(u, d, seed=1, tau=0.2)
    for name in ("freshness", "age", "lag", "missed_changes", "consistency"):
        one, other = getattr(compiled, name), getattr(drawn, name)
        assert one.value != other.value
        assert abs(one.value - other.value) < 5 * math.hypot(one.error, other.error)
        assert one.error == pytest.approx(other.error, rel=0.5)


@pytest.mark.parametrize("penalty", [None, Power(2.0)])
def test_same_seed_same_bits_other_seed_other_bits(penalty: Power | None) -> None:
    runs = [simulate_copy(Poisson(1.0), Sweep(1.0), penalty, polls_count=5000, seed=s) for s in (4, 4, 5)]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_threads_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for threads in (1, 2, 7):
        monkeypatch.setattr(kernels, "THREADS", threads)
        runs.append(simulate_copy(Poisson(1.0), Poisson(1.0), polls_count=20_000, seed=2))
    assert runs[0] == runs[1] == runs[2]
    with ThreadPoolExecutor(3) as pool:
        again = list(
            pool.map(lambda _: simulate_copy(Poisson(1.0), Poisson(1.0), polls_count=20_000, seed=2), range(3))
        )
    assert all(run == runs[0] for run in again)


def test_random_order_with_its_true_dependence_has_the_averages_of_independent_gaps() -> None:
    """[000 Algorithm B.2] against gaps drawn from Lemma 2 one by one, and both against Table 2."""
    sweep, independent = (
        simulate_copy(Poisson(1.0), polls, polls_count=400_000, seed=6) for polls in (Sweep(1.0), Triangular(1.0))
    )
    for run in (sweep, independent):
        assert abs(run.freshness.z(order_freshness(1.0, 1.0, "random"))) < 5
        assert abs(run.age.z(order_age(1.0, 1.0, "random"))) < 5
    # the dependence itself is there: a long gap is followed by a short one
    gaps = np.diff(Sweep(1.0).times(np.random.default_rng(1), 20_000.0))
    assert np.corrcoef(gaps[:-1], gaps[1:])[0, 1] == pytest.approx(-0.5, abs=0.03)
    assert np.var(gaps) == pytest.approx(1 / 6, rel=0.05)


@pytest.mark.parametrize("sources", [2, 5])
def test_random_order_of_few_sources(sources: int) -> None:
    run = simulate_copy(Poisson(1.0), Sweep(1.0, sources), polls_count=200_000, seed=7)
    assert abs(run.freshness.z(order_freshness(1.0, 1.0, "random", sources=sources))) < 5
    assert abs(run.age.z(order_age(1.0, 1.0, "random", sources=sources))) < 5


def test_infinite_variance_is_recognised() -> None:
    run = simulate_copy(Poisson(1.0), Pareto(2.5, 1.5), Power(2.0), polls_count=20_000, seed=1)
    assert math.isinf(run.age.error)
    assert math.isinf(run.missed_changes.error)
    assert math.isinf(run.staleness.error)
    assert abs(run.freshness.z(freshness(Poisson(1.0), Pareto(2.5, 1.5)))) < 5
    fine = simulate_copy(Pareto(1.2, 0.4), Poisson(1.0), polls_count=20_000, seed=1)
    assert math.isfinite(fine.age.error), "heavy tails of changes do no harm"


@pytest.mark.parametrize("penalty", [None, Indicator()], ids=["compiled", "drawn"])
def test_polls_that_may_lie_ages_back(penalty: Indicator | None) -> None:
    """Of gaps with tail 1.15 a random time is often in one of 1e12 mean gaps: freshness is right all the same."""
    u, d = Pareto(1.3, 0.3), Pareto(1.15, 0.15)
    run = simulate_copy(u, d, penalty, polls_count=8000, batches=400, seed=4)
    assert abs(run.freshness.z(freshness(u, d))) < 5
    assert math.isinf(age(u, d))
    assert math.isinf(run.age.error)


def test_merged_streams_of_polls_keep_their_dependence() -> None:
    """Two even streams with independent phases: a closed form nobody needs a gap law for."""
    polls = Superposition([Constant(1.0), Constant(math.sqrt(2))])
    seen = draw(Poisson(1.0), polls, 500.0, np.random.default_rng(1))
    gaps = np.diff(seen.polls)
    assert gaps.max() <= 1.0 + 1e-9
    assert seen.polls[0] <= 0 < seen.polls[1]
    assert len(gaps) == pytest.approx(500 * polls.rate, abs=3)


def test_weekly_changes_keep_their_own_clock() -> None:
    """All changes in the first half of each week, polled once a week: fresh from the poll's phase on, by hand."""
    week = WeeklyPoisson(50.0, [1.0, 0.0], week=1.0)
    run = simulate_copy(week, Constant(1.0), polls_count=6400, seed=2)
    # 100 changes per week of activity: a copy polled in the quiet half (1/2) is fresh for the rest of it, 1/4 on
    # average; polled in the busy half it is fresh for about 1/100
    assert abs(run.freshness.z(0.5 * 0.25 + 0.5 * 0.01 + 0.5 * 0.01)) < 5


def test_observed_gaps() -> None:
    u = Empirical([0.3, math.pi, 1.7])
    run = simulate_copy(u, Constant(1.0), seed=5)
    assert abs(run.freshness.z(freshness(u, 1.0))) < 5


def test_refusals() -> None:
    for wrong, text in (
        ({"seed": -1}, "seed -1.0 must be"),
        ({"seed": 1.5}, "seed 1.5 must be a whole number"),
        ({"batches": 1}, "batches 1.0 must be"),
        ({"polls_count": 3}, "polls_count 3.0 must be"),
        ({"horizon": 0}, "horizon 0.0 must be"),
        ({"tau": -1}, "tau -1.0 must be"),
        ({"polls_count": 1e12}, r"horizon 1e\+12 with about 2e\+12 events must give 1e\+11 events at most"),
    ):
        with pytest.raises(InputError, match=text):
            simulate_copy(Poisson(1.0), Poisson(1.0), **wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"interval -1\.0 must be"):
        Sweep(-1.0)
    with pytest.raises(InputError, match=r"sources -2\.0 must be"):
        Sweep(1.0, -2)


def test_a_fading_penalty_has_an_error_even_where_ages_have_none() -> None:
    """003 eq. 57: Σ 1/(1+lag) under Pareto(3) polls grows like a logarithm; missed changes have no variance."""
    ran = simulate_copy(Poisson(2.0), Pareto(3.0, 2.0), Reciprocal(), polls_count=400_000, seed=5)
    assert math.isinf(ran.missed_changes.error)
    assert abs(ran.update_staleness.z(1.54517744448)) < 5  # golden L3.56-57.lam1
    assert math.isfinite(ran.update_staleness.error)
