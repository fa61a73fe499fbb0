"""`unstale status`: how fresh the copies are now, what it costs, and which sources are worst."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.choose import counted, find_source, near
from unstale.cli.reading import ago, brief, span
from unstale.cli.service import serving
from unstale.cli.settings import Settings, load, settings_options
from unstale.cli.shorten import fitted
from unstale.cli.show import console, grid
from unstale.errors import UnstaleError, require
from unstale.frozen import dataclass
from unstale.secrecy import shown_address
from unstale.units import DAY, format_rate, many, parse_duration

if TYPE_CHECKING:
    from unstale.service.moment import Moment
    from unstale.service.records import SourceView, Status

#: exit codes, as cron and monitoring expect them
CODES = {"pass": 0, "warn": 1, "fail": 2}
#: at most so many failures are told with their reasons
_COLLECTIONS = 5
_TROUBLES = 8
#: what is told of a source, what matters most first
_HEAD = ("source", "fresh", "next poll", "polled every", "changes every", "age", "checked", "changed")


@dataclass(frozen=True, slots=True)
class Limits:
    """What is bad enough to warn, and to fail: freshness of all, expected age of any, in seconds."""

    warn_fresh: float | None
    fail_fresh: float | None
    warn_age: float | None
    fail_age: float | None
    #: the one contract that counts, None for all
    contract: str | None = None


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="List so many sources.")
@click.option("--warn-fresh", type=click.FloatRange(0, 1), metavar="SHARE", help="Warn below this freshness of all.")
@click.option("--fail-fresh", type=click.FloatRange(0, 1), metavar="SHARE", help="Fail below this freshness of all.")
@click.option("--warn-age", metavar="TIME", help="Warn if any copy is expected to be older, e.g. 1h.")
@click.option("--fail-age", metavar="TIME", help="Fail if any copy is expected to be older, or there is none.")
@click.option("--contract", metavar="NAME", help="Judge by this contract alone: a tag of [contracts], or own.")
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
    contract: str | None,
    as_json: bool,
    form: str,
    plot: str | None,
    config: str | None,
    store: str | None,
) -> None:
    """How fresh the copies are now, and which are worst.

    The worst are those that take most from the freshness of all: weight times the probability to be stale. Age is the
    expected time since the first change that a copy lacks. Paused sources count for nothing.

    The exit code is 0 if all is well, 1 to warn, 2 to fail: by the contracts of the sources looked at and the limits
    given, and 2 if there is no store to look at. It is a warning if the budget cannot keep all contracts.

    \b
      unstale status --limit 5
      unstale status --warn-fresh 0.8 --fail-fresh 0.5 --fail-age 1d --limit 0
      unstale status --contract finance --limit 0
      unstale status --format dbt --warn-age 1h --fail-age 1d > sources.json
    """
    try:
        limits = Limits(
            warn_fresh, fail_fresh, _seconds("warn_age", warn_age), _seconds("fail_age", fail_age), contract
        )
        code = _status(load(config, store=store), sources, limit, "json" if as_json else form, plot, limits)
    except UnstaleError as error:
        # 1 would be a warning: who cannot look must not say that it is nearly well.
        click.echo(f"unstale: {error}", err=True)
        code = CODES["fail"]
    ctx.exit(code)


def _seconds(name: str, text: str | None) -> float | None:
    return None if text is None else DAY * parse_duration(text, name)


def _status(settings: Settings, names: tuple[str, ...], limit: int, form: str, plot: str | None, limits: Limits) -> int:
    with serving(settings) as service:
        store = service.store
        # Where no source is looked at by itself, what the engine of a large fleet has added up will do.
        each = names or plot is not None or form == "dbt" or (limits.warn_age, limits.fail_age) != (None, None)
        moment = service.moment([find_source(store, name) for name in names] if names else None) if each else None
        status = service.status(limit=limit) if moment is None else service.status_of(moment, limit=limit)
        verdict, why = judged(moment, status, limits)
        if plot is not None and moment is not None:
            _draw(moment, plot)
        if form == "dbt" and moment is not None:
            from unstale.cli.dbt import sources_json
            from unstale.service.contracts import allowances

            allowed = allowances(moment)
            document, verdict = sources_json(
                store, moment.standing, moment.now, limits.warn_age, limits.fail_age, allowed
            )
            click.echo(json.dumps(document))
            return CODES[verdict]
        if form == "json":
            from unstale.service.documents import status as plain

            click.echo(json.dumps({"store": near(settings.store), **plain(status, verdict, why)}))
        else:
            _print(status)
            for reason in why:
                click.echo(f"{verdict}: {reason}")
    return CODES[verdict]


def judged(moment: Moment | None, status: Status, limits: Limits) -> tuple[str, list[str]]:
    """pass, warn or fail, and a sentence for each limit that is broken; by ages only of a moment."""
    why: dict[str, list[str]] = {"fail": [], "warn": []}
    named = [one.name for one in status.contracts]
    if limits.contract is not None:
        there = f"there are {', '.join(named)}" if named else "see [contracts] in the settings"
        require(limits.contract in named, "contract", repr(limits.contract), "is of no source here", there)
    for contract in status.contracts:
        if not contract.kept and limits.contract in (None, contract.name):
            why["fail"] += [f"contract {contract.name}: {broken.sentence}" for broken in contract.worst]
            if (more := contract.broken - len(contract.worst)) > 0:
                why["fail"].append(f"contract {contract.name}: and {counted(more)} more")
    if status.contracts_need > status.budget.rate:
        needs, has = (format_rate(DAY * rate) for rate in (status.contracts_need, status.budget.rate))
        why["warn"].append(f"contracts need {needs}, the budget is {has}: raise it, or promise less")
    age = None if moment is None else moment.seen.age[moment.rows]
    for name, fresh, most in (
        ("fail", limits.fail_fresh, limits.fail_age),
        ("warn", limits.warn_fresh, limits.warn_age),
    ):
        if fresh is not None and status.fresh < fresh:
            why[name].append(f"freshness is {100 * status.fresh:.1f} %, below {100 * fresh:g} %")
        if most is not None and age is not None and (older := int((age > most).sum())):
            why[name].append(f"{counted(older)} of {len(age):,} expected to lack a change for more than {span(most)}")
    verdict = next((name for name, reasons in why.items() if reasons), "pass")
    return verdict, why.get(verdict, [])


def _print(status: Status) -> None:
    out, counts, lines = console(), status.counts, status.worst
    apart = [
        f"{number:,} {name}"
        for name, number in (
            ("paused", counts.paused),
            ("failing", counts.failing),
            ("never answered", counts.never_answered),
        )
        if number
    ]
    out.print(f"[bold]{counted(counts.total)}[/bold]{': ' if apart else ''}{', '.join(apart)}", highlight=False)
    out.print(numbers(status), highlight=False)
    if lines:
        out.print()
        out.print(table(status, out.width), highlight=False, markup=False)
    hidden = counts.polled - len(lines)
    if hidden and lines:
        out.print(f"and {counted(hidden)} more, less in need: see --limit", highlight=False)
    for line in [line for line in lines if line.failures][:_TROUBLES]:
        times = "once" if line.failures == 1 else f"{line.failures:,} times in a row"
        out.print(
            f"{brief(shown_address(line.listing.address))} failed {times}: {line.reason or 'no reason told'}",
            highlight=False,
            markup=False,
            soft_wrap=True,
        )


def _give_or_take(error: float) -> str:
    """How far off a share may be, in points.

    >>> _give_or_take(0.0213)
    ', give or take 2.1'
    """
    return f", give or take {100 * error:.1f}"


def numbers(status: Status) -> Any:
    """The numbers of a status, a line each."""
    from rich.table import Table

    now, engine, begun = status.at, status.engine, status.first_round
    table = Table.grid(padding=(0, 2))
    if not status.counts.total:
        table.add_row("freshness", "–", "there are no sources yet: `unstale add` some")
    elif not status.counts.polled:
        table.add_row("freshness", "–", "all sources are paused")
    else:
        when = "are believed fresh now" if status.summed_at is None else f"were fresh {ago(status.summed_at, now)}"
        more = "; mostly a guess until sources were polled twice" if status.guess else _give_or_take(status.fresh_error)
        told = f"of the copies {when}, by weight{more}"
        table.add_row("freshness", f"[bold]{100 * status.fresh:.1f} %[/bold]", told)
        if not status.guess:
            said = "if all were polled equally often, for the same budget"
            table.add_row("", f"{100 * status.even:.1f} %", f"{said}{_give_or_take(status.even_error)}")
    if begun is not None:
        left = f"of {many(begun.of, 'source')} polled, about {span(begun.left)} left"
        table.add_row("first round", f"{begun.done:,}", left if engine.running else f"{left} once an engine runs")
    table.add_row(
        "age",
        span(status.age) if math.isfinite(status.age) else "–",
        "expected of a copy: the time since the first change it lacks",
    )
    table.add_row("budget", format_rate(DAY * status.budget.rate), status.budget.words)
    table.add_row("", "", f"{status.spent_hour:,.4g} spent in the last hour, {status.spent_day:,.6g} in the last day")
    if status.budget.waiting:
        table.add_row("", "", status.budget.waiting)
    if status.price is not None and status.price_at is not None:
        table.add_row("price", f"{status.price:.4g}", f"of a poll, published {ago(status.price_at, now)}")
    if status.surcharges:
        dearest = max(status.surcharges, key=lambda name: status.surcharges[name])
        more = f" and {len(status.surcharges) - 1:,} more" if len(status.surcharges) > 1 else ""
        held = f"as dear is a poll at {dearest}{more}, whose cap binds"
        table.add_row("surcharge", f"× {status.surcharges[dearest]:.3g}", held)
    for way in status.copying:
        what = f"{brief(shown_address(way.listing.address))} is {way.sentence}"
        table.add_row("copying", f"{100 * way.share:.0f} %", what)
    for promise in status.contracts:
        state = "[bold]broken[/bold]" if promise.broken else "kept"
        needs = f"needs {format_rate(DAY * promise.needs)}"
        table.add_row("contract", state, f"{promise.name}: {promise.sentence}, {needs}")
    for one in status.collections[:_COLLECTIONS]:
        table.add_row("collection", one.state, f"{brief(shown_address(one.listing.address))} {one.sentence(now)}")
    if (hidden := len(status.collections) - _COLLECTIONS) > 0:
        table.add_row("", "", f"and {many(hidden, 'collection')} more")
    beside = status.totals.requests - status.totals.polls
    asked = f", {many(beside, 'request')} beside them for redirects, robots.txt and databases" if beside > 0 else ""
    table.add_row("polls", f"{status.totals.polls:,}", f"recorded, {status.totals.failed:,} of them failed{asked}")
    words = {True: "running", False: "not running", None: "unknown"}[engine.running]
    crew = f"{many(engine.workers, 'worker')}, " if engine.workers else ""
    heard = f"the last poll was {ago(engine.last_poll, now)}" if math.isfinite(engine.last_poll) else "no poll yet"
    start = "" if engine.running else f": start {'a worker' if engine.workers is not None else 'it'} with `unstale "
    start += "" if engine.running else "worker`" if engine.workers is not None else "run`"
    table.add_row("engine", words, f"{crew}{heard}{start}")
    return table


def table(status: Status, width: int) -> Any:
    """The worst sources, a line each, in so many characters: what matters least gives way first."""
    head, rows = fitted(_HEAD, [_cells(line, status.at) for line in status.worst], width - 2)
    drawn = grid(*head[1:], head[0])
    drawn.columns[0].justify, drawn.columns[-1].justify = "right", "left"
    for address, *cells in rows:
        drawn.add_row(*cells, address)
    return drawn


def _cells(line: SourceView, now: float) -> list[str]:
    learned = math.isfinite(line.checked_at)
    return [
        line.listing.address,
        f"{100 * line.fresh:.0f} %",
        "now" if line.due_at <= now else ago(line.due_at, now),
        span(line.interval) if math.isfinite(line.interval) else "–",
        span(line.change_interval) if learned else "–",
        span(line.age) if math.isfinite(line.age) else "no copy",
        ago(line.checked_at, now),
        ago(line.changed_at, now),
    ]


def _draw(moment: Moment, path: str) -> None:
    from unstale.report.status import draw

    rows = moment.rows[moment.priced(moment.rows)]
    waits = moment.intervals(rows)
    require(len(rows), "plot", repr(path), "has no source to show", "let an engine poll some first")
    draw(1.0 / moment.seen.change_rate[rows], waits, moment.seen.fresh[rows], path)
    click.echo(f"drew {counted(len(rows))} into {near(path)}", err=True)
