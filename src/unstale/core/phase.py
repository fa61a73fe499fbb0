"""Phase lock: polls in step with changes always come just after one, or just before [003 sect. V-C].

Even polls are optimal, but against a source that also changes evenly the average over a random phase is never
seen: the phase stays. A little randomness in every interval removes the lock [003 theorem 11], at a cost that
is bounded here.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers, plain
from unstale.core.learning.reach import SPREAD as SPREAD
from unstale.core.processes import Constant, Process, Uniform

#: phases on a grid finer than this part of a gap count as spread evenly
PARTS = 1000


def phase_locked(changes: Process, polls: Process) -> bool:
    """Can the phase between changes and polls stay among a few values for ever?

    True if both are lattices whose spans are to each other as two whole numbers up to 1000, to within 1e-9.
    Then staleness depends on the phase at the start, and the averages of `staleness` hold only on average
    over it. Spans 5 and π are safe, by equidistribution. [003 sect. IV-A, V-C, footnote 2].

    >>> phase_locked(Constant(5.0), Constant(2.0)), phase_locked(Constant(5.0), Constant(3.141592653589793))
    (True, False)
    """
    return _ratio(changes, polls) is not None


def locked_staleness(changes: Constant, polls: Constant) -> tuple[float, float]:
    """Least and greatest share of time a copy can be stale, over all phases, for even changes and even polls.

    With gap/interval = p/q in lowest terms the polls meet p phases, one p-th of a gap apart, and the share is
    `Σ_{j<p} (q − j − θ)⁺/(p·q)`, 0 ≤ θ ≤ 1. Equal gaps: anything from 0 to 1. Not locked: the average twice.
    [003 sect. V-C].

    >>> locked_staleness(Constant(1.0), Constant(1.0))
    (0.0, 1.0)
    """
    ratio = _ratio(changes, polls)
    if ratio is None:
        average = float(np.asarray(changes.age_shortfall(polls.gap))) / polls.gap
        return average, average
    p, q = ratio.numerator, ratio.denominator
    j = np.arange(p)
    low, high = (float(np.sum(np.maximum(q - j - theta, 0))) / (p * q) for theta in (1, 0))
    return low, high


def jittered(interval: float, spread: float = SPREAD) -> Uniform:
    """The process of polls whose intervals are independent and uniform on interval·[1−spread, 1+spread].

    Independent and not on a lattice, so no change process can lock with it; the mean is `interval`.
    [003 theorem 11]. What it costs: `jitter_cost`.

    >>> jittered(10.0, 0.1)
    Uniform(low=9.0, high=11.0)
    """
    interval = number("interval", interval, above=0)
    spread = number("spread", spread, above=0, most=1)
    return Uniform(interval * (1.0 - spread), interval * (1.0 + spread))


def jitter(interval: ArrayLike, rng: np.random.Generator, spread: float = SPREAD) -> Floats | float:
    """One jittered interval for each given one: interval·(1 + spread·u), u uniform on [−1, 1].

    >>> jitter(10.0, np.random.default_rng(1), 0.1)
    10.023643249400514
    """
    base = numbers("interval", interval, above=0, infinite=True)
    spread = number("spread", spread, least=0, most=1)
    return plain(base * (1.0 + spread * rng.uniform(-1.0, 1.0, base.shape)))


def jitter_cost(spread: float = SPREAD, degree: float = 0.0) -> float:
    """The factor by which jitter can raise staleness at most, for w = x^degree and every change process.

    `E[(1 + spread·u)^(degree+2)]`, u uniform on [−1, 1]: 1 + spread²/3 for freshness and missed changes,
    1 + spread² for age. The update penalty reaches it, and so does the source penalty for rare changes.
    Proof: the density of the changes' age falls, so the harm in an interval D is a mixture over c of
    Dⁿ − ((D−c)⁺)ⁿ, n = degree + 2; and E[((1 + t·u)⁺)ⁿ] grows with t, so that the subtracted term, where
    t = spread/(1 − c) in units of the mean interval, gains at least the factor of the first.
    For any bounded penalty that does not decrease, staleness grows by spread/4·limit at most; a Deadline at the
    interval reaches it.

    >>> round(jitter_cost(0.05), 6), round(jitter_cost(0.05, degree=1.0), 6)
    (1.000833, 1.0025)
    """
    e = number("spread", spread, least=0, most=1)
    n = number("degree", degree, least=0) + 3.0
    if e == 0:
        return 1.0
    # ((1+e)^n − (1−e)^n)/(2·e·n), both powers about 1: differences of logarithms keep the digits
    return float((np.expm1(n * np.log1p(e)) - (np.expm1(n * np.log1p(-e)) if e < 1 else -1.0)) / (2.0 * e * n))


def _ratio(changes: Process, polls: Process) -> Fraction | None:
    """Span of changes to span of polls as a fraction of whole numbers up to PARTS, if it is one."""
    if changes.span is None or polls.span is None:
        return None
    ratio = changes.span / polls.span
    if not 1.0 / PARTS <= ratio <= PARTS:
        return None
    near = Fraction(ratio).limit_denominator(PARTS)
    fits = near.numerator <= PARTS and abs(float(near) - ratio) <= 1e-9 * ratio
    return near if fits else None
