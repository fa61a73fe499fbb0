"""Putting a budget on rules that have none: one factor on all their intervals, bounds included.

The products have no budget; the factor is our way to compare them at equal polls. Rules that follow the changes
(Nutch, StormCrawler, Heritrix) settle at their own number of polls per change whatever the factor, until it pushes
their bounds into the way: far from that number they are uniform on one side of a bound.
"""

from __future__ import annotations

import math

from unstale.sim.backtest.polls import Polls
from unstale.sim.backtest.rules import RULES, Rule
from unstale.sim.backtest.setting import Setting

#: polls may differ from the budget by this share
TOLERANCE = 0.005
#: near enough to stop looking
_CLOSE = 0.0005
_STEPS = 60
_FURTHEST = 2.0**50


def matched(name: str, setting: Setting, polls_per_change: float, seed: int) -> Polls:
    """The polls of a rule, its intervals stretched so that it spends the budget from `split` to `end`."""
    rule = RULES[name]
    return rule.polls(setting, factor(rule, setting, polls_per_change, seed), seed)


def factor(rule: Rule, setting: Setting, polls_per_change: float, seed: int) -> float:
    """The factor whose polls come nearest to the budget: a bisection, since longer intervals mean fewer polls."""
    target = setting.allowed(polls_per_change)
    # a rule that polls so much more than it may, learning included, need not be played to its end
    most = int(10 * target) + 20 * len(setting)
    found: dict[float, float] = {}

    def ratio(at: float) -> float:
        counted, _ = rule.play(setting, at, seed, most)
        found[at] = counted / target
        return found[at]

    low = high = 1.0
    step = 2.0
    while ratio(low) < 1.0 and low > 1.0 / _FURTHEST:
        low, step = low / step, step * step
    step = 2.0
    while ratio(high) > 1.0 and high < _FURTHEST:
        high, step = high * step, step * step
    for _ in range(_STEPS):
        if min(abs(r - 1.0) for r in found.values()) <= _CLOSE:
            break
        middle = math.sqrt(low * high)
        if ratio(middle) > 1.0:
            low = middle
        else:
            high = middle
    return min(found, key=lambda at: abs(found[at] - 1.0))
