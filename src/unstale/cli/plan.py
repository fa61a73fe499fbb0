"""`unstale plan` and `unstale sample`: a budget, a fleet, the optimal plan."""

from __future__ import annotations

import json
from importlib.resources import as_file, files
from typing import TYPE_CHECKING, Any, cast

import click

from unstale.cli.show import Stages, console, grid, print_curve, print_plan
from unstale.errors import InputError, require, sentence
from unstale.units import many

if TYPE_CHECKING:
    from unstale.planning.collections import CollectedFleetPlan
    from unstale.planning.fleet_plan import FleetPlan
    from unstale.planning.parts_plan import PartsPlan


@click.command()
@click.argument("file")
@click.option("--budget", help="What all polls together may cost, e.g. 1000/day; a poll costs 1 unless the table says.")
@click.option("--target", help="Instead of a budget: freshness=0.9, age=2h; finds the least budget.")
@click.option(
    "--objective",
    default="freshness",
    show_default=True,
    help="freshness, age, missed, lag, deadline:TIME, saturating:TIME, power:NUMBER or points:TIME=HARM,….",
)
@click.option(
    "--order",
    type=click.Choice(["fixed", "random", "purely-random"]),
    default="fixed",
    show_default=True,
    help="How evenly the polls will come.",
)
@click.option(
    "--host-cap",
    "host_caps",
    multiple=True,
    metavar="RATE or HOST=RATE",
    help="Polls a host allows; RATE holds for every host not named.",
)
@click.option(
    "--engine", help="Plan Parquet files in parts: processes:3, dask (workers of this machine) or dask://HOST:PORT."
)
@click.option(
    "--collections",
    metavar="FILE",
    help="What tells about many sources at once: a table of id, cost, min_interval, max_interval, recall, precision.",
)
@click.option("-o", "--output", help="Write the full plan here: .csv, .parquet or .jsonl; with an engine, a folder.")
@click.option(
    "--curve",
    "--plot",
    "curve",
    is_flag=False,
    flag_value="-",
    metavar="[FILE]",
    help="Draw freshness against budget, here or into FILE (.png, .svg, .html).",
)
@click.option("--explain", metavar="ID", help="Say in a sentence why this source is polled as it is.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object; per day, and days.")
def plan(
    file: str,
    budget: str | None,
    target: str | None,
    objective: str,
    order: str,
    host_caps: tuple[str, ...],
    engine: str | None,
    collections: str | None,
    output: str | None,
    curve: str | None,
    explain: str | None,
    as_json: bool,
) -> None:
    """Divide a budget of polls over the sources in FILE so that the copies are freshest.

    FILE is CSV, Parquet or JSON lines, or - for standard input. Columns: id, change_rate (or changes and observed),
    weight, cost, host, min_interval, max_interval, process; all but the first two optional. Bare numbers are per
    day, or days. A quoted pattern of Parquet files is planned in parts, and so is FILE with --engine. With
    --collections the column collection says which of them tells about each source; several have ; between them.

    \b
      unstale plan fleet.csv --budget 1000/day
      unstale plan fleet.csv --target freshness=0.9 -o plan.parquet
      unstale plan fleet.csv --budget 1000/day --explain news/front
      unstale plan fleet.csv --collections sitemaps.csv --budget 1000/day
      unstale plan 'fleet/*.parquet' --budget 1e6/day --engine processes:3 -o plan/
    """
    require(
        (budget is None) != (target is None),
        "plan",
        file,
        "needs either a budget or a target",
        "add --budget 1000/day or --target freshness=0.9",
    )
    goal, objective = _target(target, objective)
    if engine is not None or any(mark in file for mark in "*?["):
        for name, given in (
            ("--collections", collections),
            ("--curve", curve),
            ("--explain", explain),
        ):
            require(not given, "plan", repr(file), f"in parts knows no {name}", "plan one table, without --engine")
        _in_parts(file, engine or "processes", budget, goal, objective, order, _caps(host_caps), output, as_json)
        return
    with Stages() as stages:
        stages.next("loading")
        from unstale import files as fleet_files
        from unstale.planning.planner import plan_columns
        from unstale.planning.table import columns

        stages.next("reading")
        sources = columns(fleet_files.read(file))
        stages.next("planning")
        asked: dict[str, Any] = {
            "budget": budget,
            "target": goal,
            "objective": objective,
            "order": order,
            "host_cap": _caps(host_caps),
        }
        made: FleetPlan | CollectedFleetPlan
        if collections is None:
            made = plan_columns(sources, **asked)
        else:
            from unstale.planning.collections import plan_with_collections

            made = plan_with_collections(sources, fleet_files.read(collections), **asked)
        stages.next("comparing")
        summary = made.summary()
        if output:
            stages.next("writing")
            fleet_files.write(made.table(), output)
        drawn = None
        if curve and explain is None and not as_json:
            stages.next("drawing")
            drawn = made.curve()
    _print(made, summary, drawn, curve, explain, as_json)
    if output and not as_json:
        console().print(f"The full plan is in {output}.", highlight=False, markup=False, soft_wrap=True)


@click.command()
@click.option("--budget", default="400/day", show_default=True, help="What all polls together may cost.")
def sample(budget: str) -> None:
    """Plan a bundled sample fleet: news, blogs, APIs, law, SQL tables, a wiki."""
    from unstale import files as fleet_files
    from unstale.planning.planner import plan_columns
    from unstale.planning.table import columns

    with as_file(files("unstale.cli") / "sample_fleet.csv") as path:
        sources = columns(fleet_files.read(str(path)))
    made = plan_columns(sources, budget=budget, target=None)
    print_plan(made, made.summary(), rows=len(sources.change_rate))
    console().print("\nEvery line has a reason, for example:", highlight=False)
    for id_ in ("news/front", "blog/01", "api/prices/eu"):
        console().print(f"  {made.explain(id_)}", highlight=False, soft_wrap=True)
    print_curve(made.curve(), made)
    console().print(
        "\nYour own: unstale plan fleet.csv --budget 1000/day  (columns: id, change_rate, weight, …)", highlight=False
    )


def _in_parts(
    file: str,
    engine: str,
    budget: str | None,
    goal: float | None,
    objective: str,
    order: str,
    host_cap: dict[str, float | str] | None,
    output: str | None,
    as_json: bool,
) -> None:
    with Stages(11) as stages:
        stages.next("loading")
        from unstale.planning.distributed import plan_parts
        from unstale.planning.engines import engine_of

        workers = engine_of(engine)
        try:
            made = plan_parts(
                file,
                workers,
                budget=budget,
                target=goal,
                objective=objective,
                order=order,
                host_cap=host_cap,
                output=output,
                stage=stages.next,
            )
        finally:
            stages.next("closing")
            workers.close()
    if as_json:
        click.echo(json.dumps(made.summary()))
        return
    _print_parts(made)
    if output:
        console().print(
            f"The full plan is in {output}: {many(made.files, 'file')}.", highlight=False, markup=False, soft_wrap=True
        )


def _print_parts(made: PartsPlan) -> None:
    """The summary alone: the sources are too many to show."""
    summary = made.summary()
    ours, even, prop = (summary[k] for k in ("freshness", "freshness_uniform", "freshness_proportional"))
    table = grid("", "", "")
    table.show_header = False
    table.add_row("freshness", f"{100 * ours:.1f} %", "of the time, the copies equal their sources")
    table.add_row("", f"{100 * even:.1f} %", "if all were polled equally often, for the same budget")
    table.add_row("", f"{100 * prop:.1f} %", "if they were polled in proportion to their changes")
    table.add_row("price", f"{made.price:.4g}", f"found in {many(made.passes, 'pass', 'passes')} after the sketches")
    table.add_row("abandoned", f"{summary['abandoned']:,}", "sources whose polls cannot pay at this price")
    worst = max(summary["certificate"].values())
    table.add_row("certificate", f"{worst:.0e}", "largest residual of the optimality conditions")
    head = f"{many(made.sources, 'source')}, {made.spent:,.6g} of {made.budget:,.6g} spent per day"
    console().print(f"[bold]{head}[/bold]", highlight=False)
    console().print(table, highlight=False)


def _print(
    made: FleetPlan | CollectedFleetPlan,
    summary: dict[str, Any],
    drawn: Any,
    curve: str | None,
    explain: str | None,
    as_json: bool,
) -> None:
    if as_json:
        click.echo(json.dumps(summary | ({} if explain is None else {"explanation": made.explain(explain)})))
        return
    if explain is not None:
        console().print(made.explain(explain), highlight=False, soft_wrap=True)
        return
    if "collections" in summary:
        from unstale.cli.collected import print_collected

        print_collected(cast("CollectedFleetPlan", made), summary)
    else:
        print_plan(cast("FleetPlan", made), summary)
    if drawn is not None and curve == "-":
        print_curve(drawn, made)
    elif drawn is not None and curve:
        from unstale.report.curve import draw

        draw(drawn, made.spent, made.fleet_freshness, curve)
        console().print(f"The curve is in {curve}.", highlight=False)


def _target(text: str | None, objective: str) -> tuple[float | None, str]:
    """`freshness=0.9` or `age=2h`: the target, and the objective it is measured in."""
    from unstale.units import parse_duration

    if text is None:
        return None, objective
    name, _, value = text.partition("=")
    if name not in ("freshness", "age", "missed", "penalty") or not value:
        raise InputError(sentence("target", repr(text), "is not a target", "write freshness=0.9 or age=2h"))
    if name in ("freshness", "age") and objective not in (name, "freshness"):
        raise InputError(
            sentence("target", repr(text), f"is not what the objective {objective} measures", f"use --objective {name}")
        )
    if name == "age":
        return parse_duration(value, "target age"), name
    try:
        return float(value), objective if name == "penalty" else name
    except ValueError:
        raise InputError(sentence("target", repr(text), "has no number", f"write it like {name}=0.9")) from None


def _caps(texts: tuple[str, ...]) -> dict[str, float | str] | None:
    caps: dict[str, float | str] = {}
    for text in texts:
        host, found, rate = text.rpartition("=")
        caps[host if found else "*"] = rate
    # The general cap last: it fills in for hosts without their own.
    return dict(sorted(caps.items(), key=lambda item: item[0] == "*")) or None
