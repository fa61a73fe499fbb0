"""`unstale trace`: when real sources changed, from where their histories are kept, as one table."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import click
import numpy as np
from rich.table import Table

from unstale.cli.show import Stages, console
from unstale.errors import InputError, UnstaleError, sentence

if TYPE_CHECKING:
    from unstale.core.trace import Trace
    from unstale.traces.problems import Problems

F = TypeVar("F", bound=Callable[..., Any])
History = tuple["Trace", "Problems"]


def _output(command: F) -> F:
    """The options that all importers share."""
    command = click.option("--json", "as_json", is_flag=True, help="Print the summary as one JSON object.")(command)
    return click.option("-o", "--output", metavar="FILE", help="Write the trace here: .parquet, .csv or .jsonl.")(
        command
    )


@click.group()
def trace() -> None:
    """When did real sources change? Import their histories as a table of changes.

    The table has two columns: source, and t in seconds since 1970 (UTC); one row is one change. Rows that cannot be
    used are left out, counted and reported.

    \b
      unstale trace git ~/src/project -o project.parquet
      unstale trace csv changes.csv --source-column host --time-column seen -o changes.parquet
    """


@trace.command()
@click.argument("repo")
@click.option(
    "--per",
    type=click.Choice(["file", "repo"]),
    default="file",
    show_default=True,
    help="What a source is: each file, or the whole repository.",
)
@click.option("--since", metavar="DATE", help="Only what was committed since: 2024-01-31, or 90d for the last 90 days.")
@_output
def git(repo: str, per: str, since: str | None, output: str | None, as_json: bool) -> None:
    """Commits to the git repository in REPO.

    A folder, also of a bare clone. The checked-out branch is followed by first parents, with the committers' times. A
    deletion is a change, a renamed file is a new one.
    """
    from unstale.traces.git import read_git

    start = None if since is None else _since(since)
    _run(lambda: read_git(repo, per=cast('Literal["file", "repo"]', per), since=start), output, as_json)


@trace.command()
@click.argument("places", nargs=-1, required=True, metavar="FILE|ADDRESS...")
@click.option("--title", "titles", multiple=True, help="Ask the wiki at ADDRESS for this title, too.")
@_output
def mediawiki(places: tuple[str, ...], titles: tuple[str, ...], output: str | None, as_json: bool) -> None:
    """Revision histories of a wiki.

    From saved answers of its API, from JSON lines, or from its api.php.

    \b
      unstale trace mediawiki history.json -o wiki.parquet
      unstale trace mediawiki "https://en.wikipedia.org/w/api.php?titles=Coffee|Tea"
    """
    from unstale.traces.mediawiki import read_mediawiki

    _run(lambda: read_mediawiki(places, titles=titles), output, as_json)


@trace.command()
@click.argument("places", nargs=-1, required=True, metavar="FILE|ADDRESS...")
@_output
def feed(places: tuple[str, ...], output: str | None, as_json: bool) -> None:
    """The entries of RSS, Atom or JSON feeds.

    Each feed is a source, named as given; it changed when an entry was published or modified.
    """
    from unstale.traces.feed import read_feed

    _run(lambda: read_feed(places), output, as_json)


@trace.command("csv")
@click.argument("file")
@click.option("--source-column", metavar="NAME", help="Where the source is; source, name, id or url if not told.")
@click.option("--time-column", metavar="NAME", help="Where the time is; t, time, timestamp or date if not told.")
@_output
def table(file: str, source_column: str | None, time_column: str | None, output: str | None, as_json: bool) -> None:
    """Any table of sources and times.

    FILE is .csv, .parquet or .jsonl, or - for standard input. Times are Unix seconds, timestamps, or text like
    2024-05-01T12:00:00Z.
    """
    from unstale.traces.read import read

    _run(lambda: read(file, source_column=source_column, time_column=time_column), output, as_json)


def _run(read: Callable[[], History], output: str | None, as_json: bool) -> None:
    from unstale.traces.write import write

    with Stages() as stages:
        stages.next("reading")
        history, problems = read()
        if output:
            stages.next("writing")
            write(history, output)
    counts = history.counts()
    summary: dict[str, Any] = {
        "sources": len(history),
        "changes": len(history.times),
        "first": _shown(float(history.times.min())),
        "last": _shown(float(history.times.max())),
        "median": float(np.median(counts)),
        "most": int(counts.max()),
        "rows": problems.rows,
        "problems": problems.counts(),
    }
    if as_json:
        columns = problems.columns and dict(zip(("source", "t"), problems.columns, strict=True))
        click.echo(json.dumps(summary | {"columns": columns, "output": output}))
        return
    _print(summary, problems, output)


def _print(summary: dict[str, Any], problems: Problems, output: str | None) -> None:
    out = console()
    counted = ", ".join(
        f"{n:,} {word}{'s' * (n != 1)}" for n, word in ((summary["sources"], "source"), (summary["changes"], "change"))
    )
    out.print(f"[bold]{counted}[/bold]", highlight=False)
    grid = Table.grid(padding=(0, 2))
    grid.add_row("first", summary["first"])
    grid.add_row("last", summary["last"])
    grid.add_row("per source", f"{summary['median']:,g} in the median, {summary['most']:,} at most")
    if problems.columns:
        grid.add_row("columns", f"source from {problems.columns[0]!r}, t from {problems.columns[1]!r}")
    said = problems.lines() or ["none"]
    for line in said:
        grid.add_row("problems" if line is said[0] else "", line)
    out.print(grid, highlight=False, markup=False)
    where = f"The trace is in {output}." if output else "Write the trace to a file with -o trace.parquet."
    # A path is never torn apart: it is there to be copied.
    out.print(where, highlight=False, markup=False, soft_wrap=True)


def _shown(t: float) -> str:
    return datetime.fromtimestamp(t, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _since(text: str) -> float:
    """A date, or a length of time before now."""
    from unstale.traces.times import moment
    from unstale.units import parse_duration

    when, _ = moment(text)
    if np.isfinite(when):
        return when
    try:
        # a bare number would be days, but whoever types 2024 means a year
        return time.time() - 86_400 * parse_duration(text if not text.isdigit() else "?")
    except UnstaleError:
        raise InputError(sentence("since", repr(text), "is not a date", "write it like 2024-01-31 or 90d")) from None
