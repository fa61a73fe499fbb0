"""What a simulation came to, told: numbers with their errors beside theory, a table, a picture."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from unstale.cli.show import console, grid
from unstale.errors import require
from unstale.units import format_duration, format_rate, many

if TYPE_CHECKING:
    from unstale.core.checks import Floats
    from unstale.sim.scenarios import ScenarioRow
    from unstale.sim.statistics import Estimate

    #: by way of polling: the freshness of each source by the formulas, and as simulated
    Series = Mapping[str, tuple[Floats | None, Estimate]]


def numbers(row: ScenarioRow) -> dict[str, Any]:
    """A row as JSON has it: what was measured, with its error, beside what was predicted."""
    return {
        "name": row.name,
        "polls": row.polls,
        "freshness": pair(row.freshness.value, row.freshness.error, row.predicted_freshness),
        "age": pair(row.age.value, row.age.error, row.predicted_age),
        **({"note": row.note} if row.note else {}),
    }


def pair(value: Any, error: Any, want: Any) -> dict[str, float | None]:
    """What was simulated with its error, and what was predicted, if anything was."""
    return {"simulated": float(value), "error": float(error), "predicted": None if want is None else float(want)}


def print_report(report: dict[str, Any]) -> None:
    """Print a report as a table."""
    out = console()
    if "scenario" in report:
        from unstale.sim.scenarios import SCENARIOS

        out.print(f"[bold]{report['scenario']}[/bold]: {SCENARIOS[report['scenario']].line}", highlight=False)
    else:
        out.print(
            f"[bold]{many(report['sources'], 'source')}, {many(report['runs'], 'time')} {report['days']:g} days,"
            f" {report['events']:,} polls and changes[/bold]",
            highlight=False,
        )
    table = grid("", "polls", "freshness", "theory", "mean age", "theory")
    for row in report["ways"]:
        table.add_row(row["name"], format_rate(round(row["polls"], 6)), *_fresh(row["freshness"]), *_old(row["age"]))
    out.print(table)
    for row in report["ways"]:
        if "note" in row:
            out.print(f"{row['name']}: {row['note']}", highlight=False)
    if report.get("worst"):
        out.print()
        table = grid("most staleness", "polled every", "freshness", "theory", "mean age")
        for row in report["worst"]:
            every = format_duration(1 / row["sync_rate"] if row["sync_rate"] else math.inf)
            table.add_row(row["id"], every, *_fresh(row["freshness"]), _old(row["age"])[0])
        out.print(table)


def _fresh(pair: dict[str, Any]) -> tuple[str, str]:
    want = "" if pair["predicted"] is None else f"{100 * pair['predicted']:.2f} %"
    return f"{100 * pair['simulated']:.2f} ± {100 * pair['error']:.2f} %", want


def _old(pair: dict[str, Any]) -> tuple[str, str]:
    """Simulated and predicted age; that of a source that is never polled grows for ever."""
    want = pair["predicted"]
    shown = "" if want is None else format_duration(want) if math.isfinite(want) else "grows"
    if not math.isfinite(pair["simulated"]):
        return "grows", shown
    relative = f" ± {100 * pair['error'] / pair['simulated']:.1f} %" if pair["simulated"] > 0 else ""
    return format_duration(pair["simulated"]) + relative, shown


def draw_series(series: Series, path: str) -> None:
    """Draw freshness over time into a file, and say so."""
    from unstale.report.simulation import draw

    columns = {
        name: (want, np.asarray(got.value), np.asarray(got.error))
        for name, (want, got) in series.items()
        if want is not None
    }
    require(columns, "plot", repr(path), "has nothing to show", "this scenario has no predictions by source")
    draw(columns, path)
