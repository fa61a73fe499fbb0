"""Replicas that ask each other: the chain against a matrix, the spread against the chain, and the best design."""

import math

import numpy as np
import pytest

from unstale.core.processes import Constant, Gamma, Pareto, Poisson
from unstale.core.replication.cooperation import cooperation_limit, cooperative_freshness, meeting_chance
from unstale.core.replication.design import best_cooperation, cooperation_for
from unstale.core.replication.redundancy import service_for
from unstale.core.replication.spread import drawn_freshness, spread_times
from unstale.errors import InfeasibleError, InputError


def solved(change_rate: float, source_rate: float, peer_rate: float, m: int, k: int, leave_rate: float = 0.0) -> float:
    """Mean share of fresh replicas from the balance equations of the whole chain, its contacts counted out."""
    flow = np.zeros((m + 1, m + 1))
    for n in range(m + 1):
        if n < m:
            meets = 1 - math.comb(m - 1 - n, k) / math.comb(m - 1, k) if m > 1 else 0
            flow[n, n + 1] += (m - n) * (source_rate + peer_rate * meets)
        flow[n, 0] += change_rate
        flow[n, max(n - 1, 0)] += n * leave_rate
    flow -= np.diag(flow.sum(axis=1))
    equations = np.vstack([flow.T[:-1], np.ones(m + 1)])
    return float(np.linalg.solve(equations, np.append(np.zeros(m), 1.0)) @ np.arange(m + 1)) / m


@pytest.mark.parametrize(
    ("rates", "m", "k"),
    [((1, 1, 10), 10, 1), ((1, 1, 10), 10, 4), ((3, 0.2, 7), 5, 2), ((0.1, 2, 0.5), 40, 39), ((1, 0.01, 9), 200, 3)],
)
def test_the_chain_equals_its_balance_equations(rates: tuple[float, float, float], m: int, k: int) -> None:
    assert cooperative_freshness(*rates, m, k) == pytest.approx(solved(*rates, m, k), rel=1e-12)


@pytest.mark.parametrize("leave_rate", [1e-9, 0.1, 3.0])
@pytest.mark.parametrize(
    ("rates", "m", "k"), [((1, 1, 10), 10, 1), ((1, 1, 10), 10, 4), ((3, 0.2, 7), 1, 1), ((0, 0.01, 9), 200, 3)]
)
def test_replicas_that_leave_are_a_step_back(
    rates: tuple[float, float, float], m: int, k: int, leave_rate: float
) -> None:
    got = cooperative_freshness(*rates, m, k, leave_rate=leave_rate)
    assert got == pytest.approx(solved(*rates, m, k, leave_rate), rel=1e-9)


def test_limits_of_leaving() -> None:
    # without talk it is one more way to be stale
    assert cooperative_freshness(1.0, 0.5, 0.0, 7, leave_rate=0.5) == pytest.approx(1 / 4, rel=1e-14)
    assert cooperative_freshness(1.0, 1.0, 10.0, 10, leave_rate=1e-13) == pytest.approx(
        cooperative_freshness(1.0, 1.0, 10.0, 10), rel=1e-11
    )
    assert cooperative_freshness(1.0, 0.0, 9.0, 3, leave_rate=1.0) == 0.0
    # so much talk that whoever is stale asks a fresh one at once: only all of them together can be stale
    assert cooperative_freshness(1.0, 1.0, math.inf, 3, leave_rate=1e-12) == pytest.approx(3 / 4, rel=1e-9)


@pytest.mark.parametrize(("m", "k"), [(2, 1), (7, 3), (300, 17), (3000, 2999)])
def test_meeting_chance_is_hypergeometric(m: int, k: int) -> None:
    want = (
        [1 - math.comb(m - 1 - j, k) / math.comb(m - 1, k) for j in range(m)] if m < 1000 else [0.0] + [1.0] * (m - 1)
    )
    assert meeting_chance(m, k) == pytest.approx(want, rel=1e-12, abs=1e-15)


def test_limits_of_the_chain() -> None:
    assert cooperative_freshness(1.0, 0.5, 0.0, 7) == pytest.approx(1 / 3, rel=1e-14)
    assert cooperative_freshness(1.0, 0.5, 9.0, 1) == pytest.approx(1 / 3, rel=1e-14)
    assert cooperative_freshness(0.0, 0.5, 9.0, 3) == 1.0
    assert cooperative_freshness(1.0, 0.0, 9.0, 3) == 0.0
    assert cooperative_freshness(1e-300, 1e300, 1e300, 3000) == pytest.approx(1.0)
    assert cooperative_freshness(1e300, 1e-300, 1e-300, 3) == pytest.approx(0.0, abs=1e-300)
    # everyone asks everyone: after the first poll the rest is told at the contact rate
    reached = 1.0 / 1.2
    assert cooperative_freshness(1.0, 1.0, 4.0, 5, 4) == pytest.approx(
        np.mean(np.cumprod([reached, *(n * 5 / (n * 5 + 1) for n in (4, 3, 2, 1))])), rel=1e-14
    )


@pytest.mark.parametrize("k", [1, 2, 9])
def test_much_talk_tends_to_theorem_6(k: int) -> None:
    limit = cooperation_limit(1.0, Poisson(0.3), 10)
    assert limit == pytest.approx(0.75, rel=1e-13)
    below = [cooperative_freshness(1.0, 0.3, rate, 10, k) for rate in (1e2, 1e4, 1e6)]
    assert below == sorted(below)
    assert below[-1] < limit
    assert below[-1] == pytest.approx(limit, rel=1e-5)


def test_one_peer_per_contact_is_best() -> None:
    for total in (0.5, 2.0, 30.0):
        by_peers = [cooperative_freshness(1.0, 0.4, total / k, 12, k) for k in range(1, 12)]
        assert by_peers == sorted(by_peers, reverse=True)


def test_large_systems_follow_the_logistic_curve() -> None:
    """For many replicas the share x that is fresh follows x' = (1 − x)(source_rate + peer_rate·x)."""
    s, v = 0.5, 2.0
    t = np.linspace(0, 60, 600_001)
    grown = np.exp((s + v) * np.minimum(t, 50))
    share = s * (grown - 1) / (v + s * grown)
    want = np.trapezoid(np.exp(-t) * share, t)
    assert cooperative_freshness(1.0, s, v, 100_000) == pytest.approx(want, rel=1e-4)


@pytest.mark.parametrize(("k", "selection"), [(1, "random"), (3, "random"), (9, "random"), (9, "recent")])
def test_drawn_spread_equals_the_chain(k: int, selection: str) -> None:
    rng = np.random.default_rng(5)
    got, error = drawn_freshness(1.0, Poisson(1.0), Poisson(6.0 / k), 10, k, rng, selection=selection, runs=8000)  # type: ignore[arg-type]
    assert error < 0.002
    assert abs(got - cooperative_freshness(1.0, 1.0, 6.0 / k, 10, k)) < 5 * error


def test_two_replicas_have_one_peer_however_it_is_chosen() -> None:
    rng = np.random.default_rng(6)
    got, error = drawn_freshness(1.0, Poisson(0.5), Poisson(3.0), 2, 1, rng, selection="recent", runs=8000)
    assert abs(got - cooperative_freshness(1.0, 0.5, 3.0, 2)) < 5 * error


def test_pareto_changes_are_a_mixture_of_poisson_ones() -> None:
    """The age of Pareto changes is exponential with a gamma rate, so freshness is the mean over that rate."""
    rng = np.random.default_rng(7)
    rates = rng.gamma(2.0, 1.0, 20_000)
    mixed = np.array([cooperative_freshness(rate, 1.0, 4.0, 6) for rate in rates])
    got, error = drawn_freshness(Pareto(3.0, 1.0), Poisson(1.0), Poisson(4.0), 6, 1, rng, runs=8000)
    assert abs(got - mixed.mean()) < 5 * math.hypot(error, mixed.std() / math.sqrt(len(mixed)))


def test_regular_contacts_are_better() -> None:
    rng = np.random.default_rng(8)
    shapes = (Constant(0.2), Gamma(4.0, 0.05), Poisson(5.0), Pareto.from_rate(3.0, 5.0))
    found = [drawn_freshness(1.0, Poisson(1.0), c, 10, 1, rng, runs=8000)[0] for c in shapes]
    assert found == sorted(found, reverse=True)


def test_even_polls_reach_everyone_within_an_interval() -> None:
    times = spread_times(Constant(2.0), Poisson(1e-9), 4, 1, 4000, np.random.default_rng(9))
    assert times.max() <= 2.0
    assert times.mean() == pytest.approx(1.0, abs=5 * 2 / math.sqrt(12 * times.size))


def test_the_best_number_of_replicas_by_trying_all() -> None:
    for target, capacity, most in ((0.5, 10.0, 500), (0.7, 10.0, 60), (0.3, 3.0, 80), (0.86, 10.0, 10)):
        served = []
        for m in range(1, most):
            try:
                served.append(cooperation_for(1.0, target, capacity, m).requests)
            except InfeasibleError:
                served.append(-math.inf)
        best = best_cooperation(1.0, target, capacity)
        assert best.replicas == 1 + int(np.argmax(served))
        assert best.requests == max(served)


def test_a_design_keeps_its_promises() -> None:
    best = best_cooperation(0.25, 0.6, 8.0, most_replicas=50)
    assert best.replicas == 50
    assert best.freshness == pytest.approx(0.6, rel=1e-12)
    assert best.replicas * best.source_rate == pytest.approx(8.0)
    left = best.replicas * (8.0 - best.source_rate - best.peers * best.peer_rate)
    assert best.requests == pytest.approx(left)
    # units do not matter
    scaled = best_cooperation(2.5, 0.6, 80.0, most_replicas=50)
    assert scaled.requests == pytest.approx(10 * best.requests)
    # whole replicas that need not talk are those of independent replication
    few = cooperation_for(1.0, 0.5, 10.0, 10)
    assert (few.peers, few.peer_rate) == (0, 0.0)
    assert few.requests == pytest.approx(service_for(1.0, 0.5, capacity=10.0, polls="purely-random").requests)


def test_impossible_targets_name_what_can_be_reached() -> None:
    limit = 10 / 11
    with pytest.raises(InfeasibleError, match=r"come to 0\.867769") as refused:
        best_cooperation(1.0, limit, 10.0)
    assert (limit + limit**2) / 2 == pytest.approx(0.867769, abs=1e-6)
    least = refused.value.least_budget
    assert least is not None
    assert best_cooperation(1.0, limit, least * 1.001).freshness == pytest.approx(limit)
    with pytest.raises(InfeasibleError):
        best_cooperation(1.0, limit, least * 0.999)
    with pytest.raises(InfeasibleError, match="must be below 1"):
        best_cooperation(1.0, 1.0, 10.0)
    with pytest.raises(InfeasibleError, match=r"500 replicas .* come to 0\.519116"):
        cooperation_for(1.0, 0.6, 10.0, 500)


def test_bad_input_is_one_sentence() -> None:
    with pytest.raises(InputError, match="peers 7 must be at most 3"):
        cooperative_freshness(1.0, 1.0, 1.0, 4, 7)
    with pytest.raises(InputError, match=r"replicas .* whole number"):
        cooperative_freshness(1.0, 1.0, 1.0, 4.5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be random or recent"):
        spread_times(Poisson(1.0), Poisson(1.0), 3, 1, 10, np.random.default_rng(1), "newest")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="nobody to ask"):
        spread_times(Poisson(1.0), Poisson(1.0), 1, 1, 10, np.random.default_rng(1))
