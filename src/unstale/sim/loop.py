"""The event loop: polls in the order of time, the only events there are.

Changes and requests are drawn before (they do not depend on polls) and looked up; what a copy was at every
moment follows afterwards from the polls' log, exactly, so nothing is sampled at ticks.

Rules of this file:
1. A poll reads its source when it starts; the copy is there, and the policy told, when its delay has passed.
2. One poll of a source at a time. A host's limits make polls wait, first due first served.
3. A failed poll costs as much as any other and copies nothing.
4. Sources that share nothing are played in rounds where the policy allows it, to the same polls (`rounds`).
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from heapq import heapify, heappop, heapreplace
from typing import Any

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.processes import Process
from unstale.core.windows import Windows
from unstale.errors import require
from unstale.keeper import Answer, Outcome
from unstale.sim.measure import Log, Measured, Rows
from unstale.sim.policies import Independent, Policy
from unstale.sim.rounds import joined, play
from unstale.sim.world import Host, World


def run(
    world: World, policy: Policy, horizon: float, warmup: float = 0.0, seed: int = 0, batches: int = 32
) -> Measured:
    """Let a policy poll a world from time 0, when every copy is fresh, to `horizon`; measure from `warmup` on.

    Same world, policy and seed: same answer, bit for bit. Standard errors come from `batches` equal stretches
    of time, which should each hold many intervals.

    >>> from unstale.core.processes import Poisson
    >>> from unstale.sim.policies import OpenLoop
    >>> ran = run(World([Poisson(1.0)]), OpenLoop([1.0]), horizon=20_000.0, seed=1)
    >>> bool(abs(ran.freshness.fleet.z(1 - np.exp(-1))) < 5), ran.polls.tolist()
    (True, [20000])
    """
    horizon = number("horizon", horizon, above=0, remedy="give the time at which the run ends")
    warmup = number("warmup", warmup, least=0)
    require(warmup < horizon, "warmup", warmup, f"must be below the horizon {horizon}", "measure something")
    batches = int(number("batches", batches, least=2, remedy="32 is a good number"))
    require(
        isinstance(seed, int | np.integer) and seed >= 0, "seed", seed, "must be a whole number from 0 on", "take 0"
    )
    drawn = world.draw(int(seed), horizon)
    log = _polls(world, policy, horizon, drawn.changes, drawn.rngs)
    return Measured(world.weight, world.cost, drawn.changes, drawn.requests, log, horizon, warmup, batches)


class _Gate:
    """When a host lets the next poll start, and whether it answers."""

    def __init__(self, host: Host) -> None:
        self._spacing = host.spacing
        self._next = -np.inf
        #: when each of the host's places is free again
        self._places = None if host.concurrency is None else [-np.inf] * int(host.concurrency)
        down = Windows([start for start, _ in host.outages], [stop for _, stop in host.outages])
        self._down, self._up = down.start.tolist(), down.stop.tolist()

    def enter(self, due: float, delay: float) -> float:
        start = max(due, self._next)
        if self._places is not None:
            start = max(start, self._places[0])
            heapreplace(self._places, start + delay)
        self._next = start + self._spacing
        return start

    def is_down(self, time: float) -> bool:
        outage = bisect_right(self._down, time) - 1
        return outage >= 0 and time < self._up[outage]


def _polls(
    world: World, policy: Policy, horizon: float, changes: list[np.ndarray], rngs: list[np.random.Generator]
) -> Log:
    """Every poll that starts before the horizon: source, start, arrival, answered."""
    first = np.maximum(np.array(policy.start(world, horizon, rngs), dtype=np.float64), 0.0)
    # Sources that share nothing need no common order of time, if the policy says so too.
    apart = world.host < 0 if isinstance(policy, Independent) else np.zeros(len(world), np.bool_)
    alone, together = np.flatnonzero(apart), np.flatnonzero(~apart)
    log = _in_order(world, policy, together, first[together], horizon, changes, rngs)
    if isinstance(policy, Independent) and len(alone):
        played = play(world, policy, alone, first[alone], horizon, changes, rngs)
        return joined([log, played]) if len(together) else played
    return log


def _in_order(
    world: World,
    policy: Policy,
    which: Rows,
    first: Floats,
    horizon: float,
    changes: list[np.ndarray],
    rngs: list[np.random.Generator],
) -> Log:
    """The same for some sources, poll after poll in the order of time."""
    gates = [_Gate(host) for host in world.hosts]
    gate_of = [gates[h] if h >= 0 else None for h in world.host.tolist()]
    failure = world.failure.tolist()
    delays = world.delay if isinstance(world.delay, Process) else None
    delay = 0.0 if isinstance(world.delay, Process) else world.delay
    # Views give plain floats and need no second copy of the changes.
    times: list[Any] = [np.ascontiguousarray(c).data for c in changes]
    seen = [0] * len(times)
    who, started, arrived, answered = array("q"), array("d"), array("d"), array("b")
    heap = [(due, i) for i, due in zip(which.tolist(), first.tolist(), strict=True) if due < horizon]
    heapify(heap)
    changed, unchanged, failed = Answer.CHANGED, Answer.UNCHANGED, Answer.FAILED
    while heap:
        start, i = heap[0]
        rng, gate = rngs[i], gate_of[i]
        if delays is not None:
            delay = float(delays.sample(rng, 1)[0])
        fails = failure[i] > 0.0 and rng.random() < failure[i]
        if gate is not None:
            start = gate.enter(start, delay)
            if start >= horizon:
                heappop(heap)
                continue
            fails = fails or gate.is_down(start)
        now = start + delay
        if fails:
            outcome = Outcome(i, failed, start)
        else:
            of_source, before = times[i], seen[i]
            count = bisect_right(of_source, start, before)
            seen[i] = count
            latest = of_source[count - 1] if count else None
            outcome = Outcome(i, changed if count > before else unchanged, start, latest)
        who.append(i)
        started.append(start)
        arrived.append(now)
        answered.append(not fails)
        due = policy.next(i, outcome, now, rng)
        if due < now:
            due = now
        if due < horizon:
            heapreplace(heap, (due, i))
        else:
            heappop(heap)
    return Log(np.array(who, dtype=np.intp), np.array(started), np.array(arrived), np.array(answered, dtype=bool))
