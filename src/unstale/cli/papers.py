"""`unstale papers`: every table, figure and quoted number of the papers, computed again."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unstale.cli.show import Stages, console
from unstale.errors import InputError, require, sentence
from unstale.writing import whole_file

if TYPE_CHECKING:
    from unstale.core.penalties import Penalty
    from unstale.core.processes import Process
    from unstale.core.trace import Trace
    from unstale.report.papers.build import Findings
    from unstale.report.papers.item import SimulatedMean

#: polls in each simulation: errors of a few parts in ten thousand, in a fraction of a second
POLLS = 1_000_000
#: changes of one source that can be drawn
FEWEST = 10


@click.command()
@click.option("-o", "--output", metavar="DIR", help="Write papers.html into this directory. [default: here]")
@click.option("--check", is_flag=True, help="Only compare; exit 1 if a value left its tolerance.")
@click.option("--only", type=click.Choice(("000", "001", "002", "003", "004")), help="One paper instead of all.")
@click.option("--no-simulation", is_flag=True, help="Leave out the simulations.")
@click.option("--trace", "history", metavar="TRACE", help="Draw the figures of change histories of this one.")
@click.option("--source", metavar="NAME", help="With --trace: 003 Figure 9 of this source, not of the busiest.")
def papers(
    output: str | None, check: bool, only: str | None, no_simulation: bool, history: str | None, source: str | None
) -> None:
    """Compute every table, figure and quoted number of the papers again, and say where they are right.

    Writes one file of HTML that needs no network. The histories that the papers measured were never published: drawn
    ones with the laws they print stand in for them in 000 Figure 11 and 003 Figure 9, or TRACE does. With --check it
    writes nothing unless a directory is given.

    \b
      unstale papers -o report
      unstale papers --check
      unstale papers --only 003 --no-simulation
    """
    started = time.perf_counter()
    simulate = None if no_simulation else _simulate
    trace = _history(history, source)
    with Stages() as stages:
        stages.next("loading")
        from unstale.report.papers.build import build
        from unstale.report.papers.figure import need_matplotlib
        from unstale.report.papers.report import render

        file = None if check and output is None else Path(output or ".") / "papers.html"
        if file is not None:
            # What is missing should be said before a minute is spent.
            need_matplotlib()
            with _into(file.parent) as folder:
                folder.mkdir(parents=True, exist_ok=True)
        stages.next("computing")
        findings = build(only, simulate)
        if file is not None:
            stages.next("drawing")
            text = render(findings, simulate, _facts(no_simulation), trace=trace, source=source)
            with whole_file(file) as out:
                out.write(text.encode())
    _print(findings, file, time.perf_counter() - started)
    if check and findings.failed:
        sys.exit(1)


def _history(file: str | None, source: str | None) -> Trace | None:
    """The trace to draw, if there is one, with the source that is asked for."""
    if file is None:
        require(source is None, "--source", repr(source), "is a source of --trace", "give the trace as well")
        return None
    from unstale.traces.read import read

    trace, _ = read(file)
    known = source is None or source in trace.names
    require(known, "--source", repr(source), f"is not in {file}", "name one that is")
    row = trace.names.index(source) if source is not None else int(trace.counts().argmax())
    many = int(trace.counts()[row])
    require(many >= FEWEST, "--trace", repr(file), f"has {many} changes of that source", f"give {FEWEST} at least")
    return trace


def _simulate(
    changes: Process, polls: Process, *, seed: int, penalty: Penalty | None = None, tau: float | None = None
) -> Mapping[str, SimulatedMean]:
    """One simulated copy, as the report wants it."""
    from unstale.core.processes import Triangular
    from unstale.report.papers.item import SimulatedMean
    from unstale.sim.copy import Sweep, simulate_copy

    # Triangular gaps are those of random order: simulate the rounds themselves, whose gaps depend on each other.
    polled = Sweep(polls.mean) if isinstance(polls, Triangular) else polls
    run = simulate_copy(changes, polled, penalty, polls_count=POLLS, seed=seed, tau=tau)
    found = {
        "freshness": run.freshness,
        "age": run.age,
        "missed": run.missed_changes,
        "consistency": run.consistency,
        "staleness": run.staleness,
        "update_staleness": run.update_staleness,
    }
    return {name: SimulatedMean(float(e.value), float(e.error)) for name, e in found.items() if e is not None}


def _facts(no_simulation: bool) -> str:
    from unstale import __version__

    runs = "Made without simulations" if no_simulation else f"Each simulation has {POLLS:,} polls and a fixed seed"
    return f"{runs}. unstale {__version__}."


@contextmanager
def _into(folder: Path) -> Iterator[Path]:
    """What the file system refuses, as a sentence."""
    try:
        yield folder
    except OSError as error:
        rule = f"cannot be written to ({error.strerror})"
        raise InputError(sentence("output", repr(str(folder)), rule, "name another directory")) from None


def _print(findings: Findings, file: Path | None, seconds: float) -> None:
    from rich.table import Table

    out = console()
    out.print(
        f"[bold]{len(findings.rows)} numbers computed, {len(findings.failed)} outside "
        f"their tolerance, {len(findings.errata)} errata[/bold]",
        highlight=False,
    )
    if findings.failed:
        table = Table(box=None, padding=(0, 2))
        for name in ("outside tolerance", "computed", "expected", "times tolerance", "standard errors"):
            table.add_column(name, overflow="fold")
        for row in findings.failed:
            for part in row.parts:
                if not part.holds:
                    distance = f"{part.distance:.1f}" if part.distance and math.isfinite(part.distance) else ""
                    table.add_row(
                        f"{row.item.id} {part.label}",
                        str(part.computed),
                        str(part.expected),
                        f"{part.excess:.2g}",
                        distance,
                    )
        out.print(table)
    if file is not None:
        out.print(f"The report is in {file} ({seconds:.0f} s).", highlight=False, markup=False, soft_wrap=True)
