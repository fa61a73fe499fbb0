"""One brain: given the same outcomes, the engine, the simulator, the backtest and a loop of one's own decide the same.

A fleet is played by the backtest at one price. Every poll's outcome is then told to the others, and each has to name
the moment of the next poll to the last bit.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unstale import Outcome, Scheduler
from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH
from unstale.core.trace import Trace
from unstale.engine.config import EngineConfig, scheduler_of
from unstale.engine.host_limits import HostLimits
from unstale.engine.outcomes import PollOutcome, entries_of
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, FleetColumns
from unstale.sim.backtest.learned import _played
from unstale.sim.changes import Recorded
from unstale.sim.loop import run
from unstale.sim.policies import Polled, ScheduledPolicy
from unstale.sim.world import World

#: powers of two, so that the mean interval at a budget is the same number wherever it is computed
N, MEAN, SPAN = 16, 4096.0, 300 * 4096.0
WEIGHT = np.linspace(0.3, 3.0, N)
PRICES = {"freshness": 700.0, "age": 4e6}


def some_changes() -> list[np.ndarray]:
    rng = np.random.default_rng(4)
    rates = rng.lognormal(0.0, 1.3, N) / MEAN
    return [np.sort(rng.uniform(0.0, SPAN, rng.poisson(rate * SPAN))) for rate in rates]


def polls_of_the_backtest(changes: list[np.ndarray], objective: str) -> list[list[float]]:
    """When each source is polled, by the compiled player of the backtest, in one stretch at one price."""
    names = np.concatenate([np.full(len(times), i) for i, times in enumerate(changes)])
    trace = Trace.of([f"{i:02d}" for i in names], np.concatenate(changes))
    learner = Learner(N, MEAN, weight=WEIGHT, objective=objective)
    seen = trace.starts[:-1].copy()
    rows, times = _played(learner, trace.starts, trace.times, seen, 0.0, SPAN, PRICES[objective])
    return [times[rows == i].tolist() for i in range(N)]


def outcomes(changes: list[np.ndarray], polls: list[list[float]]) -> list[tuple[int, bool, float, float]]:
    """Every poll in the order of time: source, whether it had changed, when, and when it is polled next."""
    told = []
    for i, mine in enumerate(polls):
        for before, at, following in zip([0.0, *mine], mine, [*mine[1:], np.nan], strict=False):
            changed = np.searchsorted(changes[i], at, "right") > np.searchsorted(changes[i], before, "right")
            told.append((i, bool(changed), at, following))
    return sorted(told, key=lambda one: one[2])


@pytest.mark.parametrize("objective", PRICES)
def test_engine_simulator_backtest_and_own_loop_decide_the_same_to_the_last_bit(objective: str) -> None:
    changes, price = some_changes(), PRICES[objective]
    polls = polls_of_the_backtest(changes, objective)
    told = outcomes(changes, polls)
    assert len(told) > 2000
    engine = in_an_engine(objective, price)
    own = Scheduler(price=price, mean_interval=MEAN, objective=objective)
    own.add(range(N), 0.0, weight=WEIGHT.tolist())
    own.record([Outcome(i, "changed", 0.0) for i in range(N)])
    for i, changed, at, following in told:
        own.record(Outcome(i, "changed" if changed else "unchanged", at))
        answer = Answer.CHANGED if changed else Answer.UNCHANGED
        poll = PollOutcome(Claim(i, 1, "memory:", "memory", at), answer, Fetched(answer, at), None)
        ((entry,), *_) = entries_of(engine, [poll])
        if following == following:
            assert entry.due == following
            assert own.due_of(i) == following
    # The simulator makes its polls itself, in a world where the same changes happen.
    world = World([Recorded(times) for times in changes], weight=WEIGHT)
    log = run(world, Untold(price, mean_interval=MEAN, objective=objective), SPAN).log
    assert [log.started[log.source == i].tolist() for i in range(N)] == polls


class Untold(ScheduledPolicy):
    """A source that does not say when it changed, as the backtest has it."""

    def next_each(self, polled: Polled) -> Floats:
        return super().next_each(replace(polled, last_modified=np.full(len(polled.at), np.nan)))


def in_an_engine(objective: str, price: float) -> Scheduler:
    """The scheduler that an engine makes of a store, all copies taken at 0."""
    ones, zeros = np.ones(N), np.zeros(N)
    standing = FleetColumns(
        source=np.arange(N),
        weight=WEIGHT,
        cost=ones,
        shortest=zeros,
        longest=np.full(N, np.inf),
        host=np.zeros(N, np.int64),
        hosts=("",),
        paused=np.zeros(N, np.bool_),
        due=zeros,
        last=zeros,
        found=zeros,
        failures=np.zeros(N, np.int64),
        beliefs=np.zeros((N, WIDTH)),
        settings={},
        price=None,
        listed=ones,
    )
    scheduler, _ = scheduler_of(standing, EngineConfig(N / MEAN, objective=objective), 0.0, HostLimits())
    scheduler.price = price
    # As the player of the backtest and the simulator do: the first wait is asked before the first poll.
    scheduler.learner.due_after_answers(np.arange(N), scheduler.ids, price)
    return scheduler
