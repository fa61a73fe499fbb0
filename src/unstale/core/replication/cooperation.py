"""Replicas that also ask each other: how a change of the source spreads among them [004 sect. VI].

Rules of this file:
1. m replicas poll the source at `source_rate` each, and contact `peers` random others at `peer_rate` each, taking
   the freshest answer. Changes, polls and contacts are Poisson; other processes are simulated (`spread`, `sim`).
2. A change makes every replica stale at once. Until the next one the number of fresh replicas only grows, by one
   at a time: a pure birth chain begun anew at each change, which needs no matrix.
3. If replicas leave and others come in their place, with nothing yet, the chain also steps down.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.processes import Process
from unstale.core.replication.redundancy import freshest_freshness, whole
from unstale.errors import require


def cooperative_freshness(
    change_rate: float,
    source_rate: float,
    peer_rate: float,
    replicas: int,
    peers: int = 1,
    *,
    both: bool = False,
    leave_rate: float = 0.0,
) -> float:
    """Freshness of each of m replicas that poll the source and ask `peers` random ones of each other.

    `Σₙ Π_{j<n} aⱼ/(aⱼ + change_rate)/m`, n = 1 … m: with j fresh the next becomes so at the rate
    `aⱼ = (m − j)·(source_rate + peer_rate·cⱼ)`, cⱼ = 1 − C(m−1−j, peers)/C(m−1, peers) the chance that a
    contact meets a fresh one; the products are the chances that n become fresh before the next change.
    At a given number of answers, peers·peer_rate, one peer per contact is best, as cⱼ/peers ≤ j/(m−1); with
    peer_rate inf all replicas are one that polls m times as often (theorem 6). If `both` ends of a contact take what
    the other has that is newer, a fresh one helps as often by asking as by being asked: one peer per contact counts
    exactly twice. Each leaves at `leave_rate` for another that begins with nothing: a step back from j at j·leave_rate.
    All exponential, exact to m roundings. [004 sect. VI, simulated there; Figure 11; both: VI-C].

    >>> round(cooperative_freshness(1.0, 1.0, 10.0, 10), 12)
    0.767861185711
    >>> round(cooperative_freshness(1.0, 1.0, 5.0, 10, both=True), 12)
    0.767861185711
    >>> round(cooperative_freshness(1.0, 1.0, 0.0, 10, leave_rate=2.0), 12)
    0.25
    """
    change_rate, source_rate, m, k = _checked(change_rate, source_rate, replicas, peers)
    peer_rate = number("peer_rate", peer_rate, least=0, infinite=True, remedy="give contacts per replica and time")
    require(not both or k < 2, "peers", k, "must be 1 if both ends take", "with several, many become fresh at once")
    peer_rate *= 2.0 if both else 1.0
    leave_rate = number("leave_rate", leave_rate, least=0, remedy="give how often each is replaced, per unit of time")
    if change_rate == leave_rate == 0:
        return 1.0
    with np.errstate(all="ignore"):
        met = meeting_chance(m, k)
        others = np.where(met > 0, peer_rate * met, 0.0)
        steps = np.arange(m, 0.0, -1.0) * (source_rate + others)
        if leave_rate > 0:
            return _replaced(change_rate, steps, leave_rate)
        return float(np.cumprod(1.0 / (1.0 + change_rate / steps)).mean())


def _replaced(change_rate: float, up: Floats, leave_rate: float) -> float:
    """Mean share of fresh ones in the stationary chain: up by polls and contacts, down by leaving, to 0 by changes.

    What flows from j − 1 to j flows back from j by leaving, and from j and above by changes. So the weights follow from
    the top down by additions alone; only their shares are kept, which are bounded.
    """
    m = len(up)
    share, mean = 1.0, float(m)
    for j in range(m, 0, -1):
        # the weight of j − 1 beside all above it
        flow = j * leave_rate * share + change_rate
        below = flow / (flow + float(up[j - 1])) if flow > 0 else 0.0
        share, mean = below, mean + (j - 1 - mean) * below
    return mean / m


def meeting_chance(replicas: int, peers: int) -> Floats:
    """The chance that one of `peers` random others of a replica is fresh, if j = 0 … replicas − 1 of them are.

    `1 − C(m−1−j, peers)/C(m−1, peers)`: at most peers·j/(m − 1), which is reached with one peer.

    >>> meeting_chance(4, 2).round(6).tolist()
    [0.0, 0.666667, 1.0, 1.0]
    """
    left = np.arange(replicas - 1.0, 0.0, -1.0)
    with np.errstate(divide="ignore"):
        none = np.cumsum(np.log1p(-np.minimum(peers / left, 1.0)))
    return np.append(0.0, -np.expm1(none))


def cooperation_limit(changes: Process | float, polls: Process | float, replicas: int) -> float:
    """Freshness of m replicas that tell each other everything at once: no contact rate reaches more.

    Together they are one replica that polls whenever any of them does; for Poisson changes and polls
    `m·source_rate/(m·source_rate + change_rate)`. Holds for any number of peers asked. A bare rate means Poisson
    changes, even polls. [004 theorem 6; it prints 0.91 for 10/11].

    >>> from unstale.core.processes import Poisson
    >>> round(cooperation_limit(1.0, Poisson(1.0), 10), 12)
    0.909090909091
    """
    return freshest_freshness(changes, polls, replicas)


def _checked(change_rate: float, source_rate: float, replicas: int, peers: int) -> tuple[float, float, int, int]:
    m = whole("replicas", replicas)
    k = whole("peers", peers) if peers else 0
    require(k <= max(m - 1, 1), "peers", k, f"must be at most {m - 1}, the others of {m} replicas", "ask fewer")
    return number("change_rate", change_rate, least=0), number("source_rate", source_rate, least=0), m, k
