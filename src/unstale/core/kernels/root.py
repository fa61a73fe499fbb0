"""The price that spends a budget: one number, found in a few passes over the fleet."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number
from unstale.core.kernels.passes import PassColumns, in_threads, output, spent_by_log, write_rates
from unstale.core.roots.passes import Root, log_ratio, search, times

#: sources this near to abandonment are watched one by one while polishing a price
MARGIN = 0.01
#: how many sources are looked through at a time: more than in a pass, the work being less
PART = 131_072
#: fleets above this size start from their sketch's price, smaller ones from a bound
SKETCH_FROM = 65_536
#: and those from this size on from a pass that finds the price, where they have nothing that needs care
NEAR_FROM = 500_000


def solve(
    change_rate: ArrayLike,
    weight: ArrayLike,
    cost: ArrayLike | None,
    budget: float,
    *,
    rtol: float = 1e-9,
    start: float | None = None,
) -> Root:
    """The price at which the best rates under Poisson freshness spend the budget to `rtol`.

    One pass makes the fleet's sketch, whose price is good to about 1e-5; two exact passes, rarely more,
    polish it. `start` is a guess that saves the sketch, for example yesterday's price.
    Spent falls by at least half a percent per percent of price, because P(2, x) ≤ x²/2.
    A fleet where nothing changes or weighs anything spends 0 at every price: then price is 0, not converged.

    >>> round(solve([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], None, 5.0).price, 9)
    0.216431826
    """
    return _Problem(change_rate, weight, cost, budget, rtol, start).solve()


def plan(
    change_rate: ArrayLike,
    weight: ArrayLike,
    cost: ArrayLike | None,
    budget: float,
    *,
    rtol: float = 1e-9,
    start: float | None = None,
    out: Floats | None = None,
) -> tuple[Root, Floats]:
    """The price and the rates at it: `solve` and `rates`, but the pass that writes the rates checks them too.

    >>> root, sync_rate = plan([1, 2, 3, 4, 5], [1, 1, 1, 1, 1], None, 5.0)
    >>> sync_rate.round(4), root.converged
    (array([1.1499, 1.3584, 1.3538, 1.1379, 0.    ]), True)
    """
    problem = _Problem(change_rate, weight, cost, budget, rtol, start)
    out = output(problem.columns.change_rate.size, out)
    price, passes = problem.price, problem.passes()
    while price > 0.0 and passes < 4:
        total = write_rates(price, problem.columns, out)
        passes += 1
        if problem.met(total):
            return Root(price, total, converged=True, jump=0.0, passes=passes), out
        # what is left is tiny: the slope known from the last pass with one serves once more
        if not (problem.elasticity > 0.0 and 0.0 < total < math.inf):
            break
        price = times(price, math.log(total / problem.budget) / problem.elasticity)
    root = problem.solve()
    if root.price == 0.0:
        out[:] = 0.0
    else:
        write_rates(root.price, problem.columns, out)
    return root, out


class _Problem:
    """A fleet and its budget, with the best guess at the price that one pass over the fleet affords."""

    def __init__(
        self,
        change_rate: ArrayLike,
        weight: ArrayLike,
        cost: ArrayLike | None,
        budget: float,
        rtol: float,
        start: float | None,
    ) -> None:
        self.budget = number("budget", budget, above=0, remedy="give what may be spent per unit of time")
        self.rtol = rtol
        self.columns = columns = PassColumns.of(change_rate, weight, cost)
        self.total = cache(lambda price: spent_by_log(price, columns))
        self.elasticity = 0.0  # of spending in the price, where a pass has shown it
        if start is None and columns.change_rate.size >= NEAR_FROM:
            from unstale.core.kernels.near import near_price  # builds on the sketch, and that on the passes

            if (near := near_price(columns, self.budget)) is not None:
                self.price, self.elasticity = near
                return
        self.price = _start(columns, self.budget) if start is None else number("start", start, above=0)
        if columns.change_rate.size > SKETCH_FROM and self.price > 0.0:
            here = self.total(self.price)
            if 0.0 < here[0] < math.inf:
                self.elasticity = -here[1] / here[0]
            if not self.met(here[0]):
                self.price = _polished(self.price, columns, here, self.budget)

    def met(self, total: float) -> bool:
        return abs(total - self.budget) <= self.rtol * self.budget

    def passes(self) -> int:
        return self.total.cache_info().misses

    def solve(self) -> Root:
        if self.price == 0.0:
            return Root(0.0, 0.0, converged=False, jump=0.0, passes=0)
        root = search(self.total, self.budget, self.price, rtol=self.rtol)
        return replace(root, passes=self.passes())


def _polished(price: float, columns: PassColumns, here: tuple[float, float], budget: float) -> float:
    """A better price, from the pass `here` and the few sources about to be abandoned or taken back there.

    These alone make spending rough near the price; with them apart, what the others spend is a power law.
    """
    marginal = _marginal(price, columns)
    if marginal is None:
        return price
    part, part_slope = spent_by_log(price, marginal)
    rest, rest_slope = here[0] - part, here[1] - part_slope
    if not (0.0 < rest < math.inf and -math.inf < rest_slope < 0.0):
        return price

    def model(p: float) -> tuple[float, float]:
        smooth = times(rest, rest_slope / rest * log_ratio(p, price))
        rough, rough_slope = spent_by_log(p, marginal)
        return smooth + rough, smooth * (rest_slope / rest) + rough_slope

    root = search(model, budget, price, rtol=1e-13)
    return root.price if root.converged else max(math.nextafter(root.price, 0.0), 5e-324)


def _marginal(price: float, columns: PassColumns) -> PassColumns | None:
    """The sources whose price of abandonment is within MARGIN of a price; None if they are not few."""
    low, high = (1 - MARGIN) / price, (1 + MARGIN) / price
    size = columns.change_rate.size

    def found(k: int) -> NDArray[np.intp]:
        part = slice(k * PART, (k + 1) * PART)
        with np.errstate(all="ignore"):
            u = columns.change_rate[part] / columns.weight[part]
            if columns.cost.size:
                u *= columns.cost[part]
            return k * PART + np.flatnonzero((u > low) & (u < high))

    which = np.concatenate(in_threads(found, -(-size // PART), size))
    if which.size > size // 32:
        return None
    return PassColumns(*(c[which] if c.size else c for c in columns))


def _start(columns: PassColumns, budget: float) -> float:
    """A price to begin with; 0 if nothing can be polled."""
    if columns.change_rate.size > SKETCH_FROM:
        from unstale.core.sketch import Sketch  # the sketch builds on the passes

        return Sketch.of_columns(columns).price(budget)
    columns.refuse_invalid(*columns.rows(0, SKETCH_FROM))
    alive = (columns.change_rate > 0.0) & (columns.weight > 0.0)
    return bound(PassColumns(*(c[alive] if c.size else c for c in columns)), budget) if alive.any() else 0.0


def bound(columns: PassColumns, budget: float) -> float:
    """A price not too far from the one of sources that can all be polled."""
    rate, weight = np.log(columns.change_rate), np.log(columns.weight)
    if columns.cost.size:
        rate += np.log(columns.cost)
    # x ≥ √(2s) bounds the price by the square-root law, and at half the highest price of abandonment
    # something is still polled
    half = 0.5 * (rate + weight)
    root_sum = half.max() + math.log(np.exp(half - half.max()).sum())
    highest = float((weight - rate).max())
    start = min(2.0 * (root_sum - math.log(budget)), highest) - math.log(2.0)
    return math.exp(min(max(start, -744.0), 709.0))
