"""What is known of many sources, in NumPy: twins of `mixture`, equal to the last bit. A row here is a half-life.

Rules of this file:
1. Columns of beliefs lie with a half-life to a row and a source to a column, so that every step is along memory.
2. Sums over half-lives are added one after the other, as machine code adds them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.core.learning.column_values import after_changes, harm_values, more_together
from unstale.core.learning.exactly import exp, exp2, expm1, log, log1p
from unstale.core.learning.mixture import ALIKE, CLOSE, LEAST, MEMORY, NEGLIGIBLE, SAID, SLOWER, STEPS, Shared

Bits = NDArray[np.bool_]


class Gathered(NamedTuple):
    """Beliefs with their prior: each half-life's shape, exposure and weight, and the mean change rate."""

    shape: Floats
    exposure: Floats
    weight: Floats
    rate: Floats

    def of(self, some: NDArray[np.intp] | Bits) -> Gathered:
        """Those of some sources."""
        return Gathered(self.shape[:, some], self.exposure[:, some], self.weight[:, some], self.rate[some])


def added(rows: Floats) -> Floats:
    """The sum over half-lives, one after the other."""
    total: Floats = rows[0].copy()
    for row in rows[1:]:
        total += row
    return total


def gathered(rows: Floats, shared: Shared) -> Gathered:
    """`gather` of rows that lie along the columns."""
    count = len(shared.half_lives)
    shape, exposure = shared.prior[0] + rows[:count], shared.prior[1] + rows[count : 2 * count]
    weight = rows[2 * count : 3 * count] + shared.favour[:, None]
    weight = exp(weight - weight.max(axis=0))
    weight /= added(weight)
    return Gathered(shape, exposure, weight, added(weight * shape / exposure))


def foretold_of(at: Gathered, elapsed: Floats, changed: Bits) -> Floats:
    """`foretold` of columns."""
    still = -at.shape * log1p(elapsed / at.exposure)
    still[:, changed] = -expm1(still[:, changed])
    still[:, ~changed] = exp(still[:, ~changed])
    return log(np.maximum(added(at.weight * still), LEAST))


def learn_all(
    rows: Floats, shared: Shared, at: Gathered, elapsed: Floats, passed: Floats, changed: Bits, since: Floats
) -> None:
    """`learn` for rows that lie along the columns."""
    _note_all(rows, shared, at, elapsed, passed, changed, since)
    count = len(shared.half_lives)
    still = -at.shape * log1p(passed / at.exposure)
    shape, exposure = np.zeros_like(still), np.broadcast_to(passed, still.shape).copy()
    if changed.any():
        still[:, changed] = log(np.maximum(-expm1(still[:, changed]), LEAST))
        dated = changed & (since == since)
        shape[:, dated], exposure[:, dated] = 1.0, since[dated]
        late = np.flatnonzero(changed & (since != since))
        before = at.shape[:, late], at.exposure[:, late]
        after = after_changes(*before, np.broadcast_to(passed[late], before[0].shape))
        shape[:, late], exposure[:, late] = after[0] - before[0], after[1] - before[1]
    rows[2 * count : 3 * count] = MEMORY * rows[2 * count : 3 * count] + still
    kept = exp2(-elapsed / shared.half_lives[:, None])
    rows[:count] = np.maximum(kept * rows[:count] + shape, 0.0)
    rows[count : 2 * count] = np.maximum(kept * rows[count : 2 * count] + exposure, 0.0)


def _note_all(
    rows: Floats, shared: Shared, at: Gathered, elapsed: Floats, passed: Floats, changed: Bits, since: Floats
) -> None:
    """`note` for rows that lie along the columns."""
    count = len(shared.half_lives)
    if len(rows) < 3 * count + SAID:
        return
    shape, exposure, late, span = rows[3 * count : 3 * count + SAID]
    blank = shape + exposure + late == 0.0
    shape[blank], exposure[blank] = rows[0, blank], rows[count, blank]
    best = at.weight.argmax(axis=0)
    kept = exp2(-elapsed / (shared.half_lives[best] * np.where(best == 0, SLOWER, 1.0)))
    for column in (shape, exposure, late):
        column *= kept
    exposure[~changed] += passed[~changed]
    dated = changed & (since == since)
    shape[dated] += 1.0
    exposure[dated] += since[dated]
    found = np.flatnonzero(changed & (since != since) & (passed > 0.0))
    if len(found):
        count_late, wide, new = late[found], span[found], passed[found]
        wide = np.where(count_late == 0.0, new, wide)
        other = np.flatnonzero(~(np.abs(new - wide) <= ALIKE * wide))
        both = more_together(count_late[other], wide[other], new[other], at.rate[found[other]])
        count_late += 1.0
        count_late[other], wide[other] = both
        late[found], span[found] = count_late, wide


def values(at: Gathered, shared: Shared, elapsed: Floats) -> tuple[Floats, Floats]:
    """`value` of columns."""
    half_life, source = np.nonzero(at.weight > NEGLIGIBLE)
    worth, slope = np.zeros_like(at.weight), np.zeros_like(at.weight)
    weight = at.weight[half_life, source]
    one, steep = harm_values(shared.harm, at.shape[half_life, source], at.exposure[half_life, source], elapsed[source])
    worth[half_life, source], slope[half_life, source] = weight * one, weight * steep
    return added(worth), added(slope)


def intervals(at: Gathered, shared: Shared, worth: Floats, shortest: Floats, longest: Floats, guess: Floats) -> Floats:
    """`interval` of columns: every source takes its own steps, and leaves when it is there."""
    out = longest.copy()
    left = np.flatnonzero(~(values(at, shared, longest)[0] <= worth))
    soon = values(at.of(left), shared, shortest[left])[0] >= worth[left]
    out[left[soon]] = shortest[left[soon]]
    left = left[~soon]
    at, worth = at.of(left), worth[left]
    low, high = log(shortest[left]), log(longest[left])
    x = np.minimum(np.maximum(log(guess[left]), low), high)
    for _ in range(STEPS):
        if not len(left):
            return out
        t = exp(x)
        reached, slope = values(at, shared, t)
        above = reached > worth
        high, low = np.where(above, x, high), np.where(above, low, x)
        following = 0.5 * (low + high)
        step = x - log(reached / worth) * reached / (slope * t)
        newton = (reached > 0.0) & (slope > 0.0) & (low < step) & (step < high)
        following[newton] = step[newton]
        there = np.abs(following - x) < CLOSE
        out[left[there]] = exp(following[there])
        on = np.flatnonzero(~there)
        x, left, at, worth, low, high = following[on], left[on], at.of(on), worth[on], low[on], high[on]
    out[left] = exp(x)
    return out
