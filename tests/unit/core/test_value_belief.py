"""The value under a Gamma belief, against hundreds of digits and the Poisson values it mixes."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gamma

from unstale.core.penalties import Constant
from unstale.core.processes.pareto import Pareto
from unstale.core.values import BeliefFreshness, PoissonFreshness, ProcessValue
from unstale.errors import InputError

SHAPES = [1e-6, 0.01, 0.5, 1 - 1e-9, 1.0, 1 + 1e-12, 1.5, 2.0, 2 + 1e-9, 3.0, 30.0, 1e4, 1e9]
Z = np.concatenate([np.geomspace(1e-150, 1e150, 31), np.geomspace(1e-5, 1e5, 31)])


def value(a: mp.mpf, z: mp.mpf) -> mp.mpf:
    s = 1 / (1 + z)
    first = mp.log(1 + z) if a == 1 else (1 - (1 + z) * s**a) / (a - 1)
    return first - z * s**a


def slope(a: mp.mpf, z: mp.mpf) -> mp.mpf:
    return a * z * (1 + z) ** (-a - 1)


def stale(a: mp.mpf, z: mp.mpf) -> mp.mpf:
    mean = mp.log(1 + z) if a == 1 else ((1 + z) ** (1 - a) - 1) / (1 - a)
    return 1 - mean / z


@pytest.mark.parametrize("shape", SHAPES)
def test_against_hundreds_of_digits(shape: float) -> None:
    belief = BeliefFreshness(np.full(Z.size, shape), np.ones(Z.size))
    answers = belief.value(Z), belief.slope(Z), belief.staleness(Z)
    with mp.workdps(550):
        for i, z in enumerate(Z.tolist()):
            for got, exact in zip(answers, (value, slope, stale), strict=True):
                want = exact(mp.mpf(shape), mp.mpf(z))
                if want > 1e-300:
                    assert abs(mp.mpf(float(got[i])) / want - 1) < 3e-13, (exact.__name__, z)


@pytest.mark.parametrize("shape", SHAPES)
def test_interval(shape: float) -> None:
    # up to where 1 − value/limit is below 1e-3; beyond, rounding of the value itself decides
    top = min(200.0, 0.999 / (shape - 1)) if shape > 1 else 1e100 ** (1 - shape) if shape < 0.99 else 200.0
    goals = np.geomspace(1e-290, top, 60)
    t = BeliefFreshness(np.full(goals.size, shape), np.ones(goals.size)).interval(goals)
    with mp.workdps(650):
        for goal, z in zip(goals.tolist(), t.tolist(), strict=True):
            a, x = mp.mpf(shape), mp.mpf(z)
            assert abs((value(a, x) - mp.mpf(goal)) / (x * slope(a, x))) < 1e-12, (goal, z)


@given(st.floats(0.05, 50), st.floats(1e-100, 1e100), st.floats(1e-8, 1e3))
def test_interval_undoes_value(shape: float, exposure: float, z: float) -> None:
    belief = BeliefFreshness([shape], [exposure])
    worth = belief.value(np.array([exposure * z]))
    back = float(belief.interval(worth)[0])
    if shape > 1 and worth[0] > 0.999 * belief.limit()[0]:
        assert float(belief.value(np.array([back]))[0]) == pytest.approx(worth[0], rel=1e-14) or np.isinf(back)
    else:
        assert back == pytest.approx(exposure * z, rel=1e-11)


def test_it_is_the_poisson_value_averaged_over_the_belief() -> None:
    for shape, exposure, t in ((0.7, 2.0, 1.0), (3.0, 0.5, 4.0)):
        law = gamma(shape, scale=1 / exposure)
        for order in ("fixed", "random", "purely-random"):
            got = BeliefFreshness([shape], [exposure], order).value(np.array([t]))[0]
            want = quad(
                lambda u, law=law, o=order, t=t: PoissonFreshness([law.ppf(u)], o).value(t)[0],
                0,
                1,
                epsabs=1e-9,
            )
            assert got == pytest.approx(want[0], rel=1e-7)


def test_it_is_the_value_of_pareto_gaps() -> None:
    # a Gamma belief of shape a makes the age Pareto, so the gaps are Pareto(a + 1)
    t = np.array([0.1, 1.0, 30.0])
    for order in ("fixed", "random", "purely-random"):
        gaps = ProcessValue(Pareto(2.5, 2.0), np.full(3, Pareto(2.5, 2.0).rate), Constant(), order)
        belief = BeliefFreshness(np.full(3, 1.5), np.full(3, 2.0), order)
        for answer in ("value", "slope", "staleness"):
            np.testing.assert_allclose(getattr(belief, answer)(t), getattr(gaps, answer)(t), rtol=1e-10)
        np.testing.assert_allclose(belief.limit(), gaps.limit(), rtol=1e-14)
        np.testing.assert_allclose(belief.interval(belief.value(t)), t, rtol=1e-12)


def test_a_sure_belief_is_a_known_rate() -> None:
    t = np.geomspace(1e-3, 20, 9)
    sure = BeliefFreshness(np.full(9, 2e13), np.full(9, 1e13))
    np.testing.assert_allclose(sure.value(t), PoissonFreshness(np.full(9, 2.0)).value(t), rtol=1e-11)


def test_ends() -> None:
    belief = BeliefFreshness([0.5, 1.0, 3.0], [2.0, 2.0, 2.0])
    assert belief.value(0.0).tolist() == [0, 0, 0]
    assert belief.value(np.inf).tolist() == belief.limit().tolist() == [np.inf, np.inf, 1.0]
    assert belief.slope(np.inf).tolist() == [0, 0, 0]
    assert belief.staleness(0.0).tolist() == [0, 0, 0]
    assert belief.staleness(np.inf).tolist() == [1, 1, 1]
    assert belief.interval(0.0).tolist() == [0, 0, 0]
    assert belief.interval(1.0)[2] == np.inf
    assert np.isfinite(belief.interval(np.nextafter(1.0, 0))[2])
    # v/exposure underflows, the interval does not: √(2·v·exposure/shape)
    assert BeliefFreshness([2.0], [1e200]).interval(1e-200).tolist() == pytest.approx([1.0])
    assert BeliefFreshness([2.0], [1e200]).value(1.0).tolist() == pytest.approx([1e-200])


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"^shape\[1\] 0.0 must be a finite number above 0: "):
        BeliefFreshness([1.0, 0.0], [1.0, 1.0])
    with pytest.raises(InputError, match=r"^exposure of 1 sources must have as many as shape, 2: "):
        BeliefFreshness([1.0, 2.0], [1.0])
    with pytest.raises(InputError, match=r"^order 'best' must be one of fixed, random, purely-random: "):
        BeliefFreshness([1.0], [1.0], "best")
