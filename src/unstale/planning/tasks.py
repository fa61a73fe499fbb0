"""What workers do with the parts of a fleet; each answer is a few numbers, and only the last writes files.

Rules of this file:
1. A task keeps nothing and changes nothing but the file it writes: done twice, or elsewhere, it answers the same.
2. Parts are read a batch at a time, and the sums of batches are added exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from unstale.core import kernels, price
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.kernels import passes
from unstale.core.market import Market
from unstale.core.plan import Plan
from unstale.core.sketch import Sketch
from unstale.core.values import PoissonFreshness
from unstale.errors import InputError, require
from unstale.frozen import dataclass
from unstale.planning.by_host import HostCaps
from unstale.planning.fleet_plan import FleetPlan, table_value
from unstale.planning.parts import FleetPart, batches, target_of, write_batches
from unstale.planning.parts_plan import Decision, MeasuredPlan, together
from unstale.planning.table import TableColumns, as_table, checked

#: the columns a price depends on; id is read to name a row that breaks a rule
COLUMNS = (
    "id",
    "change_rate",
    "changes",
    "observed",
    "polls",
    "weight",
    "cost",
    "min_interval",
    "max_interval",
    "process",
    "host",
)


@dataclass(frozen=True, slots=True)
class PartTerms:
    """What the polls are for, how they come, and how many hosts allow: the terms of a plan but its budget."""

    objective: str
    order: str
    #: what hosts allow, if anything: then each part has its hosts whole, and is read at once
    caps: HostCaps | None = None


@dataclass(frozen=True, slots=True)
class Inventory:
    """What sources are like: their sums, a sketch if one can price them, and a sample of their rows."""

    weight: float
    cost: float
    mass: float
    #: how many have a longest interval
    floors: int
    #: whether anything but the budget limits any of them: bounds, or an age that does no harm
    bounded: bool
    sketch: bytes | None
    sample: pa.Table


@dataclass(frozen=True, slots=True)
class Sums:
    """What sources do at a price: spending, its derivative in the price, Σ weight·staleness (NaN if not asked)."""

    spent: float
    slope: float
    stale: float


@dataclass(frozen=True, slots=True)
class Rivals:
    """Polls per source, and per change of a source, if the same were spent without a thought."""

    uniform: float
    proportional: float


def take_inventory(part: FleetPart, terms: PartTerms, stride: int) -> Inventory:
    """What a part is like; its sample has every row whose number is a multiple of `stride`."""
    sums, floors, bounded, sample = [], 0, False, []
    sketch: Sketch | None = _sketch([], [], None)
    for row, table in batches(part, COLUMNS):
        sources, fleet = _read(part, row, table, terms)
        price.feasible(fleet, math.inf)
        weight, cost = _columns(fleet)
        sums.append((weight.sum(), cost.sum(), np.dot(cost, sources.change_rate)))
        floors += 0 if fleet.least_rate is None else int(np.count_nonzero(fleet.least_rate))
        bounded |= not fleet.unbounded or bool(np.any((free := fleet.value.free()) > 0) and np.isfinite(free).any())
        sketch = (
            sketch + _sketch(sources.change_rate, weight, fleet.cost) if sketch is not None and _quick(fleet) else None
        )
        sample.append(_sample(sources, slice(-row % stride, None, stride)))
    weighs, costs, mass = (math.fsum(column) for column in zip(*sums, strict=True))
    return Inventory(
        weighs, costs, mass, floors, bounded, sketch.to_bytes() if sketch else None, pa.concat_tables(sample)
    )


def tally(part: FleetPart, terms: PartTerms, prices: Sequence[float], by_staleness: bool) -> list[Sums]:
    """What a part does at each price."""
    sums: list[list[tuple[float, float, float]]] = [[] for _ in prices]
    for row, table in batches(part, COLUMNS):
        _, fleet = _read(part, row, table, terms)
        for k, at in enumerate(prices):
            sums[k].append(_at(fleet, at, by_staleness))
    return [Sums(*(math.fsum(column) for column in zip(*each, strict=True))) for each in sums]


def shutting_price(part: FleetPart, terms: PartTerms) -> float:
    """The least price at which nobody in a part wants more than its longest interval asks for."""
    fleets = (_read(part, row, table, terms)[1] for row, table in batches(part, COLUMNS))
    return max(price.plan(fleet, price.needed(fleet)).price for fleet in fleets)


def write_plan(
    parts: Sequence[FleetPart], terms: PartTerms, decision: Decision, rivals: Rivals, folder: str | None
) -> MeasuredPlan:
    """What the plan of the parts of a file comes to; with a folder, the plan is written there."""
    measured: list[MeasuredPlan] = []

    def planned() -> Iterator[pa.Table]:
        for part in parts:
            for row, table in batches(part):
                sources, fleet = _read(part, row, table, terms)
                surcharge, rates = _rates(fleet, decision)
                made = Plan(fleet, decision.spent, decision.price, surcharge, rates)
                whole = FleetPlan(sources, made, terms.objective, terms.order)
                measured.append(_measure(whole, terms, rivals))
                yield whole.table() if folder else table

    if folder is None:
        for _ in planned():
            pass
    else:
        write_batches(planned(), target_of(parts[0].file, folder))
    return together(measured)


def _read(part: FleetPart, row: int, table: pa.Table, terms: PartTerms) -> tuple[TableColumns, Fleet]:
    """The checked sources of a batch; what is wrong is told with the file."""
    try:
        sources = _checked(as_table(table), with_hosts=terms.caps is not None)
        return sources, Fleet.of(
            table_value(sources, terms.objective, terms.order),
            weight=sources.weight,
            cost=sources.cost,
            host=sources.host,
            cap=None if terms.caps is None else terms.caps.columns(sources.host_names),
            shortest=sources.min_interval,
            longest=sources.max_interval,
            host_names=sources.host_names,
        )
    except InputError as error:
        after = f", after row {row:,}" if row else ""
        raise InputError(f"file {part.file!r}{after}: {error}") from None


def _checked(table: pa.Table, with_hosts: bool) -> TableColumns:
    """As `columns` has them, hosts only if asked for, and without looking for an id that stands twice."""
    names = set(table.column_names)
    require("id" in names, "column", "'id'", "is missing", f"the table has: {', '.join(sorted(names)) or 'none'}")
    return checked(table, names, with_hosts)


def _sketch(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike | None) -> Sketch:
    """Without cells cut again: exact passes follow, and cutting takes longer than one of them."""
    return Sketch.of_columns(passes.PassColumns.of(change_rate, weight, cost))


def _sample(sources: TableColumns, rows: slice) -> pa.Table:
    """Some sources in a form that is the same for all parts."""
    n = len(sources.change_rate)
    defaults = {"change_rate": 0.0, "weight": 1.0, "cost": 1.0, "min_interval": 0.0, "max_interval": np.inf}
    filled = {}
    for name, default in defaults.items():
        column = getattr(sources, name)
        filled[name] = (np.full(n, default) if column is None else column)[rows]
    process = [None] * n if sources.process is None else list(sources.process)
    return pa.table(filled | {"process": pa.array(process[rows], pa.string())})


def _columns(fleet: Fleet) -> tuple[Floats, Floats]:
    """Weights and costs as columns."""
    ones = np.ones(len(fleet))
    return ones if fleet.weight is None else fleet.weight, ones if fleet.cost is None else fleet.cost


def _quick(fleet: Fleet) -> bool:
    """Whether sketches and the fused passes know these sources."""
    return fleet.unbounded and isinstance(fleet.value, PoissonFreshness) and fleet.value.order == "fixed"


def _at(fleet: Fleet, at: float, by_staleness: bool) -> tuple[float, float, float]:
    if _quick(fleet) and at > 0 and not by_staleness:
        assert isinstance(fleet.value, PoissonFreshness)
        return *kernels.spent(at, fleet.value.change_rate, _columns(fleet)[0], fleet.cost), math.nan
    answer = Market(fleet).answer(at)
    if not by_staleness:
        return answer.spent, answer.slope, math.nan
    plan = Plan(fleet, answer.spent, at, answer.surcharge, answer.rates)
    return answer.spent, answer.slope, plan.fleet_staleness * float(_columns(fleet)[0].sum())


def _rates(fleet: Fleet, decision: Decision) -> tuple[Floats | None, Floats]:
    """What hosts charge on top, if they have caps, and the rates."""
    surcharge, rates = _rates_at(fleet, decision.price)
    if decision.share > 0:
        rates = rates + decision.share * (_rates_at(fleet, decision.cheaper)[1] - rates)
    return surcharge, rates


def _rates_at(fleet: Fleet, at: float) -> tuple[Floats | None, Floats]:
    if _quick(fleet) and at > 0:
        assert isinstance(fleet.value, PoissonFreshness)
        return None, kernels.rates(at, fleet.value.change_rate, _columns(fleet)[0], fleet.cost)
    answer = Market(fleet).answer(at)
    return answer.surcharge, answer.rates


def _measure(made: FleetPlan, terms: PartTerms, rivals: Rivals) -> MeasuredPlan:
    fleet, rate = made.plan.fleet, made.sources.change_rate
    weight, _ = _columns(fleet)
    value = table_value(made.sources, "freshness", terms.order)

    def fresh(sync_rate: Floats) -> float:
        with np.errstate(divide="ignore"):
            return float(np.dot(weight, 1.0 - value.staleness(1.0 / sync_rate)))

    residuals = made.certificate
    return MeasuredPlan(
        spent=made.spent,
        freshness=float(np.dot(weight, made.freshness)),
        uniform=fresh(np.full(len(fleet), rivals.uniform)),
        proportional=fresh(rivals.proportional * rate),
        abandoned=int(np.count_nonzero(made.abandoned)),
        stationary=residuals.stationary,
        at_bounds=residuals.at_bounds,
        hosts=residuals.hosts,
    )
