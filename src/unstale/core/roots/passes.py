"""Where a falling total meets its target, in as few evaluations as possible: each is a pass over a fleet.

Newton on logarithms first, a cubic through the last two evaluations then; every evaluation narrows a bracket,
and when a step does not halve the distance, the doubles left in the bracket are halved instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from unstale.frozen import dataclass


@dataclass(frozen=True, slots=True)
class Root:
    """The price at which a fleet spends its budget, and how well that went.

    `spent` is what the fleet spends at `price`. If `converged` is false, no double spends the budget: `price`
    spends less, and the next double below spends `jump` more (inf if that is 0). Mixing the rates of the two,
    the share (budget − spent)/jump of the lower, meets the budget and is optimal to rounding.
    """

    price: float
    spent: float
    converged: bool
    jump: float
    passes: int


def search(
    total: Callable[[float], tuple[float, float]], budget: float, start: float, *, rtol: float, elasticity: float = 0.5
) -> Root:
    """The price at which `total`, given with its derivative in log price, meets the budget to `rtol`.

    The total must not rise, and where positive fall by at least `elasticity` percent per percent of price:
    then one evaluation bounds the answer by price·(total/budget)^(1/elasticity).
    """
    s = _Search(budget, elasticity)
    price = start
    while True:
        have, slope = total(price)
        s.learn(price, have, slope)
        if abs(have - budget) <= rtol * budget:
            return Root(price, have, converged=True, jump=0.0, passes=s.passes)
        if math.nextafter(s.low, math.inf) >= s.high:
            jump = s.spent_low - s.spent_high
            return Root(s.high, s.spent_high, converged=False, jump=jump, passes=s.passes)
        price = s.next()


class _Search:
    """Where the price can still be: the bracket, and the last two evaluations to interpolate from."""

    def __init__(self, budget: float, elasticity: float) -> None:
        self.budget, self.elasticity = budget, elasticity
        self.passes = 0
        self.low, self.high = 0.0, math.inf  # doubles known to spend more, and not more, than the budget
        self.spent_low, self.spent_high = math.inf, 0.0
        self._floor, self._roof = 0.0, math.inf  # the same, from the elasticity instead of an evaluation
        self._distance, self._distance_before = math.inf, math.inf
        self._here: tuple[float, float, float] | None = None
        self._before: tuple[float, float, float] | None = None
        self._reach = 2.0**-50

    def learn(self, price: float, total: float, slope: float) -> None:
        """Take in an evaluation."""
        self.passes += 1
        self._before, self._here = self._here, None
        self._distance_before, self._distance = self._distance, math.inf
        bound = None
        if 0.0 < total < math.inf and -math.inf < slope < 0.0:
            self._here = (price, total, slope)
            gap = log_ratio(total, self.budget)
            self._distance = abs(gap)
            bound = times(price, gap / self.elasticity)
        if total > self.budget:
            self.low, self.spent_low = price, total
            self._roof = self._roof if bound is None else min(self._roof, bound * (1 + 1e-9))
        else:
            self.high, self.spent_high = price, total
            self._floor = self._floor if bound is None else max(self._floor, bound * (1 - 1e-9))

    def next(self) -> float:
        """The next price to try, strictly inside the bracket."""
        low, high = max(self.low, self._floor), min(self.high, self._roof)
        price = self._interpolated() if 2.0 * self._distance < self._distance_before else None
        if price is None or not low <= price <= high:
            if low > 0.0:
                price = _middle(low, high)
            else:
                # nothing is polled here and below is unknown: feel downward, the step growing ever faster
                price = high / (1.0 + self._reach)
                self._reach = min(64.0 * self._reach if self._reach < 1.0 else self._reach * self._reach, 1e300)
        return min(max(price, math.nextafter(self.low, math.inf)), math.nextafter(self.high, 0.0))

    def _interpolated(self) -> float | None:
        if self._here is None:
            return None
        price, total, slope = self._here
        aim = log_ratio(self.budget, total)
        step = aim * total / slope
        if self._before is not None:
            # log price as the cubic function of log spent that has both values and both slopes
            price_before, total_before, slope_before = self._before
            run, rise = log_ratio(total_before, total), log_ratio(price_before, price)
            if run != 0.0:
                u = aim / run
                here, there = run * total / slope, run * total_before / slope_before
                cubic = u * (here + u * (3 * rise - 2 * here - there + u * (here + there - 2 * rise)))
                if abs(cubic - step) < 0.5 * abs(step):
                    step = cubic
        return times(price, step)


def log_ratio(a: float, b: float) -> float:
    """log(a/b), also where a/b is no double."""
    ratio = a / b
    return math.log(ratio) if 0.0 < ratio < math.inf else math.log(a) - math.log(b)


def times(price: float, exponent: float) -> float:
    """price·e^exponent, held between 0 and inf, without overflow on the way."""
    half = math.exp(min(max(0.5 * exponent, -740.0), 709.0))
    return price * half * half


def _middle(low: float, high: float) -> float:
    """The double halfway between two positive doubles, counted in doubles: about their geometric mean."""
    a, b = np.array([low, high]).view(np.int64).tolist()
    return float(np.array([(a + b) // 2]).view(np.float64)[0])
