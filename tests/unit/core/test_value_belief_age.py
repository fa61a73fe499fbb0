"""The value of a poll under age and a Gamma belief, against hundreds of digits and the Poisson values it mixes."""

from __future__ import annotations

import mpmath as mp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from unstale.core.learning.gamma import age_value
from unstale.core.values import PoissonAge
from unstale.core.values.belief_age import BeliefAge

SHAPES = [1e-6, 0.01, 0.5, 1 - 1e-9, 1.0, 1.5, 2.0, 2 + 1e-9, 3.0, 30.0, 1e4, 1e9]
Z = np.concatenate([np.geomspace(1e-100, 1e100, 21), np.geomspace(1e-5, 1e5, 31)])


def integral(c: mp.mpf, length: mp.mpf) -> mp.mpf:
    return length if c == 0 else mp.expm1(c * length) / c


def value(a: mp.mpf, z: mp.mpf) -> mp.mpf:
    length = mp.log1p(z)
    return z**2 / 2 - integral(2 - a, length) + integral(1 - a, length)


def slope(a: mp.mpf, z: mp.mpf) -> mp.mpf:
    return z * (1 - (1 + z) ** -a)


def stale(a: mp.mpf, z: mp.mpf) -> mp.mpf:
    return z - integral(1 - a, mp.log1p(z)) - value(a, z) / z


@pytest.mark.parametrize("shape", SHAPES)
def test_against_hundreds_of_digits(shape: float) -> None:
    belief = BeliefAge(np.full(Z.size, shape), np.ones(Z.size))
    answers = belief.value(Z), belief.slope(Z), belief.staleness(Z)
    with mp.workdps(450):
        for i, z in enumerate(Z.tolist()):
            for got, exact in zip(answers, (value, slope, stale), strict=True):
                want = exact(mp.mpf(shape), mp.mpf(z))
                if want > 1e-290:
                    assert abs(mp.mpf(float(got[i])) / want - 1) < 1e-12, (exact.__name__, z)


@pytest.mark.parametrize("shape", SHAPES)
def test_interval_undoes_value(shape: float) -> None:
    belief = BeliefAge(np.full(Z.size, shape), np.ones(Z.size))
    worth = belief.value(Z)
    kept = worth > 1e-300
    np.testing.assert_allclose(belief.interval(worth)[kept], Z[kept], rtol=1e-12)


def test_it_is_the_poisson_value_averaged_over_the_belief() -> None:
    for shape, exposure, t in ((0.7, 2.0, 1.0), (3.0, 0.5, 4.0)):
        law = gamma(shape, scale=1 / exposure)
        for order in ("fixed", "random", "purely-random"):
            got = BeliefAge([shape], [exposure], order).value(np.array([t]))[0]
            want = quad(lambda u, law=law, o=order, t=t: PoissonAge([law.ppf(u)], o).value(t)[0], 0, 1, epsabs=1e-9)
            assert got == pytest.approx(want[0], rel=1e-7)


def test_one_source_has_the_value_of_its_column() -> None:
    rng = np.random.default_rng(3)
    shape, exposure, elapsed = rng.lognormal(0, 2, (3, 200))
    columns = BeliefAge(shape, exposure)
    each = np.array([age_value(*row) for row in zip(shape, exposure, elapsed, strict=True)])
    np.testing.assert_allclose(each[:, 0], columns.value(elapsed), rtol=1e-11)
    np.testing.assert_allclose(each[:, 1], columns.slope(elapsed), rtol=1e-12)


def test_a_sure_belief_is_a_known_rate() -> None:
    t = np.geomspace(1e-3, 20, 9)
    sure = BeliefAge(np.full(9, 2e13), np.full(9, 1e13))
    np.testing.assert_allclose(sure.value(t), PoissonAge(np.full(9, 2.0)).value(t), rtol=1e-11)


def test_ends_and_scale() -> None:
    belief = BeliefAge([0.5, 1.0, 3.0], [2.0, 2.0, 2.0])
    for answer in (belief.value, belief.slope, belief.staleness, belief.interval):
        assert answer(0.0).tolist() == [0, 0, 0]
        assert answer(np.inf).tolist() == [np.inf] * 3
    assert belief.limit().tolist() == [np.inf] * 3
    # shape·t³/(3·exposure), whatever underflows on the way
    assert BeliefAge([3.0], [1e200]).value(1e-20).tolist() == pytest.approx([1e-260])
    assert BeliefAge([3.0], [1e200]).interval(1e-260).tolist() == pytest.approx([1e-20])
