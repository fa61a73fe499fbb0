"""How many cooperating replicas, and how often should they talk: most requests at a target freshness [004 sect. VI-D].

The source and every replica have the same `capacity` per unit of time. The source spends its own on polls, so m
replicas poll it at capacity/m each; what a replica has left after its polls and contacts answers clients. Without
contacts it is `redundancy.service_for` with one replica asked [004 eq. 32].
Changes, polls and contacts are Poisson.
"""

from __future__ import annotations

import math
from functools import cache

from unstale.core.checks import number
from unstale.core.replication.cooperation import cooperative_freshness
from unstale.core.replication.redundancy import whole
from unstale.core.roots.between import between
from unstale.errors import InfeasibleError, sentence
from unstale.frozen import dataclass

#: replicas tried at most unless told otherwise
MOST = 100_000


@dataclass(frozen=True, slots=True)
class CooperationDesign:
    """Replicas that cooperate: their number, what each does, how fresh they are, and what all answer together."""

    replicas: int
    #: polls of the source, by each replica
    source_rate: float
    #: contacts with other replicas, by each one, and how many it asks each time
    peer_rate: float
    peers: int
    freshness: float
    #: requests of clients that all replicas answer per unit of time
    requests: float


def best_cooperation(
    change_rate: float, target: float, capacity: float, most_replicas: int = MOST
) -> CooperationDesign:
    """The number of replicas and the contact rate that answer most requests at a target freshness.

    The greatest `m·(capacity − source_rate − peer_rate)` over m, with source_rate = capacity/m and the least
    peer_rate that reaches the target. More replicas answer more, but poll the source less and must talk more.
    Each contact asks one peer, which is optimal for exponential contacts whatever the rest is.
    An InfeasibleError if even two replicas have nothing left for clients: the target must be below (q + q²)/2,
    q = capacity/(capacity + change_rate) the limit of theorem 6. At most `most_replicas` are tried; requests
    rise to one peak in m in every case examined, and the search relies on that.
    [004 eq. 30, Table I: exact optima are 12 % lower to 84 % higher than printed].

    >>> best = best_cooperation(1.0, 0.7, 10.0)
    >>> best.replicas, round(best.peer_rate, 9), round(best.requests, 9)
    (9, 4.30217871, 41.280391608)
    """
    change_rate, target, capacity = _checked(change_rate, target, capacity)
    most = int(number("most_replicas", most_replicas, least=2, remedy="give the number of machines"))

    @cache
    def served(m: int) -> float:
        rate = _least_peer_rate(change_rate, target, capacity, m)
        return -math.inf if rate is None else _requests(capacity, m, rate)

    if served(2) <= 0:
        raise _too_fresh(change_rate, target, capacity, 2)
    # Doubling until the requests fall, then thirds of what lies between: integers, so it ends.
    high = 4
    while high < most and served(high) > served(high // 2):
        high *= 2
    low, high = max(high // 4, 2), min(high, most)
    while high - low > 2:
        one, two = low + (high - low) // 3, high - (high - low) // 3
        if served(one) < served(two):
            low = one
        else:
            high = two
    best = max(range(low, high + 1), key=served)
    return cooperation_for(change_rate, target, capacity, best)


def cooperation_for(change_rate: float, target: float, capacity: float, replicas: int) -> CooperationDesign:
    """The design for a given number of replicas: the least contact rate that reaches the target.

    The source gives each `capacity/replicas` polls; no contacts if these are enough, else one peer per contact. An
    InfeasibleError names the freshness that is reached when nothing is left for clients. [004 eq. 30, Figure 12].

    >>> round(cooperation_for(1.0, 0.5, 10.0, 240).requests, 6)
    524.4722
    """
    change_rate, target, capacity = _checked(change_rate, target, capacity)
    m = whole("replicas", replicas)
    rate = _least_peer_rate(change_rate, target, capacity, m)
    if rate is None:
        raise _too_fresh(change_rate, target, capacity, m)
    return CooperationDesign(
        replicas=m,
        source_rate=capacity / m,
        peer_rate=rate,
        peers=1 if rate > 0 else 0,
        freshness=cooperative_freshness(change_rate, capacity / m, rate, m),
        requests=_requests(capacity, m, rate),
    )


def _requests(capacity: float, replicas: int, peer_rate: float) -> float:
    return replicas * (capacity - peer_rate) - capacity


def _least_peer_rate(change_rate: float, target: float, capacity: float, replicas: int) -> float | None:
    """The least contact rate that reaches the target, or None if a replica cannot afford it."""

    def missing(rate: float) -> float:
        return target - cooperative_freshness(change_rate, capacity / replicas, rate, replicas)

    # a target met but for rounding needs no contacts
    if missing(0.0) <= 1e-14 * target:
        return 0.0
    most = capacity * (1.0 - 1.0 / replicas)
    if missing(most) > 0:
        return None
    return between(missing, 0.0, most)


def _too_fresh(change_rate: float, target: float, capacity: float, replicas: int) -> InfeasibleError:
    best = cooperative_freshness(change_rate, capacity / replicas, capacity * (1.0 - 1.0 / replicas), replicas)
    rule = f"is out of reach: {replicas} replicas with all their capacity of {capacity:g} come to {best:.6g}"
    # two replicas reach (q + q²)/2, more replicas reach less
    share = (math.sqrt(1.0 + 8.0 * target) - 1.0) / 2.0
    least = change_rate * share / (1.0 - share) if replicas == 2 else None
    if least is not None:
        remedy = f"lower it, or raise the capacity above {least:.6g}"
    else:
        remedy = "lower it, use fewer replicas or raise the capacity"
    return InfeasibleError(sentence("target", f"{target:g}", rule, remedy), least)


def _checked(change_rate: float, target: float, capacity: float) -> tuple[float, float, float]:
    change_rate = number("change_rate", change_rate, above=0, remedy="give changes per unit of time")
    target = number("target", target, above=0, remedy="give a freshness, such as 0.5")
    capacity = number("capacity", capacity, above=0, remedy="give messages per unit of time")
    if target >= 1:
        rule = f"must be below 1; the limit for this capacity is {capacity / (capacity + change_rate):.6g}"
        raise InfeasibleError(sentence("target", f"{target:g}", rule, "lower it"))
    return change_rate, target, capacity
