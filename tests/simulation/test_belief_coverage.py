"""Beliefs from changed/unchanged bits alone: how often credible intervals hold the true rate, how far means are off.

Worlds are Poisson. Rates come from the prior, so exact Bayes would be right in 90 % of all cases; what differs is
the price of keeping two numbers. `ratio` is the fleet's mean change rate × the mean interval.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from support.depth import combined
from unstale.core.belief import Belief
from unstale.core.checks import Floats

SOURCES = 5_000
#: of a share near 0.9
ERROR = np.sqrt(0.9 * 0.1 / SOURCES)
FIVE_DECADES = (1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)


def intervals(kind: str, ratio: float, polls: int, count: int, rng: np.random.Generator) -> Floats:
    """Rows of intervals with this mean: even, or spread as widely as learning and prices spread them."""
    if kind == "even":
        return np.full((polls, count), ratio)
    return ratio * rng.lognormal(-(1.5**2) / 2, 1.5, (polls, count))


def bits(rate: Floats, elapsed: Floats, rng: np.random.Generator) -> np.ndarray:
    return rng.random(elapsed.shape) < -np.expm1(-rate * elapsed)


def learned(belief: Belief, elapsed: Floats, changed: np.ndarray) -> Belief:
    """The belief after some polls, one row each."""
    for span, bit in zip(elapsed, changed, strict=True):
        belief = belief.polled(span, bit)
    return belief


def covered(belief: Belief, rate: Floats) -> float:
    low, high = belief.credible(0.9)
    return float(np.mean((low < rate) & (rate < high)))


@cache
def coverage(kind: str, ratio: float, polls: int, shape: float) -> float:
    rng = np.random.default_rng([polls, round(1e4 * ratio)])
    prior = Belief(np.full(SOURCES, shape), np.full(SOURCES, shape))
    rate = rng.gamma(shape, 1 / shape, SOURCES)
    elapsed = intervals(kind, ratio, polls, SOURCES, rng)
    return covered(learned(prior, elapsed, bits(rate, elapsed, rng)), rate)


@pytest.mark.parametrize(
    ("series", "shape", "ratio"),
    combined([("even", 10), ("irregular", 10), ("irregular", 60), ("irregular", 150)], [1.0, 2.0], FIVE_DECADES),
)
def test_nine_of_ten_over_five_decades(series: tuple[str, int], shape: float, ratio: float) -> None:
    kind, polls = series
    assert 0.88 - 2 * ERROR < coverage(kind, ratio, polls, shape) < 0.92 + 2 * ERROR


@pytest.mark.parametrize("ratio", [1e-4, 1e-3, 1e-2, 0.1, 1.0, 2.0])
@pytest.mark.parametrize("shape", [0.5, 1.0, 2.0])
def test_nine_of_ten_after_many_even_polls(shape: float, ratio: float) -> None:
    assert 0.88 - 2 * ERROR < coverage("even", ratio, 150, shape) < 0.92 + 2 * ERROR


@pytest.mark.parametrize(
    ("polls", "shape", "ratio"), combined([25, 150, 600], [0.5, 1.0, 2.0], [3.0, 10.0, 30.0, 100.0])
)
def test_nine_of_ten_after_long_even_series_of_late_polls(polls: int, shape: float, ratio: float) -> None:
    # no Gamma can both lack slow rates, which so many changes rule out, and keep its width among fast ones
    assert 0.88 - 2 * ERROR < coverage("even", ratio, polls, shape) < 0.92 + 2 * ERROR


@pytest.mark.parametrize("ratio", FIVE_DECADES)
def test_a_lognormal_fleet_under_the_gamma_nearest_to_it(ratio: float) -> None:
    rng = np.random.default_rng(12)
    rate = rng.lognormal(-0.5, 1.0, SOURCES)
    # cov(rate, log rate) is 1/exposure of a Gamma law
    exposure = 1 / np.cov(rate, np.log(rate))[0, 1]
    prior = Belief(np.full(SOURCES, rate.mean() * exposure), np.full(SOURCES, exposure))
    elapsed = intervals("irregular", ratio, 40, SOURCES, rng)
    # without evidence the law itself is what is off: a lognormal has fewer slow rates than any Gamma
    most = 0.92 if ratio >= 0.1 else 0.94
    assert 0.88 < covered(learned(prior, elapsed, bits(rate, elapsed, rng)), rate) < most


def test_a_rate_far_out_in_the_prior_s_tail_needs_evidence_first() -> None:
    # twelve times the prior's mean, one of 160,000 such sources: the prior is believed until it is outweighed
    rng = np.random.default_rng(13)
    rate, prior = np.full(2000, 12.0), Belief(np.ones(2000), np.ones(2000))
    elapsed = np.full((600, 2000), 0.1)
    seen = bits(rate, elapsed, rng)
    shares = [covered(learned(prior, elapsed[:n], seen[:n]), rate) for n in (0, 3, 60, 600)]
    assert shares[0] == 0.0
    assert shares[1] < 0.05
    assert 0.5 < shares[2] < 0.6
    assert shares[3] > 0.78


LOG_RATE = np.linspace(-34.0, 7.0, 2001)
RATE = np.exp(LOG_RATE)[:, None]


@pytest.mark.parametrize(
    ("ratio", "kind", "shape"), combined([1e-3, 1e-2, 0.1, 0.3, 1.0], ["even", "irregular"], [1.0, 3.0])
)
def test_hundreds_of_polls_stay_near_the_exact_posterior(ratio: float, kind: str, shape: float) -> None:
    rng = np.random.default_rng([7, round(1e4 * ratio)])
    count = 40
    rate = rng.gamma(shape, 1 / shape, count)
    elapsed = intervals(kind, ratio, 300, count, rng)
    seen = bits(rate, elapsed, rng)
    belief = Belief(np.full(count, shape), np.full(count, shape))
    density = np.repeat(shape * (LOG_RATE[:, None] - RATE), count, axis=1)
    off, wide = [], []
    for stop in range(20, 301, 20):
        rows = slice(stop - 20, stop)
        belief = learned(belief, elapsed[rows], seen[rows])
        for span, bit in zip(elapsed[rows], seen[rows], strict=True):
            x = RATE * span
            density += np.where(bit, np.log(-np.expm1(-x)), -x)
        weight = np.exp(density - density.max(axis=0))
        weight /= weight.sum(axis=0)
        mean = (weight * RATE).sum(axis=0)
        off.append(belief.mean / mean - 1)
        wide.append(np.sqrt((weight * RATE**2).sum(axis=0) - mean**2) / mean)
    error, spread = np.array(off), np.array(wide)
    # 2 % in the root of the mean square, and a small share of what is uncertain anyway
    assert np.sqrt(np.mean(error**2)) < 0.02
    assert np.sqrt(np.mean((error / spread) ** 2)) < 0.1
    assert abs(error[-1].mean()) < 0.01
