"""Cascade, cooperation and redundancy in one design: layers of machines, each with its own rates and groups.

Rules of this file:
1. Changes are Poisson. A machine of a layer polls one machine of the layer above, the first layer the source; those of
   a group poll the same one, and may ask random others of their group. Groups and contacts are exponential, machines
   on their own poll evenly, or at random where it is said.
2. Nobody in a group can be fresh before the machine above it is, and when it becomes so all polls and contacts begin
   anew, memoryless or at a random phase. So layers multiply: the freshness of a layer is that of the one above times
   what the group would reach at the source.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unstale.core.checks import number
from unstale.core.processes import Constant, Poisson
from unstale.core.replication.cooperation import cooperative_freshness, meeting_chance
from unstale.core.replication.redundancy import freshest_freshness, whole
from unstale.errors import require


class Layer(NamedTuple):
    """Machines at one depth: how many, polls of each, how large groups are, and how often each asks in its own."""

    machines: int
    sync_rate: float
    group: int = 1
    peer_rate: float = 0.0


def layered_freshness(change_rate: float, layers: Sequence[Layer], *, even: bool = True) -> list[float]:
    """Freshness of the machines of every layer, from the top down.

    `Π_{j ≤ i} c_j`, c_j what a machine of layer j would reach if its group polled the source: of a group
    `cooperative_freshness`, of even polls alone (1 − e^(−x))/x, x = change_rate/sync_rate, of random ones 1/(1 + x).
    Never rises with depth. Poisson changes; groups poll at random. Exact. [004 sect. V and sect. VI; combining them is
    its future work].

    >>> top, leaf = layered_freshness(1.0, [Layer(4, 1.0, 4, 10.0), Layer(12, 5.0)])
    >>> round(top, 9), round(leaf, 9)
    (0.719873664, 0.652454785)
    """
    rate = number("change_rate", change_rate, above=0)
    require(layers, "layers", list(layers), "must be one at least", "give the machines at each depth")
    fresh, found = 1.0, []
    for layer in layers:
        fresh *= _one(rate, layer, even)
        found.append(fresh)
    return found


def asked_freshness(change_rate: float, layers: Sequence[Layer], asked: int, *, even: bool = True) -> float:
    """What a client sees who asks several machines of the last layer with the same parent, and takes the freshest.

    Of a group `Σₙ P(exactly n are fresh)·(1 − C(m−n, asked)/C(m, asked))`, by the chain of `cooperative_freshness`; of
    machines on their own `freshest_freshness`; times the freshness of the layer above. Asking machines with different
    parents sees no less. Poisson changes. [004 sect. VI and sect. VII].

    >>> round(asked_freshness(1.0, [Layer(3, 2.0, 3, 0.0)], 3), 9) == round(6 / 7, 9)
    True
    """
    above = layered_freshness(change_rate, layers[:-1], even=even)[-1] if len(layers) > 1 else 1.0
    last, k = layers[-1], whole("asked", asked)
    if last.group == 1:
        polls = Constant(1.0 / last.sync_rate) if even else Poisson(last.sync_rate)
        return above * freshest_freshness(Poisson(change_rate), polls, k)
    require(k <= last.group, "asked", k, f"must be at most {last.group}, the group", "ask fewer")
    steps = _steps(last)
    reached = np.cumprod(1.0 / (1.0 + change_rate / steps))
    exactly = reached - np.append(reached[1:], 0.0)
    met = meeting_chance(last.group + 1, k)[1:]
    return float(above * exactly @ met)


def parents(layers: Sequence[Layer]) -> np.ndarray:
    """Whom each machine polls, counted from the top; −1 is the source. Groups are dealt out to parents in turn.

    >>> parents([Layer(2, 1.0), Layer(4, 1.0, 2, 1.0)]).tolist()
    [-1, -1, 0, 0, 1, 1]
    """
    found: list[int] = []
    first, above = 0, 0
    for layer in layers:
        found += [first + (i // layer.group) % above if above else -1 for i in range(layer.machines)]
        first, above = len(found) - layer.machines, layer.machines
    return np.array(found, dtype=np.int64)


def siblings(layers: Sequence[Layer]) -> np.ndarray:
    """Machines of the last layer with the same parent as its first, that one included: whom a client may ask at once.

    >>> siblings([Layer(2, 1.0), Layer(5, 1.0)]).tolist()
    [2, 4, 6]
    """
    whom, first = parents(layers), sum(layer.machines for layer in layers[:-1])
    return first + np.flatnonzero(whom[first:] == whom[first])


def _one(rate: float, layer: Layer, even: bool) -> float:
    if layer.group > 1:
        return cooperative_freshness(rate, layer.sync_rate, layer.peer_rate, layer.group)
    if even:
        x = rate / layer.sync_rate
        return float(-np.expm1(-x) / x)
    return layer.sync_rate / (layer.sync_rate + rate)


def _steps(layer: Layer) -> np.ndarray:
    """The rates at which the next machine of a group becomes fresh, with 0, 1, … of them fresh."""
    m = layer.group
    return np.arange(m, 0.0, -1.0) * (layer.sync_rate + layer.peer_rate * meeting_chance(m, 1))
