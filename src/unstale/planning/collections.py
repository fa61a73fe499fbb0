"""Plans with collections: two tables in, one plan out, with listing polls, polls of members and what certifies them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from unstale.core.baselines import uniform
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.price import plan as plan_alone
from unstale.core.signals.collected_market import CollectedFleet, weighted
from unstale.core.signals.plan import CollectedPlan, least_collected, plan_collected
from unstale.core.values import PoissonAge, PoissonFreshness
from unstale.errors import require
from unstale.planning.collection_rows import CollectionRows, collection_rows, hosts_of_collections
from unstale.planning.table import TableColumns
from unstale.units import format_duration, parse_rate


class CollectedFleetPlan:
    """A plan with collections: one row per source and one per collection, in the tables' orders, everything in days."""

    def __init__(self, sources: TableColumns, rows: CollectionRows, plan: CollectedPlan) -> None:
        self.sources, self.rows, self.plan = sources, rows, plan
        self.objective = "age" if isinstance(plan.problem.fleet.value, PoissonAge) else "freshness"

    @property
    def price(self) -> float:
        """Weighted staleness that one more unit of budget per day would remove."""
        return self.plan.price

    @property
    def spent(self) -> float:
        return self.plan.spent

    @property
    def budget(self) -> float:
        return self.plan.budget

    @property
    def sync_rate(self) -> Floats:
        """Polls per day of each source: after signals, and blind ones."""
        return self.plan.sync_rate

    @cached_property
    def interval(self) -> Floats:
        """Mean days between polls of each source; inf if it is abandoned."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.sync_rate)

    @cached_property
    def listing_interval(self) -> Floats:
        """Days between polls of each collection; inf if it is not polled."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / self.plan.listing_rate)

    @property
    def freshness(self) -> Floats:
        """Share of time each copy equals its source."""
        require(self.objective == "freshness", "freshness", "of a plan for age", "is not known", "ask for its age")
        return self.plan.freshness

    @property
    def age(self) -> Floats:
        """Mean age of each copy in days, of a plan for age; inf if it is not polled and changes."""
        require(self.objective == "age", "age", "of a plan for freshness", "is not known", "plan with objective='age'")
        return 1.0 - self.plan.freshness

    @cached_property
    def abandoned(self) -> NDArray[np.bool_]:
        return np.asarray((self.sync_rate == 0) & (self.sources.change_rate > 0) & (self._weight > 0))

    @cached_property
    def fleet_freshness(self) -> float:
        """Weighted mean freshness; of a plan for age, 1 less the mean age."""
        total = float(self._weight.sum())
        return self.plan.weighted_freshness / total if total > 0 else 1.0

    @cached_property
    def rivals(self) -> dict[str, float]:
        """The same without listings, for the same budget: planned, and all equally often."""
        fleet = self.plan.problem.fleet
        alone = plan_alone(replace(fleet, least_rate=None, most_rate=None), self.spent).sync_rate
        even = uniform(self.sources.change_rate, fleet.weights(), fleet.costs(), self.spent)
        return {"without_collections": self._fresh(alone), "uniform": self._fresh(even)}

    def table(self) -> pa.Table:
        """The rows of the sources plus sync_rate, interval, freshness (of a plan for age: age) and abandoned."""
        return _with(self.sources.table, self, ("sync_rate", "interval", self.objective, "abandoned"))

    def listing_table(self) -> pa.Table:
        """The rows of the collections plus members, listing_rate and listing_interval."""
        out = self.rows.table
        for name, values in (
            ("members", self.rows.members()),
            ("listing_rate", self.plan.listing_rate),
            ("listing_interval", self.listing_interval),
        ):
            out = out.drop_columns([name]) if name in out.column_names else out
            out = out.append_column(name, [values])
        return out

    def summary(self) -> dict[str, Any]:
        """The plan in numbers, keys from the glossary."""
        return {
            "objective": self.objective,
            "sources": len(self.sync_rate),
            "collections": len(self.plan.listing_rate),
            "collections_polled": int(np.count_nonzero(self.plan.listing_rate)),
            "price": self.price,
            "spent": self.spent,
            "spent_on_listings": float(self.rows.columns.cost @ self.plan.listing_rate),
            "budget": self.budget,
            self.objective: self._told(self.fleet_freshness),
            f"{self.objective}_without_collections": self._told(self.rivals["without_collections"]),
            f"{self.objective}_uniform": self._told(self.rivals["uniform"]),
            "abandoned": int(np.count_nonzero(self.abandoned)),
            "bound": self._told(self.plan.bound / max(float(self._weight.sum()), 1e-300)),
            "gap": self.plan.gap,
        }

    def explain(self, id_: str) -> str:
        """Why this source or collection is polled as it is, in one sentence."""
        ids = pc.cast(self.rows.table.column("id"), pa.string())
        k = int(pc.index(ids, id_).as_py())
        return self._explain_collection(k, id_) if k >= 0 else self._explain_source(self.sources.row_of(id_), id_)

    def _explain_collection(self, k: int, id_: str) -> str:
        members, cost = int(self.rows.members()[k]), float(self.rows.columns.cost[k])
        if self.plan.listing_rate[k] == 0:
            return (
                f"{id_} is not polled: at today's price what it would tell of its {members} members is not worth"
                f" {cost:g}, and they are polled without it."
            )
        every = format_duration(float(self.listing_interval[k]))
        return f"{id_} is polled every {every}: then what it tells of its {members} members is worth its cost {cost:g}."

    def _explain_source(self, i: int, id_: str) -> str:
        rate = float(self.sources.change_rate[i])
        told = [k for k in self.rows.of(i) if self.plan.listing_rate[k] > 0]
        facts = f"it changes about every {format_duration(1 / rate)}" if rate else "it never changes"
        if self.sync_rate[i] == 0:
            return f"{id_} is not polled: {facts}, and a poll of it does not pay at today's price."
        every = format_duration(float(self.interval[i]))
        if not told:
            return f"{id_} is polled every {every}: {facts}, and at today's price a poll pays after that."
        names = self.rows.table.column("id")
        listing = " or ".join(
            f"{names[k].as_py()}, polled every {format_duration(float(self.listing_interval[k]))}," for k in told
        )
        return f"{id_} is polled when {listing} says so: every {every} on average; {facts}."

    def curve(self, points: int = 15) -> tuple[Floats, Floats]:
        """Budgets around this one and the fleet freshness each would buy."""
        require(self.objective == "freshness", "curve", "of age", "is not drawn with collections", "leave it out")
        budgets = np.geomspace(self.spent / 10, self.spent * 10, points) if self.spent > 0 else np.zeros(0)
        total = max(float(self._weight.sum()), 1e-300)
        return budgets, np.array(
            [plan_collected(self.plan.problem, float(b)).weighted_freshness / total for b in budgets]
        )

    @cached_property
    def _weight(self) -> Floats:
        return np.broadcast_to(np.asarray(self.plan.problem.fleet.weights(), float), self.sync_rate.shape)

    def _told(self, fresh: float) -> float:
        return fresh if self.objective == "freshness" else 1.0 - fresh

    def _fresh(self, sync_rate: Floats) -> float:
        with np.errstate(divide="ignore"):
            fresh = 1.0 - self.plan.problem.fleet.value.staleness(1.0 / sync_rate)
        total = float(self._weight.sum())
        return weighted(self._weight, fresh) / total if total > 0 else 1.0


def plan_with_collections(
    sources: TableColumns,
    collections: Any,
    *,
    budget: float | str | None,
    target: float | None,
    objective: str,
    order: str,
    host_cap: float | str | Mapping[str, float | str] | None,
) -> CollectedFleetPlan:
    """The plan of sources that collections tell about."""
    require(
        (budget is None) != (target is None),
        "budget",
        budget,
        "or target must be given, and not both",
        "give budget='1000/day', or target=0.9",
    )
    require(
        objective in ("freshness", "age") and order == "fixed" and sources.process is None,
        "collections",
        "given",
        "are planned for freshness or age, Poisson changes and polls in fixed order alone",
        "leave out objective, order and process, or the collections",
    )
    require(
        objective == "freshness" or target is None,
        "target",
        target,
        "of age is not planned with collections",
        "give a budget instead",
    )
    from unstale.planning.planner import caps_of

    rows = collection_rows(collections, sources)
    cap = caps_of(sources, host_cap)
    value = PoissonFreshness if objective == "freshness" else PoissonAge
    fleet = Fleet.of(
        value(sources.change_rate),
        weight=sources.weight,
        cost=sources.cost,
        host=sources.host if cap is not None else None,
        cap=cap,
        shortest=sources.min_interval,
        longest=sources.max_interval,
        host_names=sources.host_names,
    )
    hosts = hosts_of_collections(rows, sources) if cap is not None else None
    problem = CollectedFleet(fleet, rows.member, rows.columns, hosts, rows.others)
    if budget is not None:
        return CollectedFleetPlan(sources, rows, plan_collected(problem, parse_rate(budget, "budget")))
    assert target is not None
    return CollectedFleetPlan(sources, rows, least_collected(problem, target))


def _with(table: pa.Table, made: CollectedFleetPlan, names: tuple[str, ...]) -> pa.Table:
    for name in names:
        table = table.drop_columns([name]) if name in table.column_names else table
        table = table.append_column(name, [getattr(made, name)])
    return table
