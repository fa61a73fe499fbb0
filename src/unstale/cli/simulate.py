"""`unstale simulate`: what would this plan have achieved? Predicted beside simulated, for a plan or a scenario."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click
import numpy as np

from unstale.cli.show import Stages, console
from unstale.cli.simulated import draw_series, numbers, pair, print_report
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.service.documents import finite

if TYPE_CHECKING:
    from unstale.core.checks import Floats
    from unstale.core.poisson_orders import Order
    from unstale.sim.fleet_run import FleetRun
    from unstale.sim.scenarios import ScenarioRow
    from unstale.sim.statistics import Estimate

    #: by way of polling: the freshness of each source by the formulas, and as simulated
    Series = Mapping[str, tuple[Floats | None, Estimate]]

#: runs of each source: as many as keep the runs of all sources, and the events, to about this, within bounds
SOURCE_RUNS, EVENTS, FEWEST, MOST = 200_000, 5e7, 2, 200
#: polls of an engine in virtual time: some minutes
ENGINE_POLLS = 1e6


class _Bar(Stages):
    """The stages of a simulation; the longest of them moves on as its events pass."""

    def __enter__(self) -> _Bar:
        super().__enter__()
        return self

    def share(self, done: float) -> None:
        self._progress.update(self._task, completed=2 + 3 * done)


@click.command()
@click.argument("what")
@click.option("--days", default=30.0, show_default="30", help="How long to simulate each source, in each run.")
@click.option("--seed", default=1, show_default="1", help="Another seed, another history; the same seed, the same.")
@click.option(
    "--order",
    type=click.Choice(["fixed", "random", "purely-random"]),
    default="fixed",
    show_default=True,
    help="How evenly the polls of a plan come.",
)
@click.option(
    "--engine",
    is_flag=True,
    help="Also let the real engine poll with a plan's budget, in virtual time: it knows no rates and learns them.",
)
@click.option("--compare", is_flag=True, help="Also simulate what other rules do with a plan's budget.")
@click.option(
    "--plot", metavar="FILE", help="Draw predicted against simulated freshness into FILE (.png, .svg, .html)."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; per day, and days.")
def simulate(
    what: str, days: float, seed: int, order: str, engine: bool, compare: bool, plot: str | None, as_json: bool
) -> None:
    """Simulate WHAT, a plan file or a scenario: what would it have achieved?

    A plan file is what `unstale plan -o` writes; its columns change_rate, sync_rate, weight and process count.
    Each source is simulated several times, from a random moment on, so that averages have standard errors.
    Scenarios compare ways of polling in a small world:

    \b
      five-sources  five sources, five polls a day: the best plan abandons the fastest
      news          300 sources of very different pace and weight
      heavy-tail    Pareto gaps, planned for with and without knowing it
      phase-lock    an hourly source, polled in step, with jitter, and at random
      bursty        sources that sleep for days and wake for hours
      weekly        changes in office hours, polls around the clock or not
      outage        one of two hosts is down for a tenth of the time

    \b
      unstale simulate news
      unstale simulate plan.csv --days 90 --compare
      unstale simulate plan.csv --days 60 --engine
    """
    with _Bar() as bar:
        bar.next("loading")
        from unstale.report.picture import checked
        from unstale.sim.scenarios import SCENARIOS

        plot = plot and checked(plot)
        if what not in SCENARIOS and not Path(what).is_file():
            known = ", ".join(SCENARIOS)
            raise InputError(sentence("plan", repr(what), "is neither a file nor a scenario", f"take one of {known}"))
        if what in SCENARIOS:
            require(not engine, "engine", True, "runs with a plan's budget, not in a scenario", "give a plan file")
            bar.next("simulating")
            rows = SCENARIOS[what].run(days, seed)
            report: dict[str, Any] = {"scenario": what, "days": days, "seed": seed, "ways": [numbers(r) for r in rows]}
            series: Series = {r.name: (r.predicted_sources, r.sources) for r in rows if r.sources is not None}
        else:
            bar.next("reading")
            report, series = _tried(_read(what, order, days, seed), what, compare, engine, bar)
        if plot:
            bar.next("drawing")
            draw_series(series, plot)
    if as_json:
        click.echo(json.dumps(finite(report)))
        return
    print_report(report)
    if plot:
        console().print(f"The figure is in {plot}.", highlight=False)


@dataclass(frozen=True)
class _Trial:
    """A plan's sources as they will be simulated."""

    id: Any
    change_rate: Floats
    sync_rate: Floats
    weight: Floats
    cost: Floats
    process: Any
    order: Order
    days: float
    seed: int

    def part(self, rows: Any) -> _Trial:
        """The same of some of the sources."""
        names = ("id", "change_rate", "sync_rate", "weight", "cost", "process")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def run(self, sync_rate: Floats, done: Callable[[float], None] | None = None) -> tuple[FleetRun, Floats, Floats]:
        """What these rates achieve, and the freshness and age that the formulas give."""
        from unstale.sim.fleet_run import predicted, simulate_fleet

        run = simulate_fleet(
            self.change_rate,
            sync_rate,
            self.order,
            horizon=self.days,
            seed=self.seed,
            process=self.process,
            weight=self.weight,
            runs=self.runs,
            done=done,
        )
        return run, *predicted(self.change_rate, sync_rate, self.order, self.process)

    @property
    def runs(self) -> int:
        events = float(np.sum(self.change_rate + self.sync_rate)) * self.days
        return int(np.clip(min(SOURCE_RUNS / len(self.sync_rate), EVENTS / max(events, 1.0)), FEWEST, MOST))


def _read(file: str, order: str, days: float, seed: int) -> _Trial:
    from unstale import files
    from unstale.core.checks import number, numbers
    from unstale.planning.table import columns

    table = files.read(file)
    require(
        "sync_rate" in table.column_names,
        "plan",
        repr(file),
        "has no column sync_rate",
        "write one with unstale plan fleet.csv --budget 1000/day -o plan.csv",
    )
    sources = columns(table)
    given = table.column("sync_rate").to_pylist()
    sync = numbers("sync_rate", given, least=0, remedy="give polls per day, 0 for an abandoned source")
    ones = np.ones(len(sync))
    weight = ones if sources.weight is None else sources.weight
    require(np.any(weight > 0), "plan", repr(file), "has only weights of 0", "give some source a weight")
    kinds = ["poisson"] * len(sync) if sources.process is None else [text or "poisson" for text in sources.process]
    return _Trial(
        id=np.array(table.column("id").to_pylist(), dtype=object),
        change_rate=sources.change_rate,
        sync_rate=sync,
        weight=weight,
        cost=ones if sources.cost is None else sources.cost,
        process=np.array(kinds),
        order=cast("Order", order),
        days=number("days", days, above=0, remedy="try 30"),
        seed=seed,
    )


def _tried(trial: _Trial, file: str, compare: bool, engine: bool, bar: _Bar) -> tuple[dict[str, Any], Series]:
    """The plan, and its rivals if asked: everything there is to say, and to draw."""
    from unstale.core.baselines import proportional, uniform
    from unstale.sim.scenarios import ScenarioRow

    plans = {"plan": trial.sync_rate}
    if compare:
        spent = float(trial.cost @ trial.sync_rate)
        require(spent > 0, "plan", "without polls", "has no budget to compare", "leave out --compare")
        columns = trial.change_rate, trial.weight, trial.cost
        plans |= {rule.__name__: rule(*columns, spent) for rule in (uniform, proportional)}
    ways, series, events = [], {}, 0
    for k, (name, rates) in enumerate(plans.items()):
        bar.next("simulating")
        run, fresh, old = trial.run(rates, lambda done, k=k: bar.share((k + done) / len(plans)))  # type: ignore[misc]
        counts = run.weight > 0
        want, wait = (float(np.average(x[counts], weights=run.weight[counts])) for x in (fresh, old))
        ways.append(
            numbers(
                ScenarioRow(name, float(run.polls.sum()) / run.time, run.fleet_freshness, run.fleet_age, want, wait)
            )
        )
        series[name] = fresh, run.freshness
        events += run.events
    if engine:
        bar.next("polling")
        ways.append(numbers(_by_engine(trial)))
    report = {
        "plan": file,
        "sources": len(trial.sync_rate),
        "days": trial.days,
        "seed": trial.seed,
        "runs": trial.runs,
        "events": events,
        "ways": ways,
        "worst": _worst(trial, series["plan"][0]),
    }
    return report, series


def _by_engine(trial: _Trial) -> ScenarioRow:
    """The real engine in virtual time, with the plan's budget; what it did in the last two thirds of the time."""
    from unstale.cli.virtual_engine import run_virtually
    from unstale.core.processes.named import named
    from unstale.ports import Listing
    from unstale.sim.changes import Still, change_times
    from unstale.sim.scenarios import ScenarioRow
    from unstale.sim.statistics import Estimate
    from unstale.sim.virtual import START, VirtualWorld
    from unstale.units import DAY

    spent, span = float(trial.cost @ trial.sync_rate), trial.days * DAY
    require(spent > 0, "plan", "without polls", "has no budget for an engine", "leave out --engine")
    polls = spent * trial.days / float(trial.cost.mean())
    rule = f"would make an engine poll about {polls:.1g} times, more than {ENGINE_POLLS:.0e}"
    require(polls <= ENGINE_POLLS, "days", trial.days, rule, "simulate fewer")
    rng, rate = np.random.default_rng(trial.seed), trial.change_rate / DAY
    laws = (named(str(kind), float(r)) if r > 0 else Still() for kind, r in zip(trial.process, rate, strict=True))
    world = VirtualWorld(rate, START + span, changes=[START + change_times(law, rng, span) for law in laws])

    def listing(i: int) -> Listing:
        return Listing(f"memory:{i}", kind="memory", weight=float(trial.weight[i]), cost=float(trial.cost[i]))

    run_virtually(world, spent / DAY, span, listing=listing)
    begin, end = START + span / 3.0, START + span
    fresh, age = world.measured(begin, end, trial.weight)
    made = sum(begin <= t < end for times in world.polls for t in times)
    return ScenarioRow(
        "engine, learning", made / (trial.days * 2.0 / 3.0), fresh, Estimate(age.value / DAY, age.error / DAY)
    )


def _worst(trial: _Trial, fresh: Floats, count: int = 8) -> list[dict[str, Any]]:
    """The sources that should contribute most staleness, simulated again, as often as so few can be.

    They are chosen by the formula: chosen by what was simulated, they would look worse than they are.
    """
    few = trial.part(np.argsort(-trial.weight * (1.0 - fresh), kind="stable")[:count])
    run, fresh, old = few.run(few.sync_rate)
    measured = run.freshness.value, run.freshness.error, fresh, run.age.value, run.age.error, old
    values = (np.asarray(column) for column in measured)
    rows = zip(few.id, few.change_rate, few.sync_rate, few.weight, *values, strict=True)
    return [
        {
            "id": str(row[0]),
            "change_rate": float(row[1]),
            "sync_rate": float(row[2]),
            "weight": float(row[3]),
            "freshness": pair(*row[4:7]),
            "age": pair(*row[7:]),
        }
        for row in rows
    ]
