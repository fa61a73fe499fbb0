"""Planning in parts: a fleet in many Parquet files, on many workers, with the plan of one machine.

Rules of this file:
1. All that goes out to workers is a price, all that comes back is some numbers and a sketch: so any size is planned.
2. Answers are added exactly and in the order of the parts, so the plan does not depend on who computed what.
3. One pass takes inventory, a few price the fleet exactly until it spends the budget to RTOL, the last one writes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pyarrow as pa

from unstale.core.checks import LARGEST, Floats, number
from unstale.core.roots.meeting import HUGE, meet
from unstale.core.sketch import Sketch
from unstale.errors import InfeasibleError, InputError, require, sentence
from unstale.frozen import dataclass
from unstale.planning.by_host import HostCaps, grouped
from unstale.planning.engines import PartsRunner
from unstale.planning.parts import FleetPart, files_of, parts_of, prepare, tidy
from unstale.planning.parts_plan import Decision, PartsPlan, together
from unstale.planning.planner import plan as plan_table
from unstale.planning.tasks import (
    Inventory,
    PartTerms,
    Rivals,
    Sums,
    shutting_price,
    take_inventory,
    tally,
    write_plan,
)
from unstale.planning.twice import refuse_twice
from unstale.units import parse_rate

#: how exactly spending meets the budget; the price is as exact, to a factor of two
RTOL = 1e-11
#: sources in the sample that gives a first price where no sketch does
SAMPLE = 65_536


def plan_parts(
    pattern: str,
    engine: PartsRunner,
    *,
    budget: float | str | None = None,
    target: float | None = None,
    objective: str = "freshness",
    order: str = "fixed",
    host_cap: float | str | Mapping[str, float | str] | None = None,
    output: str | None = None,
    stage: Callable[[str], None] = lambda name: None,
) -> PartsPlan:
    """The plan of `unstale.plan` for a fleet in Parquet files, found by the workers of an engine.

    `pattern` is a file, a folder or `folder/*.parquet`. With `output`, a folder, each file is written there under its
    name, with the columns that a plan adds. Price and rates are those of one machine to about 1e-10. With `host_cap`
    the sources are brought together by host first, and the plan is in files `hosts-00000.parquet` and so on.
    """
    require(
        (budget is None) != (target is None),
        "budget",
        budget,
        "or target must be given, and not both",
        "give budget='1000/day', or target=0.9",
    )
    caps = None if host_cap is None else HostCaps.of(host_cap)
    goal = _goal(budget, target, objective)
    stage("looking")
    files = files_of(pattern)
    if output is not None:
        # absolute, because workers may stand elsewhere
        output = output if "://" in output else str(Path(output).absolute())
        prepare(files, output)
    by_file = [parts for parts in engine.map(parts_of, files) if parts]
    every = [part for each in by_file for part in each]
    require(sum(part.rows for part in every), "files", repr(pattern), "have no sources", "give at least one row")
    stage("comparing ids")
    refuse_twice(every, engine)
    asked = _PartsQuestion(PartTerms(objective, order, caps), goal, target is not None, output)
    if caps is None:
        return _planned(by_file, engine, asked, stage)
    stage("joining hosts")
    with grouped(every, caps, engine, output) as shards:
        return _planned([[shard] for shard in shards], engine, asked, stage)


@dataclass(frozen=True, slots=True)
class _PartsQuestion:
    """What is asked for: the terms, a budget or a mean penalty, and where the plan goes."""

    terms: PartTerms
    goal: float
    by_staleness: bool
    output: str | None


def _planned(
    by_file: Sequence[Sequence[FleetPart]], engine: PartsRunner, asked: _PartsQuestion, stage: Callable[[str], None]
) -> PartsPlan:
    """The plan of parts, each file's together."""
    terms, goal, by_staleness, output = asked.terms, asked.goal, asked.by_staleness, asked.output
    parts = [part for each in by_file for part in each]
    sources = sum(part.rows for part in parts)
    stage("sketching")
    inventory = engine.map(take_inventory, parts, terms, max(sources // SAMPLE, 1))
    passes = 0

    def ask(*prices: float) -> list[Sums]:
        nonlocal passes
        passes += 1
        stage(f"pricing {passes}")
        return [_added(sums) for sums in zip(*engine.map(tally, parts, terms, prices, by_staleness), strict=True)]

    fleet = _Fleet(inventory, terms, sources, by_staleness)
    decision = fleet.decide(goal, ask, lambda: max(engine.map(shutting_price, parts, terms)))
    stage("writing" if output else "comparing")
    rivals = Rivals(decision.spent / fleet.cost, decision.spent / fleet.mass if fleet.mass else 0.0)
    measured = together(engine.map(write_plan, by_file, terms, decision, rivals, output))
    if output is not None:
        tidy([parts[0].file for parts in by_file], output)
    spends = measured.spent if by_staleness else goal
    return PartsPlan(terms.objective, sources, spends, decision, measured, fleet.weight, passes, len(by_file))


class _Fleet:
    """All parts together: what decides the price is asked of the workers, what begins the search stands here."""

    def __init__(self, inventory: Sequence[Inventory], terms: PartTerms, sources: int, by_staleness: bool) -> None:
        self.terms, self.sources, self.by_staleness = terms, sources, by_staleness
        self.weight, self.cost, self.mass = (
            math.fsum(getattr(i, k) for i in inventory) for k in ("weight", "cost", "mass")
        )
        self.floors = sum(i.floors for i in inventory)
        self.bounded = any(i.bounded for i in inventory)
        sketches = [i.sketch for i in inventory if i.sketch is not None]
        self.sketch = None
        if len(sketches) == len(inventory):
            self.sketch = reduce(add, map(Sketch.from_bytes, sketches))
        self.sample = pa.concat_tables([i.sample for i in inventory])

    def decide(self, goal: float, ask: Callable[..., list[Sums]], shutting: Callable[[], float]) -> Decision:
        """The price at which the fleet spends the budget, or is as stale as the target allows."""
        # only where something bounds the rates, or an age does no harm, can all prices be too high, or all too low
        if self.bounded or self.by_staleness or goal == 0:
            least, most = ask(math.inf, 0.0)
            self._feasible(goal, least.spent)
            if self._have(least) >= self._meant(goal):
                return Decision(shutting(), least.spent)
            if self._have(most) <= self._meant(goal) * (1 + 1e-12):
                self._reachable(goal, most)
                return Decision(0.0, most.spent)
        start = self.start(goal)
        if start == 0.0:
            return Decision(0.0, 0.0)
        return self._met(goal, ask, start)

    def start(self, goal: float) -> float:
        """About the price: from the sketch if it knows such sources, else from the plan of a sample."""
        if self.sketch is not None and not self.by_staleness:
            return self.sketch.price(goal)
        budget = None if self.by_staleness else goal * self.sample.num_rows / self.sources
        target = goal if self.by_staleness else None
        if target is not None and self.terms.objective == "freshness":
            target = 1.0 - target
        try:
            named = self.sample.append_column("id", [np.arange(self.sample.num_rows)])
            made = plan_table(
                named, budget=budget, target=target, objective=self.terms.objective, order=self.terms.order
            )
        except InfeasibleError:
            return 1.0  # its longest intervals take more than its share
        return made.price or 1.0

    def _met(self, goal: float, ask: Callable[..., list[Sums]], start: float) -> Decision:
        # what was asked on either side of the goal, nearest so far
        sides: dict[bool, tuple[float, Sums]] = {}
        meant = self._meant(goal)

        def total(price: Floats, _: object) -> tuple[Floats, Floats]:
            at = float(price[0])
            (sums,) = ask(at)
            have = self._have(sums)
            sides[have > meant] = at, sums
            # the inverse of staleness falls with the price: dΣweight·staleness = −price·dspent
            slope = at * sums.slope / self.weight * have**2 if self.by_staleness else sums.slope
            return np.array([have]), np.array([slope])

        root = meet(total, np.array([meant]), np.array([start]), rtol=RTOL)
        if not root.jump[0]:
            at, sums = next(side for side in sides.values() if side[0] == root.at[0])
            have = self._have(sums)
            if self.by_staleness or not (sums.slope < 0.0 and have > 0.0):
                return Decision(at, sums.spent)
            # One more step of Newton costs no pass, and squares the error that is left.
            return Decision(at * math.exp(-math.log(have / meant) * have / (sums.slope * at)), sums.spent)
        require(
            1e-300 <= root.low[0] < HUGE,
            "target" if self.by_staleness else "budget",
            f"{goal:g}",
            "gives a poll a price that no number can hold",
            "count in another unit of time",
        )
        (dear, less), (cheap, more) = sides[False], sides[True]
        missing, jump = goal - less.spent, more.spent - less.spent
        if self.by_staleness:
            missing, jump = less.stale - goal * self.weight, less.stale - more.stale
        share = missing / jump if jump > 0 else 1.0
        return Decision(dear, less.spent + share * (more.spent - less.spent), cheap, share)

    def _meant(self, goal: float) -> float:
        return 1.0 / goal if self.by_staleness else goal

    def _have(self, sums: Sums) -> float:
        """What falls as the price rises: spending, or the inverse of staleness."""
        if not self.by_staleness:
            return sums.spent
        return self.weight / sums.stale if sums.stale > 0 else math.inf

    def _feasible(self, goal: float, need: float) -> None:
        if not self.by_staleness and need > goal * (1 + 1e-12):
            raise InfeasibleError(
                sentence(
                    "budget",
                    f"{goal:g}",
                    f"cannot meet the longest intervals, which need {need:g}",
                    f"raise it to {need:g} or lengthen max_interval on {self.floors} sources",
                ),
                least_budget=need,
            )

    def _reachable(self, goal: float, most: Sums) -> None:
        if self.by_staleness and most.stale > goal * self.weight:
            least = most.stale / self.weight
            raise InputError(
                sentence(
                    "target staleness",
                    f"{goal:g}",
                    f"cannot be reached, the bounds leave {least:g}",
                    "raise the target or shorten min_interval",
                )
            )


def _goal(budget: float | str | None, target: float | None, objective: str) -> float:
    """The budget per day, or the staleness that a target means."""
    if target is None:
        assert budget is not None
        return number(
            "budget", parse_rate(budget, "budget"), least=0, most=LARGEST, remedy="count in a shorter unit of time"
        )
    if objective != "freshness":
        return number("target staleness", target, above=0, remedy="give the largest mean penalty you accept")
    require(0 < target < 1, "target freshness", target, "must be between 0 and 1", "try 0.9")
    return 1.0 - target


def _added(sums: Sequence[Sums]) -> Sums:
    """The sums of all parts, exact and in order."""
    return Sums(*(math.fsum(getattr(s, k) for s in sums) for k in ("spent", "slope", "stale")))
