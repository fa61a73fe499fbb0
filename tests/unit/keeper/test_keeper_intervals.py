"""The interval of one source at a price: the same numbers as the columns of the pure room, one at a time."""

import math

import mpmath
import numpy as np
import pytest

from unstale.core.fleet import Fleet
from unstale.core.penalties import Linear
from unstale.core.price import plan
from unstale.core.processes import Pareto
from unstale.core.values import MissedChanges, PoissonAge, PoissonFreshness, ProcessValue, SummedLag
from unstale.errors import InputError
from unstale.keeper import Record, Source, poisson_interval


@pytest.mark.parametrize("rate", [1e-300, 1e-20, 0.37, 1.0, 4e5, 1e200])
def test_scalar_and_column_agree(rate: float) -> None:
    s = np.concatenate([[1e-300, 1e-100, 1e-41, 1e-39, 1e-12], np.linspace(1e-6, 1 - 1e-9, 97), [1 - 2**-53]])
    values = s / rate
    column = PoissonFreshness(np.full(len(values), rate)).interval(values)
    scalar = [poisson_interval(rate, v) for v in values.tolist()]
    np.testing.assert_allclose(scalar, column, rtol=1e-12)


@pytest.mark.parametrize("s", [1e-9, 0.01, 0.5, 0.9, 0.999999])
def test_against_forty_digits(s: float) -> None:
    with mpmath.workdps(40):
        exact = mpmath.findroot(lambda x: 1 - (1 + x) * mpmath.exp(-x) - mpmath.mpf(s), poisson_interval(1.0, s))
        assert poisson_interval(3.0, s / 3.0) == pytest.approx(float(exact) / 3.0, rel=1e-13)


def test_ends() -> None:
    assert poisson_interval(2.0, 0.0) == 0.0
    assert poisson_interval(2.0, 0.5) == math.inf
    assert poisson_interval(0.0, 1.0) == math.inf


VALUES = {
    "age": (PoissonAge([0.7]), PoissonAge([0.7])),
    "missed": (MissedChanges([0.7]), MissedChanges([0.7])),
    "lag": (SummedLag([0.7]), SummedLag([0.7])),
    "pareto": (ProcessValue(Pareto(3.0, 1.0), [0.7], Linear()), ProcessValue(Pareto(3.0, 1.0), [0.7], Linear())),
}


@pytest.mark.parametrize("objective", VALUES)
def test_other_objectives_meet_the_price(objective: str) -> None:
    """The value of a poll at the interval, times weight, is what the poll must be worth."""
    mine, theirs = VALUES[objective]
    record = Record(Source(0, 0.0, weight=2.0, cost=3.0, value=mine))
    interval = record.interval_at(price=0.25, surcharge=0.5)
    assert 2.0 * theirs.value(np.array([interval]))[0] == pytest.approx(0.25 * 3.0 + 0.5, rel=1e-9)


def test_square_root_law_by_hand() -> None:
    """Missed changes: weight·rate·t²/2 = price·cost, so t = √(2·3·4/(2·0.75)) = 4."""
    record = Record(Source(0, 0.0, weight=2.0, cost=4.0, value=MissedChanges([0.75])))
    assert record.interval_at(price=3.0) == pytest.approx(4.0, rel=1e-14)


def test_bounds_clip_and_take_back() -> None:
    assert Record(Source(0, 2.0, shortest=3.0)).interval_at(0.1) == 3.0
    assert Record(Source(0, 2.0)).interval_at(0.5) == math.inf
    assert Record(Source(0, 2.0, longest=7.0)).interval_at(0.5) == 7.0
    assert Record(Source(0, 2.0, weight=0.0, longest=7.0)).interval_at(0.0) == 7.0
    assert Record(Source(0, 0.0)).interval_at(0.0) == math.inf
    assert Record(Source(0, 0.0, value=MissedChanges([0.0]))).interval_at(1.0) == math.inf


def test_a_free_poll_needs_a_bound() -> None:
    assert Record(Source(0, 2.0, shortest=3.0)).interval_at(0.0) == 3.0
    with pytest.raises(InputError, match=r"price 0.0 makes source 5 due all the time: give a price above 0"):
        Record(Source(5, 2.0)).interval_at(0.0)


def test_the_keeper_polls_as_the_plan_does() -> None:
    """At a plan's price and surcharges every record has the plan's interval."""
    rng = np.random.default_rng(5)
    n = 60
    rate, weight, cost = rng.lognormal(0, 1, n), rng.uniform(0.1, 3, n), rng.uniform(0.5, 2, n)
    host = rng.integers(0, 3, n)
    fleet = Fleet.of(
        PoissonFreshness(rate), weight=weight, cost=cost, host=host, cap=[2.0, 30.0, 100.0], shortest=0.2, longest=20.0
    )
    made = plan(fleet, 50.0)
    assert made.host_price is not None
    assert made.host_price[0] > 0
    for i in range(n):
        source = Source(i, rate[i], weight[i], cost[i], 0.2, 20.0, int(host[i]))
        interval = Record(source).interval_at(made.price, float(made.host_price[host[i]]))
        assert interval == pytest.approx(made.interval[i], rel=1e-8)
