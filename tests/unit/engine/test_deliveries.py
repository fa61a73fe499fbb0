"""Every change is told at least once and in order, whatever a sink does, and no sink waits for another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import numpy as np
import pytest

from support.patience import SOON
from unstale.adapters import memory_outbox
from unstale.adapters.memory_store import MemoryStore
from unstale.engine.deliveries import AGAIN_AT_MOST, WINDOW, Deliveries
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import InputError, StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Event, Listing


class Clock:
    """Time that passes when one waits, and the waits that were asked for."""

    def __init__(self) -> None:
        self.time, self.waits = 0.0, list[float]()

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)


#: events that an ear takes at once
BATCH = 64


class Ear:
    """Takes what `takes` says of each batch, and keeps what it took."""

    batch, width = BATCH, 1

    def __init__(self, name: str, takes: Callable[[Sequence[Event]], int] = len) -> None:
        self.name, self.takes = name, takes
        self.heard: list[int] = []
        self.batches: list[int] = []
        self.closed = 0

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        self.batches.append(len(events))
        taken = self.takes(events)
        self.heard += [event.number for event in events[:taken]]
        return taken, "" if taken == len(events) else "not now"

    async def close(self) -> None:
        self.closed += 1


class Ears(Ear):
    """Hears many at a time, each after some turns of the loop, later ones often sooner; refuses what `refuses` says."""

    batch, width = 1, 8

    def __init__(self, name: str, refuses: Callable[[Event], bool] = lambda event: False) -> None:
        super().__init__(name)
        self.refuses, self.at_once, self.most = refuses, 0, 0
        self.said: list[Event] = []

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        (event,) = events
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        try:
            for _ in range(event.number * 7 % 5):
                await asyncio.sleep(0)
            if self.refuses(event):
                return 0, "not this one"
            self.said.append(event)
            return 1, ""
        finally:
            self.at_once -= 1


class World:
    """A store with one source, and the deliveries of its changes."""

    def __init__(self, *sinks: Any, store: MemoryStore | None = None, sources: int = 1) -> None:
        self.store, self.clock, self.stop = store or MemoryStore(), Clock(), asyncio.Event()
        if self.store.find("a") is None:
            self.store.add([Listing("a" * (n + 1)) for n in range(sources)], 0.0)
        self.sinks = sinks
        self.deliveries = Deliveries(
            StoreExecutor(lambda: self.store, threads=False), sinks, self.clock, np.random.default_rng(1)
        )

    def change(self, count: int) -> None:
        for _ in range(count):
            (claim,) = self.store.claim(1e9, 1, lease=60.0, owner="me")
            body = Body(b"%d" % claim.token)
            due = float(claim.token)
            assert self.store.record([Entry(claim, Answer.CHANGED, 1.0, due, body=body)]) == [True]
        self.deliveries.nudge()

    def live(self, plot: Callable[[], Coroutine[Any, Any, None]], grace: float = 5.0) -> None:
        async def run() -> None:
            task = asyncio.create_task(self.deliveries.run(self.stop, grace=grace))
            await plot()
            self.stop.set()
            await asyncio.wait_for(task, 30.0)

        asyncio.run(run())


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON):
        while not condition():
            await asyncio.sleep(0)


def test_everything_is_told_in_order_as_it_happens() -> None:
    ear, other = Ear("ear"), Ear("other")
    world = World(ear, other)

    async def plot() -> None:
        world.change(1)
        await until(lambda: ear.heard == other.heard == [1])
        world.change(3 * BATCH)
        await until(lambda: len(ear.heard) == len(other.heard) == 3 * BATCH + 1)
        await asyncio.sleep(0)

    world.live(plot)
    assert ear.heard == other.heard == list(range(1, 3 * BATCH + 2))
    assert max(ear.batches) == BATCH
    assert world.deliveries.told["ear"].told == 3 * BATCH + 1
    assert world.deliveries.told["ear"].failed == 0
    assert world.store.events("ear", 1) == []
    assert (ear.closed, other.closed) == (1, 1)
    assert world.clock.waits == []


def test_a_sink_that_hangs_stops_neither_the_others_nor_the_end() -> None:
    class Deaf(Ear):
        async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
            await asyncio.sleep(3600.0)
            return 0, ""

    deaf, ear = Deaf("deaf"), Ear("ear")
    world = World(deaf, ear)

    async def plot() -> None:
        world.change(5)
        await until(lambda: len(ear.heard) == 5)

    world.live(plot, grace=0.05)
    assert deaf.closed == 1
    # What it was not told is there for the next time.
    assert len(world.store.events("deaf", 9)) == 5


def test_a_sink_that_fails_is_tried_again_after_growing_waits_and_misses_nothing() -> None:
    attempts = 0

    def takes(events: Sequence[Event]) -> int:
        nonlocal attempts
        attempts += 1
        return 0 if attempts <= 20 else len(events)

    ear = Ear("ear", takes)
    world = World(ear)

    async def plot() -> None:
        world.change(3)
        await until(lambda: attempts == 20)
        told = world.deliveries.told["ear"]
        await until(lambda: told.failed == 20)
        assert (told.told, told.in_row, told.reason) == (0, 20, "not now")
        await until(lambda: len(ear.heard) == 3)
        await asyncio.sleep(0)
        assert (told.told, told.in_row, told.reason) == (3, 0, "")

    world.live(plot)
    assert ear.heard == [1, 2, 3]
    longest = np.minimum(2.0 ** np.arange(20), AGAIN_AT_MOST)
    share = np.array(world.clock.waits) / longest
    assert share.shape == (20,)
    assert share.min() >= 0.5
    assert share.max() <= 1.0
    assert len(set(share.tolist())) == 20


def test_what_was_taken_of_a_batch_is_not_told_again() -> None:
    ear = Ear("ear", lambda events: min(len(events), 2))
    world = World(ear)

    async def plot() -> None:
        world.change(7)
        await until(lambda: len(ear.heard) == 7)
        await asyncio.sleep(0)

    world.live(plot)
    assert ear.heard == [1, 2, 3, 4, 5, 6, 7]
    assert ear.batches == [7, 5, 3, 1]
    # A wait after each, none of them longer for the others: it did take something.
    assert len(world.clock.waits) == 3
    assert max(world.clock.waits) <= 1.0


def test_stopping_tells_what_is_left_and_the_next_start_goes_on() -> None:
    ear, store = Ear("ear"), MemoryStore()
    world = World(ear, store=store)

    async def plot() -> None:
        world.change(2 * BATCH + 1)

    world.live(plot)
    assert len(ear.heard) == 2 * BATCH + 1
    broken = Ear("ear", lambda events: 0)
    second = World(broken, store=store)

    async def broken_plot() -> None:
        second.change(2)
        await until(lambda: broken.batches)

    second.live(broken_plot)
    third = World(Ear("ear"), Ear("new"), store=store)

    async def third_plot() -> None:
        third.change(1)

    third.live(third_plot)
    first = 2 * BATCH + 2
    assert third.sinks[0].heard == [first, first + 1, first + 2]
    assert third.sinks[1].heard == [first + 2]


def test_a_store_that_fails_is_asked_again() -> None:
    class Shaky(MemoryStore):
        troubles = 3

        def told(self, name: str, number: int) -> None:
            if self.troubles:
                self.troubles -= 1
                raise StoreError("store has no room left")
            super().told(name, number)

    ear = Ear("ear")
    world = World(ear, store=Shaky())

    async def plot() -> None:
        world.change(2)
        await until(lambda: world.deliveries.told["ear"].told)

    world.live(plot)
    # Told, but that could not be recorded: told again rather than perhaps not at all.
    assert ear.heard == [1, 2] * 4
    assert world.deliveries.told["ear"].failed == 3


def test_a_fault_of_ours_is_not_hidden() -> None:
    class Faulty(Ear):
        async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
            raise ZeroDivisionError

    faulty, ear = Faulty("faulty"), Ear("ear")
    world = World(faulty, ear)
    world.change(1)
    with pytest.raises(ZeroDivisionError):
        asyncio.run(world.deliveries.run(asyncio.Event()))
    assert (faulty.closed, ear.closed) == (1, 1)


def test_nobody_to_tell_is_fine_and_two_of_a_name_are_not() -> None:
    world = World()

    async def plot() -> None:
        world.change(1)

    world.live(plot)
    with pytest.raises(InputError, match="sink 'a' is there twice: name it once"):
        World(Ear("a"), Ear("b"), Ear("a"))


def test_who_is_told_at_hours_hears_then_what_came_between() -> None:
    class Late(Ear):
        """May be told from 1000 s to 1010 s of every 2000 s."""

        def until(self, now: float) -> float:
            return now if now % 2000.0 >= 1000.0 and now % 2000.0 < 1010.0 else now + (1000.0 - now % 2000.0) % 2000.0

    late = Late("late")
    world = World(late)
    world.change(3)

    async def plot() -> None:
        await until(lambda: late.heard == [1, 2, 3])

    world.live(plot)
    assert world.clock.waits[0] == 1000.0
    assert late.batches == [3]


def test_a_sink_that_waits_for_its_hour_does_not_hold_up_the_end() -> None:
    class Never(Ear):
        def until(self, now: float) -> float:
            return now + 1e9

    never = Never("never")
    world = World(never)
    # A wait that lasts: stopping ends it.
    world.clock.sleep = asyncio.sleep  # type: ignore[method-assign]
    world.change(1)

    async def plot() -> None:
        await asyncio.sleep(0)

    world.live(plot, grace=60.0)
    assert (never.heard, never.closed) == ([], 1)
    assert len(world.store.events("never", 9)) == 1, "it is told after the next start"


def per_source(events: Sequence[Event]) -> dict[int, list[int]]:
    """The versions of each source in the order in which they were told."""
    found: dict[int, list[int]] = {}
    for event in events:
        found.setdefault(event.source, []).append(event.version)
    return found


def test_sources_are_told_side_by_side_and_each_in_order() -> None:
    ears = Ears("ears")
    world = World(ears, sources=20)

    async def plot() -> None:
        world.change(1000)
        await until(lambda: len(ears.said) == 1000)
        await until(lambda: not world.store.events("ears", 1))

    world.live(plot)
    assert per_source(ears.said) == {source: list(range(1, 51)) for source in range(1, 21)}
    assert [event.number for event in ears.said] != list(range(1, 1001))
    assert 1 < ears.most <= Ears.width
    assert (world.deliveries.told["ears"].told, world.deliveries.told["ears"].failed) == (1000, 0)


def test_a_change_that_is_refused_for_ever_keeps_only_what_is_beyond_the_window() -> None:
    ears = Ears("ears", lambda event: event.number == 3)
    world = World(ears, sources=20)

    async def plot() -> None:
        world.change(2 * WINDOW)
        await until(lambda: world.deliveries.told["ears"].in_row == 12)

    world.live(plot)
    refused = ears.said[0].source
    told = [event.number for event in ears.said]
    mine = [event.number for event in world.store.events("ears", WINDOW) if event.source == 3]
    # All of the window but those of its source, none of them twice, and nothing later.
    assert refused != 3
    assert sorted(told) == [number for number in range(1, WINDOW + 3) if number not in mine]
    # Only what was told up to the one that is refused counts as told.
    assert world.store.events("ears", 1)[0].number == 3
    # It is tried again, later and later.
    assert world.clock.waits[-1] > 512.0


def test_many_that_fail_at_once_are_one_failure() -> None:
    down = False
    ears = Ears("ears", lambda event: down)
    world = World(ears, sources=20)

    async def plot() -> None:
        nonlocal down
        world.change(100)
        await until(lambda: len(ears.said) == 100)
        down = True
        world.change(100)
        await until(lambda: world.deliveries.told["ears"].in_row == 3)
        down = False
        await until(lambda: len(ears.said) == 200)

    world.live(plot)
    assert per_source(ears.said) == {source: list(range(1, 11)) for source in range(1, 21)}
    assert len(world.clock.waits) == 3
    assert world.clock.waits[-1] <= 4.0


def test_changes_that_were_dropped_before_they_were_told_are_said_to_be_missing(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_outbox, "MOST_EVENTS", 10)
    down = False
    ears = Ears("ears", lambda event: down)
    world = World(ears, sources=20)

    async def plot() -> None:
        nonlocal down
        world.change(5)
        await until(lambda: not world.store.events("ears", 1))
        down = True
        world.change(10)
        await until(lambda: world.deliveries.told["ears"].in_row == 1)
        world.change(30)
        down = False
        await until(lambda: not world.store.events("ears", 1))

    world.live(plot)
    told = {event.number for event in ears.said}
    assert told == {*range(1, 16), *range(36, 46)}
    (record,) = [record for record in caplog.records if record.message == "untold_dropped"]
    assert len(told) + record.facts["count"] == 45
    assert world.store.counters()["untold"] == 30


def test_a_store_that_fails_while_many_are_told_loses_none() -> None:
    class Shaky(MemoryStore):
        troubles = 3

        def told(self, name: str, number: int) -> None:
            if self.troubles:
                self.troubles -= 1
                raise StoreError("store has no room left")
            super().told(name, number)

    ears = Ears("ears")
    world = World(ears, store=Shaky(), sources=20)

    async def plot() -> None:
        world.change(400)
        await until(lambda: not world.store.events("ears", 1))

    world.live(plot)
    assert {event.number for event in ears.said} == set(range(1, 401))
    for versions in per_source(ears.said).values():
        firsts = list(dict.fromkeys(versions))
        assert firsts == sorted(firsts)
    assert world.deliveries.told["ears"].failed == 3
