"""The table of collections, checked, and which sources each of them tells about.

Rules of this file:
1. The column `collection` of the sources names a row of the table of collections, or several with ; between them; empty
   means none.
2. Bare numbers are per day, or days, as in the table of sources.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unstale.core.checks import Floats
from unstale.core.signals.answers import CollectionTable, Rows
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.planning.table import TableColumns, as_table, number_column, text_column, unique_ids
from unstale.units import parse_duration


@dataclass(frozen=True, slots=True, eq=False)
class CollectionRows:
    """A checked table of collections, and the collection of each source, or its first; `others` are further ones."""

    table: pa.Table
    columns: CollectionTable
    member: Rows
    others: Rows | None = None

    def of(self, i: int) -> list[int]:
        """The collections of a source."""
        further = [] if self.others is None else self.others[i].tolist()
        return [k for k in (int(self.member[i]), *further) if k >= 0]

    def members(self) -> Rows:
        """How many sources each collection tells of."""
        told = self.member if self.others is None else np.append(self.member, self.others.ravel())
        return np.bincount(told[told >= 0], minlength=self.table.num_rows)


def collection_rows(data: Any, sources: TableColumns) -> CollectionRows:
    """Check the table of collections (id; cost, host, min_interval, max_interval, recall, precision), and members."""
    table = as_table(data)
    names = set(table.column_names)
    require("id" in names, "collections", "without a column id", "must name each collection", "add a column id")
    unique_ids(table)

    def column(name: str, default: float, **rule: Any) -> Floats:
        if name not in names:
            return np.full(table.num_rows, default)
        return number_column(table, name, default, **rule)

    columns = CollectionTable(
        column("cost", 1.0, above=0.0),
        column("min_interval", 0.0, least=0.0, parse=parse_duration),
        column("max_interval", np.inf, above=0.0, parse=parse_duration),
        column("recall", 1.0, least=0.0, most=1.0),
        column("precision", 1.0, above=0.0, most=1.0),
    )
    crossed = columns.shortest > columns.longest
    if crossed.any():
        row = int(np.argmax(crossed))
        raise InputError(
            sentence(
                f"row {row + 1}: min_interval",
                f"{columns.shortest[row]:g}",
                f"must not exceed max_interval {columns.longest[row]:g}",
                "swap them",
            )
        )
    return CollectionRows(table, columns, *_members(table, sources))


def _members(table: pa.Table, sources: TableColumns) -> tuple[Rows, Rows | None]:
    given = text_column(sources.table, set(sources.table.column_names), "collection")
    require(
        given is not None,
        "collections",
        "given",
        "need a column collection in the table of sources",
        "add it: the id of the collection that tells about each source",
    )
    assert given is not None
    known = {text: k for k, text in enumerate(pc.cast(table.column("id"), pa.string()).to_pylist())}
    member: Rows = np.full(len(given), -1, np.intp)
    several: dict[int, list[int]] = {}
    for i, text in enumerate(given):
        if text in (None, ""):
            continue
        names = [text] if text in known else [name.strip() for name in str(text).split(";") if name.strip()]
        for name in names:
            require(
                name in known,
                f"row {i + 1}: collection",
                repr(name),
                "is not in the table of collections",
                "add it there, or correct its spelling",
            )
        told = list(dict.fromkeys(known[name] for name in names))
        if told:
            member[i] = told[0]
        if len(told) > 1:
            several[i] = told[1:]
    if not several:
        return member, None
    others: Rows = np.full((len(given), max(map(len, several.values()))), -1, np.intp)
    for i, further in several.items():
        others[i, : len(further)] = further
    return member, others


def hosts_of_collections(rows: CollectionRows, sources: TableColumns) -> Rows:
    """The host of each collection: as its table says, else the one at which all its members are; -1: neither."""
    assert sources.host is not None
    told = text_column(rows.table, set(rows.table.column_names), "host") or [None] * rows.table.num_rows
    place = {name: k for k, name in enumerate(sources.host_names)}
    found = np.full(rows.table.num_rows, -1, np.intp)
    for k, name in enumerate(told):
        theirs = np.unique(sources.host[rows.member == k])
        if name in (None, ""):
            found[k] = theirs[0] if len(theirs) == 1 else -1
        else:
            found[k] = place.get(str(name), -1)
    return found
