"""Sources in SQLite as they are listed and as they stand, one by one and in columns."""

from __future__ import annotations

import json
from array import array
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

import apsw
import numpy as np

from unstale.adapters import sqlite_members
from unstale.adapters.sqlite_claims import column
from unstale.adapters.sqlite_file import SqliteFile
from unstale.adapters.sqlite_tables import COST
from unstale.adapters.store_shared import contains
from unstale.listings.records import CollectionMember
from unstale.ports import FleetColumns, HostCount, Listing, Price, widened

#: rows of the fleet that are turned into columns at a time: more no longer fit the processor's cache
_CHUNK = 1000
_COLUMNS = (
    f"s.id, s.host, s.paused, b.failures, s.weight, {COST}, s.shortest, s.longest, b.due, b.last, b.found, s.cost, "
    "b.belief"
)
#: the columns of a price
PRICE = ", ".join(Price.__slots__)


class SqliteCatalogue(SqliteFile):
    """Keeps the contract `Catalogue`."""

    def find(self, address: str) -> int | None:
        """The id of the source at this address."""
        with self._reading() as db:
            found: int | None = db.execute("SELECT id FROM sources WHERE address = ?", (address,)).get
        return found

    def listings(self, sources: Sequence[int]) -> list[Listing]:
        """Sources as they are listed."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT s.address, s.kind, s.weight, s.cost, h.name, s.shortest, s.longest, s.options, s.paused, "
                "s.id, s.added_at FROM carray(?) w CROSS JOIN sources s ON s.id = w.value "
                "CROSS JOIN hosts h ON h.id = s.host",
                (column(sources),),
            )
            return [
                Listing(
                    address,
                    kind,
                    weight,
                    cost,
                    host,
                    shortest,
                    longest,
                    json.loads(options) if options else {},
                    bool(paused),
                    source,
                    added_at,
                )
                for address, kind, weight, cost, host, shortest, longest, options, paused, source, added_at in rows
            ]

    def search(
        self,
        text: str = "",
        *,
        host: str | None = None,
        kind: str | None = None,
        paused: bool | None = None,
        tag: str | None = None,
        option: str | None = None,
        failing: bool | None = None,
        title: str | None = None,
        after: int = 0,
        limit: int = 100,
    ) -> list[int]:
        """The sources after an id whose address contains a text, rising; a and A are the same letter, ä and Ä are not.

        `tag` is one that they have, `option` the name of one, `title` a part of theirs;
        `failing`, whether their last polls did. To go through all, ask again after the last one.
        """
        asked = {
            "address LIKE ? ESCAPE '\\'": contains(text),
            "host = (SELECT id FROM hosts WHERE name = ?)": host,
            "kind = ?": kind,
            "paused = ?": None if paused is None else int(paused),
            # Most have none, and opening them takes as long as all the rest.
            "options IS NOT NULL AND EXISTS (SELECT 1 FROM json_each(options, '$.tags') WHERE value = ?)": tag,
            # Most options are not even read as JSON: their text does not have the name.
            "EXISTS (SELECT 1 FROM (SELECT ? AS name) WHERE instr(options, name) AND "
            "EXISTS (SELECT 1 FROM json_each(options) WHERE key = name))": option,
            "id IN (SELECT source FROM beliefs WHERE (failures > 0) = ?)": None if failing is None else int(failing),
            "json_extract(options, '$.title') LIKE ? ESCAPE '\\'": contains(title or ""),
        }
        given = {clause: value for clause, value in asked.items() if value is not None}
        where = " AND ".join(["id > ?", *given])
        with self._reading() as db:
            rows: Any = db.execute(
                f"SELECT id FROM sources WHERE {where} ORDER BY id LIMIT ?", (after, *given.values(), limit)
            )
            return [source for (source,) in rows]

    def addresses(self) -> list[tuple[int, str]]:
        """Every source's id and address, ids rising."""
        with self._reading() as db:
            rows: Any = db.execute("SELECT id, address FROM sources ORDER BY id").fetchall()
        return list(rows)

    def hosts(self) -> list[HostCount]:
        """Each host that has sources, by name."""
        with self._reading() as db:
            rows: Any = db.execute(
                "SELECT h.name, count(*), sum(s.paused), sum(b.failures > 0 AND NOT s.paused) FROM sources s "
                "JOIN beliefs b ON b.source = s.id JOIN hosts h ON h.id = s.host GROUP BY s.host ORDER BY h.name"
            ).fetchall()
        return [HostCount(*row) for row in rows]

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""
        with self._at_once() as db:
            count = db.execute("SELECT count(*) FROM sources").get
            rows = db.execute(f"SELECT {_COLUMNS} FROM sources s JOIN beliefs b ON b.source = s.id ORDER BY s.id")
            return _standing(db, rows, count, width)

    def members(self, collection: int | None = None) -> list[CollectionMember]:
        """Whom one collection tells of, or each of all."""
        with self._reading() as db:
            return sqlite_members.members(db, collection)

    def pushes(self, sources: Sequence[int] | None = None) -> list[CollectionMember]:
        """What was last pushed of these sources, or of all."""
        with self._reading() as db:
            return sqlite_members.pushes(db, sources)

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        with self._at_once() as db:
            which = column(sorted({int(source) for source in sources}))
            rows = db.execute(
                f"SELECT {_COLUMNS} FROM carray(?) w CROSS JOIN sources s ON s.id = w.value "
                "CROSS JOIN beliefs b ON b.source = w.value",
                (which,),
            ).fetchall()
            return _standing(db, iter(rows), len(rows), width)


def _joined(blobs: Sequence[bytes | None], width: int) -> bytes:
    """Beliefs one after the other, each as many floats: as nearly all are, or made so."""
    try:
        if set(map(len, blobs)) == {8 * width}:  # type: ignore[arg-type]  # None has no length
            return b"".join(blobs)  # type: ignore[arg-type]
    except TypeError:
        pass
    return b"".join(widened(blob, width) for blob in blobs)


def _standing(db: apsw.Connection, rows: Iterator[Any], count: int, width: int) -> FleetColumns:
    """Rows of `_COLUMNS` in columns."""
    whole, floats = np.zeros((4, count), dtype=np.int64), np.zeros((8, count))
    beliefs = np.zeros((count, width))
    begin = 0
    while chunk := list(islice(rows, _CHUNK)):
        *columns, blobs = zip(*chunk, strict=True)
        part = slice(begin, begin + len(chunk))
        for counts, told in zip(whole, columns[:4], strict=True):
            counts[part] = array("q", told)
        for row, numbers in zip(floats, columns[4:], strict=True):
            row[part] = array("d", numbers)
        if any(blobs):
            beliefs[part] = np.frombuffer(_joined(blobs, width)).reshape(len(chunk), width)
        begin += len(chunk)
    source, host, paused, failures = whole
    weight, cost, shortest, longest, due, last, found, listed = floats
    hosts, place = np.unique(host, return_inverse=True)
    names: Any = db.execute(
        "SELECT h.name FROM carray(?) w CROSS JOIN hosts h ON h.id = w.value", (column(hosts.tolist()),)
    )
    named: Any = db.execute("SELECT name, value FROM settings").fetchall()
    settings: dict[str, bytes] = dict(named)
    price: Any = db.execute(f"SELECT {PRICE} FROM prices ORDER BY id DESC LIMIT 1").fetchone()
    return FleetColumns(
        source,
        weight,
        cost,
        shortest,
        longest,
        place.astype(np.int64, copy=False),
        tuple(name for (name,) in names),
        paused != 0,
        due,
        last,
        found,
        failures,
        beliefs,
        settings,
        Price(*price) if price else None,
        listed,
    )
