"""Spending a budget: how much may be spent now, and when the price is looked at again."""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats, number
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.units import DAY, parse_duration, parse_rate

#: the price is looked at again after this share of a mean interval, but not before so many polls or seconds
PACE, FEWEST, SOONEST, LATEST = 0.02, 20.0, 1.0, 3600.0
#: polls that may be made at once after a pause, unless it is said otherwise, and in seconds of the budget
BURST, BURST_SECONDS = 20.0, 1.0
#: seconds until all go by a new price, and standard deviations that a bucket leaves for what falls due meanwhile
HEARD, CHANCE = 3.0, 2.0


def usual_burst(cost: Floats, rate: float) -> float:
    """What may be spent at once after a pause: twenty polls, a second of the budget, or two of the dearest polls."""
    usual, dearest = (float(cost.mean()), float(cost.max())) if len(cost) else (1.0, 0.0)
    return max(BURST * usual, 2.0 * dearest, BURST_SECONDS * rate)


def seconds_to_next_look(cost: Floats, mean_interval: float, rate: float) -> float:
    """Seconds after which the price is looked at again, at a budget of so much cost per second."""
    usual = float(cost.mean()) if len(cost) else 1.0
    return min(max(PACE * mean_interval, FEWEST * usual / rate, SOONEST), LATEST)


def left_over(burst: float, rate: float, cost: float) -> float:
    """What a plan leaves in a bucket: half a burst, less where chance would make it run over, even a debt.

    Polls fall due by chance as plans see it: so many more or fewer than were meant have come until the next price is
    gone by. What runs over is lost, what falls due and is not paid yet is polled a moment later.

    >>> left_over(1000.0, 1000.0, 1.0), round(left_over(2.5, 2.5, 1.0), 2)
    (500.0, -2.98)
    """
    return min(0.5 * burst, burst - CHANCE * math.sqrt(cost * rate * HEARD))


def per_second(budget: float | str, name: str = "budget") -> float:
    """A rate with its unit, like "1000/day", as so much per second; a bare number is per second.

    >>> per_second("86400/day"), per_second(2.5)
    (1.0, 2.5)
    """
    if isinstance(budget, str):
        try:
            float(budget)
        except ValueError:
            return parse_rate(budget, name) / DAY
        raise InputError(sentence(name, repr(budget), "has no unit", f"write {budget}/day, or a number per second"))
    return number(name, budget, least=0)


def seconds(time: float | str, name: str) -> float:
    """A length of time with its unit, like "15m", in seconds; a bare number is seconds."""
    if isinstance(time, str):
        try:
            float(time)
        except ValueError:
            return parse_duration(time, name) * DAY
        raise InputError(sentence(name, repr(time), "has no unit", f"write {time}s, or a number of seconds"))
    return float(time)


@dataclass(slots=True)
class Allowance:
    """What has come in and was not spent. Whoever comes seldom may spend what came in since, and once as much.

    >>> allowance = Allowance(at=0.0)
    >>> allowance.fill(now=10.0, rate=2.0, burst=5.0, most=1e9)
    10.0
    >>> allowance.level, allowance.fill(now=60.0, rate=2.0, burst=5.0, most=1e9)
    (20.0, 50.0)
    """

    at: float = -np.inf
    level: float = 0.0
    spent: float = 0.0
    #: seconds between the last two fillings
    gap: float = 0.0

    def begin(self, now: float) -> None:
        """It grows from the first time that it hears of."""
        if np.isinf(self.at):
            self.at = now

    def fill(self, now: float, rate: float, burst: float, most: float) -> float:
        """Let it grow until now, to `most` at the most; how many seconds have passed."""
        self.begin(now)
        # Time that runs backward brings nothing.
        passed = max(now - self.at, 0.0)
        if passed > 0.0:
            self.gap = passed
            came = rate * passed
            self.level = min(self.level + came, max(burst, min(2.0 * came, most)))
        self.at = now
        return passed

    def spend(self, cost: float) -> None:
        """Take out what polls cost; a negative cost gives it back."""
        self.level -= cost
        self.spent += cost
