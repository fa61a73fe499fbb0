"""Values by quadrature: any gaps, any penalty, any order, against closed forms, scipy and mpmath."""

from __future__ import annotations

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad

from unstale.core.custom_penalty import Custom
from unstale.core.penalties import (
    Constant,
    Deadline,
    Decay,
    Linear,
    Penalty,
    Power,
    Reciprocal,
    Saturating,
)
from unstale.core.processes import Process
from unstale.core.processes.constant import Constant as Even
from unstale.core.processes.pareto import Pareto
from unstale.core.processes.poisson import Poisson
from unstale.core.processes.uniform import Uniform
from unstale.core.processes.weibull import Weibull
from unstale.core.roots.rising import root
from unstale.core.values import (
    MissedChanges,
    PoissonAge,
    PoissonFreshness,
    ProcessValue,
    SummedLag,
    UpdateValue,
)
from unstale.core.values.curve import Curve
from unstale.core.values.quadrature import integrate
from unstale.errors import InputError

ORDERS = ("fixed", "random", "purely-random")
RATE = np.array([1e-3, 0.5, 1.0, 20.0])
T = np.array([2.0, 0.1, 3.0, 0.7])


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("penalty", "closed"), [(Constant(), PoissonFreshness), (Linear(), PoissonAge)])
def test_poisson_is_a_process_like_any_other(penalty: Penalty, closed: type, order: str) -> None:
    ours, theirs = ProcessValue(Poisson(3.0), RATE, penalty, order), closed(RATE, order)
    np.testing.assert_allclose(ours.value(T), theirs.value(T), rtol=1e-12)
    np.testing.assert_allclose(ours.slope(T), theirs.slope(T), rtol=1e-9)
    np.testing.assert_allclose(ours.staleness(T), theirs.staleness(T), rtol=1e-12)
    np.testing.assert_allclose(ours.limit(), theirs.limit(), rtol=1e-14)
    np.testing.assert_allclose(ours.interval(theirs.value(T)), T, rtol=1e-9)


def by_definition(process: Process, penalty: Penalty, t: float) -> tuple[float, float]:
    """t·h'(t) − h(t) and h(t)/t with h(t) = ∫ g(a)·w2(t−a) da [003 eq. 49], by scipy."""

    def integral(f: object) -> float:
        points = sorted({p for p in (*process.kinks, *(t - k for k in penalty.kinks)) if 0 < p < t})
        edges = [0.0, *points, t]
        pieces = pairwise(edges)
        return sum(
            quad(lambda a: process.age_density(a) * f(t - a), lo, hi, epsabs=0, epsrel=1e-12, limit=400)[0]
            for lo, hi in pieces
        )

    h, rise = integral(penalty.w2), integral(penalty.w)
    return t * rise - h, h / t


CASES = [
    (Pareto(1.4, 0.93), Saturating(2.0)),
    (Pareto(3.0, 1.0), Power(2.5)),
    (Weibull(0.7, 1.0), Linear()),
    (Weibull(2.0, 1.0), Saturating(0.3)),
    (Even(2.0), Linear()),
    (Uniform(0.5, 2.0), Power(0.5)),
    (Uniform(0.5, 2.0), Deadline(0.4)),
    (Poisson(2.0), Custom(lambda x: np.log1p(x))),
]


@pytest.mark.parametrize(("process", "penalty"), CASES, ids=lambda p: repr(p)[:24])
def test_against_the_definition(process: Process, penalty: Penalty) -> None:
    t = np.array([0.3, 1.0, 4.0])
    value = ProcessValue(process, np.full(3, process.rate), penalty)
    want = np.array([by_definition(process, penalty, x) for x in t]).T
    np.testing.assert_allclose(value.value(t), want[0], rtol=2e-10, atol=1e-14)
    np.testing.assert_allclose(value.staleness(t), want[1], rtol=2e-10, atol=1e-14)
    # below the deadline nothing is worth anything, and beyond the longest gap nothing is worth more
    seen = (value.value(t) > 0) & (value.value(t) < value.limit())
    assert seen.any()
    np.testing.assert_allclose(value.interval(value.value(t))[seen], t[seen], rtol=1e-9)


def test_pareto_age_over_many_decades() -> None:
    # w = x, Pareto(3, 1): φ = ∫₀ᵗ y·(1 − (1+y)^−2) dy = t²/2 − log(1+t) + t/(1+t)
    t = np.geomspace(1e-6, 1e12, 37)
    value = ProcessValue(Pareto(3.0, 1.0), np.full(t.size, 2.0), Linear())
    with mp.workdps(60):
        want = [float(mp.mpf(x) ** 2 / 2 - mp.log(1 + mp.mpf(x)) + mp.mpf(x) / (1 + mp.mpf(x))) for x in t.tolist()]
    np.testing.assert_allclose(value.value(t), want, rtol=1e-10)
    np.testing.assert_allclose(value.interval(np.array(want)), t, rtol=1e-10)


def test_a_deadline_shifts_the_changes() -> None:
    # w = 1{x ≥ τ}: φ(t) = E[A + τ; A + τ ≤ t], and no interval below τ is worth anything
    process = Pareto(2.5, 1.0)
    value = ProcessValue(process, np.full(3, process.rate), Deadline(0.4))
    t = np.array([0.39, 0.5, 6.0])
    late = np.maximum(t - 0.4, 0.0)
    want = process.age_partial_mean(late) + 0.4 * np.asarray(process.age_cdf(late))
    np.testing.assert_allclose(value.value(t), want, rtol=1e-11)
    np.testing.assert_allclose(value.limit(), 2.0 + 0.4, rtol=1e-14)
    assert (value.interval(1e-9) > 0.4).all()


def test_even_changes_are_worth_nothing_more_after_one_gap() -> None:
    value = ProcessValue(Even(2.0), [0.5, 0.25], Constant())
    np.testing.assert_allclose(value.value(1.0), [1 / 4, 1 / 8])
    np.testing.assert_allclose(value.value(100.0), [1.0, 2.0])
    np.testing.assert_allclose(value.limit(), [1.0, 2.0])
    np.testing.assert_allclose(value.interval(0.25), [1.0, 2**0.5])
    assert value.interval(1.0)[0] == np.inf
    assert value.interval(np.nextafter(1.0, 0.0))[0] == pytest.approx(2.0)


def test_bounded_penalties_add_their_reach_to_the_limit() -> None:
    # E[A] = β/(α−2) = 2 and ∫(1−w) = scale, also for a penalty that only knows its values
    process = Pareto(2.5, 1.0)
    for penalty in (Saturating(3.0), Custom(lambda x: -np.expm1(-x / 3.0))):
        value = ProcessValue(process, [process.rate], penalty)
        np.testing.assert_allclose(value.limit(), 5.0, rtol=1e-8)
        np.testing.assert_allclose(value.value(1e12), 5.0, rtol=1e-5)
    assert np.isinf(ProcessValue(process, [1.0], Linear()).limit()).all()
    assert np.isinf(ProcessValue(Pareto(1.4, 0.93), [1.0], Saturating(3.0)).limit()).all()


def test_decreasing_penalties_are_refused() -> None:
    with pytest.raises(InputError, match="must not decrease with age"):
        ProcessValue(Poisson(1.0), [1.0], Decay(30.0))


@pytest.mark.parametrize("order", ORDERS)
def test_powers_of_the_lag(order: str) -> None:
    for penalty, closed in ((Constant(), MissedChanges), (Linear(), SummedLag)):
        ours, theirs = UpdateValue(RATE, penalty, order), closed(RATE, order)
        for answer in ("value", "slope", "staleness", "interval"):
            np.testing.assert_allclose(getattr(ours, answer)(T), getattr(theirs, answer)(T), rtol=1e-12)


@pytest.mark.parametrize("order", ORDERS)
def test_forgotten_changes(order: str) -> None:
    # w = e^(−x): φ = change_rate·P(2, t), so a source is abandoned, against [003 Theorem 12]
    ours, shape = UpdateValue(RATE, Decay(1.0), order), PoissonFreshness(np.ones(4), order)
    np.testing.assert_allclose(ours.value(T), RATE * shape.value(T), rtol=1e-12)
    np.testing.assert_allclose(ours.limit(), RATE, rtol=1e-12)
    np.testing.assert_allclose(ours.interval(ours.value(T)), T, rtol=1e-11)
    np.testing.assert_allclose(ours.slope(T), RATE * shape.slope(T), rtol=1e-11)
    np.testing.assert_allclose(ours.staleness(np.inf), RATE, rtol=1e-14)


def test_slow_forgetting_abandons_nobody() -> None:
    # ∫ y/(1+y) dy = t − log(1+t)
    value = UpdateValue(RATE, Reciprocal(1.0))
    np.testing.assert_allclose(value.value(T), RATE * (T - np.log1p(T)), rtol=1e-11)
    assert np.isinf(value.limit()).all()


def test_integrals_relative_to_themselves() -> None:
    scale = np.array([1e-300, 1.0, 1e300])
    got = integrate(lambda row, y: scale[row] * np.sqrt(y) / 1e5, np.array([[0.0, 1.0]] * 3))
    np.testing.assert_allclose(got, scale * 2 / 3e5, rtol=1e-10)
    jump = integrate(lambda row, y: np.where(y < 1 / 3, 0.0, 1.0), np.array([[0.0, 1.0]]))
    np.testing.assert_allclose(jump, 2 / 3, rtol=1e-10)


def test_roots_far_from_the_guess() -> None:
    aim = np.array([-600.0, 0.0, 3.0, 600.0])
    np.testing.assert_allclose(root(lambda row, u: np.sinh((u - aim[row]) / 50), np.zeros(4)), aim, rtol=1e-14)
    # a step has no zero: its foot is found
    assert root(lambda row, u: np.where(u < 0.7, -1.0, 1.0), np.zeros(1))[0] == pytest.approx(0.7, abs=1e-14)


def test_one_curve_serves_all_scales() -> None:
    # constant gaps of 1/rate and w = √x, by the definition: φ bends like |x − 1|^1.5 at one gap
    rate = np.array([0.01, 1.0, 1.0, 1.0, 1.0, 300.0])
    x = np.array([0.5, 0.999, 1.0 + 1e-6, 1.001, 7.0, 1.2])
    value = ProcessValue(Even(3.0), rate, Power(0.5))
    with mp.workdps(30):

        def unit(y: float) -> mp.mpf:
            y = mp.mpf(y)
            return mp.quad(lambda a: a * mp.sqrt(y - a) + mp.sqrt(y - a) ** 3 / 3, [0, min(y, 1)])

        want = [float(unit(y) / mp.mpf(r) ** 1.5) for y, r in zip(x.tolist(), rate.tolist(), strict=True)]
    np.testing.assert_allclose(value.value(x / rate), want, rtol=1e-11)
    np.testing.assert_allclose(value.interval(np.array(want)), x / rate, rtol=1e-11)


def test_curve_with_a_bend() -> None:
    x = np.geomspace(1e-3, 1e3, 500)
    curve = Curve(lambda y: y**2 * (1 + np.maximum(y - 0.7, 0) ** 1.5), 2.0, [0.7, 0.7 + 1e-16, 1.0])
    np.testing.assert_allclose(curve.value(np.array([0.7, 1.0])), [0.49, 1 + 0.3**1.5], rtol=1e-12)
    lift = np.maximum(x - 0.7, 0)
    np.testing.assert_allclose(curve.value(x), x**2 * (1 + lift**1.5), rtol=1e-12)
    slope = 2 * x * (1 + lift**1.5) + 1.5 * x**2 * np.sqrt(lift)
    np.testing.assert_allclose(curve.slope(x), slope, rtol=1e-9)


def test_slopes_without_polls() -> None:
    assert ProcessValue(Pareto(1.4, 1.0), [1.0], Constant(), "random").slope(np.inf).tolist() == [0.0]
    assert ProcessValue(Pareto(1.4, 1.0), [1.0], Linear()).slope(np.inf).tolist() == [np.inf]
    # t·w(t) → scale
    np.testing.assert_allclose(UpdateValue([2.0], Reciprocal(3.0)).slope(np.inf), 6.0)


@pytest.mark.parametrize("order", ["random", "purely-random"])
def test_even_changes_polled_unevenly(order: str) -> None:
    # φ of even polls is min(x, 1)²/2, in closed form averaged over the gaps
    x = np.array([0.2, 0.5, 0.8, 1.0, 1.5, 30.0])
    if order == "random":
        density, end = (lambda y: min(y, 2 - y)), 2.0
    else:
        density, end = (lambda y: np.exp(-y)), 60.0
    value = ProcessValue(Even(1.0), np.full(6, 4.0), Constant(), order)
    for i, s in enumerate(x):
        edges = sorted({0.0, *(p for p in (1 / s, 1.0) if p < end), end})
        want = sum(quad(lambda y, s=s: density(y) * min(s * y, 1) ** 2 / 2, a, b)[0] for a, b in pairwise(edges))
        assert 4 * value.value(x / 4)[i] == pytest.approx(want, rel=1e-11)
    np.testing.assert_allclose(value.interval(value.value(x / 4)), x / 4, rtol=1e-9)


def test_penalties_that_overflow_on_the_way_to_the_root() -> None:
    t = np.array([1e-40, 1e-3, 1e5, 1e50])
    value = ProcessValue(Poisson(1.0), np.full(4, 2.0), Power(3.0))
    np.testing.assert_allclose(value.interval(value.value(t)), t, rtol=1e-11)
    # far from the poll nearly every age is t: φ → t·t³ − t⁴/4
    np.testing.assert_allclose(value.value(t)[3], 0.75 * 1e200, rtol=1e-12)
