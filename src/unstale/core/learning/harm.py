"""What a poll is worth under any objective, in scalars that can be compiled: a penalty as a table of jumps and bends.

Rules of this file:
1. A penalty of age is w(x) = Σ jump·[x ≥ y] + Σ bend·(x − y)⁺ over ages y, rising. Most are so exactly; a power and a
   saturating one are cut into chords.
2. One jump at 0 is freshness and one bend at 0 is age: their numbers are those of the closed forms, to the last bit.
"""

from __future__ import annotations

import math
import zlib
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.compiled import pasted
from unstale.core.learning.gamma import age_value, freshness_value
from unstale.core.objectives import OBJECTIVES, Objective
from unstale.core.penalties import Constant, Deadline, Linear, Penalty
from unstale.core.points_penalty import Points

#: kept with what a store keeps since the first version
_MARKS = {"freshness": 0.0, "age": 1.0}


class Harm(NamedTuple):
    """An objective as the learner reads it: ages, and by how much harm and its slope grow there."""

    age: Floats
    jump: Floats
    bend: Floats
    #: whether each unseen change counts, and not only the first
    every: bool
    #: p if harm grows like age^p at all ages; meaningless otherwise
    degree: float
    scale_free: bool
    #: whether the best waits on the week's clock are known for it
    timed: bool
    #: tells objectives apart in what a store keeps
    mark: float


def harm_of(objective: Objective, mean_interval: float) -> Harm:
    """The table of an objective, times in seconds."""
    penalty = objective.penalty
    age, jump, bend = _table(objective, mean_interval)
    text = f"{penalty!r} {objective.every}"
    known = {Constant: "freshness", Linear: "age"}.get(type(penalty)) if not objective.every else None
    mark = _MARKS[known] if known else 2.0 + zlib.crc32(text.encode())
    degree = penalty.degree
    free = degree is not None
    return Harm(age, jump, bend, objective.every, float(degree or 0.0), free, known == "freshness", float(mark))


def _table(objective: Objective, mean_interval: float) -> tuple[Floats, Floats, Floats]:
    penalty, one, none = objective.penalty, np.ones(1), np.zeros(1)
    if isinstance(penalty, Constant):
        return none, one, none
    if isinstance(penalty, Linear):
        return none, none, one
    if isinstance(penalty, Deadline):
        return np.array([penalty.tau]), one, none
    if isinstance(penalty, Points):
        return penalty.knots, penalty.jumps, penalty.bends
    chords = OBJECTIVES[objective.name.partition(":")[0]].chords
    assert chords is not None, "a penalty that is no table needs ages to be cut at"
    return _chords(penalty, chords(penalty, mean_interval))


def _chords(penalty: Penalty, ages: Floats) -> tuple[Floats, Floats, Floats]:
    """Straight lines between these ages; beyond the last one harm goes on as it did, or stays if it has a limit."""
    harms = np.asarray(penalty.w(ages))
    slope = np.diff(harms) / np.diff(ages)
    last = slope[-1] if math.isinf(penalty.limit) else 0.0
    jump = np.zeros(len(ages))
    jump[0] = harms[0]
    return ages, jump, np.diff(np.append(slope, last), prepend=0.0)


@pasted
def harm_value(harm: Harm, shape: float, exposure: float, elapsed: float) -> tuple[float, float]:
    """The value of polling after `elapsed` under a penalty of age, and its slope in `elapsed`.

    φ = Σ jump·(Φ(u) + y·F(u)) + Σ bend·(A(u) + y·G(u)) over ages y below `elapsed`, u = elapsed − y. F is the chance
    of a change within u, Φ and A the values for freshness and age, G = u·F − Φ the expected age. It follows from
    φ' = elapsed·∫ f(elapsed − y) dw(y), f the density of the first change: harm that grows at age y is met by what
    changed y ago. Never falls for growing w. Exact for tables of points. [003 eq. 49] for a Gamma belief. With `every`
    change counted, φ = rate·∫ y·w(y) dy [003 eq. 71], whatever the belief beyond its mean.

    >>> deadline = Harm(np.ones(1), np.ones(1), np.zeros(1), False, 0.0, False, False, 2.0)
    >>> [round(float(x), 12) for x in harm_value(deadline, 3.0, 2.0, 3.0)]
    [1.375, 0.28125]
    """
    worth, slope = 0.0, 0.0
    rate = shape / exposure
    for j in range(len(harm.age)):
        y = harm.age[j]
        left = elapsed - y
        if left <= 0.0:
            break
        jump, bend = harm.jump[j], harm.bend[j]
        if harm.every:
            worth += rate * (jump * 0.5 * left * (elapsed + y) + bend * left * left * (2.0 * elapsed + y) / 6.0)
            slope += rate * elapsed * (jump + bend * left)
            continue
        changed = -math.expm1(-shape * math.log1p(left / exposure)) if y > 0.0 else 0.0
        if jump != 0.0:
            one, steep = freshness_value(shape, exposure, left)
            if y > 0.0:
                one += y * changed
                steep *= elapsed / left
            worth += jump * one
            slope += jump * steep
        if bend != 0.0:
            one, steep = age_value(shape, exposure, left)
            if y > 0.0:
                one += y * (left * changed - freshness_value(shape, exposure, left)[0])
                steep = elapsed * changed
            worth += bend * one
            slope += bend * steep
    return worth, slope
