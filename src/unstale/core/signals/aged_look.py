"""The look at a price when harm grows with age: intervals of collections, and when members are polled unasked."""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers
from unstale.core.learning.compiled import compiled_loop
from unstale.core.signals.aged import aged_gaps, aged_plain, aged_window
from unstale.core.signals.choices import Mind, due_for, shown_share
from unstale.core.signals.trust import own_precision, pace_of, shared_precision, silence_of

#: the share of entries still on show below which a feed is not left alone, and how crowded they come (`choices`)
_LEAST_SHOWN, _CROWDED = 0.5, 1.5


@compiled_loop
def look_aged(price: float, starts: Integers, which: Integers, grid: Floats, mind: Mind) -> float:
    """`choices.look` under age: sets intervals, levels and spacings; what will be spent per second."""
    columns, members, collections, fleet = mind.columns, mind.members, mind.collections, mind.fleet
    spent = 0.0
    for g in range(len(starts) - 1):
        own = which[starts[g] : starts[g + 1]]
        collections.used[g], collections.interval[g] = False, math.inf
        collections.told_cost[g] = 0.0
        if not collections.trusted[g] or len(own) == 0:
            continue
        shared, silence = shared_precision(g, collections, fleet), silence_of(g, collections, fleet)
        plain, unsaid, signals = np.zeros(len(own)), np.zeros(len(own)), 0.0
        for j in range(len(own)):
            i = own[j]
            rate, due = float(members.rate[i]), due_for(i, price, mind)
            members.spacing[i], members.level[i] = 0.0, math.inf
            if due < math.inf:
                plain[j] = columns.weight[i] * aged_plain(rate, due)
                # Silent changes are polled for as if there were no others.
                members.level[i] = aged_gaps(due * (silence * rate) ** 2)
                unsaid[j] = columns.weight[i] * aged_plain(silence * rate, due)
            signals += (1.0 - silence) * rate / own_precision(members.hits[i], members.tries[i], shared)
        signals = max(signals, pace_of(g, collections))
        best, chosen = 0.0, -1
        for k in range(len(grid)):
            shown = shown_share(collections.entries[g], _CROWDED * signals * grid[k])
            if shown < _LEAST_SHOWN:
                break
            less = -price * collections.cost[g] / grid[k]
            for j in range(len(own)):
                i = own[j]
                if plain[j] > 0.0:
                    rate, due = (1.0 - silence) * float(members.rate[i]), due_for(i, price, mind)
                    with_it = aged_window(rate, grid[k]) - due * math.expm1(-rate * grid[k])
                    less += shown * max(plain[j] - unsaid[j] - columns.weight[i] * with_it / grid[k], 0.0)
            if less > best:
                best, chosen = less, k
        if chosen < 0:
            continue
        span = grid[chosen]
        collections.used[g], collections.interval[g] = True, span
        at_once, evenly = collections.cost[g] / span, 0.0
        for j in range(len(own)):
            i = own[j]
            if plain[j] > 0.0:
                rate = float(members.rate[i])
                told = (1.0 - silence) * rate / own_precision(members.hits[i], members.tries[i], shared)
                at_once += columns.cost[i] * -math.expm1(-told * span) / span
                evenly += columns.cost[i] * silence * rate / max(float(members.level[i]), 1e-9)
        collections.told_cost[g] = at_once
        spent += at_once + evenly
    return spent
