"""The plan of a table of sources, as it is shown, compared and written."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unstale.core import price
from unstale.core.baselines import proportional, uniform
from unstale.core.checks import Floats
from unstale.core.objectives import objective_of
from unstale.core.plan import Certificate, Plan
from unstale.core.processes.named import named
from unstale.core.values import Mixed, Value
from unstale.planning.table import TableColumns, arrow_column
from unstale.units import format_duration

if TYPE_CHECKING:
    import pyarrow as pa


class FleetPlan:
    """The plan of a table: one row per source, in the table's order, with everything in days."""

    def __init__(self, sources: TableColumns, plan: Plan, objective: str, order: str) -> None:
        self.sources, self.plan, self.objective, self.order = sources, plan, objective, order

    @property
    def sync_rate(self) -> Floats:
        """Polls per day of each source."""
        return self.plan.sync_rate

    @property
    def interval(self) -> Floats:
        """Days between polls of each source; inf if it is abandoned."""
        return self.plan.interval

    @property
    def abandoned(self) -> NDArray[np.bool_]:
        return self.plan.abandoned

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
    def certificate(self) -> Certificate:
        return self.plan.certificate

    @cached_property
    def freshness(self) -> Floats:
        """Share of time each copy equals its source."""
        return 1.0 - self._value("freshness").staleness(self.interval)

    @cached_property
    def age(self) -> Floats:
        """Mean age of each copy in days, 0 while fresh; inf for an abandoned source that changes."""
        return self._value("age").staleness(self.interval)

    @cached_property
    def fleet_freshness(self) -> float:
        """Weighted mean freshness."""
        return self._fresh(self.sync_rate)

    @cached_property
    def rivals(self) -> dict[str, float]:
        """Weighted mean freshness of what other software does with the same budget."""
        rate, fleet = self.sources.change_rate, self.plan.fleet
        if self.spent == 0:
            return dict.fromkeys(("uniform", "proportional"), self.fleet_freshness)
        return {
            rule.__name__: self._fresh(rule(rate, fleet.weights(), fleet.costs(), self.spent))
            for rule in (uniform, proportional)
        }

    def table(self) -> pa.Table:
        """The input rows plus sync_rate, interval, freshness, age and abandoned."""
        out = self.sources.table
        for name in ("sync_rate", "interval", "freshness", "age", "abandoned"):
            if name in out.column_names:
                out = out.drop_columns([name])
            out = out.append_column(name, arrow_column(getattr(self, name)))
        return out

    def summary(self) -> dict[str, Any]:
        """The plan in numbers, keys from the glossary."""
        residuals = self.certificate
        return {
            "objective": self.objective,
            "sources": len(self.sync_rate),
            "price": self.price,
            "spent": self.spent,
            "budget": self.budget,
            "freshness": self.fleet_freshness,
            "freshness_uniform": self.rivals["uniform"],
            "freshness_proportional": self.rivals["proportional"],
            "abandoned": int(np.count_nonzero(self.abandoned)),
            "certificate": {name: getattr(residuals, name) for name in residuals.__slots__},
        }

    def explain(self, id_: str) -> str:
        """Why this source is polled as it is, in one sentence."""
        i = self.sources.row_of(id_)
        weight = float(np.broadcast_to(self.plan.fleet.weights(), self.sync_rate.shape)[i])
        rate = float(self.sources.change_rate[i])
        facts = f"it changes about every {format_duration(1 / rate)}, weighs {weight:g}" if rate else "it never changes"
        if self.sync_rate[i] == 0:
            if rate == 0 or weight == 0:
                return f"{id_} is not polled: {facts}."
            worth = weight * float(self.plan.fleet.value.take(np.array([i])).limit()[0])
            return (
                f"{id_} is abandoned: {facts}, and a poll of it is never worth more than {worth:.3g}"
                f" while one costs {self.plan.due[i]:.3g} at today's price."
            )
        every = format_duration(float(self.interval[i]))
        return f"{id_} is polled every {every}: {facts}, and {self._reason(i, every)}."

    def _reason(self, i: int, every: str) -> str:
        fleet = self.plan.fleet
        if fleet.least_rate is not None and self.sync_rate[i] <= fleet.least_rate[i]:
            return "its max_interval asks for it, polls alone would not pay"
        if fleet.most_rate is not None and self.sync_rate[i] >= fleet.most_rate[i]:
            return "its min_interval forbids more, though more would pay"
        if self.plan.host_price is not None and fleet.host is not None and self.plan.host_price[fleet.host[i]] > 0:
            host = self.sources.host_names[fleet.host[i]]
            return f"at today's price and the surcharge of its busy host {host} a poll pays after {every}"
        return f"at today's price a poll pays after {every}"

    def curve(self, points: int = 25) -> tuple[Floats, Floats]:
        """Budgets around this one and the fleet freshness each would buy."""
        low = max(self.spent / 30, price.needed(self.plan.fleet))
        budgets = np.geomspace(low, max(self.spent, low) * 30, points) if self.spent > 0 else np.zeros(0)
        fresh = [self._fresh(price.plan(self.plan.fleet, float(b)).sync_rate) for b in budgets]
        return budgets, np.array(fresh)

    def _fresh(self, sync_rate: Floats) -> float:
        weight = np.broadcast_to(np.asarray(self.plan.fleet.weights(), float), sync_rate.shape)
        with np.errstate(divide="ignore"):
            stale = self._value("freshness").staleness(1.0 / sync_rate)
        total = float(weight.sum())
        return 1.0 - float(np.dot(weight, stale)) / total if total > 0 else 1.0

    def _value(self, objective: str) -> Value:
        return table_value(self.sources, objective, self.order)


def table_value(sources: TableColumns, objective: str, order: str) -> Value:
    """What polls are worth under an objective, source by source if their processes differ."""
    aim = objective_of(objective)
    if sources.process is None or aim.every:
        return aim.value(sources.change_rate, order=order)
    kinds = np.array([text or "poisson" for text in sources.process], dtype=str)
    parts = []
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        parts.append((rows, aim.value(sources.change_rate[rows], order=order, changes=named(str(kind), 1.0))))
    return parts[0][1] if len(parts) == 1 else Mixed(parts)
