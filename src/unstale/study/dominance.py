"""Which of two processes with the same rate is the better way to poll: second-order stochastic dominance."""

from __future__ import annotations

from typing import Literal

import numpy as np

from unstale.core.checks import Floats
from unstale.core.processes.base import Ageing, Process
from unstale.core.processes.constant import Constant
from unstale.errors import require
from unstale.frozen import dataclass

Verdict = Literal["first", "second", "equal", "neither"]
#: relative differences of the age laws below this count as rounding
TOLERANCE = 1e-10
_RANK = {Ageing.NBU: 2, Ageing.MEMORYLESS: 1, Ageing.NWU: 0}


@dataclass(frozen=True, slots=True)
class DominanceVerdict:
    """The verdict, the range of `first.age_cdf − second.age_cdf`, and the times where its ends are met."""

    verdict: Verdict
    least: float
    least_at: float
    most: float
    most_at: float


def dominates(first: Process, second: Process) -> bool:
    """Whether `first` dominates `second` in second order: ∫₀ˣ survival is nowhere smaller.

    With equal means this says that first's age is nowhere likelier to exceed x than second's [003 Def. 7 and
    Lemma 1, 004 Def. 1]. Polling by the dominating process gives a staleness no greater against every change
    process and every penalty. [003 Theorem 8 prints "iff" for one given change process, which is wrong: only
    this direction holds; its Theorem 9, for update penalties, is an equivalence.]

    >>> from unstale.core.processes import Constant, Poisson
    >>> dominates(Constant(2.0), Poisson(0.5)), dominates(Poisson(0.5), Constant(2.0))
    (True, False)
    """
    return compare(first, second).verdict in ("first", "equal")


def compare(first: Process, second: Process) -> DominanceVerdict:
    """Who dominates whom, or "neither" where the age laws cross, or "equal".

    Known orders come first: a constant gap dominates all; NBU dominates memoryless dominates NWU
    [004 sect. IV-B]. Everything else is checked at all kinks and at 4,000 times from 1e-12 to 1e+12 mean
    gaps; below the median age relative to P(A ≤ x), above it to P(A > x), so that a crossing far in the tail
    counts. A difference below 1e-10, relative, does not. The ends of the range are refined by finer grids.

    >>> from unstale.core.processes import LogNormal, Poisson
    >>> compare(LogNormal.from_rate(0.8, 1.0), Poisson(1.0)).verdict
    'neither'
    """
    same = abs(first.rate - second.rate) <= 1e-9 * first.rate
    rule = f"must equal the first process's {first.rate}"
    require(same, "second.rate", second.rate, rule, "compare first with second.with_rate(first.rate)")
    # At rate 1 no grid overflows, and the last bit of the rates is equal.
    unit, first, second = first.mean, first.with_rate(1.0), second.with_rate(1.0)
    x = np.unique(np.concatenate([np.geomspace(1e-12, 1e12, 4001), first.kinks, second.kinks]))
    difference, relative = _differences(first, second, x)
    least_at, least = _extreme(first, second, x, difference, -1.0)
    most_at, most = _extreme(first, second, x, difference, 1.0)
    verdict = _known(first, second)
    if verdict is None:
        ahead, behind = bool(np.any(relative > TOLERANCE)), bool(np.any(relative < -TOLERANCE))
        table: dict[tuple[bool, bool], Verdict] = {
            (True, False): "first",
            (False, True): "second",
            (False, False): "equal",
            (True, True): "neither",
        }
        verdict = table[ahead, behind]
    return DominanceVerdict(verdict, least, least_at * unit, most, most_at * unit)


def _known(first: Process, second: Process) -> Verdict | None:
    if first == second:
        return "equal"
    if isinstance(first, Constant) and not isinstance(second, Constant):
        return "first"
    if isinstance(second, Constant) and not isinstance(first, Constant):
        return "second"
    ranks = _RANK.get(first.ageing), _RANK.get(second.ageing)
    if ranks[0] is None or ranks[1] is None or ranks[0] == ranks[1]:
        return "equal" if ranks == (1, 1) else None
    return "first" if ranks[0] > ranks[1] else "second"


def _differences(first: Process, second: Process, x: Floats) -> tuple[Floats, Floats]:
    """first − second in P(A ≤ x): absolute, and relative to the smaller of P(A ≤ x) and P(A > x)."""
    low = np.asarray(first.age_cdf(x)), np.asarray(second.age_cdf(x))
    high = np.asarray(first.age_survival(x)), np.asarray(second.age_survival(x))
    below = low[1] < 0.5
    difference = np.where(below, low[0] - low[1], high[1] - high[0])
    whole = np.where(below, np.maximum(*low), np.maximum(*high))
    return difference, np.divide(difference, whole, out=np.zeros_like(whole), where=whole > 0)


def _extreme(first: Process, second: Process, x: Floats, difference: Floats, sign: float) -> tuple[float, float]:
    """The place and size of the largest `sign·difference`, by a finer grid around the best point so far."""
    best = int(np.argmax(sign * difference))
    for _ in range(3):
        x = np.append(np.linspace(x[max(best - 1, 0)], x[min(best + 1, len(x) - 1)], 200), x[best])
        x.sort()
        difference, _ = _differences(first, second, x)
        best = int(np.argmax(sign * difference))
    return float(x[best]), float(difference[best])
