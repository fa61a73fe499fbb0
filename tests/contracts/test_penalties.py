"""What every penalty promises; members are discovered, so a new one without an example fails."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy.integrate import quad

from unstale.core import custom_penalty, penalties, points_penalty
from unstale.core.penalties import Penalty

EXAMPLES: dict[str, list[Penalty]] = {
    "Constant": [penalties.Constant()],
    "Linear": [penalties.Linear()],
    "Power": [penalties.Power(0.3), penalties.Power(2.5)],
    "Saturating": [penalties.Saturating(0.2), penalties.Saturating(30.0)],
    "Decay": [penalties.Decay(0.1), penalties.Decay(4.0)],
    "Reciprocal": [penalties.Reciprocal(), penalties.Reciprocal(20.0)],
    "Deadline": [penalties.Deadline(1.7)],
    "Points": [
        points_penalty.Points([(0.5, 0.2), (2.0, 3.0)]),
        points_penalty.Points([(0.0, 1.0), (1.0, 1.0), (1.0, 2.0), (7.0, 2.5), (9.0, 6.0)]),
    ],
    "Custom": [
        custom_penalty.Custom(lambda x: np.log1p(x)),
        custom_penalty.Custom(lambda x: 2.0 + x if x > 3 else 1.0, kinks=(3.0,)),
        custom_penalty.Custom(lambda x: np.exp(-x / 3)),
    ],
}


def members(cls: type[Penalty] = Penalty) -> Iterator[type[Penalty]]:
    for sub in cls.__subclasses__():
        yield sub
        yield from members(sub)


def test_every_member_has_an_example() -> None:
    assert {m.__name__ for m in members()} == set(EXAMPLES)


ALL = [pytest.param(p, id=f"{name}-{i}") for name, all_ in EXAMPLES.items() for i, p in enumerate(all_)]
AGES = np.array([0.0, 1e-3, 0.4, 1.6999, 1.7001, 5.0, 60.0])


@pytest.mark.parametrize("penalty", ALL)
def test_no_harm_before_the_change_and_none_negative(penalty: Penalty) -> None:
    assert np.array_equal(penalty.w([-2.0, -1e-300]), [0.0, 0.0])
    for f in (penalty.w2, penalty.w3, penalty.v):
        assert f(-1.0) == 0.0 == f(0.0)
    assert np.all(np.asarray(penalty.w(np.geomspace(1e-9, 1e9, 500))) >= 0)


@pytest.mark.parametrize("penalty", ALL)
def test_w2_and_w3_are_integrals(penalty: Penalty) -> None:
    for x in AGES[1:]:
        points = [k for k in penalty.kinks if k < x]
        for whole, part in ((penalty.w2, penalty.w), (penalty.w3, penalty.w2)):
            expected, _ = quad(part, 0.0, x, points=points or None, epsabs=0, epsrel=1e-11, limit=200)
            assert math.isclose(whole(x), expected, rel_tol=1e-9, abs_tol=1e-14)


@pytest.mark.parametrize("penalty", ALL)
def test_v_is_what_the_growth_of_w_adds(penalty: Penalty) -> None:
    x = AGES[3:]
    direct = x * np.asarray(penalty.w(x)) - np.asarray(penalty.w2(x))
    assert np.allclose(penalty.v(x), direct, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("penalty", ALL)
def test_declared_growth_limit_degree_and_kinks(penalty: Penalty) -> None:
    grid = np.asarray(penalty.w(np.geomspace(1e-6, 1e6, 4001)))
    assert penalty.nondecreasing == bool(np.all(np.diff(grid) >= -1e-12 * grid[:-1]))
    if math.isinf(penalty.limit):
        assert penalty.w(1e100) > penalty.w(1e50) > penalty.w(1e25)
    else:
        assert penalty.w(1e280) == pytest.approx(penalty.limit, abs=1e-12)
    if penalty.degree is not None:
        for c in (0.5, 7.0):
            assert np.allclose(penalty.w(c * AGES), c**penalty.degree * np.asarray(penalty.w(AGES)), rtol=1e-14)
    assert list(penalty.kinks) == sorted(penalty.kinks)
    for k in penalty.kinks:
        jump = penalty.w(k * (1 + 1e-9)) - penalty.w(k * (1 - 1e-9))
        before, after = ((penalty.w(k * (1 + 2 * d)) - penalty.w(k * (1 + d))) / (k * d) for d in (-1e-4, 1e-4))
        assert jump > 0.5 or abs(after - before) > 1e-3


@pytest.mark.parametrize("penalty", ALL)
def test_scalars_in_scalars_out_and_shapes_kept(penalty: Penalty) -> None:
    for f in (penalty.w, penalty.w2, penalty.w3, penalty.v):
        assert isinstance(f(1.5), float)
        assert np.shape(f([[1.0, 2.0, 3.0]])) == (1, 3)
        assert np.asarray(f([[1.0, 2.0, 3.0]]))[0, 1] == f(2.0)


@pytest.mark.parametrize("penalty", ALL)
def test_nothing_warns_or_turns_nan_at_extremes(penalty: Penalty) -> None:
    x = np.array([5e-324, 1e-300, 1e-150, 1e150, 1e300, np.inf])
    for f in (penalty.w, penalty.w2, penalty.w3, penalty.v):
        assert not np.any(np.isnan(np.asarray(f(x))))
