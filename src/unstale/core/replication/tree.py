"""Trees of replicas: clients served against freshness, level by level [004 sect. V-A, V-D].

The source is the root; every replica polls the one above it and answers `branching` below. A level has `branching`
times the replicas of the one above it, and is less fresh.
"""

from __future__ import annotations

from collections.abc import Sequence

from unstale.core.checks import number
from unstale.core.inverse import Shape, change_process, poll_shape, rate_for_freshness
from unstale.core.processes import Constant, Process
from unstale.core.replication.cascade import cascade_freshness, cascade_levels
from unstale.core.replication.redundancy import whole
from unstale.errors import InfeasibleError, sentence
from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """All replicas at one depth of a tree."""

    depth: int
    replicas: int
    #: polls of the level above, by each replica
    sync_rate: float
    freshness: float
    #: requests of clients that the level answers per unit of time
    requests: float


@dataclass(frozen=True, slots=True)
class TreeDesign:
    """A tree of replicas: how many poll each one, and its levels from the top down."""

    branching: int
    levels: tuple[TreeLevel, ...]

    @property
    def replicas(self) -> int:
        """Replicas of all levels together."""
        return sum(level.replicas for level in self.levels)

    @property
    def requests(self) -> float:
        """Requests of clients that all levels answer per unit of time."""
        return sum(level.requests for level in self.levels)

    @property
    def freshness(self) -> float:
        """Freshness of the deepest level, the least of all."""
        return self.levels[-1].freshness


def tree_with(
    changes: Process | float, polls: Sequence[Process | float], branching: int, capacity: float
) -> TreeDesign:
    """What each level of a tree holds and answers; `polls` are those of its levels, from the top down.

    Level i has `branching^i` replicas; each answers `capacity − sync_rate_i − branching·sync_rate_{i+1}` requests,
    what its own polls and those of the level below leave. Size grows exponentially with depth while freshness
    falls exponentially for Poisson changes, slower for bursty ones. An InfeasibleError where polls exceed a
    capacity. A bare rate means Poisson changes, even polls. [004 eqs. 28, 29, sect. V-D].

    >>> from unstale.core.processes import Poisson
    >>> levels = tree_with(1.0, [Poisson(1.0)] * 2, 3, 10.0).levels
    >>> [(level.replicas, level.freshness, level.requests) for level in levels]
    [(3, 0.5, 18.0), (9, 0.25, 81.0)]
    """
    b, limit = whole("branching", branching), number("capacity", capacity, above=0)
    chain = [d if isinstance(d, Process) else Constant(1.0 / number("polls", d, above=0)) for d in polls]
    rates = [0.0, *(d.rate for d in chain), 0.0]
    for depth in range(len(chain) + 1):
        needed = rates[depth] + b * rates[depth + 1]
        if needed > limit * (1.0 + 1e-12):
            rule = (
                f"is less than the {needed:.6g} that a node at depth {depth} needs for its polls and those it answers"
            )
            remedy = "poll less, branch less, or raise it"
            raise InfeasibleError(sentence("capacity", f"{limit:g}", rule, remedy))
    levels = (
        TreeLevel(i, b**i, rates[i], fresh, b**i * max(limit - rates[i] - b * rates[i + 1], 0.0))
        for i, fresh in enumerate(cascade_levels(changes, chain), 1)
    )
    return TreeDesign(b, tuple(levels))


def best_tree(
    changes: Process | float, target: float, capacity: float, *, polls: Shape = "fixed", most_replicas: int = 100_000
) -> TreeDesign:
    """The tree that answers most requests if its deepest level must reach the target; all levels poll equally often.

    For each depth the least sync rate with `cascade_freshness = target`, and as many branches as capacities and
    `most_replicas` allow; depth 1 is plain replication. Deep trees need a capacity far above the change rate:
    each level multiplies the replicas and raises the sync rate; the first depth that answers less than the one
    before ends the search. [004 sect. V-D].

    >>> best = best_tree(1.0, 0.5, 100.0, polls="purely-random", most_replicas=5000)
    >>> len(best.levels), best.branching, best.replicas, round(best.requests)
    (4, 8, 4680, 418573)
    """
    u, shape = change_process(changes), poll_shape(polls)
    target = number("target", target, above=0, remedy="give a freshness, such as 0.5")
    limit = number("capacity", capacity, above=0, remedy="give messages per unit of time")
    most = whole("most_replicas", most_replicas)
    reached = cascade_freshness(u, [shape.with_rate(limit)])
    if target > reached:
        rule = f"is out of reach: one replica with all the capacity {limit:g} of the source comes to {reached:.6g}"
        raise InfeasibleError(sentence("target", f"{target:g}", rule, "lower it, or raise the capacity"))
    best = _widest(u, target, limit, shape, most, 1)
    assert best is not None
    for depth in range(2, most):
        deeper = _widest(u, target, limit, shape, most, depth)
        if deeper is None or deeper.requests <= best.requests:
            break
        best = deeper
    return best


def _widest(
    changes: Process, target: float, capacity: float, shape: Process, most: int, depth: int
) -> TreeDesign | None:
    """The tree of this depth with as many branches as can be; None if not even two can be."""

    def fresh(polls: Process) -> float:
        return cascade_freshness(changes, [polls] * depth)

    rate = rate_for_freshness(target, changes, shape, fresh, lambda polls: 1.0 - fresh(polls))
    # below the top a node polls, too
    branching = min(int((capacity - (rate if depth > 1 else 0.0)) / rate * (1.0 + 1e-12)), _most_branches(most, depth))
    if branching < 2 and depth > 1:
        return None
    return tree_with(changes, [shape.with_rate(rate)] * depth, max(branching, 1), capacity)


def _most_branches(replicas: int, depth: int) -> int:
    """The most branches b with b + b² + … + b^depth within a number of replicas."""
    b = int(replicas ** (1.0 / depth)) + 1
    while sum(b**i for i in range(1, depth + 1)) > replicas:
        b -= 1
    return b
