"""Fleets: weighted means, gamma distributed rates against 40 digits, the two-source examples."""

import math
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest

from unstale.core.baselines import proportional
from unstale.errors import InputError
from unstale.study.database import fleet_age, fleet_freshness
from unstale.study.gamma_fleet import gamma_age, gamma_freshness
from unstale.study.two_sources import best_split, poll_benefit, split_freshness

mp.mp.dps = 40
RATIOS = (1e-12, 1e-3, 0.1, 1.0, 3.0, 50.0, 1e4)
VARIATIONS = (1e-3, 0.1, 0.4999999, 0.5, 0.9999999, 1.0, 1.0000001, 1.9, 2.0, 5.0, 1e3)


def test_weighted_means() -> None:
    rate, sync, weight = [1.0, 2.0, 0.0], [1.0, 0.0, 0.0], [3.0, 1.0, 4.0]
    fresh = (3 * (1 - math.exp(-1)) + 0 + 4) / 8
    assert fleet_freshness(rate, sync, weight) == pytest.approx(fresh, rel=1e-15)
    assert fleet_age(rate, sync, weight) == math.inf
    # an unpolled source counts unless it has no weight; one source at r = 1 has age 1/2 − 1/e
    assert fleet_age(rate, sync, [3.0, 0.0, 1.0]) == pytest.approx(0.75 * (0.5 - math.exp(-1)), rel=1e-14)
    assert fleet_freshness([1.0, 3.0], [1.0, 1.0], order="purely-random") == pytest.approx((1 / 2 + 1 / 4) / 2)


def test_a_fleet_without_weight_has_no_mean() -> None:
    with pytest.raises(InputError, match=r"weight 0.0 must have a sum above 0"):
        fleet_freshness([1.0], [1.0], [0.0])


def test_gamma_fleet_against_40_digits() -> None:
    """F = 2F1(1/δ², 1; 2; −rδ²) and A = r/6·2F1(1+1/δ², 1; 4; −rδ²), averages over gamma rates."""
    for r in RATIOS:
        for d2 in VARIATIONS:
            a, z = 1 / mp.mpf(d2), -mp.mpf(r) * mp.mpf(d2)
            fresh, old = mp.hyp2f1(a, 1, 2, z), mp.mpf(r) / 6 * mp.hyp2f1(1 + a, 1, 4, z)
            assert gamma_freshness(r, d2, "uniform") == pytest.approx(float(fresh), rel=2e-15), (r, d2)
            assert gamma_age(r, d2, "uniform") == pytest.approx(float(old), rel=4e-15), (r, d2)


def test_gamma_fleet_against_a_real_fleet() -> None:
    rng = np.random.default_rng(3)
    d2, r = 0.4, 2.0
    rate = rng.gamma(1 / d2, r * d2, 200_000)
    got = np.array([fleet_freshness(rate, 1.0), fleet_age(rate, 1.0)])
    want = np.array([gamma_freshness(r, d2, "uniform"), gamma_age(r, d2, "uniform")])
    # each source's value lies in [0, 1], so one standard error is below 0.5/√n
    assert np.all(np.abs(got - want) < 5 * 0.5 / math.sqrt(rate.size))
    spread = proportional(rate, 1.0, 1.0, rate.size * 1.0)
    assert fleet_freshness(rate, spread) == pytest.approx(gamma_freshness(r, d2, "proportional"), rel=1e-2)
    assert fleet_age(rate, spread) == pytest.approx(gamma_age(r, d2, "proportional"), rel=2e-2)


def test_gamma_fleet_at_the_edges() -> None:
    assert gamma_freshness(0.0, 1.0, "uniform") == 1.0
    assert gamma_age(0.0, 3.0, "uniform") == 0.0
    assert gamma_age(1e100, 0.0, "uniform") == pytest.approx(0.5, rel=1e-14)
    assert gamma_age(1e100, 0.3, "uniform") == pytest.approx(0.5, rel=1e-14)
    assert gamma_freshness(1e100, 0.3, "uniform") == pytest.approx(1e-100 / (1 - 0.3), rel=1e-13)
    assert gamma_age(1.0, 1.5, "proportional") == math.inf
    with pytest.raises(InputError, match=r"allocation 'best' must be"):
        gamma_age(1.0, 1.0, "best")  # type: ignore[arg-type]


def test_uniform_is_never_worse_on_gamma_fleets() -> None:
    for r in RATIOS:
        for d2 in VARIATIONS:
            assert gamma_freshness(r, d2, "uniform") >= gamma_freshness(r, d2, "proportional") * (1 - 1e-14)
            assert gamma_age(r, d2, "uniform") <= gamma_age(r, d2, "proportional") * (1 + 1e-14)


def test_poll_benefit_by_direct_integration() -> None:
    """k even polls in a day with one change at a random time: fresh after a poll that follows the change."""
    for k in range(5):
        times = [Fraction(i, k + 1) for i in range(1, k + 1)]
        # between poll i and the next, the copy is fresh if the change came before poll i
        gain = sum((t * Fraction(1, k + 1) for t in times), Fraction(0))
        assert poll_benefit(1, k) == gain
    assert poll_benefit(9, 9) == Fraction(1, 4)
    assert poll_benefit(2, 3) == (poll_benefit(1, 1) + poll_benefit(1, 2)) / 2
    with pytest.raises(InputError, match=r"polls 1.5 must be a whole number"):
        poll_benefit(1, 1.5)  # type: ignore[arg-type]


def test_best_split_prefers_the_quiet_source() -> None:
    assert best_split((9, 1), 3) == (0, 3)
    assert best_split((1, 1), 4) == (2, 2)


def test_split_freshness_is_concave_and_one_at_equal_shares() -> None:
    x = np.linspace(0.0, 1.0, 101)
    for budget in (1.0, 2.0, 5.0, 20.0):
        curve = split_freshness(x, budget)
        assert curve[50] == 1.0
        assert np.all(np.diff(curve, 2) < 1e-13)
    # abandoned up to a budget of 1/gammaincinv(2, 1/9) = 1.7641…
    for budget, abandoned in ((1.76, True), (1.77, False)):
        assert (split_freshness(1.0, budget) > split_freshness(1.0 - 1e-3, budget)) == abandoned
    with pytest.raises(InputError, match=r"share 1.5 must be"):
        split_freshness(1.5, 1.0)
