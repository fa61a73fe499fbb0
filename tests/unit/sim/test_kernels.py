"""The compiled kernels: their random numbers, their gap laws, and plain Python as the oracle, bit for bit."""

from __future__ import annotations

import importlib.util
import math
import re
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from unstale.core.compiling import text_stamp
from unstale.core.processes import (
    Constant,
    Empirical,
    Gamma,
    LogNormal,
    Pareto,
    Poisson,
    Process,
    Triangular,
    Uniform,
    Weibull,
)
from unstale.sim import draws, kernels

PROCESSES: list[Process] = [
    Poisson(2.0),
    Constant(0.7),
    Uniform(0.0, 2.0),
    Uniform(1.0, 1.5),
    Pareto(1.2, 0.4),
    Pareto(3.0, 2.0),
    Weibull(0.4, 0.3),
    Weibull(3.0, 1.5),
    Gamma(0.3, 2.0),
    Gamma(12.0, 0.1),
    LogNormal(0.8, 0.5),
    Triangular(1.5),
]


def _loaded(name: str, file: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plain() -> tuple[ModuleType, ModuleType]:
    """The same files as if numba were not installed."""
    hidden, whole = sys.modules.get("numba"), sys.modules["unstale.sim.draws"]
    sys.modules["numba"] = None  # type: ignore[assignment]
    try:
        sys.modules["unstale.sim.draws"] = drawn = _loaded("plain_draws", draws.__file__)
        module = _loaded("plain_kernels", kernels.__file__)
    finally:
        sys.modules["unstale.sim.draws"] = whole
        if hidden is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = hidden
    assert drawn.numba is module.numba is None
    return drawn, module


def test_the_generator_is_splitmix64() -> None:
    """Reference values of Vigna's splitmix64.c from the state 1234567."""
    state, got = draws.word(1234567), []
    for _ in range(5):
        state = draws.word(draws.stepped(state, 1))
        got.append(int(draws.mixed(state)))
    assert got == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_streams_differ_by_seed_source_and_lane_and_are_unrelated() -> None:
    begins = [int(draws.stream(draws.word(s), i, k)) for s in range(8) for i in range(16) for k in range(16)]
    assert len(set(begins)) == len(begins)
    drawn = np.empty((2000, 4))
    for i in range(len(drawn)):
        state = draws.stream(draws.word(7), i, 0)
        for j in range(4):
            drawn[i, j], state = draws.unit(draws.word(state))
    assert drawn.min() > 0
    assert drawn.max() <= 1
    flat = drawn.ravel()
    assert abs(flat.mean() - 0.5) < 5 / math.sqrt(12 * flat.size)
    links = [np.corrcoef(drawn[:-1, 0], drawn[1:, 0])[0, 1], np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1]]
    assert np.all(np.abs(links) < 5 / math.sqrt(len(drawn)))


@pytest.mark.parametrize("p", PROCESSES, ids=repr)
def test_gaps_and_gaps_in_progress_follow_their_laws(p: Process) -> None:
    law, n = draws.law_of(p), 5000
    assert law is not None
    state = draws.stream(draws.word(3), 0, 0)
    gaps, since, left = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        gaps[i], state = draws.gap(*law, draws.word(state))
        since[i], left[i], state = draws.met(*law, draws.word(state))
    x = p.mean * np.geomspace(0.02, 20.0, 30)
    for sample, cdf in ((gaps, p.cdf), (since, p.age_cdf), (left, p.age_cdf)):
        want = np.asarray(cdf(x))
        got = np.searchsorted(np.sort(sample), x, side="right") / n
        assert np.all(np.abs(got - want) <= 5 * np.sqrt(want * (1 - want) / n) + 5 / n)


def test_what_the_kernels_do_not_know_is_none() -> None:
    assert draws.law_of(Empirical([1.0, 2.0])) is None


@pytest.mark.parametrize("k", range(len(PROCESSES)))
def test_without_numba_every_bit_is_the_same(plain: tuple[ModuleType, ModuleType], k: int) -> None:
    changes = draws.law_of(PROCESSES[k])
    polls = (draws.SWEEP, 0.0, 0.9) if k == 0 else draws.law_of(PROCESSES[(5 * k + 3) % len(PROCESSES)])
    assert changes is not None
    assert polls is not None
    outs = []
    for words, module in ((draws, kernels), plain):
        out = np.empty((3, 7))
        module.copy_runs(words.word(11), 0, 3, *changes, PROCESSES[k].mean, *polls, 40.0, 0.3, out)
        outs.append(out)
    np.testing.assert_array_equal(*outs)
    assert outs[0][:, 4].sum() > 0


def test_fleets_without_numba_too(plain: tuple[ModuleType, ModuleType]) -> None:
    laws = (np.array([0, 3, 0, 0]), np.array([0.0, 2.5, 0.0, 0.0]), np.array([0.5, 1.0, math.inf, 2.0]))
    interval = np.array([1.0, 0.4, 2.0, math.inf])
    outs = []
    for words, module in ((draws, kernels), plain):
        out = np.empty((7, 4))
        module.fleet_runs(words.word(5), 0, 4, 3, *laws, laws[2], words.CONSTANT, 0.0, interval, 20.0, out)
        outs.append(out)
    np.testing.assert_array_equal(*outs)
    # never changing: always fresh; never polled: never, and its age grows
    np.testing.assert_array_equal(outs[0][:4, 2], [1, 0, 0, 0])
    np.testing.assert_array_equal(outs[0][:4, 3], [0, 0, math.inf, 0])


def test_even_changes_and_even_polls_by_hand() -> None:
    """Changes every 2, polls every 1: half of the intervals begin with a change at a fixed phase x, stale 1 − x."""
    fresh, age, missed, within, polls, changes, found = kernels.history(
        draws.word(1), 0, 0, draws.CONSTANT, 0.0, 2.0, 2.0, draws.CONSTANT, 0.0, 1.0, 1000.0, 0.1
    )
    stale = (1000 - fresh) / 500
    assert 0 < stale < 1
    assert age == pytest.approx(250 * stale**2, rel=1e-2)
    assert missed == pytest.approx(1000 - fresh)
    assert within - fresh == pytest.approx(500 * min(stale, 0.1), rel=1e-2)
    assert polls == 1000
    assert changes == 500
    assert abs(found - 500) <= 1


def test_what_is_compiled_into_each_other_is_stamped_together() -> None:
    room = Path(draws.__file__).parent
    users = {
        ".".join(path.relative_to(room).with_suffix("").parts)
        for path in room.rglob("*.py")
        if re.search(r"from unstale.sim.draws import .*\bcompiled\b", path.read_text("utf-8"))
    }
    assert users | {"draws"} == set(draws.TOGETHER)
    for left_out in draws.TOGETHER:
        rest = tuple(name for name in draws.TOGETHER if name != left_out)
        assert text_stamp("unstale.sim", rest) != text_stamp("unstale.sim", draws.TOGETHER)
