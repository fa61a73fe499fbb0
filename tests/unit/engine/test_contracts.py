"""Contracts of freshness in virtual time: kept if the budget can, at the cost that is told, and each by itself."""

from __future__ import annotations

import numpy as np
import pytest

import unstale
from support.virtual import START, World, run_virtually
from unstale.adapters.memory_store import MemoryStore
from unstale.core.contract import longest_wait
from unstale.engine.config import EngineConfig
from unstale.engine.contracts import Contract
from unstale.engine.host_limits import Rules
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing
from unstale.service import FleetService, ServiceSettings

HOUR = 3600.0
FINANCE = {"finance": Contract(2 * HOUR)}


def service_of(store: MemoryStore, budget: float, contracts: dict[str, Contract], now: float) -> FleetService:
    terms = ServiceSettings(EngineConfig(budget, contracts=contracts), lambda name: Rules())
    return FleetService(store, terms, clock=lambda: now)


def test_the_longest_wait_is_that_of_another_formula() -> None:
    for rate, within, target in ((1 / HOUR, 0.0, 0.9), (3 / HOUR, HOUR, 0.95), (0.01 / HOUR, HOUR, 0.5)):
        least = (
            unstale.sync_rate_for(rate, consistency=(within, target))
            if within
            else unstale.sync_rate_for(rate, freshness=target)
        )
        assert longest_wait(rate, within, target) == pytest.approx(1.0 / least, rel=1e-9)
    assert longest_wait([5.0, 0.0], 60.0, 1.0).tolist() == [60.0, 60.0]


def test_a_contract_is_kept_of_what_no_poll_would_pay_for_and_the_others_share_the_rest() -> None:
    # Twenty that never change, which the price would look at every thirty hours, and thirty that do.
    rates = np.where(np.arange(50) < 20, 1e-9, 1.0 / HOUR)
    span, budget = 30 * HOUR, 50 / HOUR
    world = World(rates, START + span)
    tagged = lambda i: Listing(f"memory:{i}", kind="memory", options={"tags": ["finance"]} if i < 20 else {})  # noqa: E731
    engine, store = run_virtually(world, budget, span, listing=tagged, config={"contracts": FINANCE})
    gaps = np.concatenate([np.diff(times) for times in world.polls[:20]])
    assert gaps.max() <= 2 * HOUR
    assert np.median(gaps[len(gaps) // 2 :]) == pytest.approx(1.8 * HOUR, rel=0.05)
    assert engine.bucket.spent == pytest.approx(50 * 30, rel=0.02)
    told = service_of(store, budget, FINANCE, START + span).status()
    (contract,) = told.contracts
    assert (contract.kept, contract.sources, contract.broken) == (True, 20, 0)
    assert told.contracts_need == pytest.approx(20 / (1.8 * HOUR))
    explained = service_of(store, budget, FINANCE, START + span).explain(1)
    assert (explained.bound, explained.source.waits_for) == ("contract", "contract")
    assert "a tenth sooner than its contract allows" in explained.sentence


def test_a_share_of_the_time_follows_what_is_learned_of_the_rate() -> None:
    rates = np.where(np.arange(30) < 10, 0.5 / HOUR, 2.0 / HOUR)
    span, budget = 60 * HOUR, 30 / HOUR
    world = World(rates, START + span)

    def listed(i: int) -> Listing:
        few = i < 10
        return Listing(
            f"memory:{i}", kind="memory", weight=0.01 if few else 1.0, options={"target": 0.7} if few else {}
        )

    _, store = run_virtually(world, budget, span, listing=listed)
    # Nobody would poll these, which weigh nothing, oftener than every thirty hours.
    held = world.shares(START + span / 2, START + span)[0][:10]
    assert held.mean() > 0.68
    (own,) = service_of(store, budget, {}, START + span).status().contracts
    assert (own.name, own.sources) == ("own", 10)


def test_a_denied_source_breaks_its_own_contract_alone_and_a_small_budget_is_told() -> None:
    def denied(claim: Claim, now: float) -> Fetched | None:
        return Fetched(Answer.FAILED, now, reason="permission denied") if claim.source == 1 else None

    def promised(i: int) -> Listing:
        return Listing(f"memory:{i}", kind="memory", options={"tags": "payroll" if i == 0 else "finance"})

    terms = {"finance": Contract(2 * HOUR), "payroll": Contract(HOUR)}
    world = World(np.full(10, 1.0 / HOUR), START + 30 * HOUR)
    _, store = run_virtually(world, 20 / HOUR, 30 * HOUR, listing=promised, answer=denied, config={"contracts": terms})
    told = {one.name: one for one in service_of(store, 20 / HOUR, terms, START + 30 * HOUR).status().contracts}
    assert (told["finance"].kept, told["payroll"].kept) == (True, False)
    (broken,) = told["payroll"].worst
    assert broken.sentence == "memory:0 has never answered, 1 h are allowed (permission denied)"
    poor = service_of(store, 2 / HOUR, terms, START + 30 * HOUR).status()
    assert poor.contracts_need > poor.budget.rate
