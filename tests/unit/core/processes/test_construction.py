"""Constructors: rates as asked for, and one sentence for what cannot be."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.processes import (
    Ageing,
    Constant,
    Empirical,
    Gamma,
    LogNormal,
    Mixture,
    Pareto,
    Poisson,
    Superposition,
    Triangular,
    Uniform,
    WeeklyPoisson,
    Weibull,
)
from unstale.errors import InputError

BAD = [
    (
        lambda: Poisson(0),
        "rate 0.0 must be a finite number above 0: give events per unit of time, for example 0.5",
    ),
    (lambda: Poisson("fast"), "rate 'fast' must be a finite number above 0: give events per unit of time"),
    (
        lambda: Pareto(1.0, 2.0),
        "alpha 1.0 must be a finite number above 1: the mean gap is infinite otherwise",
    ),
    (
        lambda: Pareto.from_rate(0.9, 2.0),
        "alpha 0.9 must be a finite number above 1: the mean gap is infinite",
    ),
    (lambda: Pareto(2.0, 0.0), "scale 0.0 must be a finite number above 0: "),
    (lambda: Weibull(0.0, 1.0), "shape 0.0 must be a finite number at least 0.01: give 1 for Poisson"),
    (lambda: Weibull.from_rate(math.nan, 1.0), "shape nan must be a finite number at least 0.01: "),
    (lambda: Gamma(-1.0, 1.0), "shape -1.0 must be a finite number above 0: "),
    (lambda: LogNormal(0.0, 1.0), "median 0.0 must be a finite number above 0: "),
    (lambda: LogNormal(1.0, 30.0), "sigma 30.0 must be a finite number above 0 and at most 18: "),
    (lambda: Uniform(2.0, 2.0), "low 2.0 must be below high 2.0: use Constant if equal"),
    (lambda: Uniform(-1.0, 2.0), "low -1.0 must be a finite number at least 0: "),
    (lambda: Constant(-3), "gap -3.0 must be a finite number above 0: "),
    (lambda: Constant(1e-320), "the rate 1/gap inf must be a finite number above 0: "),
    (lambda: Triangular(math.inf), "mean inf must be a finite number above 0: "),
    (lambda: Empirical([1.0, 0.0]), "gaps[1] 0.0 must be a finite number above 0: merge events"),
    (lambda: Empirical([]), "gaps of shape (0,) must be a list: give gaps"),
    (lambda: Empirical([1.0], [1.0, 2.0]), "weights of shape (2,) must match gaps (1,) and not all be 0: "),
    (lambda: Empirical([1.0], [0.0]), "weights of shape (1,) must match gaps (1,) and not all be 0: "),
    (lambda: Mixture([], []), "processes [] must be one or more processes: give a list"),
    (lambda: Mixture([Poisson(1.0)], [0.5, 0.5]), "weights [0.5, 0.5] must be 1 numbers, not all 0: "),
    (lambda: Superposition(Poisson(1.0)), "processes Poisson(rate=1.0) must be one or more processes: "),
    (lambda: Superposition([2.0]), "processes [2.0] must be one or more processes: "),
    (lambda: WeeklyPoisson(1.0, [0.0, 0.0]), "profile [0.0, 0.0] must have a factor above 0: "),
    (lambda: WeeklyPoisson(1.0, [1.0], week=0), "week 0.0 must be a finite number above 0: "),
    (
        lambda: WeeklyPoisson(1.0, [1.0]).sample_times(np.random.default_rng(0), 2, 1),
        "stop 1.0 must not be before",
    ),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_cannot_be_is_said_in_one_sentence(make, message):
    with pytest.raises(InputError) as caught:
        make()
    assert str(caught.value).startswith(message)
    assert str(caught.value).count("\n") == 0


@pytest.mark.parametrize("rate", [1e-9, 0.37, 2e6])
def test_from_rate_gives_the_rate(rate):
    made = [Pareto.from_rate(1.3, rate), Weibull.from_rate(0.6, rate), Gamma.from_rate(4.0, rate)]
    for p in (*made, LogNormal.from_rate(1.2, rate)):
        assert p.rate == pytest.approx(rate, rel=1e-14)
        assert p.moment(1) == pytest.approx(1 / rate, rel=1e-13)


def test_shape_decides_the_ageing_class():
    for cls in (Weibull, Gamma):
        assert [cls(k, 1.0).ageing for k in (0.9, 1.0, 1.1)] == [Ageing.NWU, Ageing.MEMORYLESS, Ageing.NBU]
    mixed = Mixture([Poisson(1.0), Weibull(0.5, 1.0)], [1, 1])
    assert mixed.ageing is Ageing.NWU
    assert Mixture([Poisson(1.0), Constant(1.0)], [1, 1]).ageing is Ageing.NEITHER
    assert Mixture([Poisson(1.0), Constant(1.0)], [1, 0]).ageing is Ageing.MEMORYLESS
    assert Superposition([Pareto(2.0, 1.0), Poisson(1.0)]).ageing is Ageing.NWU
    assert Superposition([Constant(1.0), Constant(1.0)]).ageing is Ageing.NEITHER
    assert Superposition([Poisson(1.0), Poisson(3.0)]).ageing is Ageing.MEMORYLESS
