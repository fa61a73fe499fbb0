"""How a fleet stands: freshness, what it costs, what was done, which sources are worst. One record for all faces."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from unstale.engine.collecting import SIGNALS
from unstale.engine.fleet_sums import MANY, FleetSums, sums
from unstale.engine.host_limits import HostLimits
from unstale.engine.pulse import KEPT, Done, done, undone
from unstale.keeper.outcomes import Answer
from unstale.ports import Price, ReadStore
from unstale.service.collections import collections
from unstale.service.contracts import contracts, needed
from unstale.service.copying import copying
from unstale.service.moment import Moment, listed, reasons
from unstale.service.records import Budget, Counts, EngineState, FirstRound, Status, Totals
from unstale.units import DAY

HOUR = 3600.0


def status(store: ReadStore, moment: Moment, budget: Budget, running: bool | None, limit: int) -> Status:
    """The status of a moment, with so many sources at most, those that harm freshness most first."""
    standing = moment.standing
    rules = HostLimits(moment.terms.rules, moment.config.granted).rules
    whole = sums(
        standing,
        moment.seen,
        budget.rate,
        standing.hosts,
        lambda host: rules(host).spacing,
        part=moment.of_whole is not None,
        named=limit,
    )
    shown = standing.source.searchsorted(whole.worst)
    told = moment
    if len(standing.source) > MANY and len(shown):
        # Of so many a brain takes seconds to make: it is made of those that are shown.
        told = moment.part(np.sort(shown))
    return told_status(store, moment, told, budget, running, whole)


def told_status(
    store: ReadStore,
    moment: Moment,
    told: Moment,
    budget: Budget,
    running: bool | None,
    whole: FleetSums,
    summed_at: float | None = None,
) -> Status:
    """A status with these sums, as they were `summed_at` some time or are now; `told` has the sources that are shown,
    `moment` all that were promised anything."""
    standing, counters = moment.standing, store.counters()
    compared, prices, totals = whole.compared, store.prices(moment.now - DAY), totals_of(counters)
    # What was recorded since the last price is in no price yet.
    tail = undone(done(counters), standing.settings.get(KEPT, b""), priced=standing.price is not None)
    counts = Counts(whole.total, whole.paused, whole.failing, whole.never_answered, whole.never_polled)
    shown = told.standing.source.searchsorted(whole.worst)
    return Status(
        at=moment.now,
        counts=counts,
        fresh=compared.fresh,
        even=compared.even,
        learned=compared.learned,
        fresh_error=compared.fresh_error,
        even_error=compared.even_error,
        age=whole.age,
        budget=budget,
        spent_hour=_spent(prices, moment.now - HOUR, tail),
        spent_day=_spent(prices, moment.now - DAY, tail),
        objective=moment.config.objective,
        price=moment.price,
        price_at=moment.price_at,
        first_round=first_round(moment, counts, whole),
        engine=engine_state(store, moment.engine, running, totals),
        totals=totals,
        surcharges=moment.surcharges,
        hosts=whole.hosts,
        contracts=contracts(store, moment),
        contracts_need=needed(moment),
        copying=tuple(copying(store, standing.settings, moment.now, running)),
        collections=tuple(collections(store, standing.settings.get(SIGNALS, b""))),
        worst=tuple(told.views(shown, listed(store, whole.worst), reasons(store, told, shown))),
        summed_at=summed_at,
    )


def first_round(moment: Moment, counts: Counts, whole: FleetSums) -> FirstRound | None:
    """How far the first round has come, None once every source was polled; what is left takes budget or allowance."""
    if not counts.never_polled:
        return None
    left = max(whole.first_cost / (moment.config.budget + moment.config.first_rate), whole.first_spacing)
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


def _spent(prices: list[Price], since: float, tail: Done) -> float:
    return math.fsum(one.spent for one in prices if one.at > since) + tail.spent
