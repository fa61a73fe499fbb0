"""Staleness of one copy against independent integrals of what the definitions say."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from unstale.core.custom_penalty import Custom
from unstale.core.lags import trails
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Deadline, Decay, Linear, Penalty, Power, Reciprocal, Saturating
from unstale.core.poisson_orders import order_age, order_freshness, order_staleness
from unstale.core.processes import Constant, Gamma, Pareto, Poisson, Process, Triangular, Uniform, Weibull
from unstale.core.staleness import (
    age,
    age_after,
    consistency,
    freshness,
    freshness_after,
    lag_cdf,
    missed_changes,
    staleness,
    update_staleness,
)
from unstale.errors import InputError

mp.mp.dps = 40
ORDERS = ("fixed", "random", "purely-random")
RATIOS = [*np.geomspace(1e-300, 1e300, 61), 0.3, 0.99, 1.01, 3.0, 20.0]

CHANGES = [
    Poisson(1.3),
    Pareto(3.0, 1.0),
    Pareto(1.4, 0.93),
    Constant(0.8),
    Uniform(0.2, 1.5),
    Weibull(0.6, 1.0),
]
POLLS = [Poisson(0.9), Constant(1.1), Triangular(0.7), Pareto(3.5, 2.0), Uniform(0.9, 1.3), Gamma(2.0, 0.5)]
PENALTIES = [Indicator(), Linear(), Power(1.5), Saturating(0.7), Decay(2.0), Reciprocal(), Deadline(0.6)]


def table_2(r: float, order: str) -> tuple[mp.mpf, mp.mpf]:
    """Freshness and age as [000 Table 2] prints them, with digits to spare for the cancellation."""
    with mp.workdps(1300):
        x = mp.mpf(r)
        e = 1 - mp.exp(-x) if x < 1e4 else mp.mpf(1)
        if order == "fixed":
            return e / x, mp.mpf(1) / 2 - 1 / x + e / x**2
        if order == "random":
            return (1 - (e / x) ** 2) / x, mp.mpf(1) / 3 + (mp.mpf(1) / 2 - 1 / x) ** 2 - (e / x**2) ** 2
        return 1 / (1 + x), x / (1 + x)


@pytest.mark.parametrize("order", ORDERS)
def test_orders_over_600_orders_of_magnitude(order: str) -> None:
    for r in RATIOS:
        fresh, old = table_2(r, order)
        assert abs(order_freshness(r, 1.0, order) / fresh - 1) < 2e-15
        assert abs(order_staleness(r, 1.0, order) / (1 - fresh) - 1) < 4e-15
        assert abs(order_age(r, 1.0, order) / old - 1) < 4e-15


@pytest.mark.parametrize("order", ORDERS)
def test_rates_that_are_zero_or_infinite(order: str) -> None:
    change = np.array([0.0, 0.0, 1.0, np.inf, 1.0])
    sync = np.array([0.0, 1.0, 0.0, 1.0, np.inf])
    assert order_freshness(change, sync, order).tolist() == [1.0, 1.0, 0.0, 0.0, 1.0]
    share = {"fixed": 0.5, "random": 7 / 12, "purely-random": 1.0}[order]
    assert order_age(change, sync, order).tolist() == pytest.approx([0.0, 0.0, np.inf, share, 0.0], rel=1e-15)
    with pytest.raises(InputError, match=r"must not both be infinite"):
        order_freshness(change, np.full(5, np.inf), order)


def test_columns_longer_than_a_block_and_broadcasting() -> None:
    rng = np.random.default_rng(1)
    change, sync = rng.gamma(0.5, 2.0, 50_001), rng.gamma(2.0, 1.0, 50_001)
    got = freshness(change, sync)
    picked = [0, 8_191, 8_192, 16_384, 50_000]
    assert np.array_equal(got[picked], [freshness(change[i], sync[i]) for i in picked])
    assert np.allclose(got, -np.expm1(-change / sync) / (change / sync), rtol=1e-15)
    assert freshness(change[:6].reshape(2, 3), sync[:3]).shape == (2, 3)
    assert np.array_equal(freshness(change, 2.0), freshness(change, np.full_like(change, 2.0)))
    change[40_000] = -1.0
    with pytest.raises(InputError, match=r"change_rate.* -1.0 must be a number at least 0"):
        freshness(change, sync)
    with pytest.raises(InputError, match=r"must fit each other"):
        freshness(change, sync[:7])


@pytest.mark.parametrize("order", ["random", "purely-random"])
def test_few_sources_against_the_sum_over_gaps(order: str) -> None:
    n = 4
    if order == "random":
        gaps = np.array([1 + (j - i) / n for i in range(n) for j in range(n)])
        odds = np.full(n * n, 1 / n**2)
    else:
        gaps = np.arange(1, 300) / n
        odds = (1 - 1 / n) ** np.arange(299) / n
    for r in (1e-9, 1e-4, 0.3, 2.0, 40.0, 1e9):
        fresh = mp.fsum(o * (1 - mp.exp(-mp.mpf(r) * g)) / r for o, g in zip(odds, gaps, strict=True))
        old = mp.fsum(
            o * (g * g / 2 - g / mp.mpf(r) + (1 - mp.exp(-mp.mpf(r) * g)) / mp.mpf(r) ** 2)
            for o, g in zip(map(mp.mpf, odds), map(mp.mpf, gaps), strict=True)
        )
        assert order_freshness(r, 1.0, order, sources=n) == pytest.approx(float(fresh), rel=1e-13)
        assert order_age(r, 1.0, order, sources=n) == pytest.approx(float(old), rel=1e-13)
    assert order_freshness(1.0, 1.0, order, sources=1) == pytest.approx(order_freshness(1.0, 1.0), rel=1e-14)
    assert order_age(1.0, 1.0, order, sources=1) == pytest.approx(order_age(1.0, 1.0), rel=1e-13)
    assert order_age(1e-8, 1.0, order, sources=1) == pytest.approx(order_age(1e-8, 1.0), rel=1e-13)
    assert order_age(2.0, 1.0, order, sources=20_000) == pytest.approx(order_age(2.0, 1.0, order), rel=1e-4)


_T = np.arange(-54, 55) / 16


def rule(marks: set[float], end: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of a double exponential rule from 0 to the end, split at the marks."""
    if end <= 0:
        return np.zeros(1), np.zeros(1)
    cuts = [m for m in sorted(marks | {0.0, 1.0}) if m < end] + [end]
    nodes, weights = [], []
    for a, b in itertools.pairwise(cuts):
        bend = np.pi * np.sinh(_T)
        if math.isinf(b):
            ahead = np.exp(bend / 2)
            slope = ahead * np.pi / 2 * np.cosh(_T)
        else:
            ahead = (b - a) / (1 + np.exp(-bend))
            slope = ahead / (1 + np.exp(bend)) * np.pi * np.cosh(_T)
        nodes.append(a + ahead)
        weights.append(slope / 16)
    return np.concatenate(nodes), np.concatenate(weights)


def reference(changes: Process, polls: Process, penalty: Penalty) -> float:
    """η = ∫∫ g_changes(y)·w(x)·g_polls(x+y) dx dy [003 eq. 46], by a rule of its own."""
    cuts = {p - k for p in polls.kinks for k in (0.0, *penalty.kinks)}
    y, weight = rule({c for c in (*cuts, *changes.kinks) if c > 0}, min(changes.end, polls.end))
    inner = np.empty_like(y)
    for i, start in enumerate(y):
        marks = {*penalty.kinks, *(k - start for k in polls.kinks if k > start)}
        x, each = rule(marks, polls.end - start)
        inner[i] = np.sum(each * penalty.w(x) * polls.age_density(x + start))
    return float(np.sum(weight * changes.age_density(y) * inner))


@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES, ids=repr)
def test_every_pair_against_the_definition(penalty: Penalty) -> None:
    pairs = [(CHANGES[i], POLLS[(i + k) % 6]) for i in range(6) for k in (0, 3)]
    for changes, polls in pairs:
        want = reference(changes, polls, penalty)
        assert staleness(changes, polls, penalty) == pytest.approx(want, rel=1e-9), (changes, polls)


def test_fresh_and_stale_add_up_for_every_pair() -> None:
    for changes in CHANGES:
        for polls in POLLS:
            total = freshness(changes, polls) + staleness(changes, polls, Indicator())
            assert total == pytest.approx(1.0, rel=1e-10)


def test_the_penalty_is_a_mixture_of_deadlines() -> None:
    """η = ∫ P(lag > x) dw(x), so Saturating is an exponential mixture of consistencies."""
    for changes, polls in ((Pareto(3.0, 1.0), Uniform(0.9, 1.3)), (Weibull(0.6, 1.0), Gamma(2.0, 0.5))):
        want, _ = quad(
            lambda x, u=changes, d=polls: (1 - consistency(x, u, d)) * math.exp(-x / 0.7) / 0.7,
            0,
            30,
            points=[0.9, 1.3],
        )
        assert staleness(changes, polls, Saturating(0.7)) == pytest.approx(want, rel=1e-8)


def test_custom_penalty_equals_its_closed_form() -> None:
    custom, closed = Custom(lambda x: -np.expm1(-x / 0.7)), Saturating(0.7)
    for changes, polls in (
        (Pareto(3.0, 1.0), Constant(1.1)),
        (Poisson(1.0), Uniform(0.9, 1.3)),
        (Pareto(3.0, 1.0), Poisson(2.0)),
    ):
        assert staleness(changes, polls, custom) == pytest.approx(staleness(changes, polls, closed), rel=1e-9)
        assert update_staleness(changes, polls, custom) == pytest.approx(
            update_staleness(changes, polls, closed), rel=1e-9
        )


def test_time_has_no_unit() -> None:
    """All times × c leaves the shares alone and multiplies ages by c, over 200 orders of magnitude."""
    for c in (1e-100, 1e-6, 1e6, 1e100):
        for changes, polls in (
            (Pareto(3.0, c), Poisson(2.0 / c)),
            (Weibull(0.6, c), Uniform(0.9 * c, 1.3 * c)),
        ):
            one_changes, one_polls = changes.with_rate(changes.rate * c), polls.with_rate(polls.rate * c)
            assert freshness(changes, polls) == pytest.approx(freshness(one_changes, one_polls), rel=1e-10)
            assert age(changes, polls) == pytest.approx(c * age(one_changes, one_polls), rel=1e-10)


def test_rare_changes_keep_their_digits() -> None:
    """For rare changes the stale share is rate·E[age of polls] and the age rate·E[age²]/2, in any shape."""
    for polls in (Constant(2.0), Triangular(2.0), Uniform(1.0, 3.0), Poisson(0.5)):
        for changes in (Poisson(1e-14), Constant(1e14), Uniform(0.5e14, 1.5e14)):
            assert staleness(changes, polls, Indicator()) == pytest.approx(1e-14 * polls.age_moment(1), rel=1e-10)
            assert age(changes, polls) == pytest.approx(1e-14 * polls.age_moment(2) / 2, rel=1e-10)


def test_frequent_changes_keep_their_digits() -> None:
    for polls in (Constant(2.0), Triangular(2.0), Uniform(1.0, 3.0), Poisson(0.5)):
        for changes in (Poisson(1e14), Uniform(0.5e-14, 1.5e-14)):
            want = polls.rate * changes.age_moment(1)
            assert freshness(changes, polls) == pytest.approx(want, rel=1e-10)
            assert age(changes, polls) == pytest.approx(polls.age_moment(1), rel=1e-10)


def test_too_irregular_polls_have_infinite_age() -> None:
    assert age(1.0, Pareto(2.0, 1.0)) == math.inf
    assert math.isfinite(age(1.0, Pareto(2.01, 1.0)))
    assert staleness(1.0, Pareto(2.5, 1.0), Power(1.5)) == math.inf
    assert missed_changes(1.0, Pareto(1.8, 1.0)) == math.inf
    assert update_staleness(1.0, Pareto(1.8, 1.0), Saturating(1.0)) == math.inf
    assert math.isfinite(update_staleness(1.0, Pareto(1.8, 1.0), Decay(1.0)))


def test_heavy_tailed_age_by_its_closed_form() -> None:
    """Even changes of gap u: the age is the mean over [0, u] of ∫_y^∞ age_survival of the polls."""
    u = mp.mpf("0.5")
    for alpha in (2.05, 2.5, 3.0, 6.0):
        power = mp.mpf(alpha) - 2  # with scale 1 that integral is (1 + y)^(−power)/power
        want = mp.quad(lambda y, power=power: (1 + y) ** -power / power / u, [0, u])
        assert age(Constant(0.5), Pareto(alpha, 1.0)) == pytest.approx(float(want), rel=1e-10)


def test_update_penalty_sees_only_the_rate_of_changes() -> None:
    for polls in POLLS:
        for penalty in PENALTIES:
            got = [
                update_staleness(u, polls, penalty)
                for u in (Poisson(2.0), Constant(0.5), Pareto.from_rate(2.2, 2.0), 2.0)
            ]
            if polls.tail <= (penalty.degree or 0.0) + 2:
                assert got == [np.inf] * 4
                continue
            assert max(got) - min(got) <= 1e-14 * max(got)
            points = sorted({0.0, 1.0, *polls.kinks, *penalty.kinks})
            ends = [p for p in points if p < polls.end] + [polls.end]
            f = lambda a, d=polls, w=penalty: 2.0 * d.age_density(a) * w.w2(a)  # noqa: E731
            want = sum(quad(f, a, b, epsrel=1e-11)[0] for a, b in itertools.pairwise(ends))
            assert got[0] == pytest.approx(want, rel=1e-8)


def test_bare_rates_mean_poisson_changes_and_even_polls() -> None:
    for penalty in PENALTIES:
        assert staleness(2.0, 3.0, penalty) == pytest.approx(
            staleness(Poisson(2.0), Constant(1 / 3), penalty), rel=1e-11
        )
        assert update_staleness(2.0, 3.0, penalty) == pytest.approx(
            update_staleness(Poisson(2.0), Constant(1 / 3), penalty), rel=1e-14
        )
    got = staleness([0.0, 2.0, 2.0], [[0.0], [3.0]], Saturating(1.0))
    assert got.shape == (2, 3)
    assert got[0].tolist() == [0.0, 1.0, 1.0]
    assert freshness(Pareto(3.0, 1.0), [0.0, 2.0]).tolist() == pytest.approx([0.0, 2 / 3])
    assert freshness([0.0, 2.0], Poisson(3.0)).tolist() == pytest.approx([1.0, 0.6])


def test_lag_law_is_a_law() -> None:
    x = np.linspace(0.0, 2.0, 41)
    for changes in CHANGES:
        for polls in POLLS:
            law = np.asarray(lag_cdf(x, changes, polls))
            assert law[0] == pytest.approx(0.0, abs=1e-12)
            assert np.all(np.diff(law) >= -1e-12)
            if polls.end <= 2.0:
                assert law[-1] == pytest.approx(1.0, abs=1e-12)
            stale = staleness(changes, polls, Indicator())
            assert np.allclose(consistency(x, changes, polls), 1 - stale * (1 - law), atol=1e-10)


def test_after_a_poll() -> None:
    assert freshness_after([0.0, 1.0, np.inf], 2.0).tolist() == pytest.approx([1.0, math.exp(-2), 0.0])
    assert freshness_after(3.0, 0.0) == 1.0
    assert age_after(3.0, 0.0) == 0.0
    assert age_after(1e-150, 1.0) == pytest.approx(0.5e-300, rel=1e-12)
    assert age_after(1e6, 2.0) == pytest.approx(1e6 - 0.5, rel=1e-15)
    changes = Pareto(3.0, 1.0)
    want, _ = quad(lambda t: 1 - freshness_after(t, changes), 0, 2.5)
    assert age_after(2.5, changes) == pytest.approx(want, rel=1e-12)
    # averaged over an interval they are freshness and age [003 eq. 49]
    for f, mean in ((freshness_after, freshness), (age_after, age)):
        assert quad(lambda t, f=f: f(t, changes), 0, 0.5)[0] / 0.5 == pytest.approx(mean(changes, 2.0), rel=1e-10)


def test_the_lag_is_symmetric_in_its_roles() -> None:
    x, _ = dblquad(lambda a, y: 2 * math.exp(-2 * y) * 3 * math.exp(-3 * a) * (a - y > 0.2), 0, 8, lambda y: y + 0.2, 8)
    assert trails(Poisson(2.0), Poisson(3.0), 0.2) == pytest.approx(x, rel=1e-6)


def test_errors_name_the_parameter() -> None:
    with pytest.raises(InputError, match=r"polls -1.0 must be"):
        staleness(1.0, -1.0, Saturating(1.0))
    with pytest.raises(InputError, match=r"order 'best' must be 'fixed'"):
        order_freshness(1.0, 1.0, "best")
    with pytest.raises(InputError, match=r"sources 2.5 must be a whole number"):
        order_freshness(1.0, 1.0, "random", sources=2.5)
    with pytest.raises(InputError, match=r"tau -1.0 must be"):
        consistency(-1.0, 1.0, 1.0)
    with pytest.raises(InputError, match=r"changes 0.0 must be"):
        lag_cdf(1.0, 0.0, 1.0)
