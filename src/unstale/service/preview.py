"""What another budget would do under the present beliefs: the price it would find, and how fresh copies would be."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.bursts import no_bursts
from unstale.core.learning.clock import even_clock
from unstale.core.learning.outlook import WIDTH, BelievedColumns, age_now, fresh_now
from unstale.core.learning.state import kept
from unstale.core.roots.falling import falls_to
from unstale.engine.config import scheduler_of
from unstale.engine.contracts import Promises, bounded
from unstale.engine.host_limits import HostLimits
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import LEARNER, ReadStore
from unstale.service.records import Preview
from unstale.service.service_settings import ServiceSettings

#: sources that tell what another budget would do
_ENOUGH = 2500
#: prices between which one is sought
_LOWEST, _HIGHEST = 1e-12, 1e12
#: sources that tell about where it is, and how far from there they tell how steeply spending falls
_FEW, _NEAR = 250, 1.05
#: steps that are made by this steepness, the least there is to go by, and what is near enough
_STEPS, _FLAT, _CLOSE = 5, 0.01, 5e-4
_QUANTILES = {"p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95}


def preview(
    store: ReadStore,
    terms: ServiceSettings,
    promises: Callable[[Sequence[int] | None], Promises],
    budget: float,
    now: float,
) -> Preview:
    """What a budget would do; of many sources every so manieth is asked. Caps of hosts are left out.

    `promises` tells what was promised of some sources, or of all.
    """
    count = store.counters().get("added", 0)
    step = -(-count // _ENOUGH) or 1
    asked = range(1, count + 1, step)
    standing = bounded(store.columns_of(asked, WIDTH), promises(asked if step > 1 else None))
    rows = np.flatnonzero(~standing.paused & (standing.failures == 0))
    # What fails stands as it does, whatever the budget.
    failing = np.flatnonzero(~standing.paused & (standing.failures > 0))
    lost = float(standing.weight[failing].sum())
    held = float(standing.weight[failing] @ fresh_now(standing, now)[0][failing]) if len(failing) else 0.0
    share = 1.0 / step
    # The scheduler of a part of the fleet has that part of the budget.
    config = replace(terms.config, budget=max(budget * share, 1e-300))
    scheduler, _ = scheduler_of(standing, config, now, HostLimits(terms.rules, config.granted))
    price, waits = _priced(scheduler, rows, budget * share)
    weight = scheduler.weight[rows]
    fresh, age = _steady(scheduler, rows, waits)
    total = float(weight.sum()) + lost
    middle = np.quantile(waits, list(_QUANTILES.values())) if len(waits) else np.full(len(_QUANTILES), math.nan)
    longest = scheduler.learner.columns.longest[rows]
    return Preview(
        budget=budget,
        price=price,
        fresh=min(max((float(weight @ fresh) + held) / total, 0.0), 1.0) if total > 0.0 else math.nan,
        age=float(weight @ age) / (total - lost) if total > lost else math.nan,
        sources=round((len(rows) + len(failing)) * step),
        abandoned=round(float((waits >= 0.999 * longest).sum()) * step),
        intervals=dict(zip(_QUANTILES, middle.tolist(), strict=True)),
    )


def _priced(scheduler: Scheduler, rows: Integers, budget: float) -> tuple[float, Floats]:
    """The price at which these sources cost the budget, and their intervals at it."""
    learner = scheduler.learner
    cost = learner.columns.cost[rows]
    if not len(rows):
        return 0.0, np.empty(0)

    def waits(price: float) -> Floats:
        return np.asarray(learner.waits_of(rows, price), dtype=np.float64)

    few = slice(None, None, -(-len(rows) // _FEW))
    share = float(cost[few].sum() / cost.sum())

    def spent_by_few(price: float) -> float:
        return float((cost[few] / learner.waits_of(rows[few], price)).sum()) / share

    # A few tell about where it is and how steeply spending falls there; all of them then say how far off that is.
    price = falls_to(spent_by_few, budget, _LOWEST, _HIGHEST)
    steep = math.log(spent_by_few(price) / spent_by_few(price * _NEAR)) / math.log(_NEAR)
    before, step = None, 0.0
    for _ in range(_STEPS):
        found = waits(price)
        excess = math.log(float((cost / found).sum()) / budget)
        if -_CLOSE < excess <= 0.0:
            return price, found
        steep = steep if before is None else (before - excess) / step
        if not steep > _FLAT:
            break
        # Rather too high than too low.
        before, step = excess, (excess + _CLOSE / 2) / steep
        price *= math.exp(step)
    price = falls_to(lambda price: float((cost / waits(price)).sum()), budget, _LOWEST, _HIGHEST)
    return price, waits(price)


def _steady(scheduler: Scheduler, rows: Integers, waits: Floats) -> tuple[Floats, Floats]:
    """The freshness and the age of each copy, on average over its interval.

    Freshness over an interval is 1 − (age at its end)/interval; age is taken at four points within it.
    """
    learner = scheduler.learner
    beliefs = learner.columns.rows[rows]
    # Over many intervals the hours of the day even out.
    learner.timing = learner.timing._replace(clock=even_clock(), bursts=no_bursts(learner.scale))
    settings = {LEARNER: kept(learner)}

    def age_after(part: float) -> Floats:
        begin = -part * waits
        age: Floats = np.nan_to_num(age_now(BelievedColumns(beliefs, begin, begin, settings), 0.0), posinf=0.0)
        return age

    fresh = 1.0 - age_after(1.0) / np.maximum(waits, 1e-9)
    return np.clip(fresh, 0.0, 1.0), np.mean([age_after(part) for part in (0.125, 0.375, 0.625, 0.875)], axis=0)
