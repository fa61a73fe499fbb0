"""Shards that hear of the price late lose little, and what they lose obeys the laws of a flat optimum."""

from __future__ import annotations

import numpy as np
import pytest

from unstale import plan
from unstale.errors import InputError
from unstale.sim.shards import ShardRun, Weather, shard_run


def run(stale: float, seed: int = 2, **weather: float) -> ShardRun:
    return shard_run(40, 50, stale=stale, days=3, rng=np.random.default_rng(seed), weather=Weather(**weather))


def test_an_hour_costs_less_than_half_a_percent() -> None:
    late = run(1 / 24)
    assert late.price_error > 0.05  # the price has really moved meanwhile
    assert 0 < late.lost.value < 0.005 - 5 * late.lost.error


def test_an_hour_costs_less_than_half_a_percent_where_budgets_are_halved_without_notice() -> None:
    runs = [run(1 / 24, seed, cuts=2.0) for seed in range(2, 6)]
    lost = np.array([r.lost.value for r in runs])
    assert 0 < lost.mean() < 0.005
    assert np.mean([r.price_error for r in runs]) > 0.1


def test_what_is_carried_over_costs_the_square_and_what_is_not_costs_the_share() -> None:
    short, long = run(1 / 24), run(1 / 8)
    assert long.lost.value / short.lost.value == pytest.approx(9, rel=0.3)
    assert long.lost_strictly.value / short.lost_strictly.value == pytest.approx(3, rel=0.3)


def test_the_price_of_the_moment_loses_nothing() -> None:
    for late in (run(0.0), run(1 / 24, rates=0.0, budget=0.0, wander=0.0)):
        assert late.lost.value == pytest.approx(0.0, abs=1e-7)
        assert late.lost_strictly.value == pytest.approx(0.0, abs=1e-5)
        assert late.price_error < 1e-5


def test_a_calm_fleet_is_as_fresh_as_its_plan() -> None:
    calm = run(1 / 24, seed=8, rates=0.0, budget=0.0, wander=0.0)
    rng = np.random.default_rng(8)
    rates, weights = np.exp(rng.normal(0.0, 1.2, 2000)), rng.pareto(2.0, 2000) + 1.0
    made = plan(rates=rates, weights=weights, budget=2000)
    assert calm.freshness.value == pytest.approx(made.fleet_freshness, rel=1e-6)


def test_what_makes_no_sense_is_refused() -> None:
    rng = np.random.default_rng(1)
    for wrong in ({"shards": 0}, {"sources": 0}, {"days": 1}, {"stale": -1.0}, {"stale": float("nan")}):
        words = {"shards": 2, "sources": 2, "stale": 0.1, "days": 2} | wrong
        with pytest.raises(InputError, match=next(iter(wrong))):
            shard_run(words.pop("shards"), words.pop("sources"), rng=rng, **words)
