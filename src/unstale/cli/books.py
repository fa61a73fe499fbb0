"""The books of a store, as the API asks for them: what the commands tell and do, for programs."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.reading import BeliefPart, engine_runs, engine_says, reading
from unstale.cli.settings import Settings
from unstale.cli.show import finite
from unstale.errors import InputError, StoreError, sentence
from unstale.ports import Listing
from unstale.units import DAY

if TYPE_CHECKING:
    from unstale.core.checks import Floats
    from unstale.keeper.scheduler import Scheduler
    from unstale.lists.rows import Check

#: sources that tell what another budget would do
_ENOUGH = 5000
#: sources that a status lists
_WORST = 20
_INTERVALS = ("min_interval", "max_interval")


class FleetService(SqliteReplica):
    """Keeps the server's contracts `Books` and `Weights` on a store file; it writes only where it is told to."""

    def __init__(self, settings: Settings, *, writing: bool) -> None:
        super().__init__(settings.store)
        self._settings, self._writing = settings, writing
        self._store: SqliteStore | None = None

    def status(self) -> dict[str, Any]:
        """How the fleet stands, as `unstale status --json` tells it."""
        from unstale.cli.status import Limits, _document, _worst, described, judged, look

        with reading(self._settings) as replica:
            view = look(replica, self._settings)
            verdict, why = judged(view, Limits(None, None, None, None))
            lines = described(replica, view, _worst(view, _WORST))
        document: dict[str, Any] = finite(_document(self._settings, view, verdict, why, lines))
        # Where the file lies is nobody's business.
        return {name: value for name, value in document.items() if name != "store"}

    def explain(self, source: int) -> dict[str, Any]:
        """Why a source is polled as it is, as `unstale explain --json` tells it."""
        from unstale.cli.explain import _case, _document, _twice

        with reading(self._settings) as replica:
            case = _case(self._settings, replica, source)
        document: dict[str, Any] = finite(_document(case, _twice(case)))
        return document

    def budget(self) -> tuple[float, bool]:
        """Cost per second, and whether it was set in the store rather than in the settings."""
        from unstale.cli.compose import config_of

        told = {"budget": self.setting("budget")}
        config = config_of(self._settings)
        engine = self.engine()
        # `unstale run --budget` knows better than the file, unless the store overrules both.
        settled = engine.get("budget") if engine["running"] and not told["budget"] else None
        return (float(settled), False) if settled else (config.amended(told).budget, bool(told["budget"]))

    def engine(self) -> dict[str, Any]:
        """What the engine last wrote of itself, and whether it runs."""
        said = engine_says({"engine": self.setting("engine") or b"{}"})
        return {**said, "running": engine_runs(self._settings)}

    def preview(self, budget: float) -> dict[str, Any]:
        """What another budget would do; of many sources every so manieth is asked. Caps of hosts are left out."""
        from unstale.cli.compose import config_of, rules_of
        from unstale.core.learning.outlook import WIDTH
        from unstale.engine.config import scheduler_of
        from unstale.engine.host_limits import HostLimits

        count = self.counters().get("added", 0)
        step = -(-count // _ENOUGH) or 1
        standing = self.columns_of(range(1, count + 1, step), WIDTH)
        rows = np.flatnonzero(~standing.paused)
        share = 1.0 / step
        # The scheduler of a part of the fleet has that part of the budget.
        config = replace(config_of(self._settings), budget=max(budget * share, 1e-300))
        scheduler, _ = scheduler_of(standing, config, time.time(), HostLimits(rules_of(self._settings)))
        price, waits = _priced(scheduler, rows, budget * share)
        weight = scheduler.weight[rows]
        fresh, age = _steady(scheduler, rows, waits)
        total = float(weight.sum())
        middle = np.quantile(waits, [0.05, 0.25, 0.5, 0.75, 0.95]) if len(waits) else np.full(5, math.nan)
        found = {
            "budget_per_day": DAY * budget,
            "price": price,
            "sources": round(len(rows) * step),
            "freshness": min(max(float(weight @ fresh) / total, 0.0), 1.0) if total > 0.0 else 0.0,
            "age": float(weight @ age) / total if total > 0.0 else math.nan,
            "abandoned": round(float((waits >= 0.999 * scheduler.learner.columns.longest[rows]).sum()) * step),
            "intervals": dict(zip(("p5", "p25", "p50", "p75", "p95"), middle.tolist(), strict=True)),
        }
        whole: dict[str, Any] = finite(found)
        return whole

    def add_rows(self, rows: Sequence[Mapping[str, Any]], replace: bool) -> list[int]:
        """Add sources as clients describe them."""
        from unstale.cli.adding import _base
        from unstale.cli.fetchers import admission_of

        base, check = _base(self._settings), admission_of(self._settings)
        listings = []
        for i, row in enumerate(rows):
            try:
                listings.append(_listing(row, base, check))
            except InputError as error:
                raise InputError(f"body[{i}]: {error}") from None
        return self._opened().add(listings, time.time(), duplicates="replace" if replace else "refuse")

    def edit(self, source: int, changes: Mapping[str, Any]) -> None:
        """Change what is said of a source."""
        from unstale.cli.fetchers import admission_of

        check = admission_of(self._settings)
        for one in self.listings([source]):
            new = _listing({"address": one.address, **changes}, one, check.changing(one))
            self._opened().add([new], time.time(), duplicates="replace")

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources."""
        return self._opened().remove(sources)

    def hint(self, sources: Sequence[int]) -> None:
        """Make them due now."""
        self.set_due(sources, [time.time()] * len(sources))

    def set_due(self, sources: Sequence[int], due: Sequence[float]) -> None:
        """Move due times."""
        self._opened().set_due(sources, due)

    def set_budget(self, budget: float | None) -> None:
        """Overrule the budget of the settings, or no longer."""
        self._opened().record([], settings={"budget": b"" if budget is None else repr(budget).encode()})

    def weights(self, sources: Sequence[int]) -> dict[int, float]:
        """The weights of those of these sources that exist."""
        return {one.id: one.weight for one in self.listings(sources)}

    def weigh(self, weights: Mapping[int, float], settings: Mapping[str, bytes]) -> None:
        """Change weights, if there are any to change, and keep settings."""
        store = self._opened()
        if weights:
            changed = [replace(one, weight=weights[one.id]) for one in self.listings(sorted(weights))]
            store.add(changed, time.time(), duplicates="replace")
        store.record([], settings=settings)

    def close(self) -> None:
        """Give back the file; closing again does nothing."""
        if self._store is not None:
            self._store.close()
            self._store = None
        super().close()

    def _opened(self) -> SqliteStore:
        if not self._writing:
            raise StoreError(
                sentence("store", repr(self._settings.store), "is only read here", "serve it with a token")
            )
        if self._store is None:
            own = self._settings
            self._store = SqliteStore(own.store, versions=own.keep, horizon=own.horizon, create=False)
        return self._store


def _listing(row: Mapping[str, Any], base: Listing, check: Check) -> Listing:
    """One source as a client describes it; intervals are seconds, and no longest one is null."""
    from unstale.lists.rows import listing_of

    fields = {name: value for name, value in row.items() if name not in _INTERVALS}
    shortest = float(row.get("min_interval", base.shortest))
    longest = math.inf if (most := row.get("max_interval", base.longest)) is None else float(most)
    one = replace(base, kind=fields.pop("kind", base.kind), shortest=shortest, longest=longest)
    if fields.get("host") == "":
        # An empty host is one to be found anew from the address.
        one = replace(one, host="")
    return listing_of(fields, one, check)


def _priced(scheduler: Scheduler, rows: Any, budget: float) -> tuple[float, Floats]:
    """The price at which these sources cost the budget, and their intervals at it.

    Cost falls as the price rises, so it is found by halving, to a part in a thousand.
    """
    learner = scheduler.learner
    cost = learner.columns.cost[rows]

    def waits(price: float) -> Floats:
        return np.asarray(learner.waits_of(rows, price), dtype=np.float64)

    if not len(rows):
        return 0.0, np.empty(0)
    low, high = 1e-12, 1e12
    while high > 1.001 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float((cost / waits(middle)).sum()) > budget else (low, middle)
    return high, waits(high)


def _steady(scheduler: Scheduler, rows: Any, waits: Floats) -> tuple[Floats, Floats]:
    """The freshness and the age of each copy, on average over its interval.

    Freshness over an interval is 1 − (age at its end)/interval; age is taken at four points within it.
    """
    from unstale.core.learning.bursts import no_bursts
    from unstale.core.learning.clock import even_clock
    from unstale.core.learning.outlook import outlook
    from unstale.core.learning.state import kept

    learner = scheduler.learner
    beliefs = learner.columns.rows[rows]
    # Over many intervals the hours of the day even out.
    learner.timing = learner.timing._replace(clock=even_clock(), bursts=no_bursts(learner.scale))
    settings = {"learner": kept(learner)}

    def age_after(part: float) -> Floats:
        begin = -part * waits
        age: Floats = np.nan_to_num(outlook(BeliefPart(beliefs, begin, begin, settings), 0.0).age, posinf=0.0)
        return age

    fresh = 1.0 - age_after(1.0) / np.maximum(waits, 1e-9)
    return np.clip(fresh, 0.0, 1.0), np.mean([age_after(part) for part in (0.125, 0.375, 0.625, 0.875)], axis=0)
