"""The best moment to poll when some hours are busier than others.

A copy taken just before quiet hours stays fresh longest, one taken before busy hours is soon stale: so the wait
depends on the hour at which it begins. With changes of a known rate on the fleet's clock this is a semi-Markov
decision problem with the hour of the week as its state,

    v(p) = min over waits k of  staleness(p, p + k) + price − average·k + v(p + k),

solved here for a grid of rates and intervals, once per profile; a source's own interval is then stretched as the
grid says. Intervals shorter than the grid's take the rate of the hour they fall in.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.clock import HOUR, WEEK, WeekClock
from unstale.core.learning.compiled import compiled, compiled_loop, pasted

#: changes per interval, and intervals in hours, of the grid
FEWEST, MOST, RATES = math.log(0.15), math.log(8.0), 7
SHORTEST, LONGEST, LENGTHS = math.log(4.0), math.log(504.0), 9
_ROUNDS, _SWEEPS = 12, 3
#: beyond it a wait is not looked at: three intervals and a day, at most six weeks
_FARTHEST = 1008
#: what two costs differ by at most for no other reason than that they are rounded
_MARGIN = 1e-6


def even_waits() -> Floats:
    """The grid for a week in which all hours are alike: nothing is stretched."""
    return np.ones((RATES, LENGTHS, WEEK))


@compiled_loop
def best_waits(intensity: Floats) -> Floats:
    """For each rate and interval of the grid, and each hour of the week: the best wait as a share of the interval."""
    waits = np.ones((RATES, LENGTHS, WEEK))
    for i in range(RATES):
        changes = math.exp(FEWEST + i * (MOST - FEWEST) / (RATES - 1))
        for j in range(LENGTHS):
            length = math.exp(SHORTEST + j * (LONGEST - SHORTEST) / (LENGTHS - 1))
            rate = changes / length
            farthest = min(int(3.0 * length) + 24, _FARTHEST)
            price = (1.0 - (1.0 + changes) * math.exp(-changes)) / rate
            waits[i, j] = _waits(intensity, rate, price, farthest, 1.0 - math.exp(-changes)) / length
    return waits


@compiled
def _waits(intensity: Floats, rate: float, price: float, farthest: int, average: float) -> Floats:
    # For each hour of the week and each wait from then on: the staleness until its end, and the price of a poll.
    # Few waits are worth a look, so it is added up as far as one is: changes awaited, and how stale a copy is by then.
    paid, known = np.empty((WEEK, farthest + 1)), np.zeros(WEEK, np.int64)
    passed, stale, total = np.zeros(WEEK), np.zeros(WEEK), np.zeros(WEEK)
    paid[:, 0] = price
    # One week after another as far as a wait may lead, so that nobody has to ask in which week it ends.
    ahead, wait = np.zeros(WEEK + farthest + 1), np.ones(WEEK, np.int64)
    for _ in range(_ROUNDS):
        for _ in range(_SWEEPS):
            lowest = float(ahead.min())
            for back in range(WEEK):
                p = WEEK - 1 - back
                least = math.inf
                for k in range(1, farthest + 1):
                    if k > known[p]:
                        passed[p] += rate * intensity[(p + k - 1) % WEEK]
                        now = -math.expm1(-passed[p])
                        total[p] += 0.5 * (stale[p] + now)
                        paid[p, k], stale[p], known[p] = total[p] + price, now, k
                    so_far = paid[p, k] - average * k
                    cost = so_far + ahead[p + k]
                    if cost < least:
                        least = cost
                        wait[p] = k
                    elif so_far + lowest > least + _MARGIN and paid[p, k] - paid[p, k - 1] >= average:
                        # From here on every hour costs more than the average: no longer wait is better.
                        break
                lowest = min(lowest, least)
                for again in range(p, len(ahead), WEEK):
                    ahead[again] = least
            ahead -= ahead[:WEEK].mean()
        # The average of the present waits, once they have settled into their cycle.
        p, cost, time = 0, 0.0, 0.0
        for step in range(460):
            if step >= 60:
                cost += paid[p, wait[p]]
                time += wait[p]
            p = (p + wait[p]) % WEEK
        moved = abs(cost / time - average)
        average = cost / time
        if moved < 1e-6:
            break
    return wait.astype(np.float64)


@pasted
def timed(clock: WeekClock, waits: Floats, last: float, interval: float, rate: float) -> float:
    """The wait after a poll at `last` that replaces an even `interval`, at a mean change rate; seconds."""
    hours = interval / HOUR
    length = math.log(hours)
    if length > LONGEST:
        return interval
    begun = last / HOUR
    changes = rate * interval
    if length < SHORTEST:
        return _local(clock.intensity[int(math.floor(begun + 0.5 * hours) % WEEK)], changes) * interval
    x = min(max((math.log(changes) - FEWEST) / (MOST - FEWEST), 0.0), 0.999999) * (RATES - 1)
    y = min((length - SHORTEST) / (LONGEST - SHORTEST), 0.999999) * (LENGTHS - 1)
    i, j = int(x), int(y)
    place = begun % WEEK
    hour = int(place) % WEEK
    past, following = place - math.floor(place), (hour + 1) % WEEK
    stretch = 0.0
    for a in range(2):
        for b in range(2):
            weight = (x - i if a else 1.0 - x + i) * (y - j if b else 1.0 - y + j)
            here, there = waits[i + a, j + b, hour], waits[i + a, j + b, following]
            stretch += weight * ((1.0 - past) * here + past * there)
    return stretch * interval


@pasted
def _local(intensity: float, changes: float) -> float:
    """The share of an interval at which a poll is worth as much when changes come `intensity` times as often."""
    if changes < 1e-3:
        return min(1.0 / math.sqrt(intensity), 2.0)
    worth = intensity * (1.0 - (1.0 + changes) * math.exp(-changes))
    if worth > 0.98:
        return 2.0
    x = changes * math.sqrt(intensity)
    for _ in range(8):
        slope = x * math.exp(-x)
        if slope < 1e-12:
            break
        x = max(x - (1.0 - (1.0 + x) * math.exp(-x) - worth) / slope, 1e-9)
    return min(x / (changes * intensity), 2.0)
