"""`unstale.plan`: from columns or a table to the plan that keeps them freshest, in days."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import ArrayLike

from unstale.core import price
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.errors import InputError, require, sentence
from unstale.planning.fleet_plan import FleetPlan, table_value
from unstale.planning.table import TableColumns, columns
from unstale.units import parse_rate

if TYPE_CHECKING:
    from unstale.planning.collections import CollectedFleetPlan


@overload
def plan(
    fleet: Any = ...,
    *,
    rates: ArrayLike | None = ...,
    weights: ArrayLike | None = ...,
    costs: ArrayLike | None = ...,
    hosts: ArrayLike | None = ...,
    min_interval: ArrayLike | None = ...,
    max_interval: ArrayLike | None = ...,
    budget: float | str | None = ...,
    target: float | None = ...,
    objective: str = ...,
    order: str = ...,
    host_cap: float | str | Mapping[str, float | str] | None = ...,
    collections: None = ...,
) -> FleetPlan:
    """Without collections."""


@overload
def plan(
    fleet: Any,
    *,
    budget: float | str | None = ...,
    target: float | None = ...,
    objective: str = ...,
    host_cap: float | str | Mapping[str, float | str] | None = ...,
    collections: Any,
) -> CollectedFleetPlan:
    """With collections: the fleet is a table with a column `collection`."""


def plan(
    fleet: Any = None,
    *,
    rates: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    costs: ArrayLike | None = None,
    hosts: ArrayLike | None = None,
    min_interval: ArrayLike | None = None,
    max_interval: ArrayLike | None = None,
    budget: float | str | None = None,
    target: float | None = None,
    objective: str = "freshness",
    order: str = "fixed",
    host_cap: float | str | Mapping[str, float | str] | None = None,
    collections: Any = None,
) -> FleetPlan | CollectedFleetPlan:
    """Divide a budget of polls so that the copies are freshest.

    `fleet` is a table (pandas, polars, Arrow, or a dict of columns) with columns id and change_rate and, if you
    like, weight, cost, host, min_interval, max_interval, process; or give `rates`, `weights`, … as arrays.
    Give either a `budget` (cost per day, or text like "100/h") or a `target`: the freshness (or, with another
    objective, the mean penalty) to reach with the least budget. Bare numbers are per day, or days.
    `collections` is a table of what tells about many sources at once (id; cost, min_interval, max_interval, recall,
    precision); the column `collection` of the fleet says which of them tells about each source, several with ; between.

    >>> made = plan(rates=[1, 2, 3, 4, 5], budget=5)
    >>> made.sync_rate.round(2).tolist(), round(made.fleet_freshness, 4)
    ([1.15, 1.36, 1.35, 1.14, 0.0], 0.3739)
    """
    given = {
        "change_rate": rates,
        "weight": weights,
        "cost": costs,
        "host": hosts,
        "min_interval": min_interval,
        "max_interval": max_interval,
    }
    arrays = {name: values for name, values in given.items() if values is not None}
    if fleet is None:
        require(rates is not None, "fleet", "None", "must be given", "pass a table, or rates=[...]")
        count = np.size(np.asarray(rates, dtype=object))
        sources = columns({"id": np.arange(count)} | {n: _spread(v, count) for n, v in arrays.items()})
    else:
        require(
            not arrays,
            "fleet",
            "with separate columns too",
            "holds all columns itself",
            f"drop {', '.join(sorted(arrays))}",
        )
        sources = columns(fleet)
    if collections is not None:
        from unstale.planning.collections import plan_with_collections

        return plan_with_collections(
            sources,
            collections,
            budget=budget,
            target=target,
            objective=objective,
            order=order,
            host_cap=host_cap,
        )
    return plan_columns(sources, budget=budget, target=target, objective=objective, order=order, host_cap=host_cap)


def plan_columns(
    sources: TableColumns,
    *,
    budget: float | str | None,
    target: float | None,
    objective: str = "freshness",
    order: str = "fixed",
    host_cap: float | str | Mapping[str, float | str] | None = None,
) -> FleetPlan:
    """The same for columns that are checked already."""
    require(
        (budget is None) != (target is None),
        "budget",
        budget,
        "or target must be given, and not both",
        "give budget='1000/day', or target=0.9",
    )
    problem = Fleet.of(
        table_value(sources, objective, order),
        weight=sources.weight,
        cost=sources.cost,
        host=sources.host,
        cap=caps_of(sources, host_cap),
        shortest=sources.min_interval,
        longest=sources.max_interval,
        host_names=sources.host_names,
    )
    if budget is not None:
        return FleetPlan(sources, price.plan(problem, parse_rate(budget, "budget")), objective, order)
    assert target is not None
    if objective == "freshness":
        require(0 < target < 1, "target freshness", target, "must be between 0 and 1", "try 0.9")
        target = 1.0 - target
    return FleetPlan(sources, price.least_budget(problem, target), objective, order)


def caps_of(sources: TableColumns, host_cap: float | str | Mapping[str, float | str] | None) -> Floats | None:
    """Polls per day each host allows: one number for all, or one per named host."""
    if host_cap is None:
        return None
    if sources.host is None:
        raise InputError(sentence("host_cap", host_cap, "needs a host for each source", "add a column host"))
    if not isinstance(host_cap, Mapping):
        return np.full(len(sources.host_names), parse_rate(host_cap, "host_cap"))
    caps = np.full(len(sources.host_names), np.inf)
    for host, cap in host_cap.items():
        if host == "*":
            caps[np.isinf(caps)] = parse_rate(cap, "host_cap")
        elif host in sources.host_names:
            caps[sources.host_names.index(host)] = parse_rate(cap, "host_cap")
        else:
            raise InputError(sentence("host_cap", repr(host), "names no host of the table", "check its spelling"))
    return caps


def _spread(values: Any, count: int) -> Any:
    """A column from an array, or the same value for every source."""
    array = values if hasattr(values, "__len__") and not isinstance(values, str) else [values] * count
    require(
        len(array) == count,
        "column",
        f"with {len(array)} values",
        f"must have {count}, as rates has",
        "give one per source",
    )
    return array
