"""What first polls may cost beside the budget: as many as there are, and no more."""

from __future__ import annotations

import math

import numpy as np

from unstale.core.learning.learner import Learner
from unstale.engine.config import EngineConfig
from unstale.engine.first_round import FirstAllowance, first_allowance, never_polled
from unstale.keeper.scheduler import Scheduler


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
