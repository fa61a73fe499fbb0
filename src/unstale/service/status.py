"""How a fleet stands: freshness, what it costs, what was done, which sources are worst. One record for all faces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.outlook import Outlook
from unstale.engine.collecting import SIGNALS
from unstale.engine.host_limits import HostLimits
from unstale.engine.pulse import KEPT, Done, done, undone
from unstale.engine.summary import ComparedSources, compare
from unstale.keeper.outcomes import Answer
from unstale.keeper.scheduler import Integers
from unstale.ports import Price, ReadStore
from unstale.service.collections import collections
from unstale.service.contracts import contracts, needed
from unstale.service.copying import copying
from unstale.service.moment import Moment, listed, reasons
from unstale.service.records import Budget, Counts, EngineState, FirstRound, Status, Totals
from unstale.units import DAY

HOUR = 3600.0
#: sources of a fleet of which only those are looked at closely that are shown
MANY = 20_000


def status(store: ReadStore, moment: Moment, budget: Budget, running: bool | None, limit: int) -> Status:
    """The status of a moment, with so many sources at most, those that harm freshness most first."""
    standing, rows = moment.standing, moment.rows
    counters = store.counters()
    # Where nobody is paused, all are meant: a large fleet is not copied to be looked at.
    some = rows if len(rows) < len(standing.source) else slice(None)
    compared = compare(
        ComparedSources(
            standing.beliefs[some],
            standing.last[some],
            standing.found[some],
            standing.settings,
            standing.weight[some],
            standing.cost[some],
            standing.failures[some],
        ),
        _part(moment, some),
        budget.rate,
        # A part of a fleet is not what the budget is divided over.
        None if moment.of_whole is None else math.nan,
    )
    copied = rows[np.isfinite(moment.seen.age[rows])]
    prices, totals = store.prices(moment.now - DAY), totals_of(counters)
    # What was recorded since the last price is in no price yet.
    tail = undone(done(counters), standing.settings.get(KEPT, b""), priced=standing.price is not None)
    counts = counts_of(moment)
    shown = worst(moment, limit)
    few = shown
    if len(standing.source) > MANY and len(shown):
        # Of so many a brain takes seconds to make: it is made of those that are shown.
        told, ids = moment.part(np.sort(shown)), standing.source[shown]
        few = told.standing.source.searchsorted(ids)
    else:
        told = moment
    return Status(
        at=moment.now,
        counts=counts,
        fresh=compared.fresh,
        even=compared.even,
        learned=compared.learned,
        fresh_error=compared.fresh_error,
        even_error=compared.even_error,
        age=_mean(moment.seen.age[copied], standing.weight[copied]),
        budget=budget,
        spent_hour=_spent(prices, moment.now - HOUR, tail),
        spent_day=_spent(prices, moment.now - DAY, tail),
        objective=moment.config.objective,
        price=moment.price,
        price_at=moment.price_at,
        first_round=first_round(moment, counts),
        engine=engine_state(store, moment.engine, running, totals),
        totals=totals,
        surcharges=moment.surcharges,
        hosts=len(standing.hosts),
        contracts=contracts(store, moment),
        contracts_need=needed(moment),
        copying=tuple(copying(store, standing.settings, moment.now, running)),
        collections=tuple(collections(store, standing.settings.get(SIGNALS, b""))),
        worst=tuple(told.views(few, listed(store, standing.source[shown].tolist()), reasons(store, told, few))),
    )


def counts_of(moment: Moment) -> Counts:
    """How many sources are in which state."""
    standing, rows = moment.standing, moment.rows
    never = np.isinf(standing.last[rows])
    return Counts(
        total=len(standing.source),
        paused=int(standing.paused.sum()),
        failing=int((standing.failures[rows] > 0).sum()),
        never_answered=int(never.sum()),
        never_polled=int((never & (standing.failures[rows] == 0)).sum()),
    )


def first_round(moment: Moment, counts: Counts) -> FirstRound | None:
    """How far the first round has come, None once every source was polled; what is left takes budget or allowance."""
    if not counts.never_polled:
        return None
    standing, rows = moment.standing, moment.rows
    waiting = rows[np.isinf(standing.last[rows]) & (standing.failures[rows] == 0)]
    rate = moment.config.budget + moment.config.first_rate
    # Whoever has most sources sets the pace: at one host polls follow each other at its spacing.
    each = np.bincount(standing.host[waiting], minlength=1)
    rules = HostLimits(moment.terms.rules, moment.config.granted).rules
    spacing = max(
        (rules(name).spacing * int(count) for name, count in zip(standing.hosts, each, strict=False)),
        default=0.0,
    )
    left = max(float(standing.cost[waiting].sum()) / rate, spacing)
    return FirstRound(counts.polled - counts.never_polled, counts.polled, left)


def totals_of(counters: Mapping[str, int]) -> Totals:
    """What the counters of a store say."""
    whole = done(counters)
    return Totals(
        unchanged=counters.get(Answer.UNCHANGED.value, 0),
        changed=counters.get(Answer.CHANGED.value, 0),
        failed=whole.failed,
        first=counters.get("first", 0),
        requests=max(counters.get("requests", 0), 0),
        received=counters.get("bytes", 0),
        spent=whole.spent,
    )


def engine_state(store: ReadStore, said: Mapping[str, Any], running: bool | None, totals: Totals) -> EngineState:
    """What the engine wrote of itself, and what was recorded since it began."""
    began = Done.read(said.get("began"))
    newest, crew = store.recent(1), store.alive()

    def number(name: str) -> float | None:
        value = said.get(name)
        return float(value) if isinstance(value, int | float) else None

    peers = said.get("peers")
    return EngineState(
        running=running,
        at=number("at"),
        started_at=number("started_at"),
        last_poll=newest[0].polled_at if newest else -math.inf,
        last_answer=store.answered_at(),
        workers=None if crew is None else len(crew),
        in_flight=int(number("in_flight") or 0) if running else 0,
        polls=totals.polls - began.polls,
        first=totals.first - began.first,
        changed=totals.changed - totals.first - began.changed,
        failed=totals.failed - began.failed,
        spent=totals.spent - began.spent,
        peers=tuple(peers) if isinstance(peers, list) else (),
        crew=crew or (),
        planner=str(said.get("owner", "")) if crew else "",
        planned_in=number("took"),
    )


def worst(moment: Moment, limit: int) -> Integers:
    """Rows that are not paused, those that harm most first; among equals the longest unseen."""
    standing, rows = moment.standing, moment.rows
    harm = standing.weight * (1.0 - moment.seen.fresh)
    if limit < len(rows):
        least = np.partition(harm[rows], len(rows) - limit)[len(rows) - limit] if limit else np.inf
        rows = rows[harm[rows] >= least]
    return rows[np.lexsort((standing.last[rows], -harm[rows]))][:limit]


def _part(moment: Moment, rows: Integers | slice) -> Outlook:
    seen = moment.seen
    return Outlook(*(column[rows] for column in (seen.change_rate, seen.fresh, seen.age)))


def _spent(prices: list[Price], since: float, tail: Done) -> float:
    return math.fsum(one.spent for one in prices if one.at > since) + tail.spent


def _mean(values: Floats, weight: Floats) -> float:
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0.0 else math.nan
