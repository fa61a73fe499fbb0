"""The compiled kernels: their random numbers, their gap laws, and plain Python as the oracle, bit for bit."""

from __future__ import annotations

import importlib.util
import math
import sys
from types import ModuleType

import numpy as np
import pytest

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
from unstale.sim import kernels

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


@pytest.fixture(scope="module")
def plain() -> ModuleType:
    """The same file as if numba were not installed."""
    hidden = sys.modules.get("numba")
    sys.modules["numba"] = None  # type: ignore[assignment]
    try:
        spec = importlib.util.spec_from_file_location("plain_kernels", kernels.__file__)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        if hidden is None:
            del sys.modules["numba"]
        else:
            sys.modules["numba"] = hidden
    assert module.numba is None
    return module


def test_the_generator_is_splitmix64() -> None:
    """Reference values of Vigna's splitmix64.c from the state 1234567."""
    state, got = kernels.word(1234567), []
    for _ in range(5):
        state = kernels.word(kernels.stepped(state, 1))
        got.append(int(kernels.mixed(state)))
    assert got == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_streams_differ_by_seed_source_and_lane_and_are_unrelated() -> None:
    begins = [int(kernels.stream(kernels.word(s), i, k)) for s in range(8) for i in range(16) for k in range(16)]
    assert len(set(begins)) == len(begins)
    draws = np.empty((2000, 4))
    for i in range(len(draws)):
        state = kernels.stream(kernels.word(7), i, 0)
        for j in range(4):
            draws[i, j], state = kernels.unit(kernels.word(state))
    assert draws.min() > 0
    assert draws.max() <= 1
    flat = draws.ravel()
    assert abs(flat.mean() - 0.5) < 5 / math.sqrt(12 * flat.size)
    links = [np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1], np.corrcoef(draws[:, 0], draws[:, 1])[0, 1]]
    assert np.all(np.abs(links) < 5 / math.sqrt(len(draws)))


@pytest.mark.parametrize("p", PROCESSES, ids=repr)
def test_gaps_and_gaps_in_progress_follow_their_laws(p: Process) -> None:
    law, n = kernels.law_of(p), 5000
    assert law is not None
    state = kernels.stream(kernels.word(3), 0, 0)
    gaps, since, left = np.empty(n), np.empty(n), np.empty(n)
    for i in range(n):
        gaps[i], state = kernels.gap(*law, kernels.word(state))
        since[i], left[i], state = kernels.met(*law, kernels.word(state))
    x = p.mean * np.geomspace(0.02, 20.0, 30)
    for sample, cdf in ((gaps, p.cdf), (since, p.age_cdf), (left, p.age_cdf)):
        want = np.asarray(cdf(x))
        got = np.searchsorted(np.sort(sample), x, side="right") / n
        assert np.all(np.abs(got - want) <= 5 * np.sqrt(want * (1 - want) / n) + 5 / n)


def test_what_the_kernels_do_not_know_is_none() -> None:
    assert kernels.law_of(Empirical([1.0, 2.0])) is None


@pytest.mark.parametrize("k", range(len(PROCESSES)))
def test_without_numba_every_bit_is_the_same(plain: ModuleType, k: int) -> None:
    changes = kernels.law_of(PROCESSES[k])
    polls = (kernels.SWEEP, 0.0, 0.9) if k == 0 else kernels.law_of(PROCESSES[(5 * k + 3) % len(PROCESSES)])
    assert changes is not None
    assert polls is not None
    outs = []
    for module in (kernels, plain):
        out = np.empty((3, 7))
        module.copy_runs(module.word(11), 0, 3, *changes, PROCESSES[k].mean, *polls, 40.0, 0.3, out)
        outs.append(out)
    np.testing.assert_array_equal(*outs)
    assert outs[0][:, 4].sum() > 0


def test_fleets_without_numba_too(plain: ModuleType) -> None:
    laws = (np.array([0, 3, 0, 0]), np.array([0.0, 2.5, 0.0, 0.0]), np.array([0.5, 1.0, math.inf, 2.0]))
    interval = np.array([1.0, 0.4, 2.0, math.inf])
    outs = []
    for module in (kernels, plain):
        out = np.empty((7, 4))
        module.fleet_runs(module.word(5), 0, 4, 3, *laws, laws[2], module.CONSTANT, 0.0, interval, 20.0, out)
        outs.append(out)
    np.testing.assert_array_equal(*outs)
    # never changing: always fresh; never polled: never, and its age grows
    np.testing.assert_array_equal(outs[0][:4, 2], [1, 0, 0, 0])
    np.testing.assert_array_equal(outs[0][:4, 3], [0, 0, math.inf, 0])


def test_even_changes_and_even_polls_by_hand() -> None:
    """Changes every 2, polls every 1: half of the intervals begin with a change at a fixed phase x, stale 1 − x."""
    fresh, age, missed, within, polls, changes, found = kernels.history(
        kernels.word(1), 0, 0, kernels.CONSTANT, 0.0, 2.0, 2.0, kernels.CONSTANT, 0.0, 1.0, 1000.0, 0.1
    )
    stale = (1000 - fresh) / 500
    assert 0 < stale < 1
    assert age == pytest.approx(250 * stale**2, rel=1e-2)
    assert missed == pytest.approx(1000 - fresh)
    assert within - fresh == pytest.approx(500 * min(stale, 0.1), rel=1e-2)
    assert polls == 1000
    assert changes == 500
    assert abs(found - 500) <= 1
