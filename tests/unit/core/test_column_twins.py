"""NumPy and machine code decide the same: every number a learner keeps or gives is equal to the last bit."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from unstale.core.learning import compiled, exactly
from unstale.core.learning.clock import WeekClock
from unstale.core.learning.column_steps import turns
from unstale.core.learning.columns import all_passed
from unstale.core.learning.learner import Learner
from unstale.core.learning.siblings import siblings_of

SOURCES, ROUNDS, SECONDS = 60, 4, 3600.0


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], None]:
    """Lets kernels run as machine code, or leaves them to NumPy."""
    pytest.importorskip("numba")

    def choose(machine_code: bool) -> None:
        monkeypatch.setattr(compiled._Way, "loaded", machine_code)
        monkeypatch.setattr(compiled._Way, "left", math.inf)

    return choose


def trusting(learner: Learner) -> None:
    """A clock and bursts that are believed, with waits that differ from hour to hour."""
    rng = np.random.default_rng(3)
    intensity = rng.uniform(0.3, 2.0, 168)
    clock = WeekClock(intensity, np.concatenate([[0.0], np.cumsum(intensity)]), True)
    bursts = learner.timing.bursts._replace(factor=np.linspace(2.5, 0.5, 8), trusted=True)
    learner.timing = learner.timing._replace(clock=clock, bursts=bursts)
    learner.timing.waits[:] = rng.uniform(0.5, 1.5, learner.timing.waits.shape)


def bits(learner: Learner, answer: Any) -> list[bytes]:
    """All that a learner holds, and what it has just said."""
    kept = (*learner.columns, *learner.shared[:3], learner.timing.hours, learner.timing.silences, learner.timing.credit)
    return [np.asarray(part, dtype=np.float64).tobytes() for part in (*kept, 0.0 if answer is None else answer)]


@pytest.mark.parametrize("objective", ["freshness", "age", "deadline:30m", "missed", "saturating:1h"])
@pytest.mark.parametrize("trusts", [False, True], ids=["even", "clock and bursts"])
def test_a_fleet_learns_and_is_due_the_same_to_the_last_bit(
    objective: str, trusts: bool, ways: Callable[[bool], None]
) -> None:
    rng = np.random.default_rng(5)
    described = {
        "weight": rng.lognormal(0, 1, SOURCES) * (rng.random(SOURCES) > 0.1),
        "cost": rng.uniform(0.5, 3, SOURCES),
    }
    one = Learner(SOURCES, SECONDS, start=1.7e9, objective=objective, **described)  # type: ignore[arg-type]
    both = [one, copy.deepcopy(one)]
    rates, now, everybody = rng.lognormal(-9, 2, SOURCES), np.full(SOURCES, 1.7e9), np.arange(SOURCES)

    def same(ask: Callable[[Learner], Any]) -> None:
        said = []
        for learner, machine_code in zip(both, (True, False), strict=True):
            ways(machine_code)
            said.append(bits(learner, ask(learner)))
        assert said[0] == said[1]

    for turn in range(ROUNDS):
        # every second time some sources are polled twice, and some polls come from a clock that went back
        which = rng.integers(0, SOURCES, 50) if turn % 2 else rng.permutation(SOURCES)[:40]
        now += rng.exponential(2000.0, SOURCES)
        at = now[which] + rng.normal(0.0, 300.0, len(which))
        changed = rng.random(len(which)) < 1.0 - np.exp(-rates[which] * 2000.0)
        told = np.where(rng.random(len(which)) < 0.5, at - rng.exponential(500.0, len(which)), np.nan)
        same(lambda learner: learner.observe(which, at, changed, told))  # noqa: B023
        if turn == 1:
            same(Learner.review)
            for learner in both if trusts else []:
                trusting(learner)
        price, ids = both[0].typical_price() * float(rng.lognormal(-1, 1)), rng.integers(0, 10**9, SOURCES)
        late, failures, moment = rng.exponential(1000.0, SOURCES), rng.integers(0, 9, SOURCES), float(now.max())
        same(lambda learner: learner.waits(price))  # noqa: B023
        same(lambda learner: learner.due_after_answers(everybody, ids, price))  # noqa: B023
        same(lambda learner: learner.due_after_failures(everybody, ids, now, failures, price))  # noqa: B023
        same(lambda learner: learner.urgency(everybody, late, price))  # noqa: B023
        same(Learner.change_rate)
        same(lambda learner: learner.price_for(0.3 * SOURCES, moment, moment + SECONDS, price, ids=ids))  # noqa: B023
        same(lambda learner: all_passed(learner.columns.last, learner.columns.found, moment, learner.timing))  # noqa: B023


def test_a_fleet_of_many_is_priced_the_same_to_the_last_bit(
    ways: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Beyond so many sources a price is found by what was seen of each; here it is so few that the test is short.
    monkeypatch.setattr("unstale.core.learning.learner._FEW", 20)
    prices = []
    for machine_code in (True, False):
        ways(machine_code)
        rng, learner = np.random.default_rng(2), Learner(SOURCES, SECONDS)
        for hour in range(1, 5):
            learner.observe(np.arange(SOURCES), np.full(SOURCES, hour * SECONDS), rng.random(SOURCES) < 0.4)
            prices.append(learner.price_for(20.0, hour * SECONDS, (hour + 1) * SECONDS, 500.0))
    assert prices[:4] == prices[4:]


def test_functions_of_columns_are_the_c_librarys_whatever_numpy_has(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(1).exponential(2.0, 1000)
    for name in ("exp", "expm1", "exp2", "log", "log1p", "log2"):
        expected = [getattr(math, name)(x) for x in numbers.tolist()]
        assert getattr(exactly, name)(numbers).tolist() == expected
        # A processor for which NumPy has functions of its own.
        with monkeypatch.context() as patch:
            patch.setattr(exactly, "_by_numpy", lambda _: False)
            patch.setattr(np, name, None)
            assert getattr(exactly, name)(numbers).tolist() == expected


def test_sources_named_twice_are_taken_in_turns() -> None:
    which = np.array([4, 2, 4, 7, 4, 2])
    assert [turn.tolist() for turn in turns(which)] == [[0, 1, 3], [2, 5], [4]]


def test_the_compiler_is_loaded_once_numpy_has_cost_as_much(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(compiled._Way, "loaded", False)
    monkeypatch.setattr(compiled._Way, "left", 0.01)
    learner = Learner(2000, SECONDS)
    learner.observe([0], [SECONDS], [True])
    assert not compiled._Way.loaded
    learner.waits(500.0)
    assert compiled._Way.loaded
    monkeypatch.setattr(compiled._Way, "loaded", False)
    monkeypatch.setattr(compiled._Way, "many", math.inf)
    compiled.load_for_many()
    for _ in range(3):
        learner.waits(500.0)
    assert not compiled._Way.loaded
    Learner(compiled.MANY, SECONDS).change_rate()
    assert compiled._Way.loaded
    monkeypatch.setattr(compiled._Way, "loaded", False)
    compiled.load_for_many(compiled.BUSY_MANY)
    learner.waits(500.0)
    assert not compiled._Way.loaded
    Learner(compiled.BUSY_MANY, SECONDS).change_rate()
    assert compiled._Way.loaded


def test_a_compiler_that_is_seen_to_elsewhere_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    asked: list[int] = []
    monkeypatch.setattr(compiled._Way, "loaded", False)
    monkeypatch.setattr(compiled._Way, "left", 0.0)
    monkeypatch.setattr(compiled._Way, "ask", None)
    compiled.load_beside(lambda: asked.append(1))
    plain = Learner(3, SECONDS).waits(500.0).tolist()
    assert asked, "it was asked for"
    assert not compiled._Way.loaded
    # A loop without a twin is compiled by who calls it, and by nobody else.
    assert twice.__wrapped__ is twice.py_func
    assert twice(21) == 42
    assert twice.machine_code.signatures
    assert not compiled._Way.loaded
    monkeypatch.setattr(compiled.Kernel, "_afforded", lambda self, args: pytest.fail("this thread runs machine code"))
    with compiled.compiling_here():
        assert Learner(3, SECONDS).waits(500.0).tolist() == plain
    assert not compiled._Way.loaded
    compiled.load()
    assert Learner(3, SECONDS).waits(500.0).tolist() == plain


@compiled.compiled_loop
def twice(number: int) -> int:
    """Something without a twin."""
    return 2 * number


def test_who_minds_memory_hears_of_code_before_it_is_run(
    ways: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = list[int]()
    learner, compiled_step = Learner(2, SECONDS), compiled.in_columns(all_passed._plain)(all_passed.py_func)
    monkeypatch.setattr(compiled._Way, "told", lambda: heard.append(len(compiled_step.machine_code.signatures)))
    given = np.array([1.0, 2.0]), np.array([1.0, 2.0]), 3.0, learner.timing
    ways(False)
    compiled_step(*given)
    assert not heard
    ways(True)
    assert [compiled_step(*given).tolist() for _ in range(2)] == [[2.0, 1.0]] * 2
    # When the compiler is there and when the code is, once for each kernel.
    assert heard == [0, 1]


def test_who_minds_memory_is_no_harm_where_numba_compiles_nothing(
    ways: Callable[[bool], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with NUMBA_DISABLE_JIT, with which numba gives a function as it is."""
    plain_step = compiled.in_columns(all_passed._plain)(all_passed.py_func)
    monkeypatch.setattr(plain_step, "_made", plain_step.py_func)
    monkeypatch.setattr(compiled._Way, "told", lambda: None)
    ways(True)
    assert plain_step(np.array([1.0]), np.array([1.0]), 3.0, Learner(1, SECONDS).timing).tolist() == [2.0]


def test_siblings_are_judged_the_same_to_the_last_bit(ways: Callable[[bool], None]) -> None:
    judged, names = [], [f"web/{source % 7}/{source}" for source in range(SOURCES)]
    for machine_code in (True, False):
        ways(machine_code)
        rng, learner, now = np.random.default_rng(4), Learner(SOURCES, SECONDS), 0.0
        learner.siblings = siblings_of(names)
        assert learner.siblings is not None
        for _ in range(6):
            now += float(rng.exponential(SECONDS))
            which = rng.permutation(SOURCES)[:40]
            # whole folders change together
            learner.observe(which, np.full(len(which), now), (which % 7 < 2) | (rng.random(len(which)) < 0.1))
            learner.siblings.review(learner.columns)
        kin = learner.siblings
        judged.append(
            [part.tobytes() for part in (kin.tallies, kin.heard, np.float64(kin.credit))] + bits(learner, None)
        )
    assert judged[0] == judged[1]
