"""A fleet, or a part of it, at one moment: what is believed of every source, and what it waits for.

Rules of this file:
1. "Polled every" is the wait at today's price, and is computed here and nowhere else.
2. Of a part of a fleet the same is told as of the whole: price, scale and surcharges are those of the whole.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache, cached_property, partial
from threading import Lock
from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.learner import EAGER, EXPLORE
from unstale.core.learning.outlook import BelievedColumns, Outlook, outlook, rates_within
from unstale.engine.config import EngineConfig, next_look, scheduler_of
from unstale.engine.contracts import NOTHING, Promises
from unstale.engine.fleet_sums import worst
from unstale.engine.host_limits import HostLimits
from unstale.engine.pricing import DEARER
from unstale.frozen import dataclass
from unstale.keeper.host_caps import binding
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import FleetColumns, Listing, ReadStore
from unstale.service.records import SourceView
from unstale.service.service_settings import ServiceSettings

#: the columns of a fleet that have a row per source
_BY_ROW = (
    *("source", "weight", "cost", "shortest", "longest", "host"),
    *("paused", "due", "last", "found", "failures", "beliefs", "listed"),
)
#: the setting in which an engine tells of itself
ENGINE = "engine"


def engine_says(settings: Mapping[str, bytes]) -> dict[str, Any]:
    """What the last engine wrote of itself; nothing if there was none."""
    try:
        said = json.loads(settings.get(ENGINE) or b"{}")
    except ValueError:
        return {}
    return said if isinstance(said, dict) else {}


@dataclass(frozen=True, slots=True)
class FleetScale:
    """What a part of a fleet takes from the whole: its mean interval, and hosts where polls are dearer."""

    scale: float
    surcharges: Mapping[str, float]


@dataclass(frozen=True)
class Moment:
    """Sources in columns and what is believed of them at `now`; `config` has the budget in force."""

    now: float
    standing: FleetColumns
    config: EngineConfig
    terms: ServiceSettings
    #: what a part takes from the whole, asked for when it is needed; None: these columns are the whole
    of_whole: Callable[[], FleetScale] | None = None
    #: what was promised of sources: `standing` has longest waits that keep it
    promises: Promises = NOTHING
    #: many may ask about one moment
    _asking: Lock = field(default_factory=Lock, repr=False, compare=False)

    @cached_property
    def whole(self) -> FleetScale | None:
        """What a part takes from the whole."""
        return None if self.of_whole is None else self.of_whole()

    @cached_property
    def seen(self) -> Outlook:
        """What is believed of each."""
        return outlook(self.standing, self.now)

    @cached_property
    def rows(self) -> Integers:
        """Those that are not paused."""
        return np.flatnonzero(~self.standing.paused)

    @cached_property
    def engine(self) -> dict[str, Any]:
        """What the last engine wrote of itself."""
        return engine_says(self.standing.settings)

    def by_harm(self) -> Integers:
        """The rows that are not paused, those that harm freshness most first."""
        return worst(self.standing, self.seen, self.rows, len(self.rows))

    def part(self, rows: Integers) -> Moment:
        """Some of these sources, rows rising, at the same moment: of a few it is told sooner."""
        whole, told = self.whole, self.standing
        if whole is None:
            cost = float(told.cost[self.rows].sum())
            whole = FleetScale(cost / self.config.budget if cost > 0.0 else 1.0, self.surcharges)
        few = replace(told, **{name: getattr(told, name)[rows] for name in _BY_ROW})
        return replace(self, standing=few, of_whole=lambda: whole, _asking=Lock())

    @cached_property
    def scheduler(self) -> Scheduler:
        """The brain as it would begin with these sources, at the price that was published last."""
        config = self.config
        if self.whole is not None:
            # The scheduler of a part of the fleet has that part of the budget: the mean interval is the same.
            part = float(self.standing.cost[self.rows].sum())
            config = replace(config, budget=part / self.whole.scale if part > 0.0 else config.budget)
        made, _ = scheduler_of(self.standing, config, self.now, HostLimits(self.terms.rules, config.granted))
        if (price := self.price) is not None:
            made.price = price
        return made

    @cached_property
    def price(self) -> float | None:
        """The price of a poll that was published last, None if none ever was."""
        price, said = self.standing.price, self.engine
        told, at = said.get("price"), said.get("at")
        newer = isinstance(at, int | float) and (price is None or at > price.at)
        if newer and isinstance(told, int | float) and told > 0.0:
            return float(told)
        return price.price if price is not None and price.price > 0.0 else None

    @cached_property
    def price_at(self) -> float | None:
        """When that price was published."""
        said, kept = self.engine.get("at"), self.standing.price
        times = [float(at) for at in (said, kept.at if kept else None) if isinstance(at, int | float)]
        return None if self.price is None else max(times, default=None)

    @cached_property
    def surcharges(self) -> Mapping[str, float]:
        """How many times as dear a poll is at each host whose cap binds: as the engine published it, or as it would."""
        if self.whole is not None:
            return self.whole.surcharges
        told = self.engine.get("surcharges")
        if isinstance(told, dict):
            return {str(host): float(factor) for host, factor in told.items()}
        scheduler = self.scheduler
        price, until = scheduler.price, self.now + next_look(scheduler, self.config.rate)
        if not binding(scheduler, self.now, until):
            # Nobody pays more, whatever the price: it need not be found, which takes seconds of many sources.
            return {}
        scheduler.plan(self.config.rate * (until - self.now), self.now, until)
        # What was held was held at the price that the plan found: what we tell is at the one that was published.
        factors = np.maximum(scheduler.surcharge * scheduler.price / price, 1.0)
        factors[scheduler.surcharge <= 1.0] = 1.0
        scheduler.price, scheduler.learner.columns.weight[:] = price, scheduler.weight
        return {self.standing.hosts[i]: float(factors[i]) for i in np.flatnonzero(factors > DEARER)}

    def surcharge(self, rows: Integers) -> Floats:
        """How many times as dear a poll of each of these rows is."""
        factor = np.array([self.surcharges.get(name, 1.0) for name in self.standing.hosts] or [1.0])
        found: Floats = factor[self.standing.host[rows]] if len(rows) else np.empty(0)
        return found

    def waits(self, rows: Integers) -> Floats:
        """The wait of each of these rows at today's price, whether or not it is what they wait for."""
        if not len(rows):
            return np.empty(0)
        factor, scheduler = self.surcharge(rows), self.scheduler
        columns = scheduler.learner.columns
        with self._asking:
            weight = scheduler.weight[rows]
            # As if its sources weighed that much less: so the brain holds a cap.
            columns.weight[rows] = weight / factor
            # The search begins where the last one ended: to tell the same twice it begins anew.
            columns.interval[rows] = scheduler.learner.scale
            found = np.asarray(scheduler.learner.waits_of(rows, scheduler.price), dtype=np.float64)
            columns.weight[rows] = weight
        return found

    def intervals(self, rows: Integers) -> Floats:
        """How often each of these rows is polled, in seconds; NaN where no price decides when it is polled next."""
        some = self.priced(rows)
        found = np.full(len(rows), np.nan)
        found[some] = self.waits(rows[some])
        return found

    def priced(self, rows: Integers) -> Integers:
        """Which of these rows wait for a time that the price decides."""
        standing = self.standing
        return np.flatnonzero(
            np.isfinite(standing.last[rows]) & (standing.failures[rows] == 0) & ~standing.paused[rows]
        )

    def bound(self, row: int, wait: float) -> str:
        """Why a wait is not longer or shorter: price, host, shortest, eager, longest, contract or abandoned."""
        learner, listed = self.scheduler.learner, self.standing
        if wait >= learner.columns.longest[row]:
            if self.promises.binds(int(listed.source[row]), float(listed.longest[row]), self.seen.change_rate[row]):
                return "contract"
            return "longest" if listed.longest[row] <= EXPLORE * learner.scale else "abandoned"
        if wait <= learner.columns.shortest[row]:
            return "shortest" if listed.shortest[row] >= EAGER * learner.scale else "eager"
        return "price"

    def views(
        self, rows: Integers, listings: Mapping[int, Listing], reasons: Mapping[int, str] | None = None
    ) -> list[SourceView]:
        """These rows one by one, those that are listed, in the order given."""
        standing, seen, waits, factor = self.standing, self.seen, self.intervals(rows), self.surcharge(rows)
        told, places = reasons or {}, np.arange(len(rows))
        within = cache(lambda: self._rates_within(rows))

        def likely(place: int) -> tuple[float, float]:
            low, high = within()
            return float(low[place]), float(high[place])

        believed = (seen.fresh[rows], seen.age[rows], seen.change_rate[rows], places, waits, factor)
        known = (standing.last[rows], standing.found[rows], standing.due[rows], standing.failures[rows])
        return [
            SourceView(
                listings[source],
                fresh=fresh,
                age=age,
                change_rate=change_rate,
                within=partial(likely, place),
                interval=wait,
                waits_for=self._waits_for(row, wait, dearer),
                surcharge=dearer,
                checked_at=last,
                changed_at=found,
                due_at=due,
                failures=failures,
                reason=told.get(source, ""),
            )
            for row, source, fresh, age, change_rate, place, wait, dearer, last, found, due, failures in zip(
                *map(np.ndarray.tolist, (rows, standing.source[rows], *believed, *known)), strict=True
            )
            if source in listings
        ]

    def _rates_within(self, rows: Integers) -> tuple[Floats, Floats]:
        standing = self.standing
        some = BelievedColumns(standing.beliefs[rows], standing.last[rows], standing.found[rows], standing.settings)
        return rates_within(some, self.seen.change_rate[rows])

    def _waits_for(self, row: int, wait: float, dearer: float) -> str:
        if self.standing.paused[row]:
            return "paused"
        if self.standing.failures[row] > 0:
            return "failing"
        if math.isinf(self.standing.last[row]):
            return "first poll"
        bound = self.bound(row, wait)
        return "host" if bound == "price" and dearer > DEARER else bound


def listed(store: ReadStore, sources: Sequence[int]) -> dict[int, Listing]:
    """Sources as they are listed, by id."""
    return {one.id: one for one in store.listings(sources)}


def reasons(store: ReadStore, moment: Moment, rows: Integers) -> dict[int, str]:
    """Why those of these rows failed that do."""
    failing = rows[moment.standing.failures[rows] > 0]
    found = {}
    for source in moment.standing.source[failing].tolist():
        newest = store.observations(source, 1)
        found[source] = newest[0].reason if newest else ""
    return found
