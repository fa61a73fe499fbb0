"""`unstale explain`: why a source is polled as it is, in one sentence, and the numbers behind it."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

import click

from unstale.cli.choose import find_source
from unstale.cli.reading import ago, span
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console
from unstale.keeper.outcomes import Answer
from unstale.secrecy import shown_address
from unstale.service.words import coming
from unstale.units import DAY, format_rate

if TYPE_CHECKING:
    from unstale.service.records import Explanation


@click.command()
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times in UTC, lengths in seconds.")
@settings_options
def explain(source: str, as_json: bool, config: str | None, store: str | None) -> None:
    """Why a source is polled as often as it is, and what would change that.

    SOURCE is an address, a part of one that no other source has, or an id.
    """
    with serving(load(config, store=store)) as service:
        case = service.explain(find_source(service.store, source))
    if as_json:
        from unstale.service.documents import explanation

        click.echo(json.dumps(explanation(case)))
    else:
        _print(case)


def _print(case: Explanation) -> None:
    from rich.table import Table

    out, view = console(), case.source
    out.print(shown_address(view.listing.address), style="bold", highlight=False, markup=False, soft_wrap=True)
    out.print(f"{case.sentence}.", highlight=False, markup=False, soft_wrap=True)
    if case.looked_at:
        out.print(f"{case.looked_at}.", highlight=False, markup=False, soft_wrap=True)
    if case.costs:
        out.print(f"{case.costs}.", highlight=False, markup=False, soft_wrap=True)
    if case.copying:
        out.print(f"{case.copying}.", highlight=False, markup=False, soft_wrap=True)
    if case.noise:
        out.print(f"{case.noise}.", style="yellow", highlight=False, markup=False, soft_wrap=True)
    out.print()
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "changes",
        format_rate(DAY * view.change_rate),
        f"between {format_rate(DAY * view.low)} and {format_rate(DAY * view.high)} with probability 0.9",
    )
    table.add_row("memory", span(case.half_life), "is the half-life of evidence that has foretold its polls best")
    table.add_row(
        "copy",
        f"{100 * view.fresh:.0f} % fresh" if math.isfinite(view.age) else "none",
        f"expected age {span(view.age)}" if math.isfinite(view.age) else "",
    )
    published = None if case.price_at is None else f"published {ago(case.price_at, case.at)}"
    table.add_row("price", f"{case.price:.4g}", published or "a guess until an engine publishes one")
    if view.surcharge > 1.0:
        table.add_row("surcharge", f"× {view.surcharge:.3g}", f"the cap of {view.listing.host} binds")
    table.add_row("next poll", "paused" if view.listing.paused else coming(view.due_at, case.at), "")
    for k, poll in enumerate(case.polls):
        elapsed = f" after {span(poll.elapsed)}" if math.isfinite(poll.elapsed) else ""
        words = f"{poll.answer.value}{elapsed}{': ' + poll.reason if poll.answer is Answer.FAILED else ''}"
        table.add_row("last polls" if k == 0 else "", ago(poll.polled_at, case.at), words)
    if math.isfinite(case.twice_weight):
        instead = f"would do it, instead of {view.listing.weight:g}"
        table.add_row("twice as often", f"weight {case.twice_weight:.3g}", instead)
        if math.isfinite(case.twice_budget):
            table.add_row(
                "",
                format_rate(DAY * case.twice_budget),
                f"as budget of all would too, instead of {format_rate(DAY * case.budget)}",
            )
    out.print(table, highlight=False)
