"""How fresh a fleet is, and how fresh it would be if all were polled equally often: one comparison for all who tell.

Rules of this file:
1. Both count the same sources: all that are not paused. What never answered is stale under either way of polling, and
   what fails now stands as it does: it would fail if it were polled evenly too, and its budget is the others'.
2. Until most of what answers has been looked at twice, nothing is known but a prior: then there is no comparison.
3. Both are told with an error: chance decides which copies are fresh, and rates are not known exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.outlook import BelievedColumns, Outlook, even_freshness, evidence, outlook
from unstale.core.learning.state import kept
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Scheduler, Wholes

#: sources that are looked at to tell how the whole fleet stands
ENOUGH = 20_000
#: the share of the weight that must have been looked at twice before a comparison says more than a prior
LEARNED = 0.5
#: standard deviations in a stated error: the truth is within it 95 times of 100
WIDE = 1.96


@dataclass(frozen=True, slots=True)
class ComparedSources:
    """Some sources, none of them paused, as far as a comparison needs them."""

    beliefs: Floats
    last: Floats
    found: Floats
    settings: Mapping[str, bytes]
    weight: Floats
    cost: Floats
    failures: Wholes


@dataclass(frozen=True, slots=True)
class Comparison:
    """Mean freshness by weight, ours now and if polled evenly; NaN where there is nothing, or not enough, to tell.

    `learned` is the share of the weight of those that do not fail that has been looked at twice. The true share is
    within `fresh_error` of `fresh` 95 times of 100, and so is that of even polls.
    """

    fresh: float
    even: float
    learned: float
    fresh_error: float
    even_error: float


@dataclass(frozen=True, slots=True)
class FleetSummary:
    """The same as it is kept with a price: 0 where there is nothing, or not enough, to tell."""

    fresh: float
    even: float


def compare(rows: ComparedSources, seen: Outlook, budget: float, cost: float | None = None) -> Comparison:
    """Ours and even over these sources; `cost` is that of all polls of one even round, if these are only a part.

    Ours is Σ weight·fresh / Σ weight. Even polls every source that does not fail once in cost/budget seconds, and has
    the mean of its freshness over that interval; the others count as they stand. With equal beliefs everywhere the two
    agree but for the moment of the look.
    """
    weight = rows.weight
    total = float(weight.sum())
    if not total > 0.0:
        return Comparison(math.nan, math.nan, 0.0, math.nan, math.nan)
    fresh = float(weight @ seen.fresh) / total
    sound, answered = rows.failures == 0, np.isfinite(rows.last)
    twice = sound & answered & rows.beliefs.any(axis=1)
    reached = float(weight[sound].sum())
    learned = float(weight[twice].sum()) / reached if reached > 0.0 else 0.0
    round_cost = float(rows.cost[sound].sum()) if cost is None else cost
    if learned < LEARNED or not (budget > 0.0 and round_cost > 0.0):
        return Comparison(fresh, math.nan, learned, math.nan, math.nan)
    polled = sound & answered
    others = float(weight @ seen.fresh) - float(weight[polled] @ seen.fresh[polled])
    heavy = float(weight[polled].sum())
    some = np.flatnonzero(polled)
    some = some[:: -(-len(some) // ENOUGH) or 1].copy()
    part = BelievedColumns(rows.beliefs[some], rows.last[some], rows.found[some], rows.settings)
    evenly = even_freshness(part, weight[some], round_cost / budget) * heavy
    level = _level(rows)
    return Comparison(
        fresh,
        min(max((evenly + others) / total, 0.0), 1.0),
        learned,
        _fresh_error(weight, total, seen.fresh, level),
        _even_error(part, weight[some], seen.change_rate[some] * round_cost / budget, level) * heavy / total,
    )


def _level(rows: ComparedSources) -> float:
    """The relative error of the rates of a fleet as a whole, which all its beliefs share: 1/√(changes seen)."""
    count, prior = evidence(BelievedColumns(rows.beliefs, rows.last, rows.found, rows.settings))
    count -= prior
    return 1.0 / math.sqrt(max(float(count.sum()), 1.0))


def _fresh_error(weight: Floats, total: float, fresh: Floats, level: float) -> float:
    """How far the share of fresh copies may be from what is believed.

    Each copy is fresh by chance, with variance p(1 − p); if all rates are higher by a factor 1 + ε, then p = e^(−λt) is
    lower by −p·log p·ε.

    >>> round(_fresh_error(np.ones(100), 100.0, np.full(100, 0.5), 0.0), 6)  # a hundred coins
    0.098
    """
    # In two columns and not in six: the fleet may be large.
    one, other = weight / total, 1.0 - fresh
    one *= one
    one *= fresh
    one *= other
    chance = float(one.sum())
    np.log(np.maximum(fresh, 1e-300, out=one), out=one)
    one *= np.negative(fresh, out=other)
    shared = float(np.divide(weight, total, out=other) @ one) * level
    return min(WIDE * math.sqrt(chance + shared**2), 1.0)


def _even_error(part: BelievedColumns, weight: Floats, changes: Floats, level: float) -> float:
    """How far the freshness of even polls may be from what is believed, `changes` being those of one interval.

    Freshness over an interval is f(x) = (1 − e^(−x))/x; a rate off by a factor 1 + ε moves it by (e^(−x) − f)·ε. Every
    source has an error of its own, and all have one in common.
    """
    x = np.maximum(changes, 1e-12)
    moved = weight / float(weight.sum()) * (np.exp(-x) + np.expm1(-x) / x)
    own = float((moved**2 / np.maximum(evidence(part)[0], 1.0)).sum())
    return min(WIDE * math.sqrt(own + (float(moved.sum()) * level) ** 2), 1.0)


def summary(scheduler: Scheduler, now: float, budget: float) -> FleetSummary:
    """The fleet of an engine at a moment; of a large one every so manieth source."""
    active = np.flatnonzero(~scheduler.paused)
    rows = active[:: -(-len(active) // ENOUGH) or 1]
    columns = scheduler.learner.columns
    held = ComparedSources(
        columns.rows[rows],
        scheduler.answered[rows],
        columns.found[rows],
        {"learner": kept(scheduler.learner)},
        scheduler.weight[rows],
        columns.cost[rows],
        scheduler.failures[rows],
    )
    seen = outlook(held, now)
    sound = active[scheduler.failures[active] == 0]
    compared = compare(held, seen, budget, float(columns.cost[sound].sum()))
    return FleetSummary(*(0.0 if math.isnan(share) else share for share in (compared.fresh, compared.even)))
