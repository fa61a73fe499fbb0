"""Batch means against scipy, coverage of their errors, and where there is no error to be had."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from unstale.core.processes import Pareto
from unstale.errors import InputError
from unstale.sim.statistics import Estimate, batch_means, finite_variance


def test_equal_batches_are_the_mean_and_its_standard_error() -> None:
    x = np.random.default_rng(1).gamma(2.0, 1.0, (3, 4, 50))
    got = batch_means(x)
    np.testing.assert_allclose(got.value, x.mean(axis=-1), rtol=1e-14)
    np.testing.assert_allclose(got.error, stats.sem(x, axis=-1), rtol=1e-13)
    one = batch_means(x[0, 0])
    assert type(one.value) is float
    assert type(one.error) is float


def test_lengths_make_it_a_ratio_whatever_their_unit() -> None:
    rng = np.random.default_rng(2)
    length = rng.uniform(1, 3, 400)
    total = 0.7 * length + rng.normal(0, 0.1, 400)
    got, scaled = batch_means(total, length), batch_means(1e6 * total, 1e6 * length)
    assert got.value == pytest.approx(total.sum() / length.sum(), rel=1e-14)
    assert got.error == pytest.approx(0.1 / math.sqrt(400) / 2, rel=0.1)
    assert scaled.value == pytest.approx(got.value, rel=1e-12)
    assert scaled.error == pytest.approx(got.error, rel=1e-12)


def test_five_standard_errors_are_rarely_exceeded_and_two_now_and_then() -> None:
    x = np.random.default_rng(3).normal(1.0, 2.0, (20_000, 40))
    z = np.abs(batch_means(x).z(1.0))
    # Student's t with 39 degrees of freedom
    assert np.mean(z > 2) == pytest.approx(2 * stats.t.sf(2, 39), abs=0.008)
    assert np.count_nonzero(z > 5) <= 3


def test_one_batch_has_no_error_and_infinite_sums_have_none_either() -> None:
    assert math.isnan(batch_means([3.0]).error)
    got = batch_means([1.0, math.inf])
    assert math.isinf(got.value)
    assert math.isinf(got.error)
    assert batch_means([1.0, 5.0], finite=False).error == math.inf


def test_z_counts_errors_and_forgives_rounding() -> None:
    got = Estimate(np.array([1.0, 2.0]), np.array([0.5, 0.0]))
    np.testing.assert_allclose(got.z([0.0, 2.0 + 1e-12]), [2.0, 0.0])
    assert Estimate(2.0, 0.0).z(1.0) == math.inf
    assert Estimate(7.0, math.inf).z(1.0) == 0.0
    assert Estimate(math.inf, math.inf).z(math.inf) == 0.0
    assert str(Estimate(0.63212, 0.0012)) == "0.6321 ± 0.001"


@pytest.mark.parametrize("alpha", [2.5, 3.5, 5.5, 8.0])
@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0, 3.0])
def test_finite_variance_is_a_finite_moment_of_the_age(alpha: float, power: float) -> None:
    """The harm is the age of the polls to a power: its variance is finite if that moment of the age is."""
    second = Pareto(alpha, 1.0).age_moment(int(2 * power)) if power else 1.0
    assert finite_variance(alpha, power) == math.isfinite(second)


def test_refusals() -> None:
    with pytest.raises(InputError, match="sums without batches must have one"):
        batch_means(np.zeros((3, 0)))
    with pytest.raises(InputError, match=r"lengths\[1\] -1.0 must be"):
        batch_means([1.0, 2.0], [1.0, -1.0])


def test_estimates_of_many_can_be_printed() -> None:
    assert str(Estimate(0.632, 0.0007)) == "0.632 ± 0.0007"
    assert "array" in str(Estimate(np.array([1.0, 2.0]), np.array([0.1, 0.2])))
