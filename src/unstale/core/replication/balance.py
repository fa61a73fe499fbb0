"""One source, many replicas: polls taken in turns or independently, and what independence costs [003 section VI-D, E].

A client asks some of the replicas and takes the freshest copy: one of them to spread load, all of them to recover a
source that has failed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats, number, numbers
from unstale.core.inverse import Shape, change_process, poll_shape, sync_rate_for
from unstale.core.penalties import Penalty
from unstale.core.processes import Constant, Empirical, Poisson, Process
from unstale.core.replication.redundancy import freshest_freshness, merged, sync_rate_for_freshest, whole
from unstale.core.staleness import freshness as one_freshness
from unstale.core.staleness import staleness, update_staleness
from unstale.errors import require
from unstale.frozen import dataclass


def round_robin(sync_rate: float, replicas: int, asked: int | None = None) -> Process:
    """Polls of `asked` of the replicas, chosen at random, that take turns: one polls every `1/(replicas·sync_rate)`.

    Between two polls of the chosen lie i turns with chance `C(replicas−1−i, asked−2)/C(replicas−1, asked−1)`.
    All replicas asked (the default) are as good as one that polls evenly at their summed rate, the best that
    polls can be [003 theorem 10]; one asked polls evenly at `sync_rate`. [003 sect. VI-D].

    >>> round_robin(0.5, 4), round_robin(0.5, 4, 1), round_robin(0.5, 3, 2).gaps.round(3).tolist()
    (Constant(gap=0.5), Constant(gap=2.0), [0.667, 1.333])
    """
    rate, m, j = _checked(sync_rate, replicas, asked)
    turn = 1.0 / (m * rate)
    if j in (1, m):
        return Constant(turn if j == m else 1.0 / rate)
    gap = np.arange(1, m - j + 2)
    # each chance from the one before: (m − j + 1 − i)/(m − 1 − i)
    chance = np.cumprod(np.append(1.0, (m - j - gap[:-1] + 1.0) / (m - gap[:-1] - 1.0)))
    return Empirical(gap * turn, chance)


@dataclass(frozen=True, slots=True)
class Balance:
    """What clients see who ask some of a source's replicas, and what it takes."""

    #: chance that the freshest copy among the replicas asked is fresh
    freshness: float
    #: how many replicas there are, and how many of them a client asks
    replicas: int
    asked: int
    #: polls that each replica sends to the source per unit of time
    sync_rate: float

    @property
    def source_polls(self) -> float:
        """Polls that the source receives per unit of time."""
        return self.replicas * self.sync_rate


def balance(
    changes: Process | float,
    sync_rate: float,
    replicas: int,
    *,
    asked: int | None = None,
    polls: Shape = "fixed",
    coordinated: bool = False,
) -> Balance:
    """Freshness for clients that ask `asked` of the replicas (all, unless given), each polled at `sync_rate`.

    `coordinated` replicas poll in turns (`round_robin`), others independently with gaps of the shape `polls`
    (`redundancy.freshest_freshness`). Who asks one replica sees no difference; who asks more is better off with
    turns. [003 sect. VI-D].

    >>> [round(balance(1.0, 0.1, 10, coordinated=c).freshness, 4) for c in (True, False)]
    [0.6321, 0.5128]
    """
    rate, m, j = _checked(sync_rate, replicas, asked)
    u, shape = change_process(changes), _shape(polls, coordinated)
    if coordinated:
        seen = float(one_freshness(u, round_robin(rate, m, j)))
    else:
        seen = freshest_freshness(u, shape.with_rate(rate), j)
    return Balance(seen, m, j, rate)


def balance_for(
    changes: Process | float,
    freshness: float,
    replicas: int,
    *,
    asked: int | None = None,
    polls: Shape = "fixed",
    coordinated: bool = False,
) -> Balance:
    """The replicas' least sync rate at which clients see this freshness: the inverse of `balance`.

    >>> [round(balance_for(1.0, 0.8, 10, coordinated=c).source_polls, 4) for c in (True, False)]
    [2.1542, 3.6997]
    """
    _, m, j = _checked(1.0, replicas, asked)
    u, shape = change_process(changes), _shape(polls, coordinated)
    if coordinated:
        rate = sync_rate_for(u, freshness=freshness, polls=round_robin(1.0, m, j)) / j
    else:
        rate = sync_rate_for_freshest(u, freshness, j, shape)
    return Balance(number("freshness", freshness), m, j, rate)


class Independence(NamedTuple):
    """What it costs that replicas do not take turns."""

    #: staleness at equal polls, as a multiple of that of replicas that take turns
    staleness: float
    #: polls for equal staleness, as a multiple
    polls: float


def independence_cost(
    changes: Process | float,
    sync_rate: float,
    replicas: float,
    penalty: Penalty,
    *,
    polls: Shape = "fixed",
    summed: bool = False,
) -> Independence:
    """Staleness of the freshest of independent replicas against replicas that take turns, and polls against polls.

    `sync_rate` is that of each of a finite number; with `replicas=math.inf` (many rare streams merge into Poisson
    polls) it is the sum. `summed` adds up the penalties of all unseen changes. Then, for evenly polled
    replicas, staleness is `2m/(m+1)` times as high with w = 1 and `6m²/((m+1)(m+2))` with w = x: 2 and 6
    in the limit. The polls for equal staleness are `2` and `√6` times as many, 100–145 % more, not
    100–500 % as [003 sect. VI-D] has it, which takes the factor 6 in staleness for one in polls.

    >>> from unstale.core.penalties import Linear
    >>> [round(x, 4) for x in independence_cost(1.0, 1.0, math.inf, Linear(), summed=True)]
    [6.0, 2.4495]
    """
    u, rate = change_process(changes), number("sync_rate", sync_rate, above=0)
    turns: Process = Constant(1.0 / rate)
    alone: Process = Poisson(rate)
    if replicas != math.inf:
        m = whole("replicas", replicas)
        turns, alone = round_robin(rate, m), merged(poll_shape(polls).with_rate(rate), m)
    if summed:
        level = float(update_staleness(u, turns, penalty))
        needed = sync_rate_for(u, update_staleness=(penalty, level), polls=alone)
        return Independence(float(update_staleness(u, alone, penalty)) / level, needed / turns.rate)
    level = float(staleness(u, turns, penalty))
    needed = sync_rate_for(u, staleness=(penalty, level), polls=alone)
    return Independence(float(staleness(u, alone, penalty)) / level, needed / turns.rate)


def many_to_many(
    changes: Sequence[Process | float],
    sync_rate: float | Sequence[float],
    replicas: int,
    *,
    asked: int | None = None,
    polls: Shape = "fixed",
    coordinated: bool = False,
) -> Floats:
    """Freshness of each of many sources for a client that asks `asked` of the replicas for all of them.

    `balance` for each source; `sync_rate` of one replica, one for all sources or one for each. What is known of
    several sources at once follows from `study.aggregation`: `any_fresh`, `all_fresh`, `at_least_fresh`.
    Sources independent, each polled at moments of its own. [003 sect. VI-E].

    >>> one, other = many_to_many([1.0, 2.0], 0.1, 10, asked=3)
    >>> round(float(1 - (1 - one) * (1 - other)), 4)
    0.3484
    """
    require(len(changes) > 0, "changes", changes, "must name one source or more", "give a rate or process for each")
    rates = numbers("sync_rate", sync_rate, above=0)
    fits = rates.shape in ((), (len(changes),))
    require(fits, "sync_rate", f"of shape {rates.shape}", f"must match the {len(changes)} changes", "give one each")
    seen = [
        balance(each, rate, replicas, asked=asked, polls=polls, coordinated=coordinated).freshness
        for each, rate in zip(changes, np.broadcast_to(rates, len(changes)).tolist(), strict=True)
    ]
    return np.array(seen)


def _checked(sync_rate: float, replicas: int, asked: int | None) -> tuple[float, int, int]:
    m = whole("replicas", replicas)
    j = m if asked is None else whole("asked", asked)
    require(j <= m, "asked", asked, f"must be at most the number of replicas, {m}", "ask fewer")
    return number("sync_rate", sync_rate, above=0, remedy="give polls of one replica per unit of time"), m, j


def _shape(polls: Shape, coordinated: bool) -> Process:
    shape = poll_shape(polls)
    even = isinstance(shape, Constant) or not coordinated
    require(even, "polls", polls, "must be fixed for replicas that take turns", "drop polls or coordinated")
    return shape


__all__ = ["Balance", "Independence", "balance", "balance_for", "independence_cost", "many_to_many", "round_robin"]
