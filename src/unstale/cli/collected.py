"""A plan with collections as people see it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from unstale.cli.show import console, grid
from unstale.units import format_duration, many

if TYPE_CHECKING:
    from unstale.planning.collections import CollectedFleetPlan


def print_collected(made: CollectedFleetPlan, summary: dict[str, Any], rows: int = 12) -> None:
    """Summary, and the collections that are polled most."""
    table = grid("", "", "")
    table.show_header = False
    # Where it does not fit the words go on in further lines, and the numbers stay.
    table.columns[2].no_wrap = False
    aim, said = made.objective, "of the time, the copies equal their sources"

    def shown_as(value: float) -> str:
        return f"{100 * value:.1f} %" if aim == "freshness" else format_duration(value)

    table.add_row(aim, shown_as(summary[aim]), said if aim == "freshness" else "on average, 0 while a copy is fresh")
    without, even = summary[f"{aim}_without_collections"], summary[f"{aim}_uniform"]
    table.add_row("", shown_as(without), "if no collection were polled, for the same budget")
    table.add_row("", shown_as(even), "if all sources were polled equally often")
    table.add_row("listings", f"{summary['spent_on_listings']:,.4g}", "of what is spent, on polls of collections")
    table.add_row(
        "price",
        f"{made.price:.4g}",
        f"weighted {aim} that one more unit of budget a day would {'add' if aim == 'freshness' else 'remove'}",
    )
    table.add_row("abandoned", f"{summary['abandoned']:,}", "sources whose polls cannot pay at this price")
    table.add_row("gap", f"{summary['gap']:.0e}", f"of {aim}, at most, that any other plan could better")
    head = f"{many(summary['sources'], 'source')}, {summary['spent']:,.6g} of {summary['budget']:,.6g} spent per day"
    console().print(f"[bold]{head}[/bold]", highlight=False)
    console().print(table, highlight=False)
    console().print()
    listed = made.listing_table()
    shown = grid("collection", "members", "polled every")
    order = np.argsort(-made.plan.listing_rate, kind="stable")[:rows]
    for k in order.tolist():
        every = made.listing_interval[k]
        shown.add_row(
            str(listed.column("id")[k].as_py()),
            f"{listed.column('members')[k].as_py():,}",
            format_duration(float(every)) if np.isfinite(every) else "not polled",
        )
    console().print(shown)
