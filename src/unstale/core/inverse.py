"""The questions the other way round: how often must we poll to be this fresh?"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.lags import mean_lag, mean_penalty, mean_update_penalty, trails
from unstale.core.penalties import Penalty, require_nondecreasing
from unstale.core.processes import Poisson, Process
from unstale.core.processes.named import polling
from unstale.core.roots.rising import Rows, root
from unstale.errors import InfeasibleError, InputError, sentence

Shape = str | Process


def sync_rate_for(
    changes: Process | float,
    *,
    freshness: float | None = None,
    age: float | None = None,
    staleness: tuple[Penalty, float] | None = None,
    update_staleness: tuple[Penalty, float] | None = None,
    consistency: tuple[float, float] | None = None,
    polls: Shape = "fixed",
) -> float:
    """The least sync rate that meets one target: freshness, age, (penalty, staleness), also summed over all
    unseen changes (update_staleness), or (tau, consistency).

    Each is monotone in the sync rate at a fixed shape of polls (more polls only ever help; staleness needs a
    penalty that does not decrease), so the answer is the one root, on logarithms to a relative 1e-13. 0 if the
    target holds without polls; an InfeasibleError if no rate meets it (freshness 1; an age when the polls
    have no second moment). A bare rate of changes is Poisson; `polls` is an order or any process, whose rate
    is ignored. [003 Fig. 10, 000 sect. 4: r < 0.46 for freshness 0.8].

    >>> round(sync_rate_for(1.0, freshness=0.8), 12)
    2.154184671936
    """
    u, shape = change_process(changes), poll_shape(polls)
    given = [t is not None for t in (freshness, age, staleness, update_staleness, consistency)]
    if sum(given) != 1:
        raise InputError(
            sentence(
                "targets",
                sum(given),
                "must be exactly one",
                "give one of freshness, age, staleness, update_staleness, consistency",
            )
        )
    if freshness is not None:
        return _for_freshness(u, shape, freshness)
    if consistency is not None:
        tau, level = number("tau", consistency[0], least=0), number("level", consistency[1], least=0, most=1)
        if level == 1 and tau > 0 and math.isfinite(shape.end):
            return shape.end * shape.rate / tau
        if tau == 0:
            return _for_freshness(u, shape, level)
        return _least(lambda d: float(trails(u, d, tau)), u, shape, 1.0 - level, worst=1.0, what=f"consistency {level}")
    if age is not None:
        level = number("age", age, least=0, infinite=True)
        return _least(lambda d: mean_lag(u, d), u, shape, level, worst=math.inf, what=f"age {level}")
    if update_staleness is not None:
        penalty, level = update_staleness[0], number("update_staleness", update_staleness[1], least=0, infinite=True)
        never = u.rate * float(penalty.w2(math.inf))
        return _least(
            lambda d: mean_update_penalty(u, d, penalty), u, shape, level, worst=never, what=f"update_staleness {level}"
        )
    assert staleness is not None
    penalty, level = staleness[0], number("staleness", staleness[1], least=0, infinite=True)
    require_nondecreasing(penalty, "sync_rate_for")
    return _least(
        lambda d: mean_penalty(u, d, penalty), u, shape, level, worst=penalty.limit, what=f"staleness {level}"
    )


def speedup(changes: Process | float, sync_rate: float, factor: float = 2.0, polls: Shape = "fixed") -> float:
    """Freshness at `factor` times the sync rate, divided by freshness now.

    At most `factor` (freshness is concave in the sync rate), close to it where polls are scarce, close to 1
    where they abound: what doubling the budget of one source buys. [003 eq. 36].

    >>> round(speedup(1.0, 1.0), 12)
    1.244918662404
    """
    u = change_process(changes)
    now = number("sync_rate", sync_rate, above=0)
    more = now * number("factor", factor, above=0)
    shape = poll_shape(polls)
    return float(trails(shape.with_rate(more), u)) / float(trails(shape.with_rate(now), u))


def poisson_overestimate(changes: Process, freshness: float, polls: Shape = "fixed") -> float:
    """How many times more polls a target seems to need if changes of the same rate are taken to be Poisson.

    `sync_rate_for(Poisson(rate))/sync_rate_for(changes)`. Above 1 for bursty changes (Pareto), below 1 for
    even ones. [003 sect. VI-B] reports 95 polls a day against 8 for 80 % freshness; its printed fits give 27.8
    against 15.3 (alpha 1.4) or 20.6 (alpha 1.5), and no trace is at hand to check the 8.

    >>> from unstale.core.processes import Pareto
    >>> round(poisson_overestimate(Pareto(1.5, 0.93), 0.8), 6)
    1.346365
    """
    return sync_rate_for(changes.rate, freshness=freshness, polls=polls) / sync_rate_for(
        changes, freshness=freshness, polls=polls
    )


def rate_for_freshness(
    level: float, changes: Process, shape: Process, fresh: Callable[[Process], float], stale: Callable[[Process], float]
) -> float:
    """The least rate of polls of this shape at which `fresh(polls)`, which grows with their rate, reaches level.

    `stale` is 1 − fresh, computed without the difference: the smaller of the two is what keeps its digits.
    """
    level = number("freshness", level, least=0, most=1)
    if level <= 0.5:
        return 0.0 if level == 0 else _root(lambda d: -math.log(fresh(d)) + math.log(level), changes, shape)
    return _least(stale, changes, shape, 1.0 - level, worst=1.0, what=f"freshness {level}")


def change_process(changes: Process | float) -> Process:
    """Changes as a process: a bare rate means Poisson."""
    return changes if isinstance(changes, Process) else Poisson(number("changes", changes, above=0))


def poll_shape(polls: Shape) -> Process:
    """Polls as a process whose rate does not matter: an order or a kind of gaps by name, or any process."""
    return polls if isinstance(polls, Process) else polling(polls, 1.0)


def _for_freshness(u: Process, shape: Process, level: float) -> float:
    return rate_for_freshness(level, u, shape, lambda d: float(trails(d, u)), lambda d: float(trails(u, d)))


def _least(
    harm: Callable[[Process], float], u: Process, shape: Process, level: float, worst: float, what: str
) -> float:
    """The least rate at which harm, which falls from `worst` to 0 as the rate grows, is at most `level`."""
    if level >= worst:
        return 0.0
    if level <= 0 or not math.isfinite(harm(shape.with_rate(u.rate))):
        rule = "cannot be reached by any finite sync rate with these polls"
        raise InfeasibleError(sentence("target", what, rule, "ask for less, or poll more evenly"))
    return _root(lambda d: math.log(max(harm(d), 5e-324)) - math.log(level), u, shape)


def _root(excess: Callable[[Process], float], u: Process, shape: Process) -> float:
    """The rate where a function falling in the logarithm of the rate crosses 0."""

    def shortfall(_: Rows, log_rate: Floats) -> Floats:
        return np.array([-excess(shape.with_rate(math.exp(x))) for x in log_rate])

    return math.exp(root(shortfall, np.array([math.log(u.rate)]))[0])
