"""`unstale topology`: how should machines poll a source, and each other?"""

from __future__ import annotations

import json
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from unstale.cli.show import Stages, console
from unstale.errors import InputError, require, sentence
from unstale.units import DAY, format_duration, format_rate

if TYPE_CHECKING:
    from unstale.planning.topology import Design, Question, Topology
    from unstale.sim.statistics import Estimate

#: changes simulated, and steps of a simulation of many machines, where each step looks at all of them
CHANGES, STEPS = 50_000, 1e9
#: even polls keep the phase they begin with: many beginnings, to see all of them
BATCHES = 1000
_NEEDED = {"changes": '"2/h"', "machines": "20", "capacity": '"100/s"', "freshness": "0.9"}


@click.command()
@click.argument("file", required=False, metavar="[FILE.toml]")
@click.option("--changes", help="How the source changes: a rate such as 2/h, or a kind and a rate: 'pareto:1.5 2/h'.")
@click.option("--machines", type=int, help="How many machines there are.")
@click.option("--capacity", help="What each machine can send and answer, e.g. 100/s.")
@click.option("--freshness", type=float, help="What clients shall see, e.g. 0.9.")
@click.option(
    "--source-limit", metavar="RATE", help="Polls that the source answers at most; else as many as a machine."
)
@click.option("--shapes", help="Compare these only, e.g. tree,turns; see below for all.")
@click.option("--simulate", is_flag=True, help="Check the winner's freshness by simulation.")
@click.option("--seed", default=1, show_default="1", help="Another seed, another simulated history.")
@click.option("--plot", metavar="FILE", help="Draw clients served against freshness into FILE (.png, .svg, .html).")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; rates per day.")
def topology(file: str | None, simulate: bool, seed: int, plot: str | None, as_json: bool, **given: Any) -> None:
    """How should machines poll a source, and each other, to serve most clients?

    Every request costs a machine one unit of its capacity, whether it sends it or answers it; what polls leave,
    clients get. The best design of each shape is shown, the one that serves most clients first:

    \b
      single       one machine
      independent  every machine polls the source, clients ask one
      turns        machines of a group take turns at polling, clients ask a whole group
      redundancy   every machine polls the source, clients ask several and take the freshest
      tree         machines poll machines
      cooperation  machines poll the source, and ask random others
      combined     a tree with a rate for each depth, the first cooperating, clients asking two, as far as each helps

    Beside them stands what no design of these machines can exceed. `unstale lab design FILE.toml` runs the combined
    one as real processes.

    What FILE.toml says, options override:

    \b
      unstale topology --changes 2/h --machines 20 --capacity 100/s --freshness 0.9
      unstale topology site.toml --source-limit 1/min --plot shapes.png --simulate
    """
    with Stages() as stages:
        stages.next("loading")
        from unstale.planning import topology as planning
        from unstale.report.picture import checked
        from unstale.report.topology import draw

        plot = plot and checked(plot)
        question = question_of(file, {name: value for name, value in given.items() if value is not None})
        stages.next("comparing")
        found = planning.topology(question)
        checked_by = None
        if simulate:
            stages.next("simulating")
            checked_by = simulated(found.winner, question, seed)
        if plot:
            stages.next("drawing")
            marks = {design.shape: design.clients for design in found.designs if design.feasible}
            draw(planning.curves(found), marks, question.target, plot)
    if as_json:
        click.echo(json.dumps(_report(found, checked_by)))
        return
    _print(found, checked_by)
    if plot:
        console().print(f"The figure is in {plot}.", highlight=False, soft_wrap=True)


def simulated(design: Design, question: Question, seed: int) -> Estimate:
    """What clients of a design see, simulated: at the machines that are farthest from the source."""
    from unstale.core.processes import Constant, Poisson
    from unstale.core.replication.redundancy import merged
    from unstale.sim.copy import simulate_copy
    from unstale.sim.replication import simulate_cascade, simulate_cooperation
    from unstale.sim.statistics import Estimate

    changes, polls = question.process, Constant(1.0 / design.sync_rate)
    horizon = CHANGES / changes.rate
    if design.shape == "tree":
        every = simulate_cascade(changes, [polls] * design.depth, horizon=horizon, seed=seed, batches=BATCHES).freshness
        return Estimate(float(every.value[-1]), float(every.error[-1]))  # type: ignore[index]
    if design.shape == "combined":
        return _simulated_layers(design, changes.rate, horizon, seed)
    if design.shape == "cooperation" and design.peer_rate > 0:
        sends = design.machines * (design.sync_rate + design.peer_rate)
        horizon = min(horizon, STEPS / (design.machines * sends))
        contacts = Poisson(design.peer_rate)
        return simulate_cooperation(
            changes, Poisson(design.sync_rate), contacts, design.machines, horizon=horizon, seed=seed, batches=BATCHES
        ).freshness
    if design.shape == "cooperation":
        return simulate_copy(changes, Poisson(design.sync_rate), horizon=horizon, seed=seed, batches=BATCHES).freshness
    if design.shape == "turns":
        polls = Constant(1.0 / (design.asked * design.sync_rate))
    asked = design.asked if design.shape == "redundancy" else 1
    return simulate_copy(changes, merged(polls, asked), horizon=horizon, seed=seed, batches=BATCHES).freshness


def _simulated_layers(design: Design, change_rate: float, horizon: float, seed: int) -> Estimate:
    from unstale.planning.combined import layers_of
    from unstale.sim.layers import simulate_layers
    from unstale.sim.statistics import Estimate

    layers = layers_of(design)
    sends = sum(layer.machines * (layer.sync_rate + layer.peer_rate) for layer in layers)
    horizon = min(horizon, STEPS / (design.machines * sends))
    every = simulate_layers(change_rate, layers, asked=design.asked, horizon=horizon, seed=seed, batches=BATCHES)
    return Estimate(float(every.value[-1]), float(every.error[-1]))  # type: ignore[index]


def question_of(file: str | None, given: dict[str, Any]) -> Question:
    """What the file says, and the options, which have the last word."""
    from unstale.planning.topology import SHAPES, Question

    values = _read(file) if file else {}
    known = [field.name for field in fields(Question)]
    for name in values:
        require(name in known, "key", repr(name), f"of {file!r} is not known", f"use {', '.join(known)}")
    values |= given
    for name, example in _NEEDED.items():
        if name not in values:
            raise InputError(f"{name} must be given: use --{name} {example}, or write {name} = {example} in a file")
    if isinstance(values.get("shapes"), str):
        values["shapes"] = [shape.strip() for shape in values["shapes"].split(",")]
    return Question(**{"shapes": SHAPES} | values)


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_text("utf-8"))
    except OSError as error:
        words = f"cannot be read ({(error.strerror or 'unknown').lower()})"
        raise InputError(sentence("file", repr(file), words, "check its name")) from None
    except UnicodeDecodeError:
        raise InputError(sentence("file", repr(file), "is not text in UTF-8", "save it as such")) from None
    except tomllib.TOMLDecodeError as error:
        what = f"is not TOML ({str(error)[:1].lower()}{str(error)[1:]})"
        raise InputError(sentence("file", repr(file), what, 'write lines like capacity = "100/s"')) from None


def _print(found: Topology, checked_by: Estimate | None) -> None:
    from unstale.report.topology import unit_of

    out, question = console(), found.question
    machines = f"{question.count:,} machines" if question.count > 1 else "1 machine"
    source = question.capacity if question.source_limit is None else question.source_limit
    asked = (
        f"{machines} of {_said(question.capacity)}, a source that changes {format_rate(question.process.rate)} "
        f"and answers at most {_said(source)}; clients shall see {100 * question.target:g} % freshness"
    )
    out.print(f"[bold]{asked}[/bold]\n", highlight=False, soft_wrap=True)
    table = Table(box=None, padding=(0, 1))
    for name in ("shape", "clients", "source polls", "machines", "how"):
        side = "left" if name in ("shape", "how") else "right"
        table.add_column(name, justify=side, no_wrap=name != "how", overflow="fold")  # type: ignore[arg-type]
    # one unit for all, so that rows compare at a glance
    unit, seconds = unit_of(found.winner.clients)
    for design in found.designs:
        if design.feasible:
            bold = "bold" if design is found.winner else ""
            served = f"{design.clients * seconds / DAY:,.4g}/{unit}"
            table.add_row(
                design.shape, served, format_rate(design.source_polls), f"{design.machines:,}", how(design), style=bold
            )
    out.print(table)
    out.print(f"\n[bold]Best: {found.reason}.[/bold]", highlight=False, soft_wrap=True)
    most = f"{found.bound * seconds / DAY:,.4g}/{unit}"
    share = f"{100 * found.winner.clients / found.bound:.3g} %"
    out.print(
        f"No design can serve more than {most}: this one serves {share} of that.", highlight=False, soft_wrap=True
    )
    for design in found.designs:
        if not design.feasible:
            out.print(f"Not {design.shape}: {design.problem}.", highlight=False, soft_wrap=True)
    if checked_by is not None:
        seen = f"{100 * checked_by.value:.2f} ± {100 * checked_by.error:.2f} %"
        away = f"{abs(checked_by.z(found.winner.freshness)):.1f} standard errors from what is promised"
        out.print(f"Simulated: {found.winner.shape} shows {seen} freshness, {away}.", highlight=False, soft_wrap=True)


def _said(rate: str | float) -> str:
    """A rate as it was asked, if it was with a unit."""
    return rate.strip() if isinstance(rate, str) and not rate.strip()[-1:].isdigit() else format_rate(float(rate))


def how(design: Design) -> str:
    """What the machines of a design do, and whom clients ask, in a few words."""
    every = format_duration(1.0 / design.sync_rate)
    match design.shape:
        case "single":
            return f"polls the source every {every}"
        case "independent":
            return f"each polls the source every {every}"
        case "turns":
            groups = design.machines // design.asked
            many = f"{groups:,} groups" if groups > 1 else "a group"
            return f"{many} of {design.asked:,} that poll in turns, each machine every {every}; clients ask a group"
        case "redundancy":
            return f"each polls the source every {every}; clients ask {design.asked:,} and take the freshest"
        case "tree":
            sizes = [f"{size:,}" for size in design.levels]
            below = " and ".join([", ".join(sizes[1:-1]), sizes[-1]]) if len(sizes) > 2 else sizes[-1]
            return f"{sizes[0]} at the source, below them {below}; each polls the one above every {every}"
        case "combined":
            return _layers(design)
        case _:
            asks = f"asks a peer every {format_duration(1.0 / design.peer_rate)}" if design.peer_rate else "asks nobody"
            return f"each polls the source every {every} and {asks}"


def _layers(design: Design) -> str:
    """Every depth with its own rate."""
    asks = f" and asks a peer every {format_duration(1.0 / design.peer_rate)}" if design.peer_rate else ""
    every = [format_duration(1.0 / rate) for rate in design.rates]
    said = [f"{design.levels[0]:,} at the source, each polling it every {every[0]}{asks}"]
    said += [
        f"below them {size:,}, each polling one of them every {each}"
        for size, each in zip(design.levels[1:], every[1:], strict=True)
    ]
    return "; ".join([*said, *(["clients ask two of the last"] if design.asked > 1 else [])])


def _report(found: Topology, checked_by: Estimate | None) -> dict[str, Any]:
    question = found.question
    report: dict[str, Any] = {
        "change_rate": question.process.rate,
        "machines": question.count,
        "capacity": question.limit,
        "source_limit": question.source,
        "freshness": question.target,
        "winner": found.winner.shape,
        "reason": found.reason,
        "bound": found.bound,
        "designs": [_numbers(design) for design in found.designs],
    }
    if checked_by is not None:
        report["simulated"] = {"freshness": float(checked_by.value), "error": float(checked_by.error)}
    return report


def _numbers(design: Design) -> dict[str, Any]:
    if not design.feasible:
        return {
            "shape": design.shape,
            "feasible": False,
            "best_freshness": design.freshness,
            "problem": design.problem,
        }
    return {
        "shape": design.shape,
        "feasible": True,
        "freshness": design.freshness,
        "clients": design.clients,
        "machines": design.machines,
        "levels": list(design.levels),
        "depth": design.depth,
        "branching": design.branching,
        "asked": design.asked,
        "sync_rate": design.sync_rate,
        "peer_rate": design.peer_rate,
        "rates": list(design.rates),
        "source_polls": design.source_polls,
    }
