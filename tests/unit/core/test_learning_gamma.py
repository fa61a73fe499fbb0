"""The scalar formulas of a Gamma belief against many digits, over shapes 1e-6 to 1e8 and ratios 1e-12 to 1e12."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath as mp
import numpy as np
import pytest

from unstale.core.learning.gamma import after_change, age_value, freshness_value, survival
from unstale.core.values import BeliefFreshness

SHAPES = [1e-6, 1e-3, 0.1, 1 - 1e-9, 1.0, 1 + 1e-12, 1.5, 2 - 1e-12, 2.0, 2 + 1e-9, 30.0, 1e5, 1e8]
RATIOS = np.concatenate([np.geomspace(1e-12, 1e12, 25), np.geomspace(0.01, 0.6, 12)])
EXPOSURE = 3.0


def ratios(shape: float) -> list[float]:
    """Ratios all over, and those where shape·elapsed/exposure is neither small nor large."""
    near = np.geomspace(1e-3, 300, 16) / shape
    return [*RATIOS.tolist(), *near[(near > 1e-12) & (near < 1e12)].tolist()]


def integral(c: mp.mpf, span: mp.mpf) -> mp.mpf:
    return span if c == 0 else mp.expm1(c * span) / c


def matched(a: mp.mpf, b: mp.mpf, t: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    r = b / (b + t)
    zero, one, two = (1 - r ** (a + k) for k in range(3))
    mean = a / b * one / zero
    variance = a * (a + 1) / b**2 * two / zero - mean**2
    return mean**2 / variance, mean / variance


def fresh(a: mp.mpf, b: mp.mpf, t: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    z = t / b
    return b * (integral(1 - a, mp.log1p(z)) - z * (1 + z) ** -a), a * z * (1 + z) ** (-a - 1)


def aged(a: mp.mpf, b: mp.mpf, t: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    z = t / b
    span = mp.log1p(z)
    return b**2 * (z**2 / 2 - integral(2 - a, span) + integral(1 - a, span)), t * (1 - (1 + z) ** -a)


def still(a: mp.mpf, b: mp.mpf, t: mp.mpf) -> tuple[mp.mpf]:
    return ((1 + t / b) ** -a,)


CASES = {
    "after_change": (after_change, matched, 4e-15),
    "survival": (lambda *x: (survival(*x),), still, 3e-13),
    "freshness_value": (freshness_value, fresh, 1e-12),
    "age_value": (age_value, aged, 1e-11),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", CASES)
def test_against_many_digits(name: str, shape: float) -> None:
    formula, exact, error = CASES[name]
    with mp.workdps(80):
        for z in ratios(shape):
            want = exact(mp.mpf(shape), mp.mpf(EXPOSURE), mp.mpf(EXPOSURE * z))
            for got, w in zip(formula(shape, EXPOSURE, EXPOSURE * z), want, strict=True):
                if w > 1e-290:
                    assert abs(mp.mpf(float(got)) / w - 1) < error, z


@pytest.mark.parametrize("belief", [(0.4, 2.0, 0.1), (1.0, 1.0, 1.0), (3.0, 0.5, 20.0), (12.0, 4.0, 0.3)])
def test_the_matched_moments_are_those_of_the_posterior_by_quadrature(belief: tuple[float, float, float]) -> None:
    a, b, t = belief
    edges = [0, a / b / 10, a / b, 4 * (a + 1) / b, 30 * (a + 1) / b, mp.inf]
    total, first, second = (
        mp.quad(lambda x, k=k: x ** (a - 1 + k) * mp.exp(-b * x) * -mp.expm1(-x * t), edges) for k in range(3)
    )
    shape, exposure = after_change(a, b, t)
    assert shape / exposure == pytest.approx(float(first / total), rel=1e-8)
    assert shape / exposure**2 == pytest.approx(float(second / total - (first / total) ** 2), rel=1e-8)


@pytest.mark.parametrize("shape", [1e-6, 0.5, 1.0, 7.0, 1e8])
def test_limits(shape: float) -> None:
    # one change found at once; one found after ages teaches nothing; nothing has happened in no time
    np.testing.assert_allclose(after_change(shape, 2.0, 0.0), (shape + 1, 2.0), rtol=1e-15)
    np.testing.assert_allclose(after_change(shape, 2.0, 1e-200), (shape + 1, 2.0), rtol=1e-15)
    if shape >= 0.5:
        np.testing.assert_allclose(after_change(shape, 2.0, 1e140), (shape, 2.0), rtol=1e-15)
    assert survival(shape, 2.0, 0.0) == 1.0
    assert freshness_value(shape, 2.0, 0.0) == age_value(shape, 2.0, 0.0) == (0.0, 0.0)
    assert age_value(shape, 1e-3, 1e60)[0] == pytest.approx(0.5e120 if shape >= 0.5 else 0.5e120 * 1.44e-4, rel=0.02)
    if shape > 1:
        assert freshness_value(shape, 2.0, 1e140)[0] == pytest.approx(2.0 / (shape - 1), rel=1e-12)


def test_one_source_has_the_value_of_its_column() -> None:
    rng = np.random.default_rng(3)
    shape, exposure, elapsed = rng.lognormal(0, 2, (3, 200))
    columns = BeliefFreshness(shape, exposure)
    each = np.array([freshness_value(*row) for row in zip(shape, exposure, elapsed, strict=True)])
    np.testing.assert_allclose(each[:, 0], columns.value(elapsed), rtol=1e-12)
    np.testing.assert_allclose(each[:, 1], columns.slope(elapsed), rtol=1e-12)


@pytest.mark.parametrize("formula", [freshness_value, age_value])
def test_the_series_meets_the_closed_form(formula: Callable[[float, float, float], tuple[float, float]]) -> None:
    # no step where one form hands over to the other
    for shape in (1e-6, 0.3, 1.0, 2.0, 50.0, 1e8):
        for edge in (0.02, 0.03):
            z = math.expm1(edge / max(1.0, shape))
            low, high = (formula(shape, 1.0, z * (1 + s))[0] for s in (-1e-9, 1e-9))
            slope = formula(shape, 1.0, z)[1]
            assert high - low == pytest.approx(2e-9 * z * slope, rel=1e-2)
