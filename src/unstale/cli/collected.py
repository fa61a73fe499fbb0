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
    table.add_row("freshness", f"{100 * summary['freshness']:.1f} %", "of the time, the copies equal their sources")
    without, even = summary["freshness_without_collections"], summary["freshness_uniform"]
    table.add_row("", f"{100 * without:.1f} %", "if no collection were polled, for the same budget")
    table.add_row("", f"{100 * even:.1f} %", "if all sources were polled equally often")
    table.add_row("listings", f"{summary['spent_on_listings']:,.4g}", "of what is spent, on polls of collections")
    table.add_row("price", f"{made.price:.4g}", "weighted freshness that one more unit of budget a day would add")
    table.add_row("abandoned", f"{summary['abandoned']:,}", "sources whose polls cannot pay at this price")
    table.add_row("gap", f"{summary['gap']:.0e}", "of freshness, at most, that any other plan could add")
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
