"""Layers of machines, simulated event by event: what `core.replication.layers` computes, without its theory.

Rules of this file:
1. A copy is the number of the change it has seen. Every machine polls a parent above it; machines of a group have the
   same one, and ask each other.
2. Batches share nothing; each begins at a change, where nobody is fresh, and is measured after it has settled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.replication.layers import Layer, parents, siblings
from unstale.sim import draws, kernels
from unstale.sim.copy import checked_seed, require_events
from unstale.sim.draws import compiled, stream, unit
from unstale.sim.statistics import Estimate, batch_means

#: mean intervals of the slowest polls after which how it began is forgotten
SETTLE = 20.0


def simulate_layers(
    change_rate: float,
    layers: Sequence[Layer],
    *,
    even: bool = True,
    asked: int = 1,
    horizon: float = 10_000.0,
    seed: int = 0,
    batches: int = 64,
) -> Estimate:
    """Simulate a design; freshness of each layer, the mean over its machines, and what clients see.

    Clients ask so many of the last layer with the same parent and take the freshest answer: with one that is the last
    layer's own, above it is one number more.

    >>> from unstale.core.replication.layers import layered_freshness
    >>> layers = [Layer(4, 1.0, 4, 10.0), Layer(12, 5.0)]
    >>> run = simulate_layers(1.0, layers, seed=1, horizon=4000.0)
    >>> bool(np.all(np.abs(run.z(layered_freshness(1.0, layers))) < 4))
    True
    """
    rate, length = number("change_rate", change_rate, above=0), number("horizon", horizon, above=0) / batches
    sends = sum(layer.machines * (layer.sync_rate + layer.peer_rate) for layer in layers)
    require_events((rate + sends) * horizon, "horizon", horizon)
    settle = SETTLE * max(1.0 / layer.sync_rate for layer in layers)
    table = np.array([[x.machines, x.sync_rate, x.group, x.peer_rate, even and x.group == 1] for x in layers], float)
    out, word = np.zeros((batches, len(layers) + 1)), draws.word(checked_seed(seed))
    together = siblings(layers)[:asked]

    def work(first: int, last: int) -> None:
        _runs(word, first, last, rate, table, parents(layers), together, settle, length, out)

    kernels.in_threads(work, batches, 1, None)
    places = len(layers) + (asked > 1)
    return batch_means((out / np.append(table[:, 0], 1.0)).T[:places], np.full((places, batches), length))


@compiled
def _runs(
    seed: Any,
    first: int,
    last: int,
    rate: float,
    table: Floats,
    parent: np.ndarray,
    together: np.ndarray,
    settle: float,
    horizon: float,
    out: Floats,
) -> None:
    """Rows first..last of `out`: the time fresh of all machines of each layer added up, and of any of `together`."""
    count = len(parent)
    layer, start = np.empty(count, np.int64), np.empty(count, np.int64)
    place = 0
    for j in range(len(table)):
        for i in range(int(table[j, 0])):
            layer[place], start[place] = j, place - i % int(table[j, 2])
            place += 1
    due, held, fresh = np.empty(2 * count), np.empty(count), np.empty(len(table))
    for run in range(first, last):
        state = stream(seed, 0, run)
        held[:], fresh[:] = -1.0, 0.0
        latest, now = 0.0, -settle
        u, state = unit(state)
        change = now - np.log(u) / rate
        for i in range(count):
            j = layer[i]
            u, state = unit(state)
            due[i] = now + ((1.0 - u) if table[j, 4] else -np.log(u)) / table[j, 1]
            u, state = unit(state)
            due[count + i] = now - np.log(u) / table[j, 3] if table[j, 3] > 0.0 else np.inf
        while now < horizon:
            who = 0
            for i in range(1, 2 * count):
                if due[i] < due[who]:
                    who = i
            then = min(due[who], change)
            lasted = max(min(then, horizon) - max(now, 0.0), 0.0)
            for j in range(len(table)):
                out[run, j] += fresh[j] * lasted
            for i in together:
                if held[i] == latest:
                    out[run, len(table)] += lasted
                    break
            now = then
            if change <= due[who]:
                latest, fresh[:] = latest + 1.0, 0.0
                u, state = unit(state)
                change -= np.log(u) / rate
                continue
            i = who % count
            j = layer[i]
            best = held[i]
            u, state = unit(state)
            if who < count:
                best = latest if parent[i] < 0 else held[parent[i]]
                due[who] += (1.0 if table[j, 4] else -np.log(u)) / table[j, 1]
            else:
                due[who] -= np.log(u) / table[j, 3]
                u, state = unit(state)
                size = int(table[j, 2])
                peer = start[i] + min(int((1.0 - u) * (size - 1)), size - 2)
                best = max(best, held[peer if peer < i else peer + 1])
            best = max(best, held[i])
            if best == latest and held[i] < latest:
                fresh[j] += 1.0
            held[i] = best
