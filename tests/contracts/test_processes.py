"""What every process promises. Members are discovered: one without an example here fails the first test."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad

from unstale.core.processes import (
    Ageing,
    Constant,
    Empirical,
    Gamma,
    LogNormal,
    Mixture,
    Pareto,
    Poisson,
    Process,
    Superposition,
    Triangular,
    Uniform,
    Weibull,
)
from unstale.errors import InputError

# The one list of examples: every class, and within a class every regime of its formulas.
EXAMPLES: list[Process] = [
    Poisson(2.0),
    Constant(0.7),
    Triangular(1.5),
    Uniform(0.0, 2.0),
    Uniform(1.0, 1.5),
    Pareto(1.2, 0.4),
    Pareto(2.0, 1.0),
    Pareto(3.0, 2.0),
    Pareto(40.0, 30.0),
    Weibull(0.4, 0.3),
    Weibull(1.0, 2.0),
    Weibull(3.0, 1.5),
    Gamma(0.3, 2.0),
    Gamma(1.0, 0.5),
    Gamma(12.0, 0.1),
    LogNormal(0.8, 0.5),
    LogNormal(0.5, 1.5),
    Empirical([2.0]),
    Empirical([0.5, 1.5, 1.0, 3.5, 0.5], [1.0, 2.0, 0.0, 0.5, 1.0]),
    Empirical([0.3, math.pi, 1.7]),
    Mixture([Poisson(1.0), Poisson(10.0)], [0.7, 0.3]),
    Mixture([Constant(2.0), Pareto(2.5, 1.0)], [1.0, 3.0]),
    Mixture([Constant(1.0), Constant(1.5)], [0.5, 0.5]),
    Superposition([Poisson(0.5), Poisson(1.0)]),
    Superposition([Pareto(1.6, 1.0), Pareto(1.7, 2.0)]),
    Superposition([Constant(1.0), Constant(1.6), Weibull(0.7, 1.0)]),
]
every = pytest.mark.parametrize("p", EXAMPLES, ids=lambda p: repr(p)[:48])


def descendants(cls: type) -> set[type]:
    found = set(cls.__subclasses__())
    return found | {low for sub in found for low in descendants(sub)}


def grid(p: Process) -> np.ndarray:
    """Times at all scales of p, and on both sides of its kinks."""
    near = [k * side for k in p.kinks for side in (1 - 1e-9, 1.0, 1 + 1e-9)]
    return np.unique(np.concatenate([[0.0], p.mean * np.geomspace(1e-6, 1e4, 61), near]))


def integral(p: Process, f, top: float) -> float:
    """∫₀^top f by QUADPACK, split at the kinks and at powers of ten of the mean gap."""
    marks = [0.0, *p.kinks, *(p.mean * 10.0 ** np.arange(-6, 7)), top]
    marks = sorted({m for m in marks if m <= top})
    pieces = [(a, b) for a, b in itertools.pairwise(marks) if p.survival(a) > 1e-50]
    return math.fsum(quad(f, a, b, epsabs=0, epsrel=1e-11, limit=100)[0] for a, b in pieces)


def test_every_process_has_an_example():
    ours = {cls for cls in descendants(Process) if cls.__module__.startswith("unstale.")}
    assert ours == {type(p) for p in EXAMPLES}


@every
def test_survival_and_cdf_are_complementary_monotone_and_have_their_limits(p):
    x = grid(p)
    s, f = p.survival(x), p.cdf(x)
    np.testing.assert_allclose(s + f, 1.0, atol=4e-16)
    assert np.all(np.diff(s) <= 4e-16)
    assert np.all(np.diff(f) >= -4e-16)
    assert p.survival(0.0) == 1.0
    assert p.survival(np.inf) == 0.0
    assert p.cdf(np.inf) == 1.0
    if np.isfinite(p.end):
        assert p.survival(p.end) == 0.0
        assert p.survival(p.end * (1 - 1e-6)) > 0.0


@every
def test_age_laws_are_complementary_monotone_and_have_their_limits(p):
    x = grid(p)
    g, s = p.age_cdf(x), p.age_survival(x)
    np.testing.assert_allclose(g + s, 1.0, atol=1e-14)
    assert np.all(np.diff(g) >= -4e-16)
    assert np.all(np.diff(s) <= 4e-16)
    assert np.all((g >= 0) & (g <= 1) & (s >= 0) & (s <= 1))
    assert (p.age_cdf(0.0), p.age_survival(0.0)) == (0.0, 1.0)
    assert (p.age_cdf(np.inf), p.age_survival(np.inf)) == (1.0, 0.0)
    np.testing.assert_array_equal(p.age_density(x), p.rate * p.survival(x))


@every
def test_mean_gap_is_the_integral_of_survival(p):
    assert p.mean == pytest.approx(1 / p.rate, rel=1e-15)
    assert p.moment(1) == pytest.approx(p.mean, rel=1e-12)
    assert p.moment(0) == 1.0
    top = p.end if np.isfinite(p.end) else p.mean * 1e6
    left = p.mean * p.age_survival(top)
    assert integral(p, p.survival, top) + left == pytest.approx(p.mean, rel=1e-9)


@every
@pytest.mark.parametrize("c", [1e-4, 0.3, 1.0, 2.5, 30.0])
def test_age_cdf_partial_mean_and_shortfall_are_their_integrals(p, c):
    x = c * p.mean
    assert p.age_cdf(x) == pytest.approx(p.rate * integral(p, p.survival, x), rel=1e-9)
    weighted = integral(p, lambda y: y * p.survival(y), x)
    assert p.age_partial_mean(x) == pytest.approx(p.rate * weighted, rel=1e-9)
    marks = [m for m in (0.0, *p.kinks, *(x * 0.1**k for k in (4, 3, 2, 1)), x) if m <= x]
    pieces = itertools.pairwise(sorted(set(marks)))
    whole = math.fsum(quad(p.age_cdf, a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pieces)
    assert p.age_shortfall(x) == pytest.approx(whole, rel=1e-9)


@every
def test_age_partial_mean_ends_at_the_mean_age(p):
    assert p.age_partial_mean(np.inf) == pytest.approx(p.age_moment(1), rel=1e-10)
    assert p.age_moment(1) == pytest.approx(p.moment(2) * p.rate / 2, rel=1e-14)
    assert math.isinf(p.age_shortfall(np.inf))


@every
@pytest.mark.parametrize("n", [2, 3])
def test_moments_are_integrals_or_infinite(p, n):
    if n >= p.tail:
        assert p.moment(n) == math.inf
        # It really diverges: a decade adds ever more.
        parts = [integral(p, lambda x: x ** (n - 1) * p.survival(x), p.mean * 10.0**k) for k in (2, 4, 6)]
        assert parts[2] - parts[1] > 0.99 * (parts[1] - parts[0])
    elif n < p.tail - 0.9:
        top = p.end if np.isfinite(p.end) else p.mean * 1e7
        got = n * integral(p, lambda x: x ** (n - 1) * p.survival(x), top)
        # An algebraic tail beyond the top holds top^(n − tail) of the moment.
        rest = 20 * (top / p.mean) ** (n - p.tail) if np.isfinite(p.tail) else 0.0
        assert p.moment(n) == pytest.approx(got, rel=1e-9 + rest)


@every
def test_variance_agrees_with_the_moments(p):
    if p.tail <= 2:
        assert p.variance == math.inf
    else:
        assert p.variance == pytest.approx(p.moment(2) - p.mean**2, abs=1e-11 * p.moment(2))
        assert p.variance >= 0


@every
def test_residual_survival_is_its_definition(p):
    a, x = np.meshgrid(p.mean * np.array([0.0, 0.1, 0.6, 1.4]), p.mean * np.array([0.0, 0.2, 1.0, 3.0]))
    alive = p.survival(a) > 0
    got = p.residual_survival(x, a)
    assert got.shape == a.shape
    want = p.survival(a[alive] + x[alive]) / p.survival(a[alive])
    np.testing.assert_allclose(got[alive], want, rtol=1e-12)
    assert np.all(np.isnan(got[~alive]))


@every
def test_with_rate_multiplies_every_gap(p):
    slow = p.with_rate(p.rate / 8)
    assert type(slow) is type(p)
    assert slow.rate == pytest.approx(p.rate / 8, rel=1e-14)
    x = p.mean * np.geomspace(0.013, 17.0, 9)
    np.testing.assert_allclose(slow.survival(8 * x), p.survival(x), rtol=1e-11, atol=1e-300)
    np.testing.assert_allclose(slow.age_cdf(8 * x), p.age_cdf(x), rtol=1e-12)
    np.testing.assert_allclose(slow.age_partial_mean(8 * x), 8 * p.age_partial_mean(x), rtol=1e-10)
    np.testing.assert_allclose(slow.kinks, 8 * np.array(p.kinks), rtol=1e-14)
    assert slow.end == pytest.approx(8 * p.end, rel=1e-14)
    assert slow.ageing is p.ageing
    assert slow.tail == p.tail
    assert (slow.span is None) == (p.span is None)
    assert p.span is None or slow.span == pytest.approx(8 * p.span, rel=1e-12)


@every
def test_ageing_class_holds_on_a_grid(p):
    t = p.mean * np.array([0.03, 0.2, 0.45, 0.8, 1.0, 1.3, 2.2, 5.0])
    a, x = np.meshgrid(t, t)
    rest, fresh = p.survival(a + x), p.survival(a) * p.survival(x)
    slack = 1e-13 * fresh + 1e-300
    if p.ageing is Ageing.NBU:
        assert np.all(rest <= fresh + slack)
    elif p.ageing is Ageing.NWU:
        assert np.all(rest >= fresh - slack)
    elif p.ageing is Ageing.MEMORYLESS:
        np.testing.assert_allclose(rest, fresh, rtol=1e-11)


@every
def test_span_and_kinks_describe_the_gaps(p):
    assert list(p.kinks) == sorted(set(p.kinks))
    assert all(0 < k <= p.end for k in p.kinks)
    if p.span is not None:
        gaps = p.sample(np.random.default_rng(5), 500)
        np.testing.assert_allclose(gaps / p.span, np.round(gaps / p.span), rtol=1e-12)


N = 20_000


def at_ranks(sample: np.ndarray, cdf, where: np.ndarray) -> None:
    """The share of the sample up to each point is the probability, within 5 standard errors."""
    want = np.clip(cdf(where), 0.0, 1.0)
    got = np.searchsorted(np.sort(sample), where, side="right") / sample.size
    slack = 5 * np.sqrt(want * (1 - want) / sample.size) + 10 / sample.size
    assert np.all(np.abs(got - want) <= slack), (got - want) / slack


@every
def test_samples_follow_the_gap_law(p):
    gaps = p.sample(np.random.default_rng(1), N)
    points = p.mean * np.geomspace(0.01, 20.0, 40)
    at_ranks(gaps, p.cdf, np.append(points, p.kinks))
    assert np.all(gaps > 0)
    assert np.all(gaps <= p.end * (1 + 1e-15))
    if p.tail > 2:
        error = math.sqrt(p.variance / N)
        assert abs(gaps.mean() - p.mean) <= 5 * error + 1e-12 * p.mean


@every
def test_sampled_ages_and_length_biased_gaps_follow_their_laws(p):
    ages = p.sample_age(np.random.default_rng(2), N)
    at_ranks(ages, p.age_cdf, p.mean * np.geomspace(0.01, 20.0, 40))

    # P(length-biased gap ≤ x) = age_cdf(x) − rate·x·survival(x), by parts.
    def biased_cdf(x):
        return p.age_cdf(x) - p.rate * x * p.survival(x)

    gaps = p.sample_length_biased(np.random.default_rng(3), N)
    at_ranks(gaps, biased_cdf, p.mean * np.geomspace(0.0103, 20.0, 40))


@every
def test_paths_are_stationary(p):
    rng, horizon = np.random.default_rng(4), 7.3 * p.mean
    paths = [p.sample_path(rng, horizon) for _ in range(1000)]
    assert all(np.all(np.diff(path) >= 0) for path in paths)
    assert all(path.size == 0 or (path[0] >= 0 and path[-1] <= horizon) for path in paths)
    for low, high in ((0.0, 0.2), (0.4, 0.6), (0.8, 1.0)):
        counts = np.array([np.count_nonzero((t >= low * horizon) & (t < high * horizon)) for t in paths])
        error = counts.std() / math.sqrt(len(paths))
        assert abs(counts.mean() - 0.2 * horizon * p.rate) <= 5 * error + 1e-9


@every
def test_long_paths_are_drawn_in_chunks_with_the_right_count(p):
    path = p.sample_path(np.random.default_rng(8), 5000 * p.mean)
    if p.tail > 2 and not isinstance(p, Superposition):
        spread = math.sqrt(5000 * p.variance) * p.rate + 1
        assert abs(path.size - 5000) <= 5 * spread
    else:
        assert path.size > 0
    assert path.size == 0 or path[-1] <= 5000 * p.mean


@every
def test_seeds_reproduce_and_shapes_are_kept(p):
    for draw in (p.sample, p.sample_age, p.sample_length_biased):
        first, again = (draw(np.random.default_rng(9), (3, 4)) for _ in range(2))
        np.testing.assert_array_equal(first, again)
        assert first.shape == (3, 4)
        assert draw(np.random.default_rng(9), 0).shape == (0,)
    paths = [p.sample_path(np.random.default_rng(9), 20 * p.mean) for _ in range(2)]
    np.testing.assert_array_equal(*paths)
    functions = (
        p.survival,
        p.cdf,
        p.age_cdf,
        p.age_survival,
        p.age_density,
        p.age_partial_mean,
        p.age_shortfall,
    )
    for f in functions:
        assert type(f(1)) is float
        assert type(f(np.float64(0.5))) is float
        assert f([0.1, 0.2, 3]).shape == (3,)
        assert f(np.full((2, 1), 0.5)).shape == (2, 1)
        assert f([]).shape == (0,)
        assert f([0.3])[0] == f(0.3)
    assert type(p.residual_survival(0.1, 0.2)) is float
    assert p.residual_survival([0.1, 0.2], 0.2).shape == (2,)


@every
def test_extreme_arguments_give_limits_not_warnings(p):
    tiny, huge = 1e-300, 1e300
    assert p.survival(tiny) == 1.0
    assert p.age_survival(tiny) == 1.0
    assert p.age_cdf(tiny) == pytest.approx(p.rate * tiny, rel=1e-9)
    assert p.age_cdf(huge) == pytest.approx(1.0, abs=1e-9)
    # (rate/2)·x² where it is a double, bent at most by a survival just below 1.
    assert p.age_partial_mean(1e-150) == pytest.approx(p.rate / 2 * 1e-300, rel=1e-6)
    assert p.age_partial_mean(tiny) == 0.0
    assert not np.isnan(p.age_partial_mean(huge))
    assert p.age_partial_mean(huge) > 0
    assert p.age_shortfall(huge) == pytest.approx(huge, rel=1e-9)
    for scaled in (p.with_rate(1e-250), p.with_rate(1e250)):
        x = np.array([0.0, 1e-300, 1.0, 1e300, np.inf])
        for f in (scaled.survival, scaled.age_cdf, scaled.age_survival, scaled.age_partial_mean):
            values = f(x)
            assert not np.any(np.isnan(values))
            assert np.all(values >= 0)
        assert scaled.moment(3) >= 0
        assert scaled.variance >= 0


@every
@pytest.mark.parametrize("bad", [-1.0, math.nan, "soon", [0.5, -2.0], None])
def test_bad_times_get_one_sentence(p, bad):
    functions = (
        p.survival,
        p.cdf,
        p.age_cdf,
        p.age_survival,
        p.age_density,
        p.age_partial_mean,
        p.age_shortfall,
    )
    for f in functions:
        with pytest.raises(InputError, match=r"^x.* must be a number at least 0: give a time since the last event$"):
            f(bad)
    with pytest.raises(InputError, match=r"^age.* must be a finite number at least 0: "):
        p.residual_survival(1.0, math.inf)
    for wrong in (-1, 1.5, math.nan, "two"):
        with pytest.raises(InputError, match=r"^n .* must be a "):
            p.moment(wrong)
    with pytest.raises(InputError, match=r"^rate 0.0 must be a finite number above 0: give events per unit"):
        p.with_rate(0.0)


@every
def test_equality_hash_and_repr(p):
    assert p == p.with_rate(p.rate) or p.with_rate(p.rate).rate == pytest.approx(p.rate, rel=1e-15)
    assert p != p.with_rate(p.rate * 2)
    assert p != "process"
    assert sum(p == q for q in EXAMPLES) == 1
    assert repr(p).startswith(type(p).__name__ + "(")
    if "<" not in repr(p):
        twin = eval(repr(p), {cls.__name__: cls for cls in descendants(Process)})
        assert twin == p
        assert hash(twin) == hash(p)


def test_laws_agree_with_scipy():
    """An independent implementation of each gap law."""
    pairs = [
        (Poisson(2.0), stats.expon(scale=0.5)),
        (Pareto(1.2, 0.4), stats.lomax(1.2, scale=0.4)),
        (Weibull(0.4, 0.3), stats.weibull_min(0.4, scale=0.3)),
        (Weibull(3.0, 1.5), stats.weibull_min(3.0, scale=1.5)),
        (Gamma(0.3, 2.0), stats.gamma(0.3, scale=2.0)),
        (Gamma(12.0, 0.1), stats.gamma(12.0, scale=0.1)),
        (LogNormal(0.5, 1.5), stats.lognorm(1.5, scale=0.5)),
        (Uniform(1.0, 1.5), stats.uniform(1.0, 0.5)),
        (Triangular(1.5), stats.triang(0.5, scale=3.0)),
    ]
    for ours, theirs in pairs:
        x = ours.mean * np.geomspace(1e-3, 20, 50)
        np.testing.assert_allclose(ours.survival(x), theirs.sf(x), rtol=1e-11, atol=1e-290)
        np.testing.assert_allclose(ours.cdf(x), theirs.cdf(x), rtol=1e-11)
        assert ours.mean == pytest.approx(theirs.mean(), rel=1e-12)
        assert ours.variance == pytest.approx(theirs.var(), rel=1e-10)
