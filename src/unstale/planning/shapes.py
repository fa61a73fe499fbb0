"""The best design of each shape in which machines do not talk to each other, by the accounting of `topology`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from unstale.core.inverse import rate_for_freshness, sync_rate_for
from unstale.core.processes import Constant, Process
from unstale.core.replication import cascade_freshness, cascade_levels
from unstale.core.replication.balance import balance, balance_for
from unstale.core.replication.redundancy import freshest_freshness, sync_rate_for_freshest
from unstale.core.staleness import freshness as one_freshness
from unstale.planning.question import Design, Question, floor, out_of_reach, too_few

#: so much of the most clients is given up for groups that are small
_SMALL = 0.01


def single(question: Question) -> Design:
    """One machine, whatever there are."""
    return replace(independent(replace(question, machines=1)), shape="single")


def independent(question: Question) -> Design:
    """Every machine polls the source for itself; as many as the source can feed."""
    rate = sync_rate_for(question.process, freshness=question.target)
    machines = min(question.count, floor(question.source / rate))
    if machines < 1 or rate >= question.limit:
        best = float(one_freshness(question.process, min(question.source, question.limit)))
        return out_of_reach(question, "independent", best, "a machine that polls as often as it can comes to")
    clients = machines * (question.limit - rate)
    return Design("independent", question.target, clients, machines, sync_rate=rate, source_polls=machines * rate)


def turns(question: Question) -> Design:
    """Groups of machines that poll in turns, clients ask a whole group: it is one machine with its polls shared out.

    The larger the groups, the less each machine polls, and the more answers each client costs: of sizes that serve
    as many to within 1 %, the smallest.
    """
    if question.count < 2:
        return too_few("turns")
    together = balance_for(question.process, question.target, 1).sync_rate
    groups = np.arange(1.0, min(question.count // 2, floor(question.source / together)) + 1.0)
    sizes = np.floor(question.count / groups)
    clients = groups * (question.limit - together / sizes)
    if not np.any(clients > 0):
        best = balance(
            question.process, min(question.source / question.count, question.limit), question.count, coordinated=True
        ).freshness
        return out_of_reach(question, "turns", best, "all machines, polling in turns and asked together, come to")
    k = int(np.argmax(clients))
    size, count = np.arange(2.0, sizes[k] + 1.0), int(groups[k])
    served = count * (question.limit - together / size)
    few = int(np.argmax(served >= (1.0 - _SMALL) * clients[k]))
    asked = int(size[few])
    return Design(
        "turns",
        question.target,
        float(served[few]),
        asked * count,
        asked=asked,
        sync_rate=together / asked,
        source_polls=count * together,
    )


def redundancy(question: Question) -> Design:
    """Machines poll for themselves, clients ask several and take the freshest."""
    if question.count < 2:
        return too_few("redundancy")
    # Merged even polls are never better than the even polls of one: fewer than this cannot do.
    alone = sync_rate_for(question.process, freshness=question.target)
    best, before, asked = None, 0.0, max(2, floor(alone / question.limit))
    while asked <= question.count:
        rate = sync_rate_for_freshest(question.process, question.target, asked)
        machines = min(question.count, floor(question.source / rate))
        clients = machines * (question.limit - rate) / asked
        if machines >= asked and clients > (best.clients if best else 0.0):
            best = Design(
                "redundancy",
                question.target,
                clients,
                machines,
                asked=asked,
                sync_rate=rate,
                source_polls=machines * rate,
            )
        # Without whole numbers of machines there is one peak, in every case examined: beyond it, none does better.
        bound = min(question.count, question.source / rate) * (question.limit - rate) / asked
        if asked * rate > question.source or (best and bound < before and bound <= best.clients):
            break
        before, asked = bound, asked + max(1, asked // 50)
    if best:
        return best
    few = min(max(2, floor(question.source / question.limit)), question.count)
    reached = max(
        freshest_freshness(question.process, Constant(1.0 / min(question.limit, question.source / k)), k)
        for k in (few, min(few + 1, question.count))
    )
    return out_of_reach(question, "redundancy", reached, "whoever asks several machines sees at most")


def tree(question: Question, rate_at: Callable[[int, float], float] | None = None) -> Design:
    """Machines poll machines; all levels poll equally often, and the deepest reaches the target."""
    if question.count < 2:
        return too_few("tree")
    best = None
    for depth in range(2, question.count + 1):
        rate = (rate_at or partial(_cascade_rate, question.process))(depth, question.target)
        top = min(question.count + 1 - depth, floor(question.source / rate))
        branching = floor(question.limit / rate) - 1
        if top < 1 or branching < 1:
            break
        levels = [top]
        for below in range(depth - 1, 0, -1):
            # of what is left each level still to come gets one at least
            levels.append(min(levels[-1] * branching, question.count - sum(levels) - below + 1))
        machines = sum(levels)
        clients = machines * question.limit - (2 * machines - top) * rate
        if clients > (best.clients if best else 0.0):
            best = Design(
                "tree", question.target, clients, machines, tuple(levels), sync_rate=rate, source_polls=top * rate
            )
        # deeper trees poll more often: for no more machines, or for too few
        if machines == question.count or (best and clients < best.clients):
            break
    if best:
        return best
    reached = cascade_freshness(question.process, [min(question.source, question.limit / 2)] * 2)
    return out_of_reach(question, "tree", reached, "a machine that polls another one as often as both can comes to")


def _cascade_rate(changes: Process, depth: int, target: float) -> float:
    def fresh(polls: Process) -> float:
        return cascade_freshness(changes, [polls] * depth)

    return rate_for_freshness(target, changes, Constant(1.0), fresh, lambda polls: 1.0 - fresh(polls))


def tabulated(changes: Process, deepest: int) -> Callable[[int, float], float]:
    """`_cascade_rate` from a table; inf for what is deeper or fresher than it goes."""
    from scipy.interpolate import PchipInterpolator

    rates = changes.rate * np.geomspace(0.02, 2000.0, 30)
    table = np.array([cascade_levels(changes, [float(rate)] * deepest) for rate in rates])
    # a straight line in these at both ends: stale falls like 1/rate, fresh grows like a power of it
    odds = [PchipInterpolator(np.log(level / (1.0 - level)), np.log(rates)) for level in table.T]

    def rate_at(depth: int, target: float) -> float:
        if depth > deepest or target > table[-1, depth - 1]:
            return np.inf
        return float(np.exp(odds[depth - 1](np.log(target / (1.0 - target)))))

    return rate_at
