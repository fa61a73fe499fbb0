"""Closed forms of the age laws against 50-digit arithmetic, from far below the mean gap to the tail."""

from __future__ import annotations

import math

import mpmath as mp
import numpy as np
import pytest

from unstale.core.processes import Gamma, LogNormal, Pareto, Poisson, Process, Weibull

Laws = tuple[mp.mpf, mp.mpf, mp.mpf]


def poisson(p: Poisson, x: mp.mpf) -> Laws:
    y = x * p.rate
    return -mp.expm1(-y), mp.exp(-y), (1 - (1 + y) * mp.exp(-y)) / p.rate


def pareto(p: Pareto, x: mp.mpf) -> Laws:
    s, b = mp.mpf(p.scale), mp.mpf(p.alpha) - 1
    w = 1 + x / s
    mean = mp.log(w) - 1 + 1 / w if b == 1 else b * (w ** (1 - b) - 1) / (1 - b) - (1 - w**-b)
    return 1 - w**-b, w**-b, s * mean


def lower(a: mp.mpf, y: mp.mpf) -> mp.mpf:
    """P(a, y); mpmath's own is slow for tiny y."""
    if y > 1:
        return 1 - mp.gammainc(a, y, mp.inf, regularized=True)
    return y**a * mp.exp(-y) / mp.gamma(a + 1) * mp.hyp1f1(1, a + 1, y)


def weibull(p: Weibull, x: mp.mpf) -> Laws:
    s, k = mp.mpf(p.scale), mp.mpf(p.shape)
    y, mean_age = (x / s) ** k, s * mp.gamma(1 + 2 / k) / mp.gamma(1 + 1 / k) / 2
    low = lower(1 / k, y)
    high = 1 - low if y < 1 else mp.gammainc(1 / k, y, mp.inf, regularized=True)
    return low, high, mean_age * lower(2 / k, y)


def gamma(p: Gamma, x: mp.mpf) -> Laws:
    s, k = mp.mpf(p.scale), mp.mpf(p.shape)
    z = x / s
    held, part = z * (1 - lower(k, z)) / k, 1 - lower(k + 1, z)
    second = lower(k + 2, z)
    return 1 - part + held, part - held, (x * held + s * (k + 1) * second) / 2


def lognormal(p: LogNormal, x: mp.mpf) -> Laws:
    m, s = mp.mpf(p.median), mp.mpf(p.sigma)
    u, mean = mp.log(x / m) / s, m * mp.exp(s * s / 2)
    held = x / mean * mp.ncdf(-u)
    second = m * m * mp.exp(2 * s * s) / mean * mp.ncdf(u - 2 * s)
    return held + mp.ncdf(u - s), mp.ncdf(s - u) - held, (x * held + second) / 2


CASES: list[tuple[Process, object, float]] = [
    (Poisson(2.0), poisson, 1e-13),
    *((Pareto(a, 0.93), pareto, 1e-13) for a in (1 + 1e-12, 1.2, 1.5, 1.9, 2 - 1e-9, 2.0, 2 + 1e-12, 3.0, 1e4)),
    (Pareto(1.4, 1e-200), pareto, 1e-13),
    *((Weibull(k, 1.3), weibull, 2e-13) for k in (0.05, 0.3, 1.0, 2.0, 50.0)),
    # Far in the tail of a gamma two terms cancel: one digit for each decade of x/scale.
    *((Gamma(k, 0.7), gamma, 1e-11) for k in (0.001, 0.5, 1.0, 2.5)),
    *((LogNormal(1.7, s), lognormal, 1e-12) for s in (0.1, 1.0, 5.0, 15.0)),
]


@pytest.mark.parametrize(("p", "exact", "rtol"), CASES, ids=[repr(p) for p, _, _ in CASES])
def test_age_laws_are_accurate_relative_to_themselves(p, exact, rtol):
    unit = p.scale if isinstance(p, Pareto) else p.mean
    for c in (1e-100, 1e-40, 1e-9, 3e-4, 0.02, 0.3, 0.9, 1.6, 4.0, 11.0, 60.0, 1e3):
        x = c * unit
        with mp.workdps(250 if c < 1e-5 else 50):
            wanted = [float(value) for value in exact(p, mp.mpf(x))]
        for got, want in zip((p.age_cdf(x), p.age_survival(x), p.age_partial_mean(x)), wanted, strict=True):
            if want > 1e-280:
                assert got == pytest.approx(want, rel=rtol), c


@pytest.mark.parametrize("alpha", [1.2, 1.5, 2.0])
def test_pareto_partial_mean_holds_where_x_over_scale_leaves_the_doubles(alpha):
    p, x = Pareto(alpha, 1e-200), 1e200
    with mp.workdps(900):
        want = float(pareto(p, mp.mpf(x))[2])
    assert p.age_partial_mean(x) == pytest.approx(want, rel=1e-12)
    assert p.age_survival(x) == pytest.approx(float((mp.mpf(x) / mp.mpf(p.scale)) ** (1 - mp.mpf(alpha))), rel=1e-12)


@pytest.mark.parametrize("shape", [0.05, 0.7, 2.0, 9.0, 1e4, 1e6])
def test_weibull_variance_does_not_cancel(shape):
    with mp.workdps(50):
        t = 1 / mp.mpf(shape)
        want = float(mp.gamma(1 + 2 * t) - mp.gamma(1 + t) ** 2)
    assert Weibull(shape, 1.0).variance == pytest.approx(want, rel=1e-12)


def test_residuals_far_in_the_tail():
    """Survival itself is 0 there in double precision; the conditional law is not."""
    assert Weibull(2.0, 1.0).residual_survival(0.001, 100.0) == pytest.approx(math.exp(-0.200001), rel=1e-13)
    assert Pareto(200.0, 1.0).residual_survival(1e3, 1e3) == pytest.approx((1 + 1e3 / 1001) ** -200.0, rel=1e-12)
    with mp.workdps(60):
        far = mp.ncdf(-mp.log(mp.mpf(2e40)) / 2) / mp.ncdf(-mp.log(mp.mpf(1e40)) / 2)
    assert LogNormal(1.0, 2.0).residual_survival(1e40, 1e40) == pytest.approx(float(far), rel=1e-12)
    assert Poisson(1.0).residual_survival(2.0, 1e6) == pytest.approx(math.exp(-2.0), rel=1e-15)


def test_pareto_is_poisson_of_gamma_distributed_rate():
    from unstale.core.quadrature import integrate

    alpha, exposure, x = 2.5, 3.0, np.array([0.1, 1.0, 20.0])

    def seen(rate, x):
        belief = np.exp(alpha * np.log(exposure) + (alpha - 1) * np.log(rate) - exposure * rate) / math.gamma(alpha)
        return belief * np.exp(-rate * x)

    value, _ = integrate(seen, [0.0, np.inf], args=[x])
    np.testing.assert_allclose(Pareto(alpha, exposure).survival(x), value, rtol=1e-10)


def test_limits_of_shape_meet_the_named_processes():
    x = np.array([0.1, 0.7, 2.0])
    for one in (Weibull(1.0, 0.5), Gamma(1.0, 0.5)):
        np.testing.assert_allclose(one.age_partial_mean(x), Poisson(2.0).age_partial_mean(x), rtol=1e-14)
    np.testing.assert_allclose(Pareto.from_rate(1e12, 2.0).age_cdf(x), Poisson(2.0).age_cdf(x), rtol=1e-10)
