"""Poisson freshness and age in the three orders, against the textbook forms in many digits."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.core.values import MissedChanges, PoissonAge, PoissonFreshness, SummedLag

ORDERS = ("fixed", "random", "purely-random")
X = np.concatenate([np.geomspace(1e-150, 1e150, 41), np.geomspace(1e-3, 1e3, 41), [0.9999, 1.0, 1.0001]])


def half_second(order: str) -> mp.mpf:
    return {"fixed": mp.mpf(1) / 2, "random": mp.mpf(7) / 12, "purely-random": mp.mpf(1)}[order]


def share(order: str, x: mp.mpf) -> mp.mpf:
    """change_rate·φ under freshness."""
    u = mp.exp(-x)
    if order == "fixed":
        return 1 - (1 + x) * u
    if order == "random":
        return 1 - 3 * ((1 - u) / x) ** 2 + 2 * (1 - u) * u / x
    return (x / (1 + x)) ** 2


def share_slope(order: str, x: mp.mpf) -> mp.mpf:
    u = mp.exp(-x)
    if order == "fixed":
        return x * u
    if order == "random":
        q = (1 - u) / x
        return (2 * u - 6 * q) * (u - q) / x - 2 * q * u
    return 2 * x / (1 + x) ** 3


def stale(order: str, x: mp.mpf) -> mp.mpf:
    """1 − freshness, [000 Table 2]."""
    u = mp.exp(-x)
    if order == "fixed":
        return 1 - (1 - u) / x
    if order == "random":
        return 1 - (1 - ((1 - u) / x) ** 2) / x
    return x / (1 + x)


EXACT = {
    (PoissonFreshness, "value"): share,
    (PoissonFreshness, "slope"): share_slope,
    (PoissonFreshness, "staleness"): stale,
    (PoissonAge, "value"): lambda o, x: half_second(o) * x**2 - share(o, x),
    (PoissonAge, "slope"): lambda o, x: 2 * half_second(o) * x - share_slope(o, x),
    (PoissonAge, "staleness"): lambda o, x: half_second(o) * x - stale(o, x),
}


def digits(x: float) -> int:
    return 60 + int(max(0.0, -4 * np.log10(x)) + max(0.0, np.log10(x)))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("kind", "answer"), EXACT, ids=lambda p: getattr(p, "__name__", p))
def test_against_many_digits(kind: type, answer: str, order: str) -> None:
    got = getattr(kind(np.ones(X.size), order), answer)(X)
    for x, g in zip(X.tolist(), got.tolist(), strict=True):
        with mp.workdps(digits(x)):
            want = EXACT[kind, answer](order, mp.mpf(x))
            if 1e-300 < want < 1e300:
                assert abs(mp.mpf(g) / want - 1) < 4e-15, (x, g, want)


def forward_error(kind: type, order: str, s: float, x: float) -> float:
    with mp.workdps(digits(x)):
        y = mp.mpf(x)
        miss = EXACT[kind, "value"](order, y) - mp.mpf(s)
        return float(miss / (y * EXACT[kind, "slope"](order, y)))


SHARES = np.concatenate([np.geomspace(1e-300, 0.5, 40), 1 - np.geomspace(2.0**-53, 0.5, 40)])


@pytest.mark.parametrize("order", ORDERS)
def test_freshness_interval(order: str) -> None:
    t = PoissonFreshness(np.ones(SHARES.size), order).interval(SHARES)
    assert max(abs(forward_error(PoissonFreshness, order, s, x)) for s, x in zip(SHARES, t, strict=True)) < 4e-15


@pytest.mark.parametrize("order", ORDERS)
def test_age_interval(order: str) -> None:
    s = np.geomspace(1e-300, 1e300, 121)
    t = PoissonAge(np.ones(s.size), order).interval(s)
    assert max(abs(forward_error(PoissonAge, order, v, x)) for v, x in zip(s, t, strict=True)) < 1e-15


@given(st.sampled_from(ORDERS), st.floats(1e-300, 1 - 2.0**-53))
def test_freshness_interval_anywhere(order: str, s: float) -> None:
    t = float(PoissonFreshness([1.0], order).interval(np.array([s]))[0])
    assert abs(forward_error(PoissonFreshness, order, s, t)) < 4e-15


@given(st.sampled_from(ORDERS), st.floats(1e-300, 1e300))
def test_age_interval_anywhere(order: str, s: float) -> None:
    t = float(PoissonAge([1.0], order).interval(np.array([s]))[0])
    assert abs(forward_error(PoissonAge, order, s, t)) < 1e-15


def test_extreme_rates_neither_vanish_nor_overflow() -> None:
    fresh, age = PoissonFreshness([1e-200]), PoissonAge([1e-200])
    # change_rate·t = 1e-170, whose square is not a double: φ = change_rate·t²/2, change_rate·t³/3
    np.testing.assert_allclose(fresh.value(1e30), 0.5e-140, rtol=1e-15)
    np.testing.assert_allclose(fresh.interval(0.5e-140), 1e30, rtol=1e-15)
    np.testing.assert_allclose(age.value(1e30), 1e-110 / 3, rtol=1e-15)
    np.testing.assert_allclose(age.interval(1e-110 / 3), 1e30, rtol=1e-15)
    np.testing.assert_allclose(fresh.value(np.inf), 1e200, rtol=1e-15)
    fast = PoissonAge([1e200])
    np.testing.assert_allclose(fast.interval(fast.value(3.0)), 3.0, rtol=1e-15)
    np.testing.assert_allclose(PoissonFreshness([1e200]).value(1e200), 1e-200, rtol=1e-15)


def test_abandonment_is_exactly_at_the_limit() -> None:
    rate = np.random.default_rng(4).lognormal(0, 5, 10_000)
    for order in ORDERS:
        value = PoissonFreshness(rate, order)
        limit = value.limit()
        np.testing.assert_array_equal(limit, 1 / rate)
        assert np.isinf(value.interval(limit)).all()
        below = value.interval(np.nextafter(limit, 0.0))
        assert np.isfinite(below).all()
    # fixed order: no double price asks for less than change_rate/40.5; purely random has no such gap
    assert (PoissonFreshness(rate).interval(np.nextafter(limit, 0.0)) * rate <= 40.5).all()
    assert (below * rate > 1e15).all()


@pytest.mark.parametrize(("kind", "power"), [(MissedChanges, 2), (SummedLag, 3)])
@pytest.mark.parametrize("order", ORDERS)
def test_laws_of_roots(kind: type, power: int, order: str) -> None:
    # E[Xⁿ] of a triangular gap on [0, 2] and of an exponential one
    moment = {"fixed": (1, 1), "random": (7 / 6, 3 / 2), "purely-random": (2, 6)}[order][power - 2]
    rate, t = np.array([1e-300, 0.3, 1e150]), np.array([1e100, 2.0, 1e-20])
    value = kind(rate, order)
    np.testing.assert_allclose(value.value(t), rate * t**power * moment / power, rtol=1e-14)
    np.testing.assert_allclose(value.interval(value.value(t)), t, rtol=1e-14)
    np.testing.assert_allclose(value.slope(t), rate * t ** (power - 1) * moment, rtol=1e-14)
    np.testing.assert_allclose(value.staleness(t), value.value(t) / t / (power - 1), rtol=1e-14)
    assert np.isinf(value.limit()).all()


def test_staleness_of_table_2() -> None:
    # [000 Table 2] at r = 1: freshness 0.632, 0.600, 0.5 and age/I 0.132, 0.184, 0.5
    fresh = [float(1 - PoissonFreshness([1.0], o).staleness(1.0)[0]) for o in ORDERS]
    age = [float(PoissonAge([1.0], o).staleness(1.0)[0]) for o in ORDERS]
    assert fresh == pytest.approx([0.6321205588285577, 0.6004235991062720, 0.5], abs=1e-15)
    assert age == pytest.approx([0.1321205588285577, 0.1837569324396054, 0.5], abs=1e-15)


def test_interval_against_simulated_freshness() -> None:
    # staleness of random order, simulated: gaps are sums of a uniform and one minus a uniform
    rng = np.random.default_rng(7)
    gaps = 1 - rng.random(400_000) + rng.random(400_000)
    wait = rng.exponential(1.0, gaps.size)
    for value, harm in (
        (PoissonFreshness([1.0], "random"), np.maximum(gaps - wait, 0)),
        (PoissonAge([1.0], "random"), np.maximum(gaps - wait, 0) ** 2 / 2),
    ):
        error = harm.std() / np.sqrt(harm.size)
        assert abs(harm.mean() - value.staleness(1.0)[0]) < 5 * error
