"""The best design of machines that poll the source and ask each other, by the accounting of `topology`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from unstale.core.checks import Floats
from unstale.core.inverse import sync_rate_for
from unstale.core.processes import Poisson, Process
from unstale.core.replication import cooperation_limit, cooperative_freshness
from unstale.core.roots.between import between
from unstale.errors import sentence
from unstale.planning.question import Design, Question, below, out_of_reach, too_few

#: how far a blend of Poisson changes may be from the ages it stands for
_BLENDED = 1e-3


def cooperation(question: Question) -> Design:
    """Machines poll the source, and ask one random peer at a time."""
    if question.count < 2:
        return too_few("cooperation")
    mixed = blend(question.process)
    if mixed is None:
        rule = "are more even than Poisson ones, for which cooperation is not computed"
        problem = sentence("changes", question.changes, rule, "give their rate alone to have an idea")
        return Design("cooperation", 0.0, problem=problem)
    fresh = partial(_blended, mixed)
    enough = sync_rate_for(question.process, freshness=question.target, polls="purely-random")
    tried: dict[int, Design | None] = {}

    def served(machines: int) -> float:
        if machines not in tried:
            tried[machines] = _cooperating(question, machines, enough, fresh)
        design = tried[machines]
        return design.clients if design else -1.0

    # Along a grid first: where the source can feed some of the machines alone, there may be two peaks.
    grid = sorted({round(m) for m in np.geomspace(2, question.count, 16)})
    place = max(range(len(grid)), key=lambda k: served(grid[k]))
    low, high = grid[max(place - 1, 0)], grid[min(place + 1, len(grid) - 1)]
    while high - low > 2:
        one, two = low + (high - low) // 3, high - (high - low) // 3
        low, high = (one, high) if served(one) < served(two) else (low, two)
    best = tried[max((*range(low, high + 1), *grid), key=served)]
    if best and best.clients > 0:
        return best
    source = min(question.source / 2, question.limit)
    reached = fresh(source, (question.limit - source) / 2, 2)
    most = cooperation_limit(question.process, Poisson(question.source / question.count), question.count)
    words = f"talk leads at most to {below(most)} if it were free, and two machines that ask each other come to"
    return out_of_reach(question, "cooperation", reached, words)


def _cooperating(
    question: Question, machines: int, enough: float, fresh: Callable[[float, float, int], float]
) -> Design | None:
    """So many machines, with a share of the source each, and no more questions than the target needs.

    A poll of the source is always fresh and charged once, a question is neither: so first come polls, `enough` at
    most, which need no questions. None if more questions were needed than can be asked.
    """
    source = min(question.source / machines, enough)
    most = (question.limit - source) / 2.0

    def missing(rate: float) -> float:
        return question.target - fresh(source, rate, machines)

    if most <= 0 or (source < enough and missing(most) > 0):
        return None
    asks = 0.0
    if source < enough and missing(0.0) > 0:
        asks = between(missing, 0.0, most, rtol=1e-10)
    return Design(
        "cooperation",
        question.target,
        machines * (question.limit - source - 2.0 * asks),
        machines,
        sync_rate=source,
        peer_rate=asks,
        source_polls=machines * source,
    )


def blend(changes: Process) -> tuple[Floats, Floats] | None:
    """Rates and weights of Poisson changes whose blend has the ages of these; None if there is none.

    Freshness is an average over the age of the changes, and `age_survival` of bursty ones is a sum of exponentials:
    so what is exact for Poisson changes is so for them, here to about 1e-4.
    """
    from scipy.optimize import nnls

    if isinstance(changes, Poisson):
        return np.array([changes.rate]), np.ones(1)
    x = np.append(0.0, np.geomspace(1e-4, 1e5, 300)) * changes.mean
    rates = np.append(0.0, np.geomspace(1e-5, 1e4, 46)) / changes.mean
    still, decays = np.asarray(changes.age_survival(x)), np.exp(-np.outer(x, rates))
    weights, _ = nnls(decays, still, maxiter=5000)
    if np.abs(decays @ weights - still).max() > _BLENDED:
        return None
    used = weights > 0
    return rates[used], weights[used]


def _blended(blend: tuple[Floats, Floats], source: float, asks: float, machines: int) -> float:
    parts = (w * cooperative_freshness(rate, source, asks, machines) for rate, w in zip(*blend, strict=True))
    return float(sum(parts))
