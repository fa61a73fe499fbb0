"""`unstale status`: how fresh the copies are now, what it costs, and which sources are worst."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from unstale.cli.choose import counted, find_source, near
from unstale.cli.reading import (
    ago,
    brief,
    engine_runs,
    engine_says,
    even_share,
    firm,
    iso,
    reading,
    span,
)
from unstale.cli.settings import Settings, load, settings_options
from unstale.cli.show import console, finite, grid
from unstale.core.checks import Floats
from unstale.core.learning.outlook import outlook
from unstale.errors import UnstaleError, require
from unstale.units import DAY, format_rate, parse_duration

if TYPE_CHECKING:
    from unstale.adapters.sqlite_replica import SqliteReplica
    from unstale.core.learning.outlook import Outlook
    from unstale.keeper.scheduler import Integers
    from unstale.ports import FleetColumns

#: exit codes, as cron and monitoring expect them
CODES = {"pass": 0, "warn": 1, "fail": 2}
#: a narrower terminal gets fewer columns, and at most so many failures are told with their reasons
_WIDE, _TROUBLES = 110, 8
HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Limits:
    """What is bad enough to warn, and to fail: freshness of all, expected age of any, in seconds."""

    warn_fresh: float | None
    fail_fresh: float | None
    warn_age: float | None
    fail_age: float | None


@dataclass(frozen=True, slots=True)
class View:
    """Sources as they stand, and what is believed of them; `rows` are those that are not paused."""

    now: float
    standing: FleetColumns
    seen: Outlook
    rows: Integers
    fresh: float
    even: float
    age: float
    #: cost per second, and what polls have cost in the last hour and in the last day
    budget: float
    spent_hour: float
    spent_day: float


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="List so many sources.")
@click.option("--warn-fresh", type=click.FloatRange(0, 1), metavar="SHARE", help="Warn below this freshness of all.")
@click.option("--fail-fresh", type=click.FloatRange(0, 1), metavar="SHARE", help="Fail below this freshness of all.")
@click.option("--warn-age", metavar="TIME", help="Warn if any copy is expected to be older, e.g. 1h.")
@click.option("--fail-age", metavar="TIME", help="Fail if any copy is expected to be older, or there is none.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times in UTC, lengths in seconds.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json", "dbt"]),
    default="table",
    show_default=True,
    help="dbt prints a sources.json, in which ages count from the last answer.",
)
@click.option("--plot", metavar="FILE", help="Draw all sources into FILE (.png, .svg, .html).")
@settings_options
@click.pass_context
def status(
    ctx: click.Context,
    sources: tuple[str, ...],
    limit: int,
    warn_fresh: float | None,
    fail_fresh: float | None,
    warn_age: str | None,
    fail_age: str | None,
    as_json: bool,
    form: str,
    plot: str | None,
    config: str | None,
    store: str | None,
) -> None:
    """How fresh the copies are now, and which are worst.

    The worst are those that take most from the freshness of all: weight times the probability to be stale. Age is the
    expected time since the first change that a copy lacks. Paused sources count for nothing.

    The exit code is 0 if all is well, 1 to warn, 2 to fail: by the limits given, and 2 if there is no store to look at.

    \b
      unstale status --limit 5
      unstale status --warn-fresh 0.8 --fail-fresh 0.5 --fail-age 1d --limit 0
      unstale status --format dbt --warn-age 1h --fail-age 1d > sources.json
    """
    try:
        limits = Limits(warn_fresh, fail_fresh, _seconds("warn_age", warn_age), _seconds("fail_age", fail_age))
        code = _status(load(config, store=store), sources, limit, "json" if as_json else form, plot, limits)
    except UnstaleError as error:
        # 1 would be a warning: who cannot look must not say that it is nearly well.
        click.echo(f"unstale: {error}", err=True)
        code = CODES["fail"]
    ctx.exit(code)


def _seconds(name: str, text: str | None) -> float | None:
    return None if text is None else DAY * parse_duration(text, name)


def _status(settings: Settings, names: tuple[str, ...], limit: int, form: str, plot: str | None, limits: Limits) -> int:
    with reading(settings) as replica:
        view = look(replica, settings, [find_source(replica, name) for name in names] if names else None)
        verdict, why = judged(view, limits)
        if plot is not None:
            _draw(view, plot)
        if form == "dbt":
            from unstale.cli.dbt import sources_json

            document, verdict = sources_json(replica, view.standing, view.now, limits.warn_age, limits.fail_age)
            click.echo(json.dumps(document))
            return CODES[verdict]
        worst = _worst(view, limit)
        lines = described(replica, view, worst)
        if form == "json":
            click.echo(json.dumps(finite(_document(settings, view, verdict, why, lines))))
        else:
            _print(settings, view, lines, len(view.rows) - len(worst))
            for reason in why:
                click.echo(f"{verdict}: {reason}")
    return CODES[verdict]


def look(replica: SqliteReplica, settings: Settings, ids: list[int] | None = None) -> View:
    """The fleet, or these sources of it, at this moment."""
    from unstale.cli.compose import config_of
    from unstale.core.learning.outlook import WIDTH

    now = time.time()
    standing = replica.fleet(WIDTH) if ids is None else replica.columns_of(ids, WIDTH)
    seen = outlook(standing, now)
    rows = np.flatnonzero(~standing.paused)
    weight = standing.weight[rows]
    total = float(weight.sum())
    copied = np.isfinite(seen.age[rows])
    budget = config_of(settings).amended(standing.settings).budget
    cost = float(standing.cost[rows].sum())
    prices = replica.prices(now - DAY)
    return View(
        now,
        standing,
        seen,
        rows,
        fresh=float(weight @ seen.fresh[rows]) / total if total > 0.0 else 0.0,
        even=even_share(standing, rows, cost / budget) if ids is None else math.nan,
        age=_mean(seen.age[rows][copied], weight[copied]),
        budget=budget,
        spent_hour=sum(one.spent for one in prices if one.at > now - HOUR),
        spent_day=sum(one.spent for one in prices),
    )


def judged(view: View, limits: Limits) -> tuple[str, list[str]]:
    """pass, warn or fail, and a sentence for each limit that is broken."""
    why: dict[str, list[str]] = {"fail": [], "warn": []}
    age = view.seen.age[view.rows]
    for name, fresh, most in (
        ("fail", limits.fail_fresh, limits.fail_age),
        ("warn", limits.warn_fresh, limits.warn_age),
    ):
        if fresh is not None and len(view.rows) and view.fresh < fresh:
            why[name].append(f"freshness is {100 * view.fresh:.1f} %, below {100 * fresh:g} %")
        if most is not None and (older := int((age > most).sum())):
            why[name].append(f"{counted(older)} of {len(age):,} expected to lack a change for more than {span(most)}")
    verdict = next((name for name, reasons in why.items() if reasons), "pass")
    return verdict, why.get(verdict, [])


def described(replica: SqliteReplica, view: View, rows: Integers) -> list[dict[str, Any]]:
    """What is known of some sources, a plain object each; times are seconds since the epoch."""
    standing, seen = view.standing, view.seen
    ids = standing.source[rows].tolist()
    addresses = {one.id: one.address for one in replica.listings(ids)}
    found = []
    for row, source in zip(rows.tolist(), ids, strict=True):
        failures = int(standing.failures[row])
        newest = replica.observations(source, 1) if failures else []
        rate = float(seen.change_rate[row])
        last, due = float(standing.last[row]), float(standing.due[row])
        found.append(
            {
                "id": source,
                "address": addresses.get(source, ""),
                "weight": float(standing.weight[row]),
                "fresh": float(seen.fresh[row]),
                "age": float(seen.age[row]),
                "change_interval": 1.0 / rate if rate > 0.0 else math.inf,
                "interval": due - last if math.isfinite(last) and not failures and due > last else math.nan,
                "checked_at": last,
                "changed_at": float(standing.found[row]),
                "due_at": due,
                "paused": bool(standing.paused[row]),
                "failures": failures,
                "reason": newest[0].reason if newest else "",
            }
        )
    return found


def _worst(view: View, limit: int) -> Integers:
    """Those that are not paused, the ones that harm most first; among equals the longest unseen."""
    standing, rows = view.standing, view.rows
    harm = standing.weight * (1.0 - view.seen.fresh)
    if limit < len(rows):
        least = np.partition(harm[rows], len(rows) - limit)[len(rows) - limit] if limit else np.inf
        rows = rows[harm[rows] >= least]
    return rows[np.lexsort((standing.last[rows], -harm[rows]))][:limit]


def _mean(values: Floats, weight: Floats) -> float:
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0.0 else math.nan


def _engine(settings: Settings, view: View) -> dict[str, Any]:
    said = engine_says(view.standing.settings)
    names = ("at", "started_at", "polls", "changed", "failed", "spent")
    return {"running": engine_runs(settings), **{name: said.get(name) for name in names}}


def _counts(view: View) -> dict[str, int]:
    standing, rows = view.standing, view.rows
    return {
        "total": len(standing.source),
        "paused": int(standing.paused.sum()),
        "failing": int((standing.failures[rows] > 0).sum()),
        "never_answered": int(np.isinf(standing.last[rows]).sum()),
    }


def _document(
    settings: Settings, view: View, verdict: str, why: list[str], lines: list[dict[str, Any]]
) -> dict[str, Any]:
    engine = _engine(settings, view)
    price = view.standing.price
    return {
        "at": iso(view.now),
        "store": settings.store,
        "status": verdict,
        "reasons": why,
        "sources": _counts(view),
        "freshness": view.fresh,
        "freshness_even": view.even,
        "age": view.age,
        "budget_per_day": DAY * view.budget,
        "spent_hour": view.spent_hour,
        "spent_day": view.spent_day,
        "price": price.price if price else None,
        "engine": {**engine, "at": iso(engine["at"]), "started_at": iso(engine["started_at"])},
        "worst": [
            {**line, **{name: iso(line[name]) for name in ("checked_at", "changed_at", "due_at")}} for line in lines
        ],
    }


def _print(settings: Settings, view: View, lines: list[dict[str, Any]], hidden: int) -> None:
    out = console()
    wide = out.width >= _WIDE
    counts = _counts(view)
    apart = [
        f"{counts[name]:,} {name.replace('_', ' ')}" for name in ("paused", "failing", "never_answered") if counts[name]
    ]
    out.print(f"[bold]{counted(counts['total'])}[/bold]{': ' if apart else ''}{', '.join(apart)}", highlight=False)
    out.print(_numbers(settings, view), highlight=False)
    if lines:
        out.print()
        out.print(_table(lines, view.now, wide), highlight=False, markup=False)
    if hidden and lines:
        out.print(f"and {counted(hidden)} more, less in need: see --limit", highlight=False)
    troubles = [line for line in lines if line["failures"]]
    for line in troubles[:_TROUBLES]:
        times = "once" if line["failures"] == 1 else f"{line['failures']:,} times in a row"
        out.print(
            f"{brief(line['address'])} failed {times}: {line['reason'] or 'no reason told'}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def _numbers(settings: Settings, view: View) -> Any:
    from rich.table import Table

    engine = _engine(settings, view)
    table = Table.grid(padding=(0, 2))
    table.add_row(
        "freshness", f"[bold]{100 * view.fresh:.1f} %[/bold]", "of the copies are believed fresh now, by weight"
    )
    if math.isfinite(view.even):
        table.add_row("", f"{100 * view.even:.1f} %", "if all were polled equally often, for the same budget")
    table.add_row(
        "age",
        span(view.age) if math.isfinite(view.age) else "–",
        "expected of a copy: the time since the first change it lacks",
    )
    table.add_row(
        "budget",
        format_rate(DAY * view.budget),
        f"{view.spent_hour:,.4g} spent in the last hour, {view.spent_day:,.6g} in the last day",
    )
    if view.standing.price is not None:
        table.add_row(
            "price", f"{view.standing.price.price:.4g}", f"of a poll, published {ago(view.standing.price.at, view.now)}"
        )
    wrote = f"it last wrote {ago(engine['at'], view.now)}" if engine["at"] else "there never was one"
    words = {True: "running", False: "not running", None: "unknown"}[engine["running"]]
    table.add_row("engine", words, wrote + ("" if engine["running"] else ": start it with `unstale run`"))
    return table


def _table(lines: list[dict[str, Any]], now: float, wide: bool) -> Any:
    names = ["fresh", "age", "changes every", "polled every", "checked", "changed", "next poll", "source"]
    names = names if wide else [name for name in names if name not in ("age", "checked", "changed")]
    table = grid(*names)
    table.columns[0].justify, table.columns[-1].justify = "right", "left"
    for line in lines:
        cells = {
            "fresh": f"{100 * line['fresh']:.0f} %",
            "age": span(line["age"]) if math.isfinite(line["age"]) else "no copy",
            "changes every": span(line["change_interval"]),
            "polled every": span(line["interval"]) if math.isfinite(line["interval"]) else "–",
            "checked": ago(line["checked_at"], now),
            "changed": ago(line["changed_at"], now),
            "next poll": "now" if line["due_at"] <= now else ago(line["due_at"], now),
            "source": brief(line["address"]),
        }
        table.add_row(*(cells[name] for name in names))
    return firm(table)


def _draw(view: View, path: str) -> None:
    from unstale.report.status import draw

    standing = view.standing
    waits = standing.due - standing.last
    shown = view.rows[(standing.failures[view.rows] == 0) & np.isfinite(waits[view.rows]) & (waits[view.rows] > 0.0)]
    require(len(shown), "plot", repr(path), "has no source to show", "let an engine poll some first")
    draw(1.0 / view.seen.change_rate[shown], waits[shown], view.seen.fresh[shown], path)
    click.echo(f"drew {counted(len(shown))} into {near(path)}", err=True)
