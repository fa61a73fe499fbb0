"""`unstale tables`: the copies of tables, what changed in the schemas of their sources, what dbt is told of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from unstale.cli.choose import find_source, listings_of
from unstale.cli.reading import brief, firm
from unstale.cli.service import serving
from unstale.cli.settings import Settings, load, settings_options
from unstale.cli.show import console, grid
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.secrecy import shown_address

if TYPE_CHECKING:
    from unstale.adapters.sql_schema import Schemas
    from unstale.adapters.sql_targets import LocalTable, TableRecords
    from unstale.ports import Listing
    from unstale.service import FleetService

_ALL = 2**62
_KINDS = ("sql", "api")


@dataclass(frozen=True, slots=True)
class CopiedTable:
    """A source whose copy is a table, with what the target knows of it."""

    listing: Listing
    held: LocalTable
    schemas: Schemas


@click.command()
@click.argument("action", type=click.Choice(["list", "diff", "accept", "dbt"]), default="list")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object a line.")
@settings_options
@click.pass_context
def tables(
    ctx: click.Context,
    action: str,
    sources: tuple[str, ...],
    as_json: bool,
    config: str | None,
    store: str | None,
) -> None:
    """Copies of tables: list them, see and accept changes of schemas, describe them for dbt.

    A column that is new, or has a wider type, is taken up by itself. Anything else that changes in the schema of a
    source holds its copy: it stays as it was, and its polls fail, until `accept` takes the new schema up. `diff` shows
    what is held, and its exit code is 1 if anything is.

    \b
      unstale tables
      unstale tables diff
      unstale tables accept orders
      unstale tables dbt > models/sources.yml
    """
    settings = load(config, store=store)
    with serving(settings) as service:
        known = list(_tables(settings, service, sources))
        if action == "accept":
            _accept(settings, service, known)
        elif action == "diff":
            ctx.exit(_diff(known, as_json))
        elif action == "dbt":
            from unstale.cli.dbt_sources import sources_yaml

            click.echo(sources_yaml(settings, service, known), nl=False)
        else:
            _list(known, as_json)


def _tables(settings: Settings, service: FleetService, names: tuple[str, ...]) -> Iterator[CopiedTable]:
    store = service.store
    ids = [find_source(store, name) for name in names]
    ids = ids or [one for kind in _KINDS for one in store.search(kind=kind, limit=_ALL)]
    records = _records(settings)
    if records is None:
        return
    try:
        for listing in listings_of(store, ids):
            name = "" if listing.options.get("collection") else _name(settings, listing)
            held = records.held(name, "") if name else None
            if held is not None and held.edition:
                yield CopiedTable(listing, held, records.schemas(name))
    finally:
        records.close()


def _records(settings: Settings) -> TableRecords | None:
    """What the target knows of its tables; None before there are any."""
    from unstale.adapters.sql_targets import open_records
    from unstale.adapters.target_places import target_place

    return open_records(target_place(settings.sql.target))


def _name(settings: Settings, listing: Listing) -> str:
    from unstale.adapters.api_terms import terms_of
    from unstale.adapters.sql_copying import named, table_name
    from unstale.adapters.sql_places import ask
    from unstale.cli.fetchers import apis_of

    require(listing.kind in _KINDS, "source", shown_address(listing.address), "is no table", "see `unstale tables`")
    if listing.kind == "sql":
        return table_name(ask(listing.address, listing.options))
    return named((listing.address, terms_of(listing.address, listing.options, apis_of(settings)).records))


def _list(known: list[CopiedTable], as_json: bool) -> None:
    if as_json:
        for one in known:
            click.echo(json.dumps(_told(one)))
        return
    if not known:
        click.echo("no table has been copied yet: `unstale add` some, and `unstale run`")
        return
    drawn = grid("table", "rows", "columns", "key", "schema", "source")
    for column, side in zip(drawn.columns, ("left", "right", "right", "left", "left", "left"), strict=True):
        column.justify = side  # type: ignore[assignment]
    for one in known:
        drawn.add_row(
            one.held.view,
            f"{one.held.rows:,}",
            f"{len(one.held.columns):,}",
            ", ".join(one.held.key) or "–",
            "held" if one.schemas.changes() else "as copied",
            brief(shown_address(one.listing.address)),
        )
    console().print(firm(drawn), highlight=False, markup=False)


def _told(one: CopiedTable) -> dict[str, Any]:
    return {
        "source": one.listing.id,
        "address": shown_address(one.listing.address),
        "table": one.held.view,
        "rows": one.held.rows,
        "columns": list(one.held.columns),
        "types": list(one.held.types),
        "key": list(one.held.key),
        "held": [
            {"what": change.what, "column": change.column, "before": change.before, "after": change.after}
            for change in one.schemas.changes()
        ],
        "accepted": one.schemas.accepted,
    }


def _diff(known: list[CopiedTable], as_json: bool) -> int:
    held = [one for one in known if one.schemas.changes()]
    for one in held:
        if as_json:
            click.echo(json.dumps(_told(one)))
            continue
        accepted = ", accepted: the next poll takes it up" if one.schemas.accepted else ""
        click.echo(f"{one.held.view}: the copy is held{accepted}")
        for change in one.schemas.changes():
            click.echo(f"  {change.sentence}")
    if not held and not as_json:
        click.echo("no copy is held: all schemas are as they were copied, or have only grown")
    return 1 if held else 0


def _accept(settings: Settings, service: FleetService, known: list[CopiedTable]) -> None:
    from dataclasses import replace

    waiting = [one for one in known if one.schemas.changes()]
    if not waiting:
        raise InputError(sentence("schemas", "to accept", "are none", "`unstale tables diff` shows what is held"))
    records = _records(settings)
    assert records is not None
    try:
        for one in waiting:
            records.set_schemas(one.held.name, replace(one.schemas, accepted=True))
    finally:
        records.close()
    service.hasten([one.listing.id for one in waiting])
    names = ", ".join(one.held.view for one in waiting)
    click.echo(f"accepted the schema of {names}; the next poll, which is due now, takes it up")
