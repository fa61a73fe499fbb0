"""The engine's loop in virtual time: budget, failures, stops, hosts, hours, hints, and a store that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
import pytest

from support.virtual import START, VirtualClock, World, run_virtually
from unstale.adapters.memory_store import MemoryStore
from unstale.calendar import parse_hours
from unstale.core.learning.siblings import foretold_by
from unstale.engine.claiming import Claiming
from unstale.engine.collecting import SIBLINGS
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.loop import Engine
from unstale.engine.planning import Planning
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, Fetched, Listing

HOUR = 3600.0


def all_polls(world: World) -> np.ndarray:
    return np.sort(np.concatenate([np.array(times) for times in world.polls]))


def test_any_thousand_polls_spend_the_budget_within_two_per_cent_and_a_copy_is_as_fresh_as_it_can_be() -> None:
    rng = np.random.default_rng(7)
    rates = rng.lognormal(0.0, 1.2, 60) / HOUR
    span, budget = 60 * HOUR, 60 / HOUR
    world = World(rates, START + span)
    engine, store = run_virtually(world, budget, span)
    times = all_polls(world)
    pace = 1000.0 / (times[1000:] - times[:-1000]) / budget
    assert 0.98 < pace.min() <= pace.max() < 1.02
    assert engine.counters.polls == len(times) == store.counters()["recorded"]
    from unstale import plan

    best = plan(rates=rates * 86400.0, budget=60 * 24.0)
    late = world.freshness(START + span / 3, START + span)
    # Learned rates cannot beat known ones but by luck; five standard errors are about 0.03 here.
    assert abs(late - best.fleet_freshness) < 0.03


def test_no_stretch_of_time_spends_more_than_its_share_and_a_burst() -> None:
    world = World(np.full(40, 1.0 / HOUR), START + 20 * HOUR)
    engine, _ = run_virtually(world, 40 / HOUR, 20 * HOUR)
    times = all_polls(world)
    number = np.arange(len(times))
    for k in (1, 5, 50, 300):
        spent = (number[k:] - number[:-k]) + 1
        assert np.all(spent <= 40 / HOUR * (times[k:] - times[:-k]) + engine.bucket.burst + 1e-6)


def test_dear_polls_count_for_what_they_cost() -> None:
    world = World(np.full(30, 2.0 / HOUR), START + 40 * HOUR)
    engine, _ = run_virtually(
        world, 90 / HOUR, 40 * HOUR, listing=lambda i: Listing(f"memory:{i}", kind="memory", cost=1.0 + 2.0 * (i % 3))
    )
    assert engine.bucket.spent == pytest.approx(90 * 40, rel=0.02)


def test_a_failure_is_never_an_unchanged_and_is_tried_again_and_again_more_rarely() -> None:
    tries: list[float] = []

    def broken(claim: Claim, now: float) -> Fetched | None:
        if claim.source == 1:
            tries.append(now)
            return Fetched(Answer.FAILED, now, reason="it is broken")
        return None

    world = World(np.full(10, 1.0 / HOUR), START + 100 * HOUR)
    engine, store = run_virtually(world, 10 / HOUR, 100 * HOUR, answer=broken)
    seen = store.observations(1)
    assert len(seen) == len(tries) == engine.counters.failed > 3
    assert {o.answer for o in seen} == {Answer.FAILED}
    assert store.copy(1) is None
    gaps = np.diff(tries)
    assert gaps[-1] > gaps[0]
    # Thirty mean intervals are the longest wait, whatever happens.
    assert gaps.max() <= 30 * HOUR * 1.01
    # What a broken source does not use, the others do.
    assert engine.bucket.spent == pytest.approx(1000, rel=0.02)


def test_after_a_long_stop_nobody_is_stampeded_and_the_budget_holds() -> None:
    world = World(np.full(50, 0.5 / HOUR), START + 200 * HOUR)
    _, store = run_virtually(world, 50 / HOUR, 30 * HOUR)
    before = len(all_polls(world))

    async def later() -> None:
        stop = asyncio.Event()
        clock = VirtualClock(START + 160 * HOUR, stop)
        clock.time = START + 150 * HOUR

        async def look(claim: Claim) -> Fetched:
            return Fetched(Answer.CHANGED, clock.now(), body=world.look(claim.source - 1, clock.now()))

        time = asyncio.create_task(clock.run())
        await Engine(StoreExecutor(lambda: store, threads=False), EngineConfig(50 / HOUR), clock, look).run(stop)
        time.cancel()

    asyncio.run(later())
    times = all_polls(world)[before:]
    assert len(times) == pytest.approx(500, abs=25)
    first_hour = np.count_nonzero(times < START + 151 * HOUR)
    assert first_hour <= 50 + 20


def test_a_host_is_polled_no_closer_than_its_spacing_and_the_rest_goes_elsewhere() -> None:
    listing = lambda i: Listing(f"http://{'slow' if i < 20 else 'fast'}.example/{i}", host="slow" if i < 20 else "fast")  # noqa: E731
    host_limits = HostLimits(lambda host: Rules(600.0, 1) if host == "slow" else Rules(0.0, 99))
    world = World(np.full(40, 1.0 / HOUR), START + 60 * HOUR)
    engine, store = run_virtually(world, 40 / HOUR, 60 * HOUR, listing=listing, host_limits=host_limits)
    slow = np.sort(np.concatenate([np.array(t) for t in world.polls[:20]]))
    assert np.diff(slow).min() > 600.0 - 2.1  # held for two seconds at most
    # Six polls an hour are the slow host's most; the budget is spent all the same.
    assert len(slow) == pytest.approx(6 * 60, rel=0.15)
    assert engine.bucket.spent == pytest.approx(40 * 60, rel=0.03)
    # Nobody is claimed whose host is not free; at the end one may wait in line.
    assert store.counters().get("given_back", 0) <= 1


def test_polls_are_made_in_the_allowed_hours_and_the_day_s_budget_in_them() -> None:
    world = World(np.full(20, 1.0 / HOUR), START + 72 * HOUR)
    engine, _ = run_virtually(world, 20 / HOUR, 72 * HOUR, config={"hours": parse_hours("00:00-06:00")})
    times = all_polls(world)
    assert np.all(times % 86400.0 <= 6 * HOUR + 1.0)
    assert engine.bucket.spent == pytest.approx(20 * 72, rel=0.1)


def test_bounds_of_an_interval_are_kept() -> None:
    def listing(i: int) -> Listing:
        longest = 2 * HOUR if i >= 15 else float("inf")
        return Listing(f"memory:{i}", kind="memory", shortest=1800.0 if i < 5 else 0.0, longest=longest)

    world = World(np.array([20.0 / HOUR] * 10 + [0.001 / HOUR] * 10), START + 60 * HOUR)
    run_virtually(world, 30 / HOUR, 60 * HOUR, listing=listing)
    assert min(np.diff(world.polls[i]).min() for i in range(5)) >= 1800.0 - 1.0
    assert max(np.diff(world.polls[i]).max() for i in range(15, 20)) <= 2 * HOUR * 1.1


class Flaky(MemoryStore):
    """Fails now and then, before or after it has done its work."""

    def __init__(self) -> None:
        super().__init__()
        self.rng = np.random.default_rng(3)
        self.troubled = False

    def record(self, entries: Sequence[Entry], **more: object) -> list[bool]:
        luck = self.rng.random() if self.troubled and entries else 1.0
        if luck < 0.2:
            raise StoreError("the disk is full")
        done = super().record(entries, **more)  # type: ignore[arg-type]
        if luck < 0.3:
            raise StoreError("the disk said no, after it had said yes")
        return done

    def close(self) -> None:
        pass


def test_a_store_that_fails_loses_no_outcome_and_applies_none_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstale.engine.store_executor.AGAIN", 0.0)
    store = Flaky()
    world = World(np.full(20, 1.0 / HOUR), START + 20 * HOUR)
    store.add([Listing(f"memory:{i}", kind="memory") for i in range(20)], START)
    store.troubled = True
    run_virtually(world, 20 / HOUR, 20 * HOUR, store=store)
    counters = store.counters()
    assert counters["claimed"] == counters["recorded"] + counters.get("given_back", 0) + counters.get("expired", 0)
    for i, times in enumerate(world.polls):
        recorded = [o.polled_at for o in store.observations(i + 1)]
        assert sorted(recorded) == recorded[::-1]
        assert set(recorded) <= set(times)
    assert sum(len(t) for t in world.polls) - counters["recorded"] <= counters.get("expired", 0)


def test_a_fault_of_ours_ends_one_poll_and_not_the_engine() -> None:
    def broken(claim: Claim, now: float) -> Fetched | None:
        if claim.source == 2:
            raise RuntimeError("oops")
        return None

    world = World(np.full(4, 1.0 / HOUR), START + 10 * HOUR)
    engine, store = run_virtually(world, 8 / HOUR, 10 * HOUR, answer=broken)
    assert engine.counters.polls > 40
    assert store.observations(2)[0].reason.startswith("RuntimeError")


def test_the_price_is_looked_at_again_when_the_first_round_is_over() -> None:
    """Forty first polls in half a minute are more than a minute's budget: they say nothing of what comes after."""
    minute = 60.0
    world = World(np.full(40, 1.0 / (5 * minute)), START + minute)
    engine, _ = run_virtually(world, 20 / minute, 45.0, config={"first_rate": 2.0})
    assert len(all_polls(world)) == 40
    assert engine.scheduler.learner.columns.interval.mean() < 3 * minute


def test_of_a_large_fleet_those_who_are_due_are_claimed_before_a_plan_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    async def plan(self: Planning, now: float) -> None:
        done.append("plan")
        await planned(self, now)

    async def step(self: Claiming, now: float, until_plan: float) -> float:
        done.append("claim")
        return await claimed(self, now, until_plan)

    planned, claimed = Planning.plan, Claiming.step
    monkeypatch.setattr(Planning, "plan", plan)
    monkeypatch.setattr(Claiming, "step", step)
    for many, first in ((10, ["claim", "plan", "claim"]), (11, ["plan", "claim"])):
        done.clear()
        monkeypatch.setattr("unstale.engine.loop.MANY", many)
        run_virtually(World(np.full(10, 1.0 / HOUR), START + HOUR), 10 / HOUR, HOUR)
        assert done[: len(first)] == first


def test_what_changes_together_is_learned_of_folders_and_kept_over_a_restart() -> None:
    edits = np.sort(np.random.default_rng(3).uniform(0.0, 300 * HOUR, 60)) + START

    def page(claim: Claim, now: float) -> Fetched:
        return Fetched(Answer.CHANGED, now, body=b"%d" % np.searchsorted(edits, now), status=200)

    world, store, seen = World(np.full(6, 0.2 / HOUR), START), MemoryStore(), list[float]()
    for begin in (0.0, 150 * HOUR):
        engine, _ = run_virtually(
            world,
            3 / HOUR,
            150 * HOUR,
            start=START + begin,
            store=store,
            answer=page,
            listing=lambda i: Listing(f"https://a.example/docs/{i}"),
        )
        kin = engine.scheduler.learner.siblings
        assert kin is not None
        assert kin.trusted.all() or not begin
        seen.append(float(kin.tallies[3, 0]))
    # The second engine went on from what the first had seen, and knows that one edit is everybody's.
    assert seen[1] > seen[0] > 0.0
    assert foretold_by(store.setting(SIBLINGS), "https://a.example/docs/new") > 0.5
