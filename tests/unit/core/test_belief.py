"""What observations make of a belief, against the exact posterior by quadrature and against counting."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import gammainc, gammaincc
from scipy.stats import gamma

from unstale.core.belief import Belief
from unstale.core.learning.gamma import after_change, survival
from unstale.core.values import BeliefFreshness
from unstale.errors import InputError


def moments(prior: Belief, likelihood: Callable[[float], float]) -> tuple[float, float]:
    """Mean and variance of the exact posterior."""
    law = gamma(prior.shape, scale=1 / prior.exposure)
    points = [float(law.ppf(p)) for p in (1e-12, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-14)]

    def integral(power: int) -> float:
        return sum(
            quad(lambda x: x**power * law.pdf(x) * likelihood(x), low, high, epsabs=0, epsrel=1e-11)[0]
            for low, high in itertools.pairwise(points)
        )

    mean = integral(1) / integral(0)
    return mean, integral(2) / integral(0) - mean**2


PRIOR = Belief(2.5, 4.0)
OBSERVATIONS = {
    "unchanged": (PRIOR.unchanged(3.0), lambda x: np.exp(-3.0 * x)),
    "changed": (PRIOR.changed(3.0), lambda x: -np.expm1(-3.0 * x)),
    "changed at once": (PRIOR.changed(0.0), lambda x: x),
    "changed_at": (PRIOR.changed_at(0.7), lambda x: x * np.exp(-0.7 * x)),
    "counted": (PRIOR.counted(5, 2.0), lambda x: x**5 * np.exp(-2.0 * x)),
    "hinted": (PRIOR.hinted(1.0), lambda x: x),
    "unhinted": (PRIOR.unhinted(3.0, 0.4), lambda x: np.exp(-0.4 * 3.0 * x)),
}


@pytest.mark.parametrize("name", OBSERVATIONS)
def test_mean_and_variance_are_exact(name: str) -> None:
    belief, likelihood = OBSERVATIONS[name]
    mean, variance = moments(PRIOR, likelihood)
    assert belief.mean == pytest.approx(mean, rel=1e-8)
    assert belief.shape / belief.exposure**2 == pytest.approx(variance, rel=1e-7)


@pytest.mark.parametrize("precision", [0.0, 0.2, 0.7, 1.0])
def test_a_doubtful_hint_is_a_mixture(precision: float) -> None:
    a, b = PRIOR.shape, PRIOR.exposure
    parts = [(precision, a + 1), (1 - precision, a)]
    mean = sum(p * s / b for p, s in parts)
    square = sum(p * s * (s + 1) / b**2 for p, s in parts)
    belief = PRIOR.hinted(precision)
    assert belief.mean == pytest.approx(mean, rel=1e-13)
    assert belief.shape / belief.exposure**2 == pytest.approx(square - mean**2, rel=1e-12)
    assert (belief.exposure < b) == (0 < precision < 1)


def test_a_failed_poll_is_not_an_unchanged_one() -> None:
    # every other poll fails; the answers in between speak for two intervals
    rng = np.random.default_rng(4)
    rate = rng.gamma(2.0, 0.5, 4000)
    honest = deceived = Belief(np.full(4000, 2.0), np.full(4000, 2.0))
    for _ in range(40):
        bit = rng.random(4000) < -np.expm1(-2.0 * 0.4 * rate)
        honest = pick(bit, honest.changed(0.8), honest.unchanged(0.8))
        # the failure taken for "unchanged", the answer for one interval
        failed = deceived.unchanged(0.4)
        deceived = pick(bit, failed.changed(0.4), failed.unchanged(0.4))
    off = np.mean(honest.mean) / np.mean(rate) - 1
    error = np.std(honest.mean - rate) / np.sqrt(4000) / np.mean(rate)
    assert abs(off) < 5 * error + 0.005
    assert np.mean(deceived.mean) < 0.93 * np.mean(rate)


def pick(bit: np.ndarray, changed: Belief, unchanged: Belief) -> Belief:
    return Belief(np.where(bit, changed.shape, unchanged.shape), np.where(bit, changed.exposure, unchanged.exposure))


def test_fading_halves_the_evidence_and_ends_at_the_prior() -> None:
    prior, belief = Belief(1.0, 2.0), Belief(5.0, 10.0)
    half = belief.faded(prior, 3.0, 3.0)
    assert (half.shape, half.exposure) == pytest.approx((3.0, 6.0))
    twice = half.faded(prior, 6.0, 3.0)
    assert (twice.shape, twice.exposure) == pytest.approx((1.5, 3.0))
    for gone in (belief.faded(prior, np.inf, 3.0), belief.faded(prior, 1.0, 1e-300)):
        assert (gone.shape, gone.exposure) == (1.0, 2.0)
    for kept in (belief.faded(prior, 0.0, 3.0), belief.faded(prior, np.inf, np.inf), belief.faded(prior, 9.0, np.inf)):
        assert (kept.shape, kept.exposure) == (5.0, 10.0)
    # a belief below its prior in exposure, as after a doubtful hint, stays positive
    assert Belief(0.1, 0.5).faded(prior, 3.0, 3.0).exposure == pytest.approx(1.25)


@pytest.mark.parametrize("shape", [1e-3, 0.3, 1.0, 40.0, 1e8])
@pytest.mark.parametrize("level", [0.5, 0.9, 0.999])
def test_credible_intervals_hold_what_they_say(shape: float, level: float) -> None:
    low, high = Belief(shape, 7.0).credible(level)
    tail = (1 - level) / 2
    if low > 0:
        assert gammainc(shape, 7.0 * low) == pytest.approx(tail, rel=1e-6)
    assert gammaincc(shape, 7.0 * high) == pytest.approx(tail, rel=1e-6)
    if shape == 1e8:
        # so much evidence is normal: ± z·√shape
        z = {0.5: 0.6744897502, 0.9: 1.644853627, 0.999: 3.290526731}[level]
        assert (7.0 * high - shape) / 1e4 == pytest.approx(z, abs=1e-3)


def test_freshness_is_the_mean_over_the_belief() -> None:
    for shape, exposure, elapsed in ((0.5, 2.0, 1.0), (3.0, 0.5, 4.0), (40.0, 10.0, 0.2)):
        law = gamma(shape, scale=1 / exposure)
        want = law.expect(lambda x, t=elapsed: np.exp(-x * t))
        assert Belief(shape, exposure).freshness(elapsed) == pytest.approx(want, rel=1e-6)
        assert Belief(shape, exposure).freshness(elapsed) == pytest.approx(
            survival(shape, exposure, elapsed), rel=1e-14
        )
    assert Belief(2.0, 1e-300).freshness([0.0, 1e300, np.inf]).tolist() == [1.0, 0.0, 0.0]


def test_columns_answer_as_each_source_would() -> None:
    rng = np.random.default_rng(7)
    shape, exposure, elapsed = rng.lognormal(0, 2, (3, 40_000))
    elapsed[::1000] = 0.0
    changed = Belief(shape, exposure).changed(elapsed)
    rows = [0, 1, 16_383, 16_384, 39_999]
    for i in rows:
        one = Belief(shape[i], exposure[i]).changed(elapsed[i])
        assert isinstance(one.shape, float)
        assert isinstance(one.mean, float)
        assert (one.shape, one.exposure) == pytest.approx((changed.shape[i], changed.exposure[i]), rel=1e-14)
        assert after_change(shape[i], exposure[i], elapsed[i]) == pytest.approx((one.shape, one.exposure), rel=1e-14)
    grid = Belief(1.0, [[1.0], [2.0]]).changed([1.0, 2.0, 3.0])
    assert grid.shape.shape == grid.exposure.shape == (2, 3)
    assert grid.shape[1, 2] == Belief(1.0, 2.0).changed(3.0).shape
    assert Belief([], []).changed(1.0).shape.shape == (0,)


def test_a_belief_is_worth_its_value() -> None:
    belief = Belief([1.0, 3.0], [1.0, 2.0]).unchanged(0.5)
    value = BeliefFreshness(belief.shape, belief.exposure)
    # what one more poll per unit of time removes: the slope is elapsed·(density of the first change)
    t, h = 2.0, 1e-5
    falling = (belief.freshness(t - h) - belief.freshness(t + h)) / (2 * h)
    np.testing.assert_allclose(value.slope(t), t * falling, rtol=1e-8)


def test_refusals_in_one_sentence() -> None:
    belief = Belief([1.0, 2.0], 1.0)
    with pytest.raises(InputError, match=r"^shape 0.0 must be a finite number above 0: give the changes seen"):
        Belief(0.0, 1.0)
    with pytest.raises(InputError, match=r"^exposure\[1\] nan must be a finite number above 0: "):
        Belief([1.0, 1.0], [1.0, np.nan])
    with pytest.raises(InputError, match=r"^exposure of shape \(3,\) must fit the belief's shape \(2,\): "):
        Belief([1.0, 1.0], [1.0, 1.0, 1.0])
    with pytest.raises(InputError, match=r"^elapsed -1.0 must be a finite number at least 0: "):
        belief.unchanged(-1.0)
    with pytest.raises(InputError, match=r"^elapsed of shape \(3,\) must fit the belief's shape \(2,\): "):
        belief.changed([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"^since\[1\] inf must be a finite number at least 0: "):
        belief.changed_at([1.0, np.inf])
    with pytest.raises(InputError, match=r"^changes -1.0 must be a finite number at least 0: "):
        belief.counted(-1, 1.0)
    with pytest.raises(InputError, match=r"^precision 1.5 must be a finite number at least 0 and at most 1: "):
        belief.hinted(1.5)
    with pytest.raises(InputError, match=r"^recall -0.1 must be a finite number at least 0 and at most 1: "):
        belief.unhinted(1.0, -0.1)
    with pytest.raises(InputError, match=r"^half_life 0.0 must be a number above 0: "):
        belief.faded(belief, 1.0, 0.0)
    with pytest.raises(InputError, match=r"^prior of shape \(3,\) must fit the belief's shape \(2,\): "):
        belief.faded(Belief([1.0] * 3, 1.0), 1.0, 1.0)
    with pytest.raises(InputError, match=r"^level 1.2 must be a finite number above 0 and at most 1: "):
        belief.credible(1.2)
    with pytest.raises(InputError, match=r"^elapsed 'soon' must be"):
        belief.freshness("soon")


def test_far_out_nothing_warns_or_breaks() -> None:
    shape = np.array([1e-6, 1.0, 1e8])[:, None, None]
    exposure = np.array([1e-150, 1e-12, 1.0, 1e12, 1e150])[:, None]
    elapsed = np.array([0.0, 1e-300, 1e-12, 1.0, 1e12, 1e300])
    belief = Belief(shape, exposure).changed(elapsed)
    assert np.isfinite(belief.shape).all()
    assert np.isfinite(belief.exposure).all()
    assert (belief.mean >= Belief(shape, exposure).mean * (1 - 1e-14)).all()
