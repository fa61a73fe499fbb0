"""Polls of sources that share nothing, a round at a time: every source is polled once, then all decide together.

Rules of this file:
1. What a source is drawn, told and decides is what the event loop would have made of it, bit for bit: nothing that
   happens to one source depends on when another was polled. Sources that share a host with limits are not played here.
2. Each source's draws come from its own stream in the event loop's order: first the delay, then the failure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.compiled import compiled_loop
from unstale.core.processes import Process
from unstale.sim.measure import Log, Rows
from unstale.sim.policies import Independent, Polled, Rngs
from unstale.sim.world import World


def play(
    world: World, policy: Independent, which: Rows, due: Floats, horizon: float, changes: Sequence[Floats], rngs: Rngs
) -> Log:
    """Every poll of these sources, first due at these times, that starts before the horizon; round after round."""
    seen = np.concatenate([[0], np.cumsum([len(times) for times in changes])])
    # Where each source's changes begin and end in one column, and how far its polls have come.
    begin, end, seen = seen[:-1], seen[1:], seen[:-1].copy()
    times = np.concatenate([*changes, np.empty(0)])
    soon = due < horizon
    which, due = which[soon], due[soon]
    rounds: list[Log] = []
    while len(which):
        arrived = due + _delays(world, which, rngs)
        answered = ~_failures(world, which, rngs)
        before = seen[which]
        _look(which[answered], due[answered], times, end, seen)
        changed = seen[which] > before
        latest = np.where(seen[which] > begin[which], times[seen[which] - 1] if len(times) else np.nan, np.nan)
        told = np.where(answered, latest, np.nan)
        rounds.append(Log(which, due, arrived, answered))
        following = np.maximum(policy.next_each(Polled(which, due, answered, changed, told)), arrived)
        soon = following < horizon
        which, due = which[soon], following[soon]
    return joined(rounds)


def joined(logs: Sequence[Log]) -> Log:
    """The polls of several logs, in the order in which they started, those of a moment by source."""
    empty = Log(np.empty(0, np.intp), np.empty(0), np.empty(0), np.empty(0, np.bool_))
    source, started, arrived, answered = (
        np.concatenate([getattr(log, name) for log in (empty, *logs)]) for name in Log.__slots__
    )
    order = np.lexsort((source, started))
    return Log(source[order], started[order], arrived[order], answered[order])


@compiled_loop
def _look(which: Rows, at: Floats, times: Floats, end: Rows, seen: Rows) -> None:
    """Go on to the last change of each source that a look at it shows."""
    for k in range(len(which)):
        i = which[k]
        while seen[i] < end[i] and times[seen[i]] <= at[k]:
            seen[i] += 1


def _delays(world: World, which: Rows, rngs: Rngs) -> Floats | float:
    if not isinstance(world.delay, Process):
        return world.delay
    delay = world.delay
    return np.array([float(delay.sample(rngs[i], 1)[0]) for i in which.tolist()])


def _failures(world: World, which: Rows, rngs: Rngs) -> np.ndarray:
    failing = world.failure[which]
    fails = np.zeros(len(which), np.bool_)
    for k in np.flatnonzero(failing > 0.0).tolist():
        fails[k] = rngs[which[k]].random() < failing[k]
    return fails
