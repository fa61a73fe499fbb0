"""What polls cost in their owner's units: measured, learned, planned by, and kept within the budget."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.virtual import START, World, run_virtually
from unstale import Outcome, Scheduler
from unstale.adapters.memory_store import MemoryStore
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import Rules
from unstale.engine.loop import Engine
from unstale.keeper.costs import HEAD, UNITS, used
from unstale.keeper.outcomes import Answer
from unstale.ports import COST_IN, Claim, Fetched, Listing
from unstale.service import FleetService
from unstale.service.service_settings import ServiceSettings

HOUR, COUNT = 3600.0, 10
#: what an unchanged poll of a source takes, and what one that finds a change takes besides, in rows
LOOK, CHANGE = np.where(np.arange(COUNT) % 2, 40.0, 20.0), np.where(np.arange(COUNT) % 2, 400.0, 40.0)
#: what the first copy takes
WHOLE = 300.0


def played(scheduler: Scheduler, span: float, step: float) -> list[tuple[float, float]]:
    """Poll whatever is due every `step` seconds: when, and what each poll has used."""
    rng, seen = np.random.default_rng(5), dict[int, float]()
    spent = []
    for now in np.arange(step, span, step).tolist():
        for source in scheduler.take(now):
            i = int(source)
            first = i not in seen
            changed = first or bool(rng.random() < -math.expm1(-(now - seen[i]) / (2.0 * HOUR)))
            took = WHOLE if first else float(LOOK[i] + CHANGE[i] * changed)
            seen[i] = now
            spent.append((now, took))
            scheduler.record(Outcome(source, "changed" if changed else "unchanged", now, used=took))
    return spent


def test_the_brain_keeps_a_budget_of_rows_whatever_polls_take() -> None:
    scheduler = Scheduler("1000/h")
    scheduler.add(range(COUNT), 0.0)
    spent = played(scheduler, 100 * HOUR, 300.0)
    assert scheduler.spent == pytest.approx(sum(took for _, took in spent))
    late = sum(took for at, took in spent if at > 20 * HOUR)
    assert late / (1_000 * 80) == pytest.approx(1.0, abs=0.02)
    assert scheduler.spent / (1_000 * 100) == pytest.approx(1.0, abs=0.03)
    # The mean is what polls take, and what is dear is polled less.
    cost = np.array(scheduler.given.cost)
    assert cost[1::2].min() > 40.0
    assert cost[1::2].max() < 440.0
    assert cost[::2].min() > 20.0
    assert cost[::2].max() < 60.0
    waits = scheduler.learner.waits_of(np.arange(COUNT), scheduler.price)
    assert waits[1::2].mean() > 1.5 * waits[::2].mean()


def test_a_stated_cost_wins_and_the_first_copy_is_forgotten_by_the_second_poll() -> None:
    scheduler = Scheduler(price=1.0, mean_interval=HOUR)
    scheduler.add(["stated"], 0.0, cost=7.0)
    scheduler.add(["learned"], 0.0)
    for at, took in ((10.0, 900.0), (20.0, 20.0), (30.0, 100.0)):
        scheduler.record([Outcome("stated", "changed", at, used=took), Outcome("learned", "changed", at, used=took)])
    assert scheduler.given.cost == [7.0, 30.0]
    # A failure says nothing of what polls that answer take, and no word says nothing either.
    scheduler.record(Outcome("learned", "failed", 40.0, used=500.0))
    scheduler.record(Outcome("learned", "unchanged", 50.0))
    assert scheduler.given.cost == [7.0, 30.0]
    again = Scheduler.load(scheduler.save())
    again.record(Outcome("learned", "unchanged", 60.0, used=110.0))
    again.record(Outcome("stated", "unchanged", 60.0, used=110.0))
    assert again.given.cost == [7.0, 40.0]
    again.edit("learned", cost=3.0)
    again.record(Outcome("learned", "unchanged", 70.0, used=110.0))
    assert again.given.cost == [7.0, 3.0]


def test_units_count_what_they_say() -> None:
    fetched = {"calls": 3, "rows": 250, "received": 4000}
    assert {unit: used(unit, **fetched) for unit in UNITS if unit != "polls"} == {
        "calls": 3.0,
        "rows": 250.0,
        "bytes": 4000.0 + 3 * HEAD,
    }


def in_an_engine(
    unit: str, budget: float, hours: float, store: MemoryStore
) -> tuple[Engine, list[tuple[float, float]]]:
    """An engine in virtual time over tables of which it copies rows; when it polled, and what each poll has used."""
    world = World(np.full(COUNT, 1.0 / (2.0 * HOUR)), START + hours * HOUR, seed=4)
    spent: list[tuple[float, float]] = []
    held: dict[int, bytes] = {}

    def answer(claim: Claim, now: float) -> Fetched:
        i = claim.source - 1
        body = world.look(i, now)
        new = held.get(i) != body
        rows = int(WHOLE if i not in held else LOOK[i] + CHANGE[i] * new)
        held[i] = body
        fetched = Fetched(Answer.CHANGED, now, body, received=20 * rows, requests=2 + new, rows=rows)
        spent.append((now, used(unit, fetched.requests, rows, fetched.received)))
        return fetched

    engine, _ = run_virtually(world, budget, hours * HOUR, answer=answer, store=store, config={"cost_in": unit})
    return engine, spent


@pytest.mark.parametrize(("unit", "per_hour"), [("rows", 1_000.0), ("bytes", 25_000.0), ("calls", 30.0)])
def test_an_engine_keeps_a_budget_in_its_owners_units(unit: str, per_hour: float) -> None:
    store = MemoryStore()
    engine, spent = in_an_engine(unit, per_hour / HOUR, 60.0, store)
    late = sum(took for at, took in spent if at > START + 20 * HOUR)
    assert late / (40 * per_hour) == pytest.approx(1.0, abs=0.02)
    # All that was used is paid and counted, and what is expected is what the store keeps.
    assert store.counters()["spent"] / 1e6 == pytest.approx(sum(took for _, took in spent), rel=0.01)
    standing = store.fleet(1)
    assert np.allclose(standing.cost, engine.scheduler.learner.columns.cost)
    assert store.total_cost() == pytest.approx(float(standing.cost.sum()))
    assert (standing.listed == 1.0).all()
    if unit == "rows":
        assert standing.cost[1::2].mean() > 2.0 * standing.cost[::2].mean()


def test_another_unit_forgets_what_was_learned_and_explain_tells_what_a_poll_costs() -> None:
    store = MemoryStore()
    in_an_engine("rows", 1_000.0 / HOUR, 3.0, store)
    config = EngineConfig(1_000.0 / HOUR, cost_in="rows")
    service = FleetService(store, ServiceSettings(config, lambda name: Rules(), file="", changed_at=lambda: 0.0))
    said = service.explain(2).costs
    assert said == f"a poll of it costs about {store.fleet(1).cost[1]:,.0f} rows, as its polls have shown"
    store.record([], settings={COST_IN: b"rows"})
    assert (store.fleet(1).cost != 1.0).any()
    store.record([], settings={COST_IN: b"polls"})
    assert (store.fleet(1).cost == 1.0).all()
    stated = Listing("memory:1", kind="memory", cost=5.0)
    store.add([stated], START, duplicates="replace")
    assert service.explain(2).costs == "a poll of it costs 5 rows, as is stated of it"
