"""A poll that somebody asked for is made, whatever is planned or edited in the same moment."""

from __future__ import annotations

import numpy as np

from support.virtual import START, Shared, World, run_virtually
from unstale.engine.host_limits import HostLimits, Rules
from unstale.ports import Listing
from unstale.service.hints import hasten, push

HOUR = 3600.0


def seldom(i: int) -> Listing:
    """Polled once by itself, and then once a day."""
    return Listing(f"memory:{i}", kind="memory", shortest=24 * HOUR, host=f"h{i}")


def test_a_poll_that_is_asked_for_together_with_an_edit_is_made() -> None:
    """The engine reads the fleet anew and plans before it claims: the plan must leave alone who was asked for."""
    world, store = World(np.full(5, 1.0 / HOUR), START + HOUR), Shared()

    def edited_and_asked() -> None:
        store.add([seldom(0)], START + 60.0, duplicates="replace")
        store.relearn([1])
        hasten(store, [1], START + 60.0)
        store.written += 1

    run_virtually(world, 1.0, 90.0, listing=seldom, store=store, visits={60.0: edited_and_asked})
    assert [len(polls) for polls in world.polls] == [2, 1, 1, 1, 1]
    assert 60.0 <= world.polls[0][1] - START < 61.0


def test_who_was_asked_for_and_waits_for_its_host_is_not_planned_away_meanwhile() -> None:
    """Its host is polled once in half a minute; plans come every few seconds."""
    world, store = World(np.full(2, 1.0 / HOUR), START + HOUR), Shared()

    def listing(i: int) -> Listing:
        return Listing(f"memory:{i}", kind="memory", shortest=24 * HOUR, host="slow")

    def asked() -> None:
        hasten(store, [1, 2], START + 90.0)
        store.written += 1

    def edited() -> None:
        store.add([listing(1)], START + 96.0, duplicates="replace")
        store.written += 1

    slow = HostLimits(lambda host: Rules(30.0, 1))
    run_virtually(world, 1.0, 150.0, listing=listing, store=store, host_limits=slow, visits={90.0: asked, 96.0: edited})
    assert [len(polls) for polls in world.polls] == [2, 2]
    assert max(polls[-1] for polls in world.polls) - START < 123.0


def test_a_hint_that_a_plan_comes_before_is_said_again() -> None:
    class Planning(Shared):
        """Somebody plans between reading a due time and moving it."""

        plans = 3

        def set_due(self, sources, due, *, was=None):  # type: ignore[no-untyped-def]
            if self.plans and was is not None:
                self.plans -= 1
                super().set_due(sources, [50.0 + self.plans] * len(sources))
            super().set_due(sources, due, was=was)

    store = Planning()
    store.add([seldom(0)], 100.0)
    hasten(store, [1], 10.0)
    assert store.heads([1])[0].due == 10.0


def test_a_hint_while_no_engine_runs_is_heard_by_the_next_one() -> None:
    world, store = World(np.full(5, 1.0 / HOUR), START + HOUR), Shared()
    run_virtually(world, 1.0, 30.0, listing=seldom, store=store)
    push(store, [2], "hint", START + 40.0)
    run_virtually(world, 1.0, 20.0, listing=seldom, store=store, start=START + 60.0)
    assert [len(polls) for polls in world.polls] == [1, 2, 1, 1, 1]
