"""What people see: tables, a curve in the terminal, a progress bar for what takes longer than a second."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.table import Table

from unstale.errors import require
from unstale.units import format_duration, format_rate, many

if TYPE_CHECKING:
    from unstale.core.checks import Floats
    from unstale.planning.collections import CollectedFleetPlan
    from unstale.planning.fleet_plan import FleetPlan


#: columns that are written where nobody can say how many there are
PIPE = 80


class _Quiet(Console):
    """A console that leaves it to the command what becomes of an answer that nobody reads on, and in which :cat: is no
    picture: addresses and titles are shown as they are."""

    def __init__(self) -> None:
        super().__init__(emoji=False)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def console() -> Console:
    """Where answers go: standard output. A file or a pipe is no terminal, and never narrower than `PIPE` columns."""
    made = _Quiet()
    if not made.is_terminal:
        # What COLUMNS says is the width of the terminal that somebody else looks at.
        made.width = max(made.width, PIPE)
    return made


class Stages:
    """A progress bar over named stages on the error stream, shown only once a second has passed."""

    def __init__(self, count: int = 6) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # few commands take so long

        columns = (TextColumn("{task.description:<10}"), BarColumn(), TimeElapsedColumn())
        errors = Console(stderr=True)
        # In a file or a mail of cron nobody sees it move: it would leave an empty line.
        self._progress = Progress(*columns, console=errors, transient=True, disable=not errors.is_terminal)
        self._task = self._progress.add_task("starting", total=count)
        self._timer = threading.Timer(1.0, self._progress.start)
        self._timer.daemon = True

    def __enter__(self) -> Stages:
        self._timer.start()
        return self

    def next(self, name: str) -> None:
        self._progress.update(self._task, description=name, advance=1)

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        if self._progress.live.is_started:
            self._progress.stop()


def grid(*names: str) -> Table:
    """A table without lines: the first column and those without a name to the left, numbers to the right."""
    table = Table(box=None, padding=(0, 1))
    for k, name in enumerate(names):
        table.add_column(name, justify="right" if k and name else "left", no_wrap=True)
    return table


def grid_of(names: Sequence[str], rows: Sequence[Sequence[str]], whole: int) -> Table:
    """Rows in such a table, less the columns in which nothing stands.

    The cells of the column `whole` are never cut, for people copy them: what does not fit goes on in further lines.
    """
    said = [k for k in range(len(names)) if k == whole % len(names) or any(row[k] for row in rows)]
    table = grid(*(names[k] for k in said))
    one = table.columns[said.index(whole % len(names))]
    one.no_wrap, one.overflow = False, "fold"
    for row in rows:
        table.add_row(*(row[k] for k in said))
    return table


def moment(name: str, text: str | None) -> float | None:
    """Seconds since 1970 from 2024, 2024-05 or 2024-05-01; a year or a month begins with its first day."""
    from unstale.traces import times

    if text is None:
        return None
    begins = text + {4: "-01-01", 7: "-01"}.get(len(text), "") if re.fullmatch(r"\d{4}(-\d\d)?", text) else text
    time, _ = times.moment(begins)
    require(math.isfinite(time), name, repr(text), "is not a date", "write it like 2024, 2024-05 or 2024-05-01")
    return time


def print_plan(made: FleetPlan, summary: dict[str, Any], rows: int = 12) -> None:
    """Summary, the most polled sources, the busiest hosts."""
    out = console()
    ours, even, prop = (summary[k] for k in ("freshness", "freshness_uniform", "freshness_proportional"))
    out.print(
        f"[bold]{many(summary['sources'], 'source')}, {summary['spent']:,.6g} of {summary['budget']:,.6g} spent"
        " per day[/bold]",
        highlight=False,
    )
    grid = Table.grid(padding=(0, 2))
    grid.add_row("freshness", f"[bold]{100 * ours:.1f} %[/bold]", "of the time, the copies equal their sources")
    grid.add_row("", f"{100 * even:.1f} %", "if all were polled equally often, for the same budget")
    grid.add_row("", f"{100 * prop:.1f} %", "if they were polled in proportion to their changes")
    weight = float(np.sum(np.broadcast_to(made.plan.fleet.weights(), made.sync_rate.shape)))
    unit = "%" if made.objective == "freshness" else "units of the objective"
    gain = made.price / weight * (100 if made.objective == "freshness" else 1) if weight else 0.0
    grid.add_row("price", f"{made.price:.4g}", f"one more poll a day would gain {gain:.2g} {unit}")
    grid.add_row("abandoned", f"{summary['abandoned']:,}", "sources whose polls cannot pay at this price")
    grid.add_row("certificate", f"{made.certificate.worst:.0e}", "largest residual of the optimality conditions")
    out.print(grid, highlight=False)
    out.print()
    out.print(_sources(made, rows))
    if made.sources.host is not None:
        out.print()
        out.print(_hosts(made))


def _sources(made: FleetPlan, rows: int) -> Table:
    ids = made.sources.table.column("id")
    order = np.argsort(-made.sync_rate, kind="stable")[:rows]
    left = len(made.sync_rate) - len(order)
    table = Table(box=None, padding=(0, 1), caption=f"and {left:,} more" if left else None, caption_justify="left")
    for name in ("source", "changes", "weight", "polled every", "freshness", "mean age"):
        table.add_column(name, justify="left" if name == "source" else "right", no_wrap=name == "source")
    weight = np.broadcast_to(made.plan.fleet.weights(), made.sync_rate.shape)
    for i in order:
        table.add_row(
            str(ids[int(i)].as_py()),
            format_rate(made.sources.change_rate[i]),
            f"{weight[i]:g}",
            format_duration(made.interval[i]),
            f"{100 * made.freshness[i]:.1f} %",
            format_duration(made.age[i]) if np.isfinite(made.age[i]) else "grows",
        )
    return table


def _hosts(made: FleetPlan, rows: int = 5) -> Table:
    assert made.sources.host is not None
    names = made.sources.host_names
    used = np.bincount(made.sources.host, made.sync_rate, len(names))
    cap, surcharge = made.plan.fleet.cap, made.plan.host_price
    table = Table(box=None, padding=(0, 2))
    for name in ("busiest hosts", "polls", *(("cap", "surcharge") if cap is not None else ())):
        table.add_column(name, justify="left" if name == "busiest hosts" else "right")
    for h in np.argsort(-used, kind="stable")[:rows]:
        cells = [names[h], format_rate(used[h])]
        if cap is not None and surcharge is not None:
            cells += [format_rate(cap[h]) if np.isfinite(cap[h]) else "none", f"{surcharge[h]:.3g}"]
        table.add_row(*cells)
    return table


def print_curve(
    drawn: tuple[Floats, Floats], made: FleetPlan | CollectedFleetPlan, height: int = 10, width: int = 60
) -> None:
    """Freshness against budget as dots, the present plan as a filled circle."""
    budgets, fresh = drawn
    if len(budgets) < 2:
        return
    cells = [[" "] * width for _ in range(height)]
    low, high = float(fresh.min()), float(fresh.max())
    span = (high - low) or 1.0
    xs = np.linspace(np.log(budgets[0]), np.log(budgets[-1]), width)
    for x, value in enumerate(np.interp(xs, np.log(budgets), fresh)):
        cells[height - 1 - round((value - low) / span * (height - 1))][x] = "·"
    here = int(np.argmin(np.abs(xs - np.log(made.spent))))
    now = round((made.fleet_freshness - low) / span * (height - 1))
    cells[height - 1 - min(max(now, 0), height - 1)][here] = "●"
    out = console()
    out.print("\nfreshness by budget", highlight=False)
    for i, row in enumerate(cells):
        label = f"{100 * (high - span * i / (height - 1)):5.1f} %"
        out.print(f"{label if i in (0, height - 1) else ' ' * 7} │{''.join(row)}", highlight=False)
    left, right = format_rate(float(budgets[0])), format_rate(float(budgets[-1]))
    out.print(
        f"{' ' * 7} └{'─' * width}\n{' ' * 9}{left}{' ' * (width - len(left) - len(right))}{right}", highlight=False
    )
    out.print(f"{' ' * 9}● now: {format_rate(made.spent)}, {100 * made.fleet_freshness:.1f} %", highlight=False)
