"""How stale one copy is in the long run: freshness, age, lag, penalties [000 sect. 4, 003 sect. IV].

A bare rate of changes means Poisson changes, a bare rate of polls means even polls; arrays of rates
broadcast. A `Process` may stand for either. All averages take the ages of the two processes as independent
[003 definition 6]: certain if one of them is Poisson or has independent non-lattice gaps, not if both are
lattices in step (see `phase`). Results are closed forms, or integrals with a relative error below 1e-10, or a
ConvergenceError.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.exponential import exp_remainder
from unstale.core.lags import mean_penalty, mean_update_penalty, trails
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear, Penalty
from unstale.core.poisson_orders import order_age, order_freshness, order_staleness
from unstale.core.processes import Constant, Poisson, Process

__all__ = [
    "Rate",
    "age",
    "age_after",
    "consistency",
    "freshness",
    "freshness_after",
    "lag_cdf",
    "missed_changes",
    "staleness",
    "update_staleness",
]

Rate = ArrayLike | Process


def freshness(changes: Rate, polls: Rate) -> Floats | float:
    """Share of time the copy equals the source.

    P(last change older than last poll) = `∫ age_density_polls(y)·age_survival_changes(y) dy`; for rates
    `(1 − e^(−r))/r`, r = changes/polls. Among polls of one rate even ones are freshest, whatever the
    changes; among changes of one rate, irregular ones (Pareto) leave the copy freshest.
    A source that never changes is fresh even unpolled. [003 eq. 36, theorem 10], [000 Table 2], [004 eq. 8].

    >>> round(freshness(1.0, 1.0), 12)
    0.632120558829
    >>> from unstale.core.processes import Pareto
    >>> round(freshness(Pareto(3.0, 1.0), 2.0), 12)
    0.666666666667
    """
    if not _processes(changes, polls):
        return order_freshness(changes, polls)  # type: ignore[arg-type]
    return _each(lambda u, d: float(trails(d, u)), changes, polls, still=1.0, never=0.0)


def age(changes: Rate, polls: Rate) -> Floats | float:
    """Mean age of the copy: time since the first change it lacks, 0 while it is fresh.

    `∫ age_cdf_changes(x)·age_survival_polls(x) dx`; for rates `(1/2 − 1/r + (1−e^(−r))/r²)/polls`.
    At most E[polls' age], to which it tends for fast changes: half an interval for even polls. Infinite
    if the gaps between polls have no second moment. [003 eqs. 42, 47, 48], [000 Table 2].

    >>> round(age(1.0, 1.0), 12)
    0.132120558829
    """
    return staleness(changes, polls, Linear())


def staleness(changes: Rate, polls: Rate, penalty: Penalty) -> Floats | float:
    """Long-run average of the penalty w(age): the source penalty of 003.

    `E[w(age of polls − age of changes)]`, w = 0 below 0, which for even polls is
    `sync_rate·E[w2(interval − age of changes)]`. Constant() gives 1 − freshness, Linear() the age.
    Even polls are optimal for every non-decreasing w only; the average itself needs no such thing.
    [003 eqs. 42, 46, 49]; of theorem 8 ("iff") only ⇒ holds for a given change process.

    >>> from unstale.core.penalties import Deadline
    >>> round(staleness(2.0, 3.0, Deadline(0.1)), 9)
    0.140633628
    """
    if not _processes(changes, polls):
        if isinstance(penalty, Indicator):
            return order_staleness(changes, polls)  # type: ignore[arg-type]
        if isinstance(penalty, Linear):
            return order_age(changes, polls)  # type: ignore[arg-type]
    return _each(lambda u, d: mean_penalty(u, d, penalty), changes, polls, still=0.0, never=penalty.limit)


def update_staleness(changes: Rate, polls: Rate, penalty: Penalty) -> Floats | float:
    """Long-run average of the penalties of all unseen changes added up: the update penalty of 003.

    `change_rate·E[w2(age of polls)]`, for even polls `change_rate·sync_rate·w3(interval)`. Only the rate of
    the changes matters, not their pattern. Infinite if polls are too irregular for w2, or never come.
    [003 eq. 50; after eq. 55 it is once called source penalty by mistake].

    >>> round(update_staleness(2.0, 3.0, Linear()), 12)
    0.037037037037
    """
    never = float(penalty.w2(math.inf))
    if isinstance(changes, Process) and not isinstance(polls, Process):
        changes = changes.rate
    if not _processes(changes, polls):
        rate, sync = _rates(changes, polls)  # type: ignore[arg-type]
        with np.errstate(all="ignore"):
            if penalty.degree is None:
                harm = sync * np.asarray(penalty.w3(1.0 / sync))
            else:
                # the same, where w3(interval) alone would overflow
                harm = penalty.w3(1.0) * sync ** -(penalty.degree + 1)
            return plain(np.where(rate == 0, 0.0, rate * np.where(sync > 0, harm, never)))
    return _each(lambda u, d: mean_update_penalty(u, d, penalty), changes, polls, still=0.0, never=never)


def missed_changes(changes: Rate, polls: Rate) -> Floats | float:
    """Mean number of changes the copy lacks at a random time.

    `change_rate·E[age of polls] = change_rate/(2·sync_rate)·(1 + sync_rate²·Var[interval])`: it grows with
    the variance of the intervals and nothing else; Pareto intervals with alpha = 3 quadruple it.
    [003 eqs. 54, 55].

    >>> missed_changes(2.0, 2.0)
    0.5
    """
    return update_staleness(changes, polls, Indicator())


def lag_cdf(x: ArrayLike, changes: Process | float, polls: Process | float) -> Floats | float:
    """P(age ≤ x) of a copy known to be stale.

    `1 − P(age of polls − age of changes > x)/P(… > 0)`. At x = 0 it is 0; for even polls it is 1 from one
    interval on. [003 eq. 38; its proof, eq. 40, has a factor 1/T too many].

    >>> from unstale.core.processes import Pareto
    >>> round(lag_cdf(0.1, Pareto(3.0, 1.0), 2.0), 12)
    0.314285714286
    """
    u, d = _pair(changes, polls)
    return plain(1.0 - np.asarray(trails(u, d, numbers("x", x, least=0))) / trails(u, d))


def consistency(tau: ArrayLike, changes: Process | float, polls: Process | float) -> Floats | float:
    """Share of time the copy is fresh or stale by tau at most (Δ-consistency).

    `P(age of polls − age of changes ≤ tau)`: freshness at tau = 0, growing to 1, which even polls reach at
    one interval. [003 eq. 41].

    >>> from unstale.core.processes import Pareto
    >>> round(consistency(0.4, Pareto(3.0, 1.0), 2.0), 12)
    0.981818181818
    """
    u, d = _pair(changes, polls)
    return plain(1.0 - np.asarray(trails(u, d, numbers("tau", tau, least=0))))


def freshness_after(t: ArrayLike, changes: Rate) -> Floats | float:
    """Chance that a copy is still fresh a time t after its poll.

    `age_survival(t)` of the changes, `e^(−change_rate·t)` for a rate: polls come at moments that are
    random to the source. [000 sect. 2.2].

    >>> round(freshness_after(2.0, 1.0), 12)
    0.135335283237
    """
    t = numbers("t", t, least=0, infinite=True, remedy="give the time since the last poll")
    if isinstance(changes, Process):
        return changes.age_survival(t)
    rate = numbers("changes", changes, least=0)
    with np.errstate(over="ignore", invalid="ignore"):
        return plain(np.where(rate == 0, 1.0, np.exp(-rate * t)))


def age_after(t: ArrayLike, changes: Rate) -> Floats | float:
    """Expected age of a copy a time t after its poll.

    `E[(t − A)⁺]`, A the age of the changes; for a rate `t·(1 − (1 − e^(−rate·t))/(rate·t))`, about
    rate·t²/2 soon after the poll and t − 1/rate long after. [000 sect. 2.2].

    >>> round(age_after(2.0, 1.0), 12)
    1.135335283237
    """
    t = numbers("t", t, least=0, infinite=True, remedy="give the time since the last poll")
    if isinstance(changes, Process):
        return changes.age_shortfall(t)
    rate = numbers("changes", changes, least=0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return plain(np.where(rate == 0, 0.0, exp_remainder(2, rate * t) / rate))


def _processes(changes: Rate, polls: Rate) -> bool:
    return isinstance(changes, Process) or isinstance(polls, Process)


def _pair(changes: Process | float, polls: Process | float) -> tuple[Process, Process]:
    u = changes if isinstance(changes, Process) else Poisson(number("changes", changes, above=0))
    d = polls if isinstance(polls, Process) else Constant(1.0 / number("polls", polls, above=0))
    return u, d


def _rates(changes: ArrayLike, polls: ArrayLike) -> tuple[Floats, Floats]:
    return numbers("changes", changes, least=0), numbers("polls", polls, least=0)


def _each(
    formula: Callable[[Process, Process], float], changes: Rate, polls: Rate, still: float, never: float
) -> Floats | float:
    """The formula for each pair of rates; `still` if the source never changes, `never` if never polled."""

    def one(u: Process | float, d: Process | float) -> float:
        if not isinstance(u, Process) and u == 0:
            return still
        if not isinstance(d, Process) and d == 0:
            return never
        return formula(*_pair(u, d))

    us = changes if isinstance(changes, Process) else numbers("changes", changes, least=0)
    ds = polls if isinstance(polls, Process) else numbers("polls", polls, least=0)
    shape = np.broadcast_shapes(
        np.shape(us) if not isinstance(us, Process) else (), np.shape(ds) if not isinstance(ds, Process) else ()
    )
    columns = [
        [x] * math.prod(shape) if isinstance(x, Process) else np.broadcast_to(x, shape).ravel().tolist()
        for x in (us, ds)
    ]
    return plain(np.array([one(u, d) for u, d in zip(*columns, strict=True)]).reshape(shape))
