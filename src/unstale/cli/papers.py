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
from unstale.errors import InputError, sentence
from unstale.writing import whole_file

if TYPE_CHECKING:
    from unstale.core.penalties import Penalty
    from unstale.core.processes import Process
    from unstale.report.papers.build import Findings
    from unstale.report.papers.item import SimulatedMean

#: polls in each simulation: errors of a few parts in ten thousand, in a fraction of a second
POLLS = 1_000_000


@click.command()
@click.option("-o", "--output", metavar="DIR", help="Write papers.html into this directory. [default: here]")
@click.option("--check", is_flag=True, help="Only compare; exit 1 if a value left its tolerance.")
@click.option("--only", type=click.Choice(("000", "001", "002", "003", "004")), help="One paper instead of all.")
@click.option("--no-simulation", is_flag=True, help="Leave out the simulations.")
def papers(output: str | None, check: bool, only: str | None, no_simulation: bool) -> None:
    """Compute every table, figure and quoted number of the papers again, and say where they are right.

    Writes one file of HTML that needs no network. With --check it writes nothing unless a directory is given.

    \b
      unstale papers -o report
      unstale papers --check
      unstale papers --only 003 --no-simulation
    """
    started = time.perf_counter()
    simulate = None if no_simulation else _simulate
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
            text = render(findings, simulate, _facts(no_simulation))
            with whole_file(file) as out:
                out.write(text.encode())
    _print(findings, file, time.perf_counter() - started)
    if check and findings.failed:
        sys.exit(1)


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
        out.print(f"The report is in {file} ({seconds:.0f} s).", highlight=False)
