"""Closed forms of the penalties against 40 digits, and what a custom penalty refuses."""

import mpmath as mp
import numpy as np
import pytest

from unstale.core.custom_penalty import Custom
from unstale.core.exponential import exp_mean, exp_remainder
from unstale.core.penalties import (
    Constant,
    Deadline,
    Decay,
    Linear,
    Power,
    Reciprocal,
    Saturating,
    require_nondecreasing,
)
from unstale.errors import ConvergenceError, InputError

mp.mp.dps = 40
AGES = [*np.geomspace(1e-140, 1e140, 57), 0.19, 0.21, 0.24, 0.26, 0.9, 1.1, 3.0, 30.0]


def exact(kind: str, x: float) -> tuple[mp.mpf, mp.mpf, mp.mpf]:
    """w2, w3, v to far more digits than the cancellation at x can eat."""
    with mp.workdps(650):
        y = mp.mpf(x)
        if kind == "saturating":
            e = mp.exp(-y)
            return y - 1 + e, y * y / 2 - y + 1 - e, 1 - (1 + y) * e
        if kind == "decay":
            e = mp.exp(-y)
            return 1 - e, y - 1 + e, (1 + y) * e - 1
        log = mp.log(1 + y)
        return log, (1 + y) * log - y, y / (1 + y) - log


@pytest.mark.parametrize(("kind", "make"), [("saturating", Saturating), ("decay", Decay), ("reciprocal", Reciprocal)])
def test_relative_error_over_280_orders_of_magnitude(kind: str, make: type) -> None:
    penalty = make(1.0)
    for x in AGES:
        for got, want in zip((penalty.w2(x), penalty.w3(x), penalty.v(x)), exact(kind, x), strict=True):
            if abs(want) > 1e-290:
                assert abs(got / want - 1) < 5e-15, (kind, x)


@pytest.mark.parametrize("scale", [0.01, 3.0, 1e6])
def test_scales_are_only_units(scale: float) -> None:
    for make, factor in ((Saturating, scale), (Reciprocal, scale), (Decay, 1 / scale)):
        one, other = make(1.0), make(factor)
        assert other.w(0.7 * scale) == pytest.approx(one.w(0.7), rel=1e-14)
        assert other.w2(0.7 * scale) == pytest.approx(scale * one.w2(0.7), rel=1e-14)
        assert other.w3(0.7 * scale) == pytest.approx(scale**2 * one.w3(0.7), rel=1e-14)
        assert other.v(0.7 * scale) == pytest.approx(scale * one.v(0.7), rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_exp_mean_against_40_digits(n: int) -> None:
    for y in [*np.geomspace(1e-300, 1e3, 60), 0.99, 1.0, 1.01, 2.0, 5.0]:
        want = mp.hyp1f1(1, n + 1, -mp.mpf(y))
        assert abs(mp.mpf(float(exp_mean(n, y))) / want - 1) < 6e-15
    # beyond e^(−y), 1F1(1; n+1; −y) = n/y·(1 − (n−1)/y·(1 − (n−2)/y·…))
    for y in (1e5, 1e100, 1e300):
        tail = 1.0
        for k in range(1, n):
            tail = 1 - k / y * tail
        assert float(exp_mean(n, y)) == pytest.approx(n / y * tail, rel=1e-14)
    assert float(exp_mean(n, 0.0)) == 1.0
    assert float(exp_mean(n, np.inf)) == 0.0


def test_exp_remainders_telescope() -> None:
    y = np.array([0.5, 1.0, 2.0, 10.0])
    assert np.allclose(exp_remainder(2, y) + exp_remainder(1, y), y, rtol=1e-15)
    assert np.allclose(exp_remainder(3, y) + exp_remainder(2, y), y * y / 2, rtol=1e-15)


def test_deadline_counts_from_the_deadline_on() -> None:
    penalty = Deadline(2.0)
    assert penalty.w([1.999, 2.0]).tolist() == [0.0, 1.0]
    assert (penalty.w2(5.0), penalty.w3(5.0), penalty.v(5.0)) == (3.0, 4.5, 2.0)


def test_linear_is_power_one_and_constant_has_no_growth() -> None:
    assert Linear().w3(2.0) == Power(1.0).w3(2.0) == pytest.approx(8 / 6)
    assert Linear().degree == 1.0
    assert Constant().v(7.0) == 0.0


def test_equal_penalties_are_equal() -> None:
    assert Saturating(2.0) == Saturating(2.0) != Saturating(3.0)
    assert len({Linear(), Linear(), Constant()}) == 2
    assert repr(Deadline(2.0)) == "Deadline(tau=2.0)"


def test_custom_agrees_with_the_closed_forms() -> None:
    x = np.array([1e-6, 0.3, 2.0, 50.0, 1e5])
    for closed, f in (
        (Power(1.5), lambda x: x**1.5),
        (Saturating(2.0), lambda x: -np.expm1(-x / 2)),
        (Reciprocal(), lambda x: 1 / (1 + x)),
    ):
        custom = Custom(f)
        assert np.allclose(custom.w2(x), closed.w2(x), rtol=1e-10)
        assert np.allclose(custom.w3(x), closed.w3(x), rtol=1e-10)
        assert np.allclose(custom.v(x), closed.v(x), rtol=1e-9)
        assert custom.nondecreasing == closed.nondecreasing
    step = Custom(lambda x: float(x >= 2.0), kinks=(2.0,))
    assert step.w2([1.0, 2.0, 5.0]).tolist() == pytest.approx([0.0, 0.0, 3.0])
    assert Custom(lambda x: float(x >= 2.0)).w2(5.0) == pytest.approx(3.0, rel=1e-10)
    assert Custom(lambda x: np.exp(-2 * x)).w2([1e15, 1e300]).tolist() == pytest.approx([0.5, 0.5], rel=1e-10)
    assert Custom(lambda x: np.exp(-2 * x)).w2(np.inf) == pytest.approx(0.5, rel=1e-10)


def test_custom_refuses_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"penalty f\(.*\) = -.* must be 0 or more: .*clip f"):
        Custom(lambda x: 1 - x)
    with pytest.raises(InputError, match=r"nondecreasing True is false: .*declare nondecreasing=False"):
        Custom(lambda x: np.exp(-x), nondecreasing=True)
    with pytest.raises(InputError, match="must be callable"):
        Custom(3.0)  # type: ignore[arg-type]
    with pytest.raises(ConvergenceError, match="rtol"):
        Custom(lambda x: 1 / x).w2(5.0)


def test_bad_parameters_are_named() -> None:
    for make, word in (
        (Power, "exponent"),
        (Saturating, "scale"),
        (Decay, "rate"),
        (Reciprocal, "scale"),
        (Deadline, "tau"),
    ):
        with pytest.raises(InputError, match=f"{word} 0.0 must be"):
            make(0.0)
    with pytest.raises(InputError, match="must be a number"):
        Linear().w(float("nan"))
    with pytest.raises(InputError, match=r"Decay\(rate=1.0\) must not decrease with age for planning"):
        require_nondecreasing(Decay(1.0), "planning")
