"""Copies of tables as dbt's sources: the YAML that lets models refer to them, with their freshness by contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unstale.cli.dbt import period
from unstale.secrecy import shown_address

if TYPE_CHECKING:
    from unstale.cli.settings import Settings
    from unstale.cli.tables import CopiedTable
    from unstale.service import FleetService


def sources_yaml(settings: Settings, service: FleetService, tables: list[CopiedTable]) -> str:
    """One source, `unstale`, with a table for each copy: columns with types and comments, keys, allowed ages.

    JSON is YAML, so names and comments that strangers wrote are written as JSON and cannot be read as anything else.
    """
    from unstale.adapters.target_places import SchemaPlace, target_place
    from unstale.service.contracts import allowances

    place = target_place(settings.sql.target)
    moment = service.moment([one.listing.id for one in tables])
    allowed = allowances(moment)
    found = {
        "version": 2,
        "sources": [
            {
                "name": "unstale",
                "description": "Copies that Unstale keeps fresh.",
                # A file is attached to dbt's own database, under the name that it has without its ending.
                **({"database": place.stem} if isinstance(place, Path) and place.suffix != ".parquet" else {}),
                "schema": place.schema if isinstance(place, SchemaPlace) else "main",
                "meta": {"target": str(place)},
                "tables": [_table(one, allowed.get(one.listing.id)) for one in tables],
            }
        ],
    }
    return "\n".join(_lines(found)) + "\n"


def _table(one: CopiedTable, allowed: float | None) -> dict[str, Any]:
    account = json.loads(one.held.manifest or b"{}")
    comments, types = account.get("comments", {}), dict(zip(one.held.columns, one.held.types, strict=False))
    key = set(one.held.key)
    columns = [
        {
            "name": name,
            **({"data_type": types[name]} if types.get(name) else {}),
            **({"description": comments[name]} if name in comments else {}),
            **({"tests": ["not_null", "unique"] if len(key) == 1 else ["not_null"]} if name in key else {}),
        }
        for name in one.held.columns
    ]
    said = [*([account["comment"]] if "comment" in account else []), f"Copy of {shown_address(one.listing.address)}"]
    table: dict[str, Any] = {"name": one.held.view, "description": "\n".join(said)}
    if allowed is not None:
        # dbt asks Unstale and not the table: `unstale status --format dbt` writes its sources.json.
        table["meta"] = {"error_after": period(allowed)}
    return table | {"columns": columns}


def _lines(thing: Any, indent: str = "") -> list[str]:
    """Tables and lists in YAML's own form, everything else as JSON.

    >>> _lines({"a": [{"b": 1, "c": "x: y"}], "d": []})
    ['a:', '  - b: 1', '    c: "x: y"', 'd: []']
    """
    if isinstance(thing, dict) and thing:
        found = []
        for name, value in thing.items():
            inner = _lines(value, indent + "  ")
            plain = len(inner) == 1 and not (isinstance(value, dict | list) and value)
            found += [f"{indent}{name}: {inner[0].strip()}"] if plain else [f"{indent}{name}:", *inner]
        return found
    if isinstance(thing, list) and thing:
        found = []
        for value in thing:
            first, *rest = _lines(value, indent + "  ")
            found += [f"{indent}- {first.strip()}", *rest]
        return found
    return [indent + json.dumps(thing, ensure_ascii=False)]
