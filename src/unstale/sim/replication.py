"""Cascades and cooperating replicas, simulated event by event: changes, polls, contacts, and who holds which version.

Rules of this file:
1. Nothing of the theory is used: a copy is the number of the change it has seen, and is fresh if that is the last.
2. Batches share nothing. Each begins, in equilibrium, at the last change before its time 0, where no replica
   can be fresh, and is measured from 0: exactly stationary, but for the peers that recent selection remembers,
   which are settled in WARM mean intervals of polls before.
3. The laws of gaps are those the kernels know.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.processes import Process
from unstale.core.replication.redundancy import whole
from unstale.core.replication.spread import Selection, checked_peers
from unstale.errors import require
from unstale.frozen import dataclass
from unstale.sim import draws, kernels
from unstale.sim.copy import checked_seed, require_events
from unstale.sim.draws import compiled, gap, met, stream, unit
from unstale.sim.statistics import Estimate, batch_means

#: mean intervals between polls after which a replica has surely polled the source
WARM = 30.0


@dataclass(frozen=True, slots=True)
class ReplicasRun:
    """Freshness of the replicas of one simulated system, one number for each or their mean, and what happened."""

    freshness: Estimate
    changes: int
    #: polls of the source, or of the replica above, and contacts with peers
    polls: int
    contacts: int


def simulate_cascade(
    changes: Process, polls: Sequence[Process], *, horizon: float = 10_000.0, seed: int = 0, batches: int = 64
) -> ReplicasRun:
    """Simulate a chain of replicas, each polling the one before it; freshness of each, from the top down.

    What `core.replication.cascade_levels` computes, within a few standard errors. [004 sect. V, Figure 9].

    >>> from unstale.core.processes import Poisson
    >>> run = simulate_cascade(Poisson(2.0), [Poisson(2.0)] * 2, seed=1)
    >>> bool(np.all(np.abs(run.freshness.z([0.5, 0.25])) < 4))
    True
    """
    require(polls, "polls", list(polls), "must name one replica at least", "give the poll process of each hop")
    laws = _laws([changes, *polls])
    batches, length = _batches(changes, polls, horizon, batches)
    out = np.zeros((batches, len(polls) + 2))
    word = draws.word(checked_seed(seed))
    kernels.in_threads(lambda a, b: _cascade_runs(word, a, b, laws, length, out), batches, 1, None)
    freshness = batch_means(out[:, 2:].T, np.full((len(polls), batches), length))
    return ReplicasRun(freshness, int(out[:, 0].sum()), int(out[:, 1].sum()), 0)


def simulate_cooperation(
    changes: Process,
    polls: Process,
    contacts: Process,
    replicas: int,
    peers: int = 1,
    *,
    selection: Selection = "random",
    both: bool = False,
    stays: Process | None = None,
    horizon: float = 10_000.0,
    seed: int = 0,
    batches: int = 64,
) -> ReplicasRun:
    """Simulate m replicas that poll the source and ask each other; freshness is the mean over all of them.

    What `core.replication.cooperative_freshness` computes if all is Poisson, and the answer if it is not. Random
    peers are drawn at each contact; recent ones are those that had polled the source last when the replica
    did so itself. If `both`, whoever is asked takes what the other has that is newer. If each `stays` for some time
    only, another with nothing comes in its place. [004 sect. VI, Figure 11].

    >>> from unstale.core.processes import Poisson
    >>> run = simulate_cooperation(Poisson(1.0), Poisson(1.0), Poisson(10.0), 10, seed=1)
    >>> abs(run.freshness.z(0.767861185711)) < 4
    True
    """
    m, k = checked_peers(replicas, peers, selection)
    require(
        stays is None or selection == "random",
        "selection",
        selection,
        "must be random if replicas leave",
        "a name that left is remembered until the next poll, which is not simulated",
    )
    laws = _laws([changes, polls, contacts, *([] if stays is None else [stays])])
    batches, length = _batches(changes, [polls] * m + [contacts] * m, horizon, batches)
    out = np.zeros((batches, 4))
    word = draws.word(checked_seed(seed))
    recent, warm = selection == "recent", WARM * polls.mean

    def work(first: int, last: int) -> None:
        _cooperation_runs(word, first, last, laws, m, k, recent, both, warm, length, out)

    kernels.in_threads(work, batches, 1, None)
    freshness = batch_means(out[:, 0], np.full(batches, length * m))
    return ReplicasRun(freshness, *(int(out[:, column].sum()) for column in (1, 2, 3)))


def _laws(processes: Sequence[Process]) -> Floats:
    found = [draws.law_of(process) for process in processes]
    for process, law in zip(processes, found, strict=True):
        rule = "is not among those that replicas can be simulated with"
        require(law is not None, "process", process, rule, "take Poisson, Constant, Pareto, Gamma or their like")
    return np.array(found, dtype=np.float64)


def _batches(changes: Process, polls: Sequence[Process], horizon: float, batches: int) -> tuple[int, float]:
    count = whole("batches", number("batches", batches, least=2, remedy="give 2 or more, or there is no error"))
    length = number("horizon", horizon, above=0)
    require_events((changes.rate + sum(d.rate for d in polls)) * length, "horizon", horizon)
    return count, length / count


@compiled
def _cascade_runs(seed: Any, first: int, last: int, laws: Floats, horizon: float, out: Floats) -> None:
    """Rows first..last of `out`: changes, polls, and the time fresh of each replica of the chain."""
    depth = len(laws) - 1
    due, held = np.empty(depth + 1), np.zeros(depth + 1)
    for run in range(first, last):
        state = stream(seed, 0, run)
        since, left, state = met(int(laws[0, 0]), laws[0, 1], laws[0, 2], state)
        due[0], held[:], held[0] = left, -1.0, 0.0
        now = -since
        for i in range(1, depth + 1):
            _, left, state = met(int(laws[i, 0]), laws[i, 1], laws[i, 2], state)
            due[i] = now + left
        while now < horizon:
            who = 0
            for i in range(1, depth + 1):
                if due[i] < due[who]:
                    who = i
            then = min(due[who], horizon)
            for i in range(1, depth + 1):
                if held[i] == held[0]:
                    out[run, i + 1] += max(then, 0.0) - max(now, 0.0)
            now = due[who]
            held[who] = held[0] + 1.0 if who == 0 else held[who - 1]
            out[run, min(who, 1)] += 0.0 <= now < horizon
            x, state = gap(int(laws[who, 0]), laws[who, 1], laws[who, 2], state)
            due[who] += x


@compiled
def _cooperation_runs(
    seed: Any,
    first: int,
    last: int,
    laws: Floats,
    m: int,
    k: int,
    recent: bool,
    both: bool,
    warm: float,
    horizon: float,
    out: Floats,
) -> None:
    """Rows first..last of `out`: time fresh of all replicas together, changes, polls of the source, contacts."""
    events = (len(laws) - 1) * m
    due = np.empty(events)
    held, polled, asked = np.zeros(m), np.zeros(m), np.zeros((m, k), np.int64)
    order = np.arange(m)
    for run in range(first, last):
        state = stream(seed, 0, run)
        since, change, state = met(int(laws[0, 0]), laws[0, 1], laws[0, 2], state)
        # Until the last change before 0 only the polls matter, and those only for who remembers whom.
        begin = -since
        now = begin - warm if recent else begin
        for i in range(events):
            law = 1 + i // m
            start = now if law == 1 else begin
            _, left, state = met(int(laws[law, 0]), laws[law, 1], laws[law, 2], state)
            due[i] = start + left
        held[:], polled[:] = -1.0, -math.inf
        for i in range(m):
            for j in range(k):
                asked[i, j] = (i + 1 + j) % m
        latest, fresh = 0.0, 0
        while now < horizon:
            who = 0
            for i in range(1, events):
                if due[i] < due[who]:
                    who = i
            then = min(due[who], change)
            if then > begin:
                out[run, 0] += fresh * (max(min(then, horizon), 0.0) - max(now, 0.0))
            now = then
            counted = 0.0 <= now < horizon
            if change <= due[who]:
                latest, fresh = latest + 1.0, 0
                x, state = gap(int(laws[0, 0]), laws[0, 1], laws[0, 2], state)
                change += x
                out[run, 1] += counted
                continue
            law, i = 1 + who // m, who % m
            if law == 3:
                fresh -= held[i] == latest
                held[i] = -1.0
                x, state = gap(int(laws[3, 0]), laws[3, 1], laws[3, 2], state)
                due[who] += x
                continue
            out[run, 1 + law] += counted
            best = held[i]
            if law == 1:
                polled[i] = now
                if now >= begin:
                    best = latest
                if recent:
                    _remember(asked[i], polled, i)
            else:
                for j in range(k):
                    peer = asked[i, j]
                    if not recent:
                        # the j-th of a shuffle of the others, as far as it is needed
                        u, state = unit(state)
                        pick = j + min(int((1.0 - u) * (m - 1 - j)), m - 2 - j)
                        order[j], order[pick] = order[pick], order[j]
                        peer = order[j] if order[j] < i else order[j] + 1
                    best = max(best, held[peer])
                    if both and held[peer] < held[i]:
                        fresh += held[i] == latest
                        held[peer] = held[i]
            fresh += best == latest and held[i] < latest
            held[i] = best
            x, state = gap(int(laws[law, 0]), laws[law, 1], laws[law, 2], state)
            due[who] += x


@compiled
def _remember(asked: Any, polled: Floats, own: int) -> None:
    """The replicas that polled last, most recent first, without this one itself."""
    for j in range(len(asked)):
        best = -1
        for i in range(len(polled)):
            taken = i == own
            for earlier in range(j):
                taken = taken or asked[earlier] == i
            if not taken and (best < 0 or polled[i] > polled[best]):
                best = i
        asked[j] = best
