"""What first polls may cost beside the budget: as many as there are, and no more."""

from __future__ import annotations

import math

import numpy as np
import pytest

from support.virtual import START, Shared, World, run_virtually
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import restore
from unstale.engine.config import EngineConfig
from unstale.engine.first_round import FirstAllowance, first_allowance, never_polled
from unstale.keeper.scheduler import Scheduler
from unstale.ports import LEARNER, Listing


def some() -> Scheduler:
    """Five sources: one has answered, one failed, one is paused, one is due later, the last waits; costs differ."""
    return Scheduler.of(
        Learner(5, 60.0, cost=np.array([1.0, 1.0, 1.0, 8.0, 4.0])),
        np.arange(5),
        due=np.array([5.0, 5.0, 5.0, 50.0, 5.0]),
        answered=np.array([1.0, -np.inf, -np.inf, -np.inf, -np.inf]),
        failures=np.array([0, 1, 0, 0, 0]),
        paused=np.array([False, False, True, False, False]),
    )


def test_only_what_never_ended_counts() -> None:
    assert never_polled(some()).tolist() == [3, 4]


def test_the_allowance_is_for_as_many_polls_as_wait() -> None:
    config = EngineConfig(1.0, first_rate=0.5)
    assert first_allowance(some(), config, 10.0, 1.0) == FirstAllowance(0.5 * 4.0, 12.0)
    both = first_allowance(some(), config, 60.0, 1.0)
    assert both == FirstAllowance(0.5 * 6.0, 64.0)
    # All of it is what both polls cost.
    assert both.rate * (both.end - 60.0) == 12.0
    assert first_allowance(some(), config, 60.0, 24.0) == FirstAllowance(0.5, 84.0)


def test_without_a_rate_or_a_source_there_is_none() -> None:
    none = FirstAllowance(0.0, -math.inf)
    assert first_allowance(some(), EngineConfig(1.0), 60.0, 1.0) == none
    assert first_allowance(some(), EngineConfig(1.0, first_rate=1.0), 0.0, 1.0) == none
    assert none.at(0.0) == 0.0


def test_what_is_guessed_of_a_fleet_grows_with_it_until_somebody_has_taught_anything() -> None:
    """Who begins with nothing and then adds a hundred is not told that they change every second."""
    store = Shared()

    def listing(i: int) -> Listing:
        return Listing(f"memory:{i}", kind="memory", shortest=86400.0)

    store.add([listing(0)], START)

    def more() -> None:
        store.add([listing(i) for i in range(1, 100)], START + 4.0)
        store.written += 1

    run_virtually(World(np.ones(100), START + 20.0), 1.0, 8.0, store=store, visits={4.0: more})
    learner = Learner(100, 100.0)
    assert restore(learner, store.setting(LEARNER))
    assert learner.shared.prior.tolist() == pytest.approx([1.0, 100.0], rel=1e-3)
