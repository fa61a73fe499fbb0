"""What reacting gains: the opponent is as strong as it is said to be."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.trace import Trace
from unstale.sim.backtest.oracle import oracle
from unstale.sim.backtest.polls import even, measure
from unstale.sim.backtest.setting import Setting
from unstale.sim.backtest.uniform import uniform
from unstale.sim.feedback import CLASSES, advantage_of, hindsight, world


@pytest.mark.parametrize("name", CLASSES)
def test_the_opponent_is_no_weaker_than_any_even_plan_we_know(name: str) -> None:
    trace = world(name, 3, sources=25)
    setting = Setting.of(trace, start=0.0)
    others = [measure(setting, rule(setting, 1.0, 1)).freshness.mean() for rule in (oracle, uniform)]
    best = measure(setting, hindsight(setting, setting.budget(1.0), 1))
    found = advantage_of(name, [(trace, 1)])
    assert found.hindsight >= max(others) - 0.002
    assert found.hindsight >= best.freshness.mean() - 0.01
    # it polls no more than it may, but for its free look at the beginning
    assert best.polls - len(setting) <= setting.allowed(1.0) + len(setting)


def test_hindsight_finds_the_optimum_of_two_sources_by_brute_force() -> None:
    rng = np.random.default_rng(8)
    fast, slow = np.cumsum(rng.exponential(1.0, 300)), np.cumsum(rng.exponential(9.0, 33))
    end = min(fast[-1], slow[-1])
    trace = Trace.of(["fast"] * 300 + ["slow"] * 33, [*fast, *slow]).between(0.0, end)
    setting = Setting.of(trace, start=0.0, end=float(end))
    budget = 0.5

    def fresh(share: float, seed: int) -> float:
        rates = budget * np.array([share, 1.0 - share])
        return float(measure(setting, even(setting, rates, seed)).freshness.mean())

    tried = max(float(np.mean([fresh(share, seed) for seed in range(6)])) for share in np.linspace(0.0, 1.0, 41))
    found = np.mean([measure(setting, hindsight(setting, budget, seed)).freshness.mean() for seed in range(6)])
    assert found > tried - 0.01


def test_a_gain_has_the_error_of_its_worlds() -> None:
    worlds = [(world("bursts", seed, sources=15), seed) for seed in (1, 2, 3)]
    each = [advantage_of("bursts", [one]).advantage for one in worlds]
    found = advantage_of("bursts", worlds)
    assert found.advantage == pytest.approx(np.mean(each))
    assert found.error == pytest.approx(np.std(each, ddof=1) / np.sqrt(3))
    assert np.isnan(advantage_of("bursts", worlds[:1]).error)
