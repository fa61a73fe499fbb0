"""What every value promises: it never falls, its interval undoes it, and it is the price of staleness."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from unstale.core.penalties import Constant, Decay, Linear, Saturating
from unstale.core.processes.pareto import Pareto
from unstale.core.processes.poisson import Poisson
from unstale.core.processes.weibull import Weibull
from unstale.core.values import (
    BeliefAge,
    BeliefFreshness,
    MissedChanges,
    Mixed,
    PoissonAge,
    PoissonFreshness,
    ProcessValue,
    SummedLag,
    UpdateValue,
    Value,
    value_of,
)
from unstale.errors import InputError

ORDERS = ("fixed", "random", "purely-random")
RATE = np.array([0.2, 1.0, 3.0, 10.0])


def members() -> dict[str, Value]:
    made: dict[str, Value] = {}
    for order in ORDERS:
        made[f"freshness {order}"] = PoissonFreshness(RATE, order)
        made[f"age {order}"] = PoissonAge(RATE, order)
        made[f"missed {order}"] = MissedChanges(RATE, order)
        made[f"lag {order}"] = SummedLag(RATE, order)
        made[f"belief age {order}"] = BeliefAge([0.5, 1.0, 2.0, 9.0], [2.0, 1.0, 1.0, 0.5], order)
        made[f"belief {order}"] = BeliefFreshness([0.5, 1.0, 2.0, 9.0], [2.0, 1.0, 1.0, 0.5], order)
        made[f"pareto {order}"] = ProcessValue(Pareto(2.5, 1.0), RATE, Constant(), order)
        made[f"news {order}"] = UpdateValue(RATE, Decay(1.0), order)
    made["saturating"] = ProcessValue(Weibull(0.7, 1.0), RATE, Saturating(0.5))
    made["mixed"] = Mixed([([2, 0], PoissonFreshness([1.0, 3.0])), ([1, 3], BeliefFreshness([2.0, 1.0], [1.0, 2.0]))])
    return made


MEMBERS = members()
every = pytest.mark.parametrize("value", MEMBERS.values(), ids=list(MEMBERS))


@every
def test_ends(value: Value) -> None:
    limit = value.limit()
    assert len(value) == len(limit) == 4
    assert value.value(0.0).tolist() == value.interval(0.0).tolist() == value.staleness(0.0).tolist() == [0.0] * 4
    np.testing.assert_array_equal(value.value(np.inf), limit)
    assert np.isinf(value.interval(limit)).all()
    assert np.isinf(value.interval(np.inf)).all()


@every
def test_never_falls_and_interval_undoes_it(value: Value) -> None:
    grid = np.geomspace(1e-3, 30, 12)
    worth = np.array([value.value(t) for t in grid])
    assert (np.diff(worth, axis=0) >= -1e-13 * worth[1:]).all()
    assert (worth <= value.limit() * (1 + 1e-12)).all()
    for t, v in zip(grid, worth, strict=True):
        # where the value is nearly at its limit, its rounding hides the interval
        clear = v < 0.999 * value.limit()
        np.testing.assert_allclose(value.interval(v)[clear], t, rtol=2e-10)


@every
def test_value_is_the_derivative_of_staleness_in_the_sync_rate(value: Value) -> None:
    f, h = 0.8, 2e-3
    left, right = [], []
    for k, weight in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60)):
        left.append(weight * value.staleness(1 / (f - k * h)))
        right.append(weight * value.staleness(1 / (f + k * h)))
    drop = (np.sum(left, axis=0) - np.sum(right, axis=0)) / h
    np.testing.assert_allclose(drop, value.value(1 / f), rtol=2e-9)


@every
def test_slope_is_the_derivative_of_value(value: Value) -> None:
    t, h = 1.1, 2e-3
    rise = sum(
        w * (value.value(t + k * h) - value.value(t - k * h)) for k, w in ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))
    )
    np.testing.assert_allclose(rise / h, value.slope(t), rtol=1e-7)


@every
def test_a_subset_answers_the_same(value: Value) -> None:
    t = np.array([0.1, 1.0, 2.0, 5.0])
    for rows in (np.array([3, 1]), slice(1, 3), np.array([True, False, True, True])):
        part = value.take(rows)
        assert len(part) == len(t[rows])
        np.testing.assert_array_equal(part.limit(), value.limit()[rows])
        np.testing.assert_allclose(part.value(t[rows]), value.value(t)[rows], rtol=1e-14)
        np.testing.assert_allclose(part.interval(0.01), value.interval(0.01)[rows], rtol=1e-13)


@pytest.mark.parametrize("order", ["random", "purely-random"])
@pytest.mark.parametrize("kind", [PoissonFreshness, PoissonAge, MissedChanges, SummedLag])
def test_order_is_an_average_over_gaps(kind: type, order: str) -> None:
    even, t = kind([0.7]), 2.5
    density, end = (lambda x: min(x, 2 - x), 2.0) if order == "random" else (lambda x: np.exp(-x), 60.0)
    for answer, power in (("value", 0), ("slope", 1), ("staleness", 1)):

        def of_gap(x: float, answer: str = answer, power: int = power) -> float:
            return density(x) * x**power * float(getattr(even, answer)(t * x)[0])

        want = quad(of_gap, 0, 1, epsabs=1e-13)[0] + quad(of_gap, 1, end, epsabs=1e-13, limit=200)[0]
        assert float(getattr(kind([0.7], order), answer)(t)[0]) == pytest.approx(want, rel=1e-10)


@pytest.mark.parametrize("kind", [PoissonFreshness, PoissonAge, MissedChanges, SummedLag])
@given(st.sampled_from(ORDERS), st.floats(1e-150, 1e150), st.floats(1e-100, 1e100), st.floats(1, 1e3))
def test_never_falls_anywhere(kind: type, order: str, rate: float, t: float, factor: float) -> None:
    low, high = kind([rate, rate], order).value(np.array([t, t * factor]))
    assert 0 <= low <= high * (1 + 1e-15)


@pytest.mark.parametrize(
    "value",
    [
        PoissonFreshness([0.0, 1.0]),
        PoissonAge([0.0, 1.0], "random"),
        MissedChanges([0.0, 1.0]),
        ProcessValue(Pareto(3.0, 1.0), [0.0, 1.0], Linear()),
        UpdateValue([0.0, 1.0], Decay(1.0), "purely-random"),
    ],
    ids=lambda v: type(v).__name__,
)
def test_a_source_that_never_changes_is_worth_nothing(value: Value) -> None:
    for t in (0.0, 1.0, np.inf):
        assert value.value(t)[0] == value.staleness(t)[0] == 0.0
        assert value.value(t)[1] >= 0
    assert value.limit()[0] == 0.0
    assert value.interval(0.0)[0] == 0.0
    assert value.interval(1e-300)[0] == np.inf
    assert np.isfinite(value.interval(1e-3)[1])


def test_long_columns_are_cut_without_a_trace() -> None:
    rate = np.random.default_rng(2).lognormal(0, 1, 40_000)
    for value in (PoissonFreshness(rate), PoissonAge(rate, "random"), BeliefFreshness(rate, rate)):
        t = 1 / rate[::-1]
        rows = np.array([0, 16_383, 16_384, 39_999])
        np.testing.assert_array_equal(value.value(t)[rows], value.take(rows).value(t[rows]))
        np.testing.assert_allclose(value.interval(0.3)[rows], value.take(rows).interval(0.3), rtol=1e-14)


def test_names_of_objectives() -> None:
    kinds = {
        "freshness": PoissonFreshness,
        "age": PoissonAge,
        "missed": MissedChanges,
        "lag": SummedLag,
    }
    for name, kind in kinds.items():
        assert type(value_of(name, [1.0], order="random")) is kind
    assert type(value_of("freshness", [1.0], changes=Poisson(7.0))) is PoissonFreshness
    assert type(value_of("penalty", [1.0], penalty=Constant())) is PoissonFreshness
    assert type(value_of("missed", [1.0], penalty=Decay(1.0))) is UpdateValue
    heavy = value_of("age", [2.0], changes=Pareto(3.0, 1.0))
    assert isinstance(heavy, ProcessValue)
    assert heavy.penalty == Linear()
    np.testing.assert_allclose(
        value_of("penalty", [2.0], penalty=Saturating(1.0)).value(1.0),
        ProcessValue(Poisson(1.0), [2.0], Saturating(1.0)).value(1.0),
    )


def test_refusals_in_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^objective 'speed' must be one of freshness, age, missed, lag, penalty: "):
        value_of("speed", [1.0])
    with pytest.raises(InputError, match=r"^penalty None must be given with"):
        value_of("penalty", [1.0])
    with pytest.raises(InputError, match=r"^penalty Linear\(\) must be given with"):
        value_of("age", [1.0], penalty=Linear())
    with pytest.raises(InputError, match=r"^change_rate\[1\] -1.0 must be a finite number at least 0: "):
        PoissonFreshness([1.0, -1.0])
    with pytest.raises(InputError, match=r"^change_rate of shape \(1, 2\) must be one column: "):
        PoissonFreshness([[1.0, 2.0]])
    with pytest.raises(InputError, match=r"^order 'sorted' must be one of fixed, random, purely-random: "):
        PoissonAge([1.0], "sorted")
    with pytest.raises(InputError, match=r"^parts\[0\] rows 1 must be as many as its 2 sources: "):
        Mixed([([0], MissedChanges([1.0, 2.0]))])
    with pytest.raises(InputError, match=r"^parts rows \[0, 0\] must be 0 to 1, each once: "):
        Mixed([([0, 0], MissedChanges([1.0, 2.0]))])
