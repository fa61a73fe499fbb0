"""Tests of a history: their statistics by scipy or by hand, their levels by simulation."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from scipy import stats

from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.study.fitting.diagnosis import diagnose, together
from unstale.study.fitting.gaps import Gaps
from unstale.study.fitting.hurst import hurst, hurst_of
from unstale.study.fitting.profile import DAY, daily_rhythm, profile
from unstale.study.fitting.tests import clumping, drift, exponential_test, memory, significance


def fleet(lengths: np.ndarray) -> Gaps:
    """One source for each row of gaps."""
    return Gaps(lengths.ravel(), np.full(len(lengths), lengths.shape[1]))


def within(share: float, expected: float, n: int) -> bool:
    """A share of n trials, within 5 standard errors."""
    return abs(share - expected) < 5 * (expected * (1 - expected) / n) ** 0.5


# ---- exponential? ----


def test_the_statistic_is_stephens_modification_of_kolmogorovs() -> None:
    rng = np.random.default_rng(1)
    sources = [rng.weibull(0.7, 40), rng.exponential(3, 200), np.repeat([1.0, 2.0, 5.0], 9)]
    statistic, _ = exponential_test(Gaps.of(*sources))
    for i, gaps in enumerate(sources):
        d, root = stats.kstest(gaps, "expon", args=(0, gaps.mean())).statistic, len(gaps) ** 0.5
        assert statistic[i] == pytest.approx((d - 0.2 / len(gaps)) * (root + 0.26 + 0.5 / root))


@pytest.mark.parametrize("n", [10, 100])
def test_exponential_gaps_are_refused_as_often_as_the_level_says(n: int) -> None:
    runs = 20_000
    _, p = exponential_test(fleet(np.random.default_rng(n).standard_exponential((runs, n))))
    for level in (0.01, 0.05, 0.25, 0.5):
        # the modification serves every n to a tenth of the level
        assert abs(np.mean(p < level) - level) < 0.1 * level + 5 * (level / runs) ** 0.5


def test_printed_critical_values_have_their_probabilities() -> None:
    from unstale.study.fitting.tests import _exceeded

    printed = {0.926: 0.15, 0.990: 0.10, 1.094: 0.05, 1.190: 0.025, 1.308: 0.01}
    for statistic, level in printed.items():
        assert _exceeded(np.array([statistic]))[0] == pytest.approx(level, rel=0.12)
    falling = _exceeded(np.linspace(0, 6, 500))
    assert np.all(np.diff(falling) < 0)
    assert falling[0] == 1.0


def test_bursts_are_noticed() -> None:
    gaps = np.random.default_rng(2).weibull(0.5, (200, 60))
    assert np.mean(exponential_test(fleet(gaps))[1] < 0.05) > 0.99


# ---- drift ----


def test_laplace_by_hand() -> None:
    gaps = np.random.default_rng(3).exponential(1, 30)
    times, length = np.cumsum(gaps)[:-1], gaps.sum()
    plain, fair = drift(Gaps.of(gaps))
    expected = (times.mean() - length / 2) / (length / (12 * 29) ** 0.5)
    assert plain[0] == pytest.approx(expected)
    assert fair[0] == pytest.approx(expected / stats.variation(gaps))
    assert significance(plain)[0] == pytest.approx(2 * stats.norm.sf(abs(expected)))


def test_levels_of_the_drift_tests() -> None:
    runs = 4000
    rng = np.random.default_rng(4)
    plain, _ = drift(fleet(rng.standard_exponential((runs, 100))))
    assert within(float(np.mean(np.abs(plain) > 1.96)), 0.05, runs)
    plain, fair = drift(fleet(rng.gamma(0.25, 1.0, (runs, 400))))
    # bursts with twice the spread: the plain test calls a third of them drifting
    assert np.mean(np.abs(plain) > 1.96) == pytest.approx(2 * stats.norm.sf(1.96 / 2), abs=0.04)
    assert within(float(np.mean(np.abs(fair) > 1.96)), 0.05, runs)


def test_drift_has_a_direction() -> None:
    gaps = np.random.default_rng(5).exponential(1, 300) * np.linspace(3, 1, 300)
    plain, _ = drift(Gaps.of(gaps, gaps[::-1]))
    assert plain[0] > 3
    assert plain[1] < -3
    assert drift(Gaps.of([2.0] * 9))[1][0] == 0.0


# ---- memory ----


def test_memory_is_spearmans() -> None:
    rng = np.random.default_rng(6)
    sources = [rng.exponential(1, 80), rng.integers(1, 6, 50).astype(float), np.arange(1.0, 9.0) ** 2]
    r, p = memory(Gaps.of(*sources))
    for i, gaps in enumerate(sources[:2]):
        expected = stats.spearmanr(gaps[:-1], gaps[1:])
        assert r[i] == pytest.approx(expected.statistic)
        assert p[i] == pytest.approx(expected.pvalue)
    assert r[2] == pytest.approx(1.0)
    assert p[2] == pytest.approx(0.0, abs=1e-12)


def test_memory_of_too_little_is_unknown() -> None:
    r, p = memory(Gaps.of([1.0, 2.0, 3.0], [5.0] * 8))
    assert np.isnan(r).all()
    assert np.isnan(p).all()


# ---- clumping ----


def test_fano_factors_by_counting() -> None:
    rng = np.random.default_rng(7)
    times = {"a": np.cumsum(rng.weibull(0.6, 400)), "b": np.cumsum(rng.exponential(2, 90))}
    trace = Trace.of(["a"] * 400 + ["b"] * 90, np.concatenate(list(times.values())))
    found = clumping(trace, 5.0)
    for i, t in enumerate(times.values()):
        counts = np.histogram(t - t[0], np.arange(0, t[-1] - t[0], 5.0))[0]
        assert found[i] == pytest.approx(counts.var(ddof=1) / counts.mean(), rel=1e-9)
    assert np.isnan(clumping(trace, 100.0)[1])


def test_poisson_changes_do_not_clump() -> None:
    rng = np.random.default_rng(8)
    n, windows = 300, 200
    trace = Trace.of(np.repeat(np.arange(n).astype(str), 1000), rng.uniform(0, windows, n * 1000))
    # given 1000 changes in 200 windows the counts are multinomial: 1 − 1/200 times 200/199
    assert np.mean(clumping(trace, 1.0)) == pytest.approx(1.0, abs=5 * (2 / windows / n) ** 0.5)


# ---- long memory ----


def gaussian_noise(exponent: float, n: int, rng: np.random.Generator) -> np.ndarray:
    """Fractional Gaussian noise, exact, by embedding its covariance into a circle."""
    k = np.arange(n + 1.0)
    two = 2 * exponent
    row = (np.abs(k + 1) ** two - 2 * k**two + np.abs(k - 1) ** two) / 2
    circle = np.fft.fft(np.concatenate([row, row[-2:0:-1]])).real
    white = rng.standard_normal(2 * n) + 1j * rng.standard_normal(2 * n)
    return np.fft.fft(white * np.sqrt(np.maximum(circle, 0) / (2 * n))).real[:n]


@pytest.mark.parametrize("exponent", [0.3, 0.5, 0.7, 0.9])
def test_the_exponent_of_fractional_noise_is_found_with_the_stated_error(exponent: float) -> None:
    rng = np.random.default_rng(9)
    found = np.array([hurst(gaussian_noise(exponent, 2048, rng)) for _ in range(200)])
    spread = found[:, 0].std(ddof=1)
    assert abs(found[:, 0].mean() - exponent) < 5 * spread / 200**0.5
    assert spread == pytest.approx(found[0, 1], rel=0.3)


@pytest.mark.parametrize(("shape", "bias"), [(1.0, 0.0), (0.6, 0.03)])
def test_independent_gaps_have_no_long_memory(shape: float, bias: float) -> None:
    rng = np.random.default_rng(10)
    found = np.array([hurst_of(np.cumsum(rng.weibull(shape, 8000))) for _ in range(200)])
    spread = found[:, 0].std(ddof=1)
    assert abs(found[:, 0].mean() - 0.5) < bias + 5 * spread / 200**0.5
    assert spread == pytest.approx(found[0, 1], rel=0.3)


def test_swells_of_every_length_are_long_memory() -> None:
    # Poisson changes whose rate is fractional noise, strong enough to be seen through their own noise
    rng = np.random.default_rng(16)
    found = []
    for _ in range(40):
        rate = np.maximum(50 + 15 * gaussian_noise(0.85, 512, rng), 0)
        times = np.sort(np.repeat(np.arange(512.0), counts := rng.poisson(rate)) + rng.random(counts.sum()))
        found.append(hurst_of(times)[0])
    assert np.mean(found) == pytest.approx(0.8, abs=0.06)


def test_too_little_has_no_exponent() -> None:
    assert np.isnan(hurst([1.0, 2.0, 3.0])).all()
    assert np.isnan(hurst(np.ones(1000))).all()
    assert np.isnan(hurst_of(np.arange(1023.0))).all()
    with pytest.raises(InputError, match="counts of shape"):
        hurst(np.ones((3, 3)))


# ---- hours ----


def test_activity_is_counted_on_the_wall_clock() -> None:
    rng = np.random.default_rng(11)
    times = np.sort(rng.uniform(1.7e9, 1.7e9 + 40 * DAY, 5000))
    found = profile(Trace.of(["a"] * 5000, times), utc_offset=-3)
    expected = np.zeros((7, 24))
    for t in times:
        moment = datetime.fromtimestamp(t - 3 * 3600, UTC)
        expected[moment.weekday(), moment.hour] += 1
    assert np.array_equal(found.counts, expected)
    assert found.exposure.sum() == pytest.approx((times[-1] - times[0]) / DAY)
    # 40 days have the hours of 5 or 6 of each weekday
    assert found.exposure.min() * 24 == pytest.approx(5.0)
    assert found.exposure.max() * 24 == pytest.approx(6.0)
    assert np.average(found.activity, weights=found.exposure) == pytest.approx(5000 / found.exposure.sum())
    weekend, weekday = expected[5:].sum() / found.exposure[5:].sum(), expected[:5].sum() / found.exposure[:5].sum()
    assert found.weekend == pytest.approx(weekend / weekday)
    assert found.strength < 0.05


def test_hours_that_never_came_are_unknown() -> None:
    found = profile(Trace.of(["a"] * 3, [0.0, 1000.0, 7000.0]))
    assert np.isfinite(found.hours).sum() == 2
    assert np.isnan(found.weekend)
    with pytest.raises(InputError, match=r"utc_offset 15\.0 must be"):
        profile(Trace.of(["a"] * 3, [0.0, 1000.0, 7000.0]), 15)


def test_levels_of_the_rhythm_tests() -> None:
    rng = np.random.default_rng(12)
    runs = 4000
    flat = Trace.of(np.repeat(np.arange(runs).astype(str), 40), rng.uniform(0, 60 * DAY, runs * 40))
    strength, plain, fair = daily_rhythm(flat)
    for level in (0.01, 0.05):
        assert within(float(np.mean(plain < level)), level, runs)
        # days as vectors: fewer of them than changes, and a little more careful
        assert np.mean(fair < level) < level + 5 * (level / runs) ** 0.5
    # E[strength²] of n independent hours is 1/n
    assert np.mean(strength**2) == pytest.approx(1 / 40, abs=5 / 40 / runs**0.5)


def test_bursts_are_no_rhythm() -> None:
    rng = np.random.default_rng(13)
    runs, bursts = 1000, 20
    starts = rng.uniform(0, 3000 * DAY, (runs, bursts))
    times = (starts[..., None] + rng.uniform(0, 600, (runs, bursts, 10))).ravel()
    _, plain, fair = daily_rhythm(Trace.of(np.repeat(np.arange(runs).astype(str), bursts * 10), times))
    assert np.mean(plain < 0.01) > 0.4
    assert np.mean(fair < 0.01) < 0.01 + 5 * (0.01 / runs) ** 0.5


def test_office_hours_are_a_rhythm() -> None:
    rng = np.random.default_rng(14)
    times = rng.integers(0, 100, 300) * DAY + rng.uniform(9, 17, 300) * 3600
    strength, plain, fair = daily_rhythm(Trace.of(["a"] * 300, times))
    # uniform over a third of the circle: sin(π/3)/(π/3)
    assert strength[0] == pytest.approx(np.sin(np.pi / 3) / (np.pi / 3), abs=0.05)
    assert max(plain[0], fair[0]) < 1e-9


# ---- all of it ----


def test_a_diagnosis_holds_the_same_as_its_parts() -> None:
    rng = np.random.default_rng(15)
    trace = Trace.of(np.repeat(["a", "b"], 1100), np.cumsum(rng.weibull(0.5, 2200) * DAY))
    seen = diagnose(trace)
    assert seen.exponential_p == pytest.approx(exponential_test(Gaps.between(trace))[1])
    assert seen.hurst[1] == pytest.approx(hurst_of(trace.changes(1))[0])
    assert seen.clumping[7] == pytest.approx(clumping(trace, 7 * DAY), nan_ok=True)
    middle = (trace.changes(0)[0] + trace.changes(0)[-1]) / 2
    late = int(np.sum(trace.changes(0) > middle))
    assert seen.growth[0] == pytest.approx(late / (1100 - late))


def test_changes_at_the_same_time_are_counted() -> None:
    assert together(Trace.of(list("aabbc"), [1.0, 2.0, 2.0, 3.0, 3.0])) == pytest.approx(0.8)
    assert together(Trace.of(list("ab"), [1.0, 2.0])) == 0.0
