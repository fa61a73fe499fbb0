"""The sketch: it adds up, travels as bytes, and prices a fleet to what its docstring promises."""

from __future__ import annotations

import math
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

from support.golden import ENTRIES
from unstale.core import sketch as module
from unstale.core.checks import Floats
from unstale.core.kernels import passes, solve, spent
from unstale.core.sketch import Sketch
from unstale.errors import InputError


def same(a: Sketch, b: Sketch, rtol: float) -> None:
    """The same cells, and moments apart by no more than `rtol` of the cell's mass."""
    np.testing.assert_array_equal(a.cells, b.cells)
    apart = np.abs(a.moments - b.moments) / np.maximum(a.moments[:, :1], b.moments[:, :1])
    assert apart.size == 0 or apart.max() <= rtol


def heavy(size: int, seed: int = 5) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    return np.exp(2 * rng.standard_normal(size)), rng.pareto(1.2, size) + 0.5


positive = st.floats(min_value=1e-100, max_value=1e100)
fleets = st.lists(st.tuples(positive | st.just(0.0), positive, positive), max_size=12)


@settings(max_examples=60, deadline=None)
@given(st.lists(fleets, min_size=3, max_size=3))
def test_sketches_add_up(parts: list[list[tuple[float, float, float]]]) -> None:
    a, b, c = (Sketch.of(*np.array(p, float).reshape(-1, 3).T) for p in parts)
    whole = Sketch.of(*np.array([s for p in parts for s in p], float).reshape(-1, 3).T)
    same(a + b, b + a, 0.0)
    same((a + b) + c, a + (b + c), 1e-15)
    # a cell may be cut finer on one side; what the fleet spends is the same
    for price in (1e-60, 1e-9, 1.0, 1e9, 1e60):
        assert ((a + b) + c).spent(price) == pytest.approx(whole.spent(price), rel=1e-3)


@settings(max_examples=60, deadline=None)
@given(fleets)
def test_bytes_keep_everything(sources: list[tuple[float, float, float]]) -> None:
    a = Sketch.of(*np.array(sources, float).reshape(-1, 3).T)
    data = a.to_bytes()
    same(a, Sketch.from_bytes(data), 0.0)
    assert Sketch.from_bytes(data).to_bytes() == data
    assert len(data) == 16 + 40 * a.cells.size


def test_bytes_are_the_same_on_every_machine() -> None:
    """One source: change_rate 1, weight 1, so u = 1, whose 64 bits are 0x3ff0000000000000, with mass 1.

    It is all of its fleet, so it has a cell of its own: twice its bits, and a 1. Its place is the cell's start.
    """
    data = Sketch.of([1.0], [1.0]).to_bytes()
    assert data[:12].hex() == "55534b54" + "02" + "07" + "0000" + "01000000"
    assert data[16:24].hex() == (2 * 0x3FF0000000000000 + 1).to_bytes(8, "little").hex()
    assert np.frombuffer(data, "<f8", offset=24).tolist() == [1.0, -0.5, 0.25, -0.125]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda d: b"", "data of 0 bytes must be a sketch: give what Sketch.to_bytes returned"),
        (lambda d: d[:10], "data of 10 bytes must be a sketch: "),
        (lambda d: b"GARB" + d[4:], "data starting with b'GARB' must be a sketch: "),
        (
            lambda d: d[:4] + b"\x09" + d[5:],
            "data of version 9.7 must be of version 2.7: sketch the fleet again",
        ),
        (lambda d: d[:-1], "bytes must be a whole and unaltered sketch: "),
        (lambda d: d[:30] + bytes([d[30] ^ 1]) + d[31:], "bytes must be a whole and unaltered sketch: "),
    ],
)
def test_garbage_is_refused_in_a_sentence(damage: object, message: str) -> None:
    data = Sketch.of([1.0, 2.0], [1.0, 5.0]).to_bytes()
    with pytest.raises(InputError) as caught:
        Sketch.from_bytes(damage(data))  # type: ignore[operator]
    assert message in str(caught.value)


@pytest.mark.parametrize("with_cost", [False, True])
def test_compiled_and_numpy_build_the_same(with_cost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rate, weight = heavy(passes.COMPILED_FROM + 777)
    cost = np.exp(np.sin(np.arange(rate.size))) if with_cost else None
    monkeypatch.setattr(module, "CHUNK", 50_000)
    assert passes.warm()
    compiled = Sketch.of(rate, weight, cost)
    monkeypatch.setattr(passes, "numba_pass", lambda: None)
    same(compiled, Sketch.of(rate, weight, cost), 1e-12)


def test_idle_sources_leave_no_trace() -> None:
    rate, weight = heavy(passes.COMPILED_FROM + 5)
    idle = np.zeros(1000)
    whole = Sketch.of(np.concatenate([rate, idle, idle + 1]), np.concatenate([weight, idle + 1, idle]))
    same(whole, Sketch.of(rate, weight), 1e-12)
    assert Sketch.of(idle, idle + 1).price(1.0) == 0.0
    assert Sketch.of([], []).spent(1.0) == 0.0


@pytest.mark.parametrize("share", [1e-3, 0.02, 0.3, 2.0, 1e5])
@pytest.mark.parametrize("size", [30, 1000, 70_000, 300_000])
def test_the_price_spends_the_budget(size: int, share: float) -> None:
    rate, weight = heavy(size)
    price = Sketch.of(rate, weight).price(share * size)
    low, high = (spent(price * f, rate, weight)[0] / (share * size) for f in (1 + 1e-9, 1 - 1e-9))
    # the promise for fleets spread over octaves is a thousandth; where a source jumps the budget lies between
    assert low - 1e-3 <= 1.0 <= high + 1e-3


def test_a_smooth_fleet_is_priced_to_a_hundred_thousandth() -> None:
    """Even in log u: 1e6 sources over six octaves, against the exact pass."""
    rate = np.exp2(np.linspace(-3, 3, 1_000_000, endpoint=False))
    for share in (0.05, 0.3, 2.0):
        price = Sketch.of(rate, np.ones(rate.size)).price(share * rate.size)
        assert spent(price, rate, np.ones(rate.size))[0] == pytest.approx(share * rate.size, rel=1e-5)


def test_one_newton_step_finishes() -> None:
    rate, weight = heavy(1_000_000)
    budget = 2.0 * rate.size
    price = Sketch.of(rate, weight).price(budget)
    total, slope = spent(price, rate, weight)
    assert abs(total / budget - 1) < 1e-4
    polished = price * math.exp(math.log(budget / total) * total / (slope * price))
    assert abs(spent(polished, rate, weight)[0] / budget - 1) < 0.02 * abs(total / budget - 1)


SQUEEZED = {
    "normal": lambda rng, n: np.exp(1e-3 * rng.standard_normal(n)),
    "even": lambda rng, n: 1 + 0.01 * rng.random(n),
    "at both ends": lambda rng, n: 1 + 0.007 * rng.beta(0.3, 0.3, n),
    "bunched": lambda rng, n: 1 + 0.002 * rng.exponential(1, n),
    "three kinds": lambda rng, n: rng.choice([1, 1.002, 1.005], n),
    "to the last digits": lambda rng, n: 1 + 1e-12 * rng.standard_normal(n),
    "half of a wide one": lambda rng, n: np.where(
        rng.random(n) < 0.5, np.exp(1e-3 * rng.standard_normal(n)), np.exp(3 * rng.standard_normal(n))
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", SQUEEZED)
def test_squeezed_fleets_are_priced_to_a_thousandth_at_every_budget(kind: str) -> None:
    """All mass within 1/128 of an octave, and budgets that abandon nearly all, half or none of it."""
    rate, weight = SQUEEZED[kind](np.random.default_rng(8), 20_000), np.ones(20_000)
    whole = Sketch.of(rate, weight)
    parts = (
        Sketch.of(rate[::3], weight[::3]) + Sketch.of(rate[1::3], weight[1::3]) + Sketch.of(rate[2::3], weight[2::3])
    )
    for budget in np.geomspace(1e-4, 10, 9) * rate.sum():
        if solve(rate, weight, None, budget).converged:
            for sketch in (whole, parts):
                assert spent(sketch.price(budget), rate, weight)[0] == pytest.approx(budget, rel=1e-3)


def test_a_sketch_stays_small() -> None:
    rate, weight = heavy(400_000)
    assert len(Sketch.of(rate, weight).to_bytes()) < 1_500_000


@pytest.mark.parametrize("budget", [0.04, 0.1, 1.0, 50.0])
def test_two_kinds_of_sources_in_a_bin_are_exact(budget: float) -> None:
    """The adversary's fleet at a bin's edge, near abandonment: all mass within 1/128 of an octave."""
    rate = np.repeat([1.0005, 1.004], [400, 600])
    price = Sketch.of(rate, np.ones(1000)).price(budget * 1000)
    assert price == pytest.approx(solve(rate, np.ones(1000), None, budget * 1000).price, rel=1e-9)


def test_a_fleet_in_parts_has_the_price_of_the_whole() -> None:
    rate, weight = heavy(40_000)
    parts = [Sketch.of(rate[i::7], weight[i::7]) for i in range(7)]
    merged = reduce(Sketch.__add__, (Sketch.from_bytes(p.to_bytes()) for p in parts))
    assert spent(merged.price(9000.0), rate, weight)[0] == pytest.approx(9000.0, rel=1e-4)


def test_other_shapes() -> None:
    """The golden fleet under purely random order, x = √s/(1−√s), and under age, x²/2 − P(2, x) = s."""
    rate, weight = np.array([0.3, 1, 2, 5, 9]), np.array([1, 0.5, 2, 1, 3])

    def azar(s: Floats) -> Floats:
        return np.maximum(1 / np.sqrt(s) - 1, 0.0)

    def age(s: Floats) -> Floats:
        def gaps(s: float) -> float:
            return float(brentq(lambda x: x * x / 2 - 1 + (1 + x) * math.exp(-x) - s, 1e-4, 1e6, xtol=1e-15))

        return 1 / np.vectorize(gaps, otypes=[float])(s)

    found = Sketch.of(rate, weight).price(4.0, azar)
    assert found == pytest.approx(ENTRIES["G.alloc.pr"].value["nu"], rel=1e-6)
    found = Sketch.of(rate, weight / rate).price(4.0, age)
    assert found == pytest.approx(ENTRIES["G.alloc.age"].value["nu"], rel=1e-6)


def test_the_whole_range_of_doubles() -> None:
    rate, weight = 10.0 ** np.linspace(-300, 300, 601), np.ones(601)
    a = Sketch.of(rate, weight)
    for price in (1e-250, 1.0, 1e250):
        assert a.spent(price) == pytest.approx(spent(price, rate, weight)[0], rel=1e-6)
    with pytest.raises(InputError, match="cost·change_rate inf must be finite for a sketch: use other units"):
        Sketch.of([1e300], [1.0], [1e300])


def test_what_is_invalid_is_named() -> None:
    rate = np.ones(passes.COMPILED_FROM + 1)
    rate[123_456] = np.nan
    with pytest.raises(InputError, match=r"change_rate\[123456\] nan"):
        Sketch.of(rate, np.ones(rate.size))
