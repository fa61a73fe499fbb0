"""Each classical estimator against its equation, solved or integrated by somebody else."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from unstale.core.processes import Constant, Pareto, Poisson, Weibull
from unstale.errors import InputError
from unstale.study.estimators import (
    BiasReduced,
    LastModified,
    LawOfLargeNumbers,
    MaximumLikelihood,
    Momentum,
    Naive,
    Observations,
    ReducedLastModified,
    ReducedLikelihood,
    SeenGaps,
    StochasticApproximation,
    bias_table,
    seen_gaps,
)
from unstale.study.estimators.binomial import expect


def score(rate: mp.mpf, w: np.ndarray, changed: np.ndarray, *, reduced: bool) -> mp.mpf:
    """The derivative of the log-likelihood, term by term; with the penalty of Firth if asked."""
    out = mp.mpf(0)
    for length, bit in zip(w.tolist(), changed, strict=True):
        out += length / mp.expm1(rate * length) if bit else -mp.mpf(length)
    if reduced:
        weights = [mp.mpf(v) ** 2 / mp.expm1(rate * v) for v in w.tolist()]
        out -= mp.fsum(a * v for a, v in zip(weights, w.tolist(), strict=True)) / mp.fsum(weights) / 2
    return out


# ---- counts ----


def test_counts_by_hand() -> None:
    seen = Observations.of(0.5, [[1, 1, 0, 0], [1, 1, 1, 1]])
    assert Naive().estimate(seen).tolist() == [1.0, 2.0]
    assert BiasReduced().estimate(seen) == pytest.approx([2 * math.log(4.5 / 2.5), 2 * math.log(9.0)], rel=1e-15)


def test_naive_saturates_at_one_per_interval() -> None:
    assert Naive().mean(1e6, 0.25, 3) == 4.0
    # change_rate²·interval/2 too low, without cancellation
    assert Naive().mean(1e-9, 1.0, 1) == pytest.approx(1e-9 - 0.5e-18, rel=1e-15)


def test_a_binomial_mean_as_others_sum_it() -> None:
    for n, p in ((1, 0.3), (40, 0.01), (3000, 0.97), (200_000, 0.4)):
        got = expect(lambda k: k * k, n, math.log(p), math.log1p(-p))
        assert got == pytest.approx(n * p * (1 - p) + (n * p) ** 2, rel=1e-12)
    # given that not all polls found a change, which has a probability of about 5·e^(−900)
    assert expect(lambda k: k, 5, -math.exp(-900.0), -900.0, most=4) == pytest.approx(4.0, rel=1e-12)


# ---- likelihood ----


@pytest.mark.parametrize("reduced", [False, True])
@pytest.mark.parametrize("spread", [0.1, 1.0, 2.5])
def test_the_likelihood_is_flat_at_the_estimate(reduced: bool, spread: float) -> None:
    estimator = ReducedLikelihood() if reduced else MaximumLikelihood()
    rng = np.random.default_rng(3)
    mp.mp.dps = 40
    for n in (2, 5, 40):
        w = rng.lognormal(0.0, spread, n)
        changed = rng.random(n) < 0.6
        changed[:2] = [True, False]
        got = float(estimator.estimate(Observations.of(w, changed))[0])
        below, above = (score(mp.mpf(got * f), w, changed, reduced=reduced) for f in (1 - 1e-12, 1 + 1e-12))
        assert below > 0 > above


def test_even_polls_have_a_closed_form() -> None:
    bits = np.tril(np.ones((20, 20)))
    seen = Observations.of(0.3, bits)
    changes = np.arange(1, 21)
    with np.errstate(divide="ignore"):
        assert np.allclose(MaximumLikelihood().estimate(seen), -np.log(1 - changes / 20) / 0.3, rtol=1e-13)
    assert np.allclose(ReducedLikelihood().estimate(seen), BiasReduced().estimate(seen), rtol=1e-13)


def test_all_changed_is_unbounded_and_the_reduced_one_is_not() -> None:
    seen = Observations.of([[1.0, 2.0, 5.0], [1.0, 2.0, 5.0]], [[1, 1, 1], [0, 0, 0]])
    assert MaximumLikelihood().estimate(seen).tolist() == [np.inf, 0.0]
    reduced = ReducedLikelihood().estimate(seen)
    assert reduced[1] == 0.0
    assert 0.5 < reduced[0] < 3.0


def test_the_first_order_bias_is_the_one_stated() -> None:
    x, n = 0.9, 100_000
    assert MaximumLikelihood().bias(x, 1.0, n) == pytest.approx(math.expm1(x) / (2 * n), rel=1e-3)
    assert abs(BiasReduced().bias(x, 1.0, n)) < 1e-3 * math.expm1(x) / (2 * n)


# ---- last-modified ----


def test_last_modified_by_hand() -> None:
    seen = Observations.of(2.0, [[1, 0, 1], [1, 1, 1]], since=[[0.5, np.nan, 1.5], [1.0, 1.0, 1.0]])
    assert LastModified().estimate(seen).tolist() == [0.5, 1.0]
    two = (1 + 2 / (3 * math.log(3))) / 4
    assert ReducedLastModified().estimate(seen) == pytest.approx([two, 2 / 3], rel=1e-15)


@pytest.mark.parametrize("x", [0.05, 1.0, 6.0])
def test_the_mean_of_two_polls_is_a_double_integral(x: float) -> None:
    # one poll finds a change: 1/(1 + wait) twice; both do: the sum of two cut-off exponential waits
    once, _ = quad(lambda a: 2 * math.exp(-x) * x * math.exp(-x * a) / (1 + a), 0, 1, epsabs=0, epsrel=1e-12)
    overlap = quad(lambda t: x * x * math.exp(-x * t) * min(t, 2 - t) / t, 0, 2, points=[1.0], epsabs=0, epsrel=1e-12)
    assert LastModified().mean(x, 1.0, 2) == pytest.approx(once + 2 * overlap[0], rel=1e-9)
    counted = 1 / (2 * math.log(2))
    assert ReducedLastModified().mean(x, 1.0, 2) == pytest.approx(counted * once + overlap[0], rel=1e-9)


def test_fast_sources_are_no_problem_for_last_modified() -> None:
    # all polls find a change: n/T of a Gamma(n) time has mean n/(n − 1)
    assert LastModified().mean(200.0, 1.0, 6) == pytest.approx(200 * 6 / 5, rel=1e-10)
    assert ReducedLastModified().mean(200.0, 1.0, 6) == pytest.approx(200.0, rel=1e-10)
    assert LastModified().mean(1.0, 1.0, 1) == np.inf
    assert ReducedLastModified().mean(1.0, 1.0, 1) == 0.0


def test_a_change_at_the_very_moment() -> None:
    seen = Observations.of(1.0, [1, 1], since=0.0)
    assert LastModified().estimate(seen)[0] == ReducedLastModified().estimate(seen)[0] == np.inf


# ---- online ----


def test_the_recursions_by_hand() -> None:
    bits, p = [1, 0, 1, 1, 0, 1], 2.0
    y = z = z_before = 0.4
    for k, bit in enumerate(bits):
        step = (k + 1) ** -0.75
        y += step * (bit * (y + p) - y)
        inertia = ((k + 1) ** -0.5 - step) / k**-0.5 if k else 0.0
        z, z_before = z + step * (bit * (z + p) - z) + inertia * (z - z_before), z
    seen = Observations.of(0.5, bits)
    assert StochasticApproximation(start=0.4).estimate(seen)[0] == pytest.approx(y, rel=1e-14)
    assert Momentum(start=0.4).estimate(seen)[0] == pytest.approx(z, rel=1e-14)
    assert LawOfLargeNumbers().estimate(seen).tolist() == [2.0 * 4 / 3]


def test_the_start_fades_by_a_product() -> None:
    rate, start, n = 3.0, 7.0, 30
    fade = math.prod(1 - (k + 1) ** -0.6 / (1 + rate) for k in range(n))
    got = StochasticApproximation(start=start, power=0.6).bias(rate, 1.0, n)
    assert got == pytest.approx((start - rate) * fade, rel=1e-12)
    assert LawOfLargeNumbers().bias(rate, 1.0, n) == pytest.approx(-rate * 0.75**n, rel=1e-9)


def test_on_even_polls_they_are_wrong_by_a_known_factor() -> None:
    online = [LawOfLargeNumbers(), StochasticApproximation(start=1.0)]
    rows = bias_table(1.0, 1.0, 4000, np.random.default_rng(4), runs=200, timing="even", estimators=online)
    for row in rows:
        assert row.mean == pytest.approx(math.e - 1, abs=0.05)
        assert math.isnan(row.expected)


@pytest.mark.parametrize("options", [{"power": 0.5}, {"power": 1.1}, {"start": -1.0}])
def test_steps_that_do_not_converge_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="must be"):
        StochasticApproximation(**options)


# ---- observations ----


@pytest.mark.parametrize(
    ("columns", "says"),
    [
        ({"intervals": 0.0, "changed": [1]}, r"intervals\[0\] 0.0 must be a finite number above 0"),
        ({"intervals": [1.0, np.nan], "changed": [1, 0]}, r"intervals\[1\] nan must be"),
        ({"intervals": [1.0, 2.0], "changed": [1]}, r"intervals of shape \(2,\) must match changed"),
        ({"intervals": "soon", "changed": [1]}, "intervals 'soon' must be numbers"),
        ({"intervals": 1.0, "changed": [0.5]}, r"changed\[0\] 0.5 must be 0 or 1"),
        ({"intervals": 1.0, "changed": []}, "must be a row of polls"),
        ({"intervals": 1.0, "changed": [1, 0], "counts": [1]}, "must be whole numbers that add up to the 2 polls"),
        ({"intervals": 1.0, "changed": [1, 0], "counts": [0, 2]}, "leave out sources that were never polled"),
        ({"intervals": 1.0, "changed": [1, 0], "since": [1.5, 0]}, r"since\[0\] 1.5 must be from 0 to the interval"),
        ({"intervals": 1.0, "changed": [1, 0], "since": [None, 0]}, r"since\[0\] nan must be"),
        ({"intervals": 1.0, "changed": [1, 0], "sync_rate": [1, 2]}, "sync_rate of shape"),
    ],
)
def test_observations_that_cannot_be_are_one_sentence(columns: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Observations.of(**columns)  # type: ignore[arg-type]


def test_last_modified_needs_times_and_says_so() -> None:
    with pytest.raises(InputError, match="since None must be told: give the time from the latest change"):
        LastModified().estimate(Observations.of(1.0, [1, 0]))


# ---- gaps seen through polls ----


@pytest.mark.parametrize("interval", [1e-7, 0.01, 0.4, 3.0])
def test_poisson_gaps_seen_through_polls_are_geometric(interval: float) -> None:
    seen = SeenGaps(Poisson(1.3), interval)
    k = np.arange(6)
    assert np.allclose(seen.survival(k * interval), np.exp(-1.3 * interval * k), rtol=1e-12)
    assert seen.survival(interval * 0.999) == 1.0
    share = -math.expm1(-1.3 * interval)
    assert seen.mean == pytest.approx(interval / share, rel=1e-14)
    assert seen.missed == pytest.approx(1 - share / (1.3 * interval), abs=1e-14)
    assert seen.exponential_distance() == pytest.approx(-math.expm1(-share), rel=1e-6)
    assert seen.geometric_distance() < 1e-12


def test_constant_gaps_take_one_of_two_lengths() -> None:
    seen = SeenGaps(Constant(2.5), 1.0)
    assert [seen.survival(x) for x in (1.0, 1.99, 2.0, 2.99, 3.0, np.inf)] == pytest.approx([1, 1, 0.5, 0.5, 0, 0])
    assert seen.mean == pytest.approx(2.5)
    assert seen.missed == pytest.approx(0.0)


@pytest.mark.parametrize("changes", [Pareto.from_rate(2.5, 1.0), Weibull.from_rate(0.6, 1.0), Poisson(1.0)])
@pytest.mark.parametrize("interval", [0.2, 1.0, 5.0])
def test_steps_add_up_to_the_mean(changes: Poisson, interval: float) -> None:
    seen = SeenGaps(changes, interval)
    k = np.arange(400_000)
    left = float(changes.age_survival(len(k) * interval)) / float(changes.age_cdf(interval))
    assert np.sum(seen.survival(k * interval)) + left == pytest.approx(seen.mean / interval, rel=1e-9)


def test_short_intervals_show_the_true_law() -> None:
    changes = Pareto(1.5, 2.0)
    interval = 1e-9
    x = np.array([1e-6, 0.3, 50.0, 1e5])
    assert np.allclose(SeenGaps(changes, interval).survival(x), changes.survival(x), rtol=1e-8)
    mp.mp.dps = 40
    for k in (1, 7, 900):
        tail = [(1 + mp.mpf(j) * mp.mpf("1e-4") / 2) ** mp.mpf("-0.5") for j in (k, k + 1, 0, 1)]
        want = float((tail[0] - tail[1]) / (tail[2] - tail[3]))
        assert SeenGaps(changes, 1e-4).survival(k * 1e-4) == pytest.approx(want, rel=1e-11)


def test_intervals_beyond_the_mean_gap_hide_heavy_tails() -> None:
    # alpha 1.5, rate 1: k polls in a row find nothing with probability (1 + 2k·interval)^(−½)
    distances = []
    for interval in (0.1, 1.0, 10.0, 100.0):
        quiet = (1 + 2 * interval * np.arange(20_000)) ** -0.5
        beyond = (quiet[:-1] - quiet[1:]) / (1 - quiet[1])
        distances.append(np.max(np.abs(beyond - quiet[1] ** np.arange(len(beyond)))))
        got = SeenGaps(Pareto.from_rate(1.5, 1.0), interval).geometric_distance()
        assert got == pytest.approx(distances[-1], rel=1e-9)
    # 0.256, 0.269, 0.139, 0.051: short intervals hide nothing yet
    assert distances[1] > 1.9 * distances[2] > 1.9 * 2.5 * distances[3]


def test_seen_gaps_of_a_history() -> None:
    assert seen_gaps([5.1, 0.4, 3.7, 0.2], 1.0).tolist() == [3.0, 2.0]
    # a change at the moment of a poll is found by that poll
    assert seen_gaps([1.0, 2.0], 1.0).tolist() == [1.0]
    assert seen_gaps([1.0, 2.0], 2.0, phase=1.0).tolist() == [2.0]
    assert seen_gaps([1.0], 1.0).tolist() == []


@pytest.mark.parametrize("interval", [0.0, -1.0, np.nan])
def test_polls_need_an_interval(interval: float) -> None:
    for ask in (lambda: SeenGaps(Poisson(1.0), interval), lambda: seen_gaps([1.0], interval)):
        with pytest.raises(InputError, match="give the time between two polls"):
            ask()
