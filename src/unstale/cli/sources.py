"""`unstale list` and its kin: which sources there are, what is said of them, and what is to become of them.

Every command changes the store and nothing else: an engine that runs notices by itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from unstale.cli.choose import chosen, counted, listings_of, matching, search_option, where_option
from unstale.cli.describe import describing, fields_of
from unstale.cli.reading import reading
from unstale.cli.service import serving
from unstale.cli.settings import load, settings_options
from unstale.cli.show import console, grid_of
from unstale.errors import require
from unstale.secrecy import shown_address
from unstale.service import documents
from unstale.units import DAY, format_duration

if TYPE_CHECKING:
    from unstale.ports import Listing

F = TypeVar("F", bound=Callable[..., Any])


def _choosing(command: F) -> F:
    """The ways to say which sources are meant."""
    command = click.option("--all", "whole", is_flag=True, help="All sources.")(command)
    return click.argument("sources", nargs=-1, metavar="[SOURCE]...")(where_option(search_option(command)))


def _of_host(command: F) -> F:
    return click.option("--host", metavar="NAME", help="Those of this host, short for --where host=NAME.")(command)


@click.command()
@_choosing
@describing
@settings_options
def edit(
    sources: tuple[str, ...],
    where: tuple[str, ...],
    whole: bool,
    search: str | None,
    config: str | None,
    store: str | None,
    **said: Any,
) -> None:
    """Change what is said of sources; beliefs and copies stay.

    SOURCE is an address, a part of one that no other source has, or an id. A header or option without a value is
    taken away.

    \b
      unstale edit example.org/news --weight 5
      unstale edit --where host=example.org --max-interval 1d --header Authorization=
    """
    fields = fields_of(said)
    require(fields, "changes", "to make", "are missing", "give for example --weight 3")
    with serving(load(config, store=store)) as service:
        count = service.edit([one.id for one in chosen(service, sources, where, whole, search)], fields)
    click.echo(f"changed {counted(count)}")


@click.command()
@_choosing
@_of_host
@settings_options
def pause(host: str | None, config: str | None, store: str | None, **which: Any) -> None:
    """Poll sources no more until they are resumed; their copies stay."""
    click.echo(f"paused {counted(_set_paused(True, host, config, store, which))}")


@click.command()
@_choosing
@_of_host
@settings_options
def resume(host: str | None, config: str | None, store: str | None, **which: Any) -> None:
    """Poll paused sources again."""
    click.echo(f"resumed {counted(_set_paused(False, host, config, store, which))}")


@click.command()
@_choosing
@_of_host
@click.option("--yes", is_flag=True, help="Do not ask.")
@settings_options
def remove(
    sources: tuple[str, ...],
    where: tuple[str, ...],
    whole: bool,
    search: str | None,
    host: str | None,
    yes: bool,
    config: str | None,
    store: str | None,
) -> None:
    """Forget sources, with their copies and all that polls taught."""
    with serving(load(config, store=store)) as service:
        gone = chosen(service, sources, _conditions(where, host), whole, search)
        if not yes:
            named = gone[0].address if len(gone) == 1 else counted(len(gone))
            click.confirm(f"Remove {named} with all copies and observations?", abort=True, err=True)
        count = service.remove([one.id for one in gone])
    click.echo(f"removed {counted(count)}")


@click.command("list")
@_of_host
@where_option
@search_option
@click.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="Show so many.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; intervals in seconds.")
@settings_options
def list_(
    host: str | None,
    where: tuple[str, ...],
    search: str | None,
    limit: int,
    as_json: bool,
    config: str | None,
    store: str | None,
) -> None:
    """The sources, and what is said of them.

    \b
      unstale list --where tag=news
      unstale list --search 'tag:news failing fresh<0.5'
    """
    with serving(load(config, store=store)) as service:
        ids = matching(service.store, _conditions(where, host))
        if search is not None:
            found = set(service.found(search))
            ids = [source for source in ids if source in found]
        shown = service.store.listings(ids[:limit])
    if as_json:
        told = [documents.listing(one) | {"added_at": one.added_at} for one in shown]
        click.echo(json.dumps({"total": len(ids), "sources": told}))
    else:
        _print(shown, len(ids))


@click.command()
@click.argument("file")
@settings_options
def export(file: str, config: str | None, store: str | None) -> None:
    """Write all sources to FILE: .csv, .jsonl, .opml or .txt.

    `unstale import` reads it again. Secrets are not in it, only their names.
    """
    from unstale.lists.write import write_list

    with reading(load(config, store=store)) as kept:
        count = write_list(listings_of(kept, matching(kept, ())), file)
    click.echo(f"wrote {counted(count)} to {file}")


@click.command()
@_choosing
@_of_host
@settings_options
def hint(
    sources: tuple[str, ...],
    where: tuple[str, ...],
    whole: bool,
    search: str | None,
    host: str | None,
    config: str | None,
    store: str | None,
) -> None:
    """Say that sources have changed: they are polled as soon as the budget allows, while such words prove true.

    Polls show how much of what was hinted was true; `unstale signals` tells it. `unstale poll` is followed whatever it
    finds.
    """
    with serving(load(config, store=store)) as service:
        meant = chosen(service, sources, _conditions(where, host), whole, search)
        service.hint([one.id for one in meant])
        untrue = any(one.listing.address == "hint" and one.state == "not believed" for one in service.collections())
    paused = sum(one.paused for one in meant)
    but = f", but {paused:,} paused: see `unstale resume`" if paused else ""
    click.echo(f"{counted(len(meant))} due now{but}")
    if untrue:
        click.echo("but few hints have proved true: an engine follows them seldom; `unstale poll` polls them")


def _set_paused(paused: bool, host: str | None, config: str | None, store: str | None, which: dict[str, Any]) -> int:
    with serving(load(config, store=store)) as service:
        where = _conditions(which["where"], host)
        meant = chosen(service, which["sources"], where, which["whole"], which["search"])
        return service.pause([one.id for one in meant if one.paused != paused], paused)


def _conditions(where: tuple[str, ...], host: str | None) -> tuple[str, ...]:
    return where if host is None else (*where, f"host={host}")


def _print(shown: list[Listing], total: int) -> None:
    names = ("source", "id", "kind", "weight", "cost", "min interval", "max interval", "")
    rows = [
        (
            shown_address(one.address),
            str(one.id),
            one.kind,
            f"{one.weight:g}",
            f"{one.cost:g}",
            _interval(one.shortest),
            _interval(one.longest),
            "paused" if one.paused else "",
        )
        for one in shown
    ]
    out = console()
    if shown:
        out.print(grid_of(names, rows, 0), highlight=False, markup=False)
    hidden = total - len(shown)
    out.print(counted(total) + (f", {hidden:,} not shown: see --limit" if hidden else ""), highlight=False)


def _interval(seconds: float) -> str:
    return format_duration(seconds / DAY) if 0.0 < seconds < math.inf else ""
