"""Asking several replicas and taking the freshest copy: what it gains, and what it costs in service [004 section VII].

Replicas poll the source independently of each other. A client that asks `asked` of them and takes the freshest
copy sees what one replica would hold that polled whenever any of them does: the superposition of their polls.
A bare rate of changes means Poisson changes, a bare rate of polls even polls.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.inverse import Shape, change_process, poll_shape, rate_for_freshness
from unstale.core.lags import trails
from unstale.core.processes import Constant, Poisson, Process, Superposition
from unstale.core.quadrature import integrate
from unstale.errors import InfeasibleError, require, sentence
from unstale.frozen import dataclass


def merged(polls: Process | float, asked: int) -> Process:
    """The polls of `asked` independent replicas as one stream; `polls` are those of each.

    P(nobody has polled for x) = `age_survival(x)^asked`: exact for every number. Poisson polls stay Poisson,
    and many rare streams of any shape tend to Poisson (Palm–Khintchine), so `Poisson(asked·rate)` is the
    limit. Its freshness, age and every other measure come from `core.staleness`. [004 sect. VII, theorem 6].

    >>> from unstale.core.processes import Constant
    >>> round(merged(Constant(20.0), 20).age_survival(1.0), 12), round(Poisson(1.0).age_survival(1.0), 12)
    (0.358485922409, 0.367879441171)
    """
    d, k = _process(polls), whole("asked", asked)
    if k == 1:
        return d
    return Poisson(k * d.rate) if isinstance(d, Poisson) else Superposition([d] * k)


def freshest_freshness(changes: Process | float, polls: Process | float, asked: int) -> float:
    """Chance that the freshest of `asked` replicas, polling independently of each other, is fresh.

    `∫ asked·age_density(y)·age_survival(y)^(asked−1)·age_survival_changes(y) dy` over the polls of each: one
    of them is the freshest, and nothing has changed since it polled. All copies turn stale at the same
    change, so this is far below `1 − (1 − freshness)^asked`. At one merged rate, more replicas help if gaps
    between polls are irregular (NWU) and harm if they are even (NBU). Error below 1e-10. [004 sect. VII-B].

    >>> from unstale.core.processes import Constant
    >>> round(freshest_freshness(1.0, Constant(2.0), 2), 12), round(freshest_freshness(1.0, Constant(1.0), 1), 12)
    (0.567667641618, 0.632120558829)
    """
    return _fresh(change_process(changes), _process(polls), whole("asked", asked))


def sync_rate_for_freshest(changes: Process | float, freshness: float, asked: int, polls: Shape = "fixed") -> float:
    """The least sync rate of each replica at which the freshest of `asked` reaches this freshness.

    The inverse of `freshest_freshness`; times `asked` it is the merged rate λ* of [004 sect. VII-A]. With
    polls "purely-random" it is the limit of many replicas of any shape. An InfeasibleError for freshness 1.

    >>> [round(20 * sync_rate_for_freshest(1.0, 0.5, 20, polls), 9) for polls in ("fixed", "purely-random")]
    [0.975312648, 1.0]
    """
    u, shape, k = change_process(changes), poll_shape(polls), whole("asked", asked)
    return rate_for_freshness(freshness, u, shape, lambda d: _fresh(u, d, k), lambda d: _stale(u, d, k))


@dataclass(frozen=True, slots=True)
class Service:
    """What a cluster of equal replicas gives its clients, and what that takes."""

    #: chance that what a client gets is fresh
    freshness: float
    #: how many replicas there are, and how many of them a client asks
    replicas: float
    asked: int
    #: polls that each replica sends to the source per unit of time
    sync_rate: float
    #: requests of clients that the cluster answers per unit of time
    requests: float

    @property
    def source_polls(self) -> float:
        """Polls that the source receives per unit of time."""
        return self.replicas * self.sync_rate


def service(
    changes: Process | float, polls: Process | float, *, replicas: float, capacity: float, asked: int = 1
) -> Service:
    """What `replicas` replicas, each with these polls, give clients that ask `asked` of them.

    requests = `replicas·(capacity − sync_rate)/asked`: what a replica does not spend on polls is left for
    clients, and every request is answered `asked` times. `capacity` is what the source and each replica
    can send or answer per unit of time; the source must answer all polls. [004 eqs. 33, 34].

    >>> service(1.0, Poisson(0.05), replicas=20_000, capacity=1000.0, asked=20).requests
    999950.0
    """
    k, m = whole("asked", asked), number("replicas", replicas, least=asked, remedy="ask no more than there are")
    limit, d = number("capacity", capacity, above=0, remedy="give messages per unit of time"), _process(polls)
    if m * d.rate > limit * (1.0 + 1e-12):
        received = f"means {m * d.rate:g} polls per unit of time, above the source's capacity of {limit:g}"
        remedy = f"poll at most {limit / m:g} times each, or run at most {limit / d.rate:g}"
        raise InfeasibleError(sentence("replicas", f"{m:g}", received, remedy))
    return Service(freshest_freshness(changes, d, k), m, k, d.rate, m * (limit - d.rate) / k)


def service_for(
    changes: Process | float,
    freshness: float,
    *,
    capacity: float,
    asked: int = 1,
    polls: Shape = "fixed",
    replicas: float | None = None,
) -> Service:
    """The cluster that answers most requests at this freshness: each replica polls as rarely as the target allows.

    As many replicas as the source can feed, `capacity/sync_rate` (or `replicas`, if that is fewer), so that
    requests = `capacity²/(asked·sync_rate) − capacity/asked`. Against Poisson changes, asking 20 instead of
    1 costs evenly polled replicas 36 % of their requests at freshness 0.5, exponential ones nothing, and
    Pareto ones gain. With polls "purely-random" it is the limit of many replicas [004 eq. 35].
    [004 eqs. 33, 34, Table II; its Pareto column is that of alpha 2, not of the 3 it names].

    >>> one, many = (service_for(1.0, 0.5, capacity=1000.0, asked=k) for k in (1, 20))
    >>> round(many.replicas / one.replicas, 4), round(many.requests / one.requests, 4)
    (12.8677, 0.6438)
    """
    k, level = whole("asked", asked), number("freshness", freshness, above=0, most=1)
    limit = number("capacity", capacity, above=0, remedy="give messages per unit of time")
    shape = poll_shape(polls)
    # Fewer replicas than are asked cannot be: together these may use up the source.
    best = freshest_freshness(changes, shape.with_rate(limit / k), k)
    if level > best:
        rule = f"is above {best:.6g}, the best that capacity {limit:g} of the source allows"
        raise InfeasibleError(sentence("freshness", f"{level:g}", rule, "lower it, or raise the capacity"))
    rate = sync_rate_for_freshest(changes, level, k, shape)
    m = limit / rate
    if replicas is not None:
        m = min(m, number("replicas", replicas, least=k, remedy="ask no more than there are"))
    return Service(level, m, k, rate, m * (limit - rate) / k)


def whole(name: str, count: float) -> int:
    """A count of replicas or sources: a whole number, 1 or more."""
    checked = number(name, count, least=1, remedy="count from 1")
    require(checked == int(checked), name, count, "must be a whole number", "round it")
    return int(checked)


def _process(polls: Process | float) -> Process:
    if isinstance(polls, Process):
        return polls
    return Constant(1.0 / number("polls", polls, above=0, remedy="give the polls of one replica, a rate or a process"))


def _fresh(changes: Process, polls: Process, k: int) -> float:
    if k == 1 or isinstance(polls, Poisson):
        return float(trails(merged(polls, k), changes))

    def freshest(y: Floats) -> Floats:
        return np.asarray(polls.age_density(y) * _none(polls, y, k - 1) * changes.age_survival(y))

    return k * _over(freshest, changes, polls, k)


def _stale(changes: Process, polls: Process, k: int) -> float:
    if k == 1 or isinstance(polls, Poisson):
        return float(trails(changes, merged(polls, k)))
    return _over(lambda y: np.asarray(changes.age_density(y)) * _none(polls, y, k), changes, polls, k)


def _none(polls: Process, y: Floats, k: int) -> Floats:
    """P(none of k replicas has polled within y): a power whose base keeps its digits at both ends."""
    within = np.asarray(polls.age_cdf(y))
    with np.errstate(divide="ignore"):
        log = np.where(within < 0.5, np.log1p(-np.minimum(within, 0.5)), np.log(polls.age_survival(y)))
    return np.asarray(np.exp(k * log))


def _over(f: Callable[[Floats], Floats], changes: Process, polls: Process, k: int) -> float:
    end = min(changes.end, polls.end)
    points = [0.0, *sorted({p for p in (*changes.kinks, *polls.kinks) if p < end}), end]
    scale = math.sqrt(changes.mean) * math.sqrt(polls.mean / k)
    return float(integrate(f, points, scale=scale, rtol=1e-11)[0])


__all__ = ["Service", "freshest_freshness", "merged", "service", "service_for", "sync_rate_for_freshest"]
