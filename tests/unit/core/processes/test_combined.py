"""Empirical, mixed and merged processes against brute force and conservation laws."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.processes import Constant, Empirical, Mixture, Pareto, Poisson, Superposition, Uniform


def test_empirical_is_the_weighted_sum_of_constants():
    rng = np.random.default_rng(3)
    gaps, weights = rng.lognormal(0.0, 1.5, 400), rng.random(400)
    p, x = Empirical(gaps, weights), np.concatenate([rng.lognormal(0.0, 2.0, 50), gaps[:50]])
    share, capped = weights / weights.sum(), np.minimum(gaps, x[:, None])
    mean = share @ gaps
    np.testing.assert_allclose(p.survival(x), (gaps > x[:, None]) @ share, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose(p.age_cdf(x), capped @ share / mean, rtol=1e-13)
    np.testing.assert_allclose(p.age_partial_mean(x), capped**2 @ share / mean / 2, rtol=1e-13)
    np.testing.assert_allclose(p.age_survival(x), np.maximum(gaps - x[:, None], 0) @ share / mean, rtol=1e-12)


def test_empirical_tail_does_not_cancel():
    p = Empirical([1.0, 1e6], [1e9, 1.0])
    assert p.age_survival(1e6 - 1e-3) == pytest.approx(p.rate * 1e-3 / (1e9 + 1), rel=1e-6)


def test_empirical_merges_repeated_gaps_and_drops_weightless_ones():
    p = Empirical([2.0, 1.0, 2.0, 9.0], [1.0, 1.0, 1.0, 0.0])
    np.testing.assert_array_equal(p.gaps, [1.0, 2.0])
    np.testing.assert_allclose(p.weights, [1 / 3, 2 / 3])
    assert p == Empirical([1.0, 2.0, 2.0])
    assert p.end == 2.0


def test_mixture_of_constants_is_empirical():
    mixed, seen = Mixture([Constant(1.0), Constant(1.5)], [1, 3]), Empirical([1.0, 1.5], [1, 3])
    x = np.linspace(0.0, 2.0, 41)
    for name in ("survival", "age_cdf", "age_survival", "age_partial_mean", "age_shortfall"):
        np.testing.assert_allclose(getattr(mixed, name)(x), getattr(seen, name)(x), rtol=1e-13, atol=1e-16)
    assert mixed.variance == pytest.approx(seen.variance, rel=1e-13)


def test_superposed_poisson_is_poisson():
    merged, one = Superposition([Poisson(0.5), Poisson(1.5)]), Poisson(2.0)
    x = np.geomspace(1e-8, 300.0, 60)
    for name in ("survival", "age_cdf", "age_survival", "age_partial_mean", "age_shortfall"):
        np.testing.assert_allclose(getattr(merged, name)(x), getattr(one, name)(x), rtol=1e-10)
    for n in range(6):
        assert merged.moment(n) == pytest.approx(one.moment(n), rel=1e-10)


def test_superposed_pareto_tails_add_up():
    """Ages with tails 0.6 and 0.7 merge to 1.3: the merged gap has a mean age although no member has."""
    merged = Superposition([Pareto(1.6, 1.0), Pareto(1.7, 1.0)])
    assert merged.tail == pytest.approx(2.3)
    # With one scale the merged age is again Pareto: age survival (1+x)^−1.3, mean 1/0.3.
    assert merged.age_moment(1) == pytest.approx(1 / 0.3, rel=1e-9)
    twin = Pareto(2.3, 1.0)
    x = np.array([1e-5, 0.4, 7.0, 1e5, 1e40])
    np.testing.assert_allclose(merged.age_partial_mean(x), twin.age_partial_mean(x), rtol=1e-9)
    assert merged.moment(3) == np.inf


def test_two_even_streams_alternate():
    """Each gap of two merged even streams determines the next: they sum to the common gap."""
    path = Superposition([Constant(1.0), Constant(1.0)]).sample_path(np.random.default_rng(1), 50.0)
    np.testing.assert_allclose(path[2:] - path[:-2], 1.0, rtol=1e-12)
    gaps = Superposition([Constant(1.0), Constant(1.0)]).sample(np.random.default_rng(1), 20_000)
    # A single gap is uniform on [0, 1].
    assert abs(gaps.mean() - 0.5) < 5 * np.sqrt(1 / 12 / gaps.size)
    assert Superposition([Constant(1.0), Constant(1.0)]).variance == pytest.approx(1 / 12, rel=1e-10)


def test_merged_paths_have_the_gap_law_of_the_formula():
    p = Superposition([Uniform(0.5, 1.5), Constant(0.7)])
    gaps = np.diff(p.sample_path(np.random.default_rng(6), 60_000.0))
    x = np.array([0.05, 0.2, 0.4, 0.6])
    shares = np.mean(gaps[:, None] > x, axis=0)
    # Consecutive gaps are dependent: batches of 1,000 give honest standard errors.
    batches = (gaps[: gaps.size // 1000 * 1000].reshape(-1, 1000)[:, :, None] > x).mean(axis=1)
    errors = batches.std(axis=0) / np.sqrt(len(batches))
    assert np.all(np.abs(shares - p.survival(x)) <= 5 * errors)
