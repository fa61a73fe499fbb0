"""Integrals whose values are known, at every scale; the bound is kept, or the error says so."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc

from unstale.core.quadrature import integrate
from unstale.errors import ConvergenceError, InputError

KNOWN = [
    ("steep start", lambda x: np.exp(-x), [0.0, 1e9], 1.0),
    ("unit exponential", lambda x: np.exp(-x), [0.0, np.inf], 1.0),
    ("slow exponential", lambda x: np.exp(-1e-30 * x), [0.0, np.inf], 1e30),
    ("fast exponential", lambda x: np.exp(-1e30 * x), [0.0, np.inf], 1e-30),
    ("heavy tail", lambda x: (1 + x) ** -1.2, [0.0, np.inf], 5.0),
    ("stretched exponential", lambda x: np.exp(-np.sqrt(x)), [0.0, np.inf], 2.0),
    ("singular end", lambda x: x**-0.9, [0.0, 1.0], 10.0),
    ("jump at a point", lambda x: np.where(x < 0.3, 1.0, 0.5), [0.0, 0.3, 1.0], 0.65),
    ("jump not announced", lambda x: np.where(x < 0.3, 1.0, 0.5), [0.0, 1.0], 0.65),
    ("bend not announced", lambda x: np.minimum(x, 0.4), [0.0, 1.0], 0.32),
    ("negative", lambda x: -np.cos(x), [0.0, 1.0], -math.sin(1.0)),
    ("zero", lambda x: 0.0 * x, [0.0, np.inf], 0.0),
    ("constant", lambda x: 1.0, [2.0, 5.0], 3.0),
    ("empty", lambda x: np.exp(x), [2.0, 2.0], 0.0),
    ("tiny", lambda x: x, [0.0, 1e-100], 0.5e-200),
    ("huge", lambda x: np.ones_like(x), [0.0, 1e300], 1e300),
]


@pytest.mark.parametrize(("f", "points", "want"), [k[1:] for k in KNOWN], ids=[k[0] for k in KNOWN])
@pytest.mark.parametrize("rtol", [1e-6, 1e-10, 1e-12])
def test_known_integrals_are_within_the_promised_tolerance_and_the_bound(f, points, want, rtol):
    value, error = integrate(f, points, rtol=rtol)
    assert type(value) is float
    assert type(error) is float
    assert abs(value - want) <= max(rtol * abs(want), 0.0)
    assert error <= rtol * abs(value) * (1 + 1e-12)
    assert abs(value - want) <= error + 1e-14 * abs(want)


def test_many_integrals_at_once_equal_each_alone():
    rates, tops = np.array([[0.01], [1.0], [300.0]]), np.array([0.001, 0.5, 3.0, 800.0])

    def f(x, rate):
        return rate * rate * x * np.exp(-rate * x)

    value, error = integrate(f, [0.0, tops], args=[rates])
    assert value.shape == error.shape == (3, 4)
    np.testing.assert_allclose(value, gammainc(2.0, rates * tops), rtol=1e-10)
    alone = [integrate(f, [0.0, top], args=[rate])[0] for rate in rates[:, 0] for top in tops]
    np.testing.assert_allclose(value.ravel(), alone, rtol=1e-12)


def test_points_may_be_arrays_and_pieces_may_be_empty():
    tops = np.array([0.2, 1.0, 7.0])

    def f(x):
        return np.where(x < 1.0, 1.0, 1.0 / x)

    value, _ = integrate(f, [0.0, np.minimum(1.0, tops), tops])
    np.testing.assert_allclose(value, [0.2, 1.0, 1.0 + math.log(7.0)], rtol=1e-12)


def test_smooth_random_functions_agree_with_quadpack():
    rng = np.random.default_rng(4)
    for _ in range(30):
        a, b, c = rng.exponential(1.0, 3)

        def f(x, a=a, b=b, c=c):
            return x**a * np.exp(-b * x) * (2 + np.sin(c * x))

        value, _ = integrate(f, [0.0, 3.0])
        assert value == pytest.approx(quad(f, 0.0, 3.0, epsrel=1e-12)[0], rel=1e-9)


@pytest.mark.parametrize(
    ("f", "points"),
    [
        (lambda x: 1.0 / x, [0.0, 1.0]),
        (lambda x: 1.0 / (1.0 + x), [0.0, np.inf]),
        (lambda x: (1.0 + x) ** -1.02, [0.0, np.inf]),
        (lambda x: np.full_like(x, np.nan), [0.0, 1.0]),
        (lambda x: np.sin(1e7 * x), [0.0, 1.0]),
    ],
    ids=["diverges at 0", "diverges at inf", "tail beyond double precision", "nan", "wild"],
)
def test_what_cannot_be_bounded_raises_with_what_there_was(f, points):
    with pytest.raises(ConvergenceError, match=r"^rtol 1e-10 is not enough, the error may be .*: ") as caught:
        integrate(f, points)
    assert isinstance(caught.value.estimate, float)
    assert isinstance(caught.value.error, float)


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([0.0], r"^points \[0.0\] must be two or more: "),
        ([1.0, 0.0], r"^points given must ascend and be finite but for the last: "),
        ([-np.inf, 0.0], r"^points given must ascend and be finite but for the last: "),
        ([0.0, math.nan], r"^points nan must be a number: "),
        ([[0.0, 0.0], [1.0, 1.0, 1.0]], r"^shapes \[\(2,\), \(3,\)\] must broadcast: "),
    ],
)
def test_bad_points_get_one_sentence(points, message):
    with pytest.raises(InputError, match=message):
        integrate(np.exp, points)


def test_rounding_of_a_small_f_does_not_prevent_convergence():
    """Beyond y = 100 this f is a handful of rounding errors wide; many of them at once have panels to share."""
    x = np.full(90, 1e12)
    value, error = integrate(lambda y, x: np.expm1(-y / 3) - np.expm1(-x / 3), [0.0, np.ones(90), x], args=[x])
    np.testing.assert_allclose(value, 3.0, rtol=1e-10)
    assert np.all(error <= 3e-10)


def test_last_bits_near_the_smallest_double_are_no_divergence():
    value, _ = integrate(lambda y: y**1.5, [0.0, 1e-110])
    assert value == pytest.approx(0.4 * 1e-275, rel=1e-10)


def test_pieces_between_jumps_as_they_are_cost_less_and_are_right() -> None:
    edges = [0.0, 0.3, 0.31, 2.0, 2.5, 40.0]
    asked = [0]

    def steps(x: np.ndarray) -> np.ndarray:
        asked[0] += x.size
        return np.searchsorted(edges, x, side="right") * np.exp(-x)

    want = sum((i + 1) * (math.exp(-a) - math.exp(-b)) for i, (a, b) in enumerate(itertools.pairwise(edges)))
    costs = []
    for smooth in (False, True):
        asked[0] = 0
        value, bound = integrate(steps, edges, rtol=1e-12, smooth=smooth)
        assert abs(value - want) <= max(float(bound), 1e-15)
        costs.append(asked[0])
    assert costs[1] < 0.7 * costs[0]
