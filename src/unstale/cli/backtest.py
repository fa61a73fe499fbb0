"""`unstale backtest`: real changes replayed; who keeps the copies freshest with the same polls?"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from unstale.cli.show import Stages, console, grid, moment
from unstale.errors import InputError, sentence
from unstale.service.documents import finite
from unstale.units import DAY, format_duration, many

if TYPE_CHECKING:
    from unstale.sim.backtest.run import Backtest, BacktestRow, Saving

#: what --json says of each row
_KEYS = ("policy", "polls_per_change", "freshness", "freshness_se", "age", "penalty", "polls", "budget")
_NOTES = {"signals": "unstale with signals", "unstale": "unstale (ours)", "oracle": "oracle (true rates)"}


@click.command()
@click.argument("file", metavar="TRACE")
@click.option(
    "--polls-per-change",
    "budgets",
    default="0.3,1,3",
    show_default=True,
    metavar="LIST",
    help="Budgets to try: polls for each change that the sources have.",
)
@click.option("--weights", metavar="FILE", help="Weights of the sources: a table with the columns source and weight.")
@click.option("--policies", metavar="LIST", help="Only these, such as unstale,uniform,nutch; all if not told.")
@click.option(
    "--objective",
    default="freshness",
    show_default=True,
    metavar="TEXT",
    help="What is compared, and what ours and the oracle aim at: freshness, age, missed, deadline:1h and others.",
)
@click.option("--from", "start", metavar="DATE", help="Leave out what is earlier: 2024, 2024-05 or 2024-05-01.")
@click.option("--to", "end", metavar="DATE", help="Leave out this date and what is later.")
@click.option("--at-most", type=click.IntRange(min=1), metavar="N", help="Take a random sample of so many sources.")
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=1,
    show_default="1",
    help="Another seed, other phases and another sample.",
)
@click.option(
    "--sees",
    "seen",
    default="bits",
    show_default=True,
    metavar="WHAT",
    help="What polls show: bits, modified, listing, feed:N, groups:COLUMN or groups:N; more than bits adds a line.",
)
@click.option("--listing-cost", default=1.0, show_default="1", help="What one poll of a listing costs.")
@click.option("--noise", metavar="LIST", help="Signals that err: precision=.7,recall=.8,delay=1h.")
@click.option(
    "--liar",
    is_flag=False,
    flag_value="always",
    metavar="[HOW]",
    help="Signals that mean nothing: always (if not told), never or random.",
)
@click.option("--plot", metavar="FILE", help="Draw freshness against polls into FILE (.png, .svg, .html).")
@click.option("--json", "as_json", is_flag=True, help="Print a list of rows; age in days, polls and budget in all.")
def backtest(
    file: str,
    budgets: str,
    weights: str | None,
    policies: str | None,
    objective: str,
    start: str | None,
    end: str | None,
    at_most: int | None,
    seed: int,
    seen: str,
    listing_cost: float,
    noise: str | None,
    liar: str | None,
    plot: str | None,
    as_json: bool,
) -> None:
    """Replay the changes in TRACE: who keeps the copies freshest with the same polls?

    TRACE is a table with the columns source and t, one row for each change (CSV, Parquet, JSON lines). Every policy
    sees only what its own polls would have shown, and spends the same polls. Sources with at least 5 changes take
    part. The first 40 % of the time is for learning; polls and freshness are counted over the rest. With --sees
    listing one look tells about all sources, with feed:20 about the last 20 changes, with groups:COLUMN about
    those that have the same in this column of TRACE (groups:25: about 25 neighbours); such looks are paid for.

    \b
      unstale       ours: beliefs, a price, the time of day
      oracle        the best even intervals for the rates that nobody can know yet
      uniform       every source equally often
      nutch, stormcrawler, heritrix, miniflux, limd, newsblur
                    the rules of other software, with their own constants; they have no
                    budget, so all their intervals are multiplied by one factor
      proportional  as often as a source seems to change

    \b
      unstale backtest trace.parquet
      unstale backtest trace.parquet --from 2019 --to 2025 --polls-per-change 0.5,2 --plot curve.png
      unstale backtest trace.parquet --policies unstale,uniform --sees listing --noise precision=.7,recall=.8
    """
    each = _numbers(budgets)
    chosen = None if policies is None else [name.strip() for name in policies.split(",") if name.strip()]
    with Stages(4 + (10 if chosen is None else len(chosen)) * len(each)) as stages:
        stages.next("loading")
        from unstale.report.picture import checked
        from unstale.sim.backtest.run import backtest as run
        from unstale.sim.backtest.sees import sees
        from unstale.traces.read import read
        from unstale.traces.weights import weigh

        plot = plot and checked(plot)
        shown = sees(seen, listing_cost, noise, liar)
        window = moment("from", start), moment("to", end)
        stages.next("reading")
        trace, problems = read(file)
        notes, weight = problems.lines(), None
        if weights is not None:
            weighted = weigh(trace, weights)
            trace, weight = weighted.trace, weighted.weight
            notes += weighted.lines()
        if shown is not None and shown.listing and seen.startswith("groups:") and shown.groups is None:
            shown = replace(shown, groups=_groups(file, seen.partition(":")[2]))
        played = run(trace, each, chosen, objective, weight, *window, seed, at_most, stages.next, shown)
        notes += _unmatched(played)
        if plot:
            stages.next("drawing")
            _draw(played, plot)
    if as_json:
        for line in notes:
            click.echo(f"note: {line}", err=True)
        rows = [asdict(row) | {"age": row.age / DAY, "budget": round(row.budget, 6)} for row in played.rows]
        click.echo(json.dumps(finite([{key: row[key] for key in _KEYS} for row in rows])))
        return
    for line in notes:
        console().print(f"[yellow]note:[/yellow] {line}", highlight=False, soft_wrap=True)
    _print(played)
    if plot:
        console().print(f"\nThe figure is in {plot}.", highlight=False)


def _groups(file: str, column: str) -> dict[str, str]:
    """The collection of each source: what its last row says."""
    from unstale import files

    table = files.read(file)
    if column not in table.column_names:
        have = ", ".join(table.column_names)
        raise InputError(sentence("column", repr(column), "is missing", f"the trace has: {have}"))
    return {
        str(k): str(v)
        for k, v in zip(table.column("source").to_pylist(), table.column(column).to_pylist(), strict=True)
    }


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            sentence("polls_per_change", repr(text), "must be numbers", "write them like 0.3,1,3")
        ) from None


def _unmatched(played: Backtest) -> list[str]:
    return [
        f"{row.policy} at {row.polls_per_change:g} polls per change made {row.polls:,} polls instead of "
        f"{row.budget:,.0f}: it cannot be brought nearer, compare it with care"
        for row in played.rows
        if not row.matched
    ]


def _print(played: Backtest) -> None:
    out, setting = console(), played.setting
    first, split, last = (
        datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%d") for t in (setting.start, setting.split, setting.end)
    )
    whole = f"{many(len(setting), 'source')}, {many(len(setting.trace.times), 'change')}"
    out.print(
        f"[bold]{whole} from {first} to {last}[/bold]",
        highlight=False,
    )
    what = {"freshness": "Freshness in %", "age": "Mean age"}.get(setting.objective, f"Penalty ({setting.objective})")
    out.print(f"{what} from {split} on; before that, polls teach and do not count.\n", highlight=False)
    budgets = list(dict.fromkeys(row.polls_per_change for row in played.rows))
    table = grid("polls per change", *(f"{each:g}" for each in budgets))
    for name in dict.fromkeys(row.policy for row in played.rows):
        style = "bold" if name == "unstale" else None
        table.add_row(_NOTES.get(name, name), *(_cell(row, setting.objective) for row in played.of(name)), style=style)
    out.print(table)
    if played.savings:
        out.print()
    for saving in played.savings:
        out.print(_headline(saving, played), highlight=False, soft_wrap=True)


def _cell(row: BacktestRow, objective: str) -> str:
    if objective == "age":
        return format_duration(row.age / DAY) + _error("{:.0f} %", row.age_se / row.age if row.age else 0.0)
    if objective != "freshness":
        return f"{row.penalty:.4g}" + _error("{:.0f} %", row.penalty_se / row.penalty if row.penalty else 0.0)
    return f"{100 * row.freshness:.1f}" + _error("{:.1f}", row.freshness_se)


def _error(form: str, share: float) -> str:
    """Of a single source nobody knows how far it is from others."""
    return "" if math.isnan(share) else f" ± {form.format(100 * share)}"


def _headline(saving: Saving, played: Backtest) -> str:
    each, objective = saving.polls_per_change, played.setting.objective
    rival = f"{saving.rival}, the best of the others, at {each:g} poll{'s' * (each != 1)} per change"
    if math.isnan(saving.needed):
        return f"With no budget tried is the {objective} that of {rival}."
    share = f"{100 * abs(saving.share):.0f} % {'fewer' if saving.share >= 0 else 'more'} polls"
    return f"The same {objective} with [bold]{share}[/bold] than {rival}."


def _draw(played: Backtest, path: str) -> None:
    from unstale.report.backtest import draw
    from unstale.sim.backtest.run import ORACLE, OURS

    objective = played.setting.objective
    fresh = objective == "freshness"
    unit = {"freshness": 0.01, "age": DAY}.get(objective, 1.0)
    lines = {
        name: [
            (row.polls_per_change, (row.freshness if fresh else row.penalty) / unit, row.penalty_se / unit)
            for row in played.of(name)
        ]
        for name in dict.fromkeys(row.policy for row in played.rows)
    }
    named = {"freshness": "freshness (%)", "age": "mean age (days)"}.get(objective, f"penalty ({objective})")
    label = f"{named}, with standard error"
    draw(lines, path, ours=OURS, oracle=ORACLE, label=label, log=not fresh)
