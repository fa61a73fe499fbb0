"""Reading a large table in parts that outlive the poll: one that is killed or cut off goes on where it was.

A part is a range of the key, of about PART rows. At the moment of a poll the source says of every range how many rows
it has and what they add up to; a part of an earlier poll of the same range and sum holds what the source holds now, and
is taken as it is. All others are read. So what is put together is the table at the moment of the last poll, whatever
changed since the first.

    PostgreSQL  the numbers of the transactions that wrote a table's rows; of anything else the hashes of its rows' text
    MySQL       the hashes of all columns' text, and so MariaDB

Only a primary key of one column of integers has ranges. Elsewhere, and in small tables, reading begins anew.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from unstale.adapters.sql_parts import TableParts
from unstale.adapters.sql_probe import ROW_SUM, Look
from unstale.adapters.sql_ranges import RANGES, part_width
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_targets import Row, TableReading
from unstale.adapters.sql_types import Column
from unstale.adapters.sql_values import Plain, row_hash

#: rows from which on a table is read in parts, and how many a part has, about
LARGE, PART = 500_000, 100_000
#: bytes of a part that are handed on at a time
_CHUNK = 2**20
_MYSQL = "sum(conv(left(md5(concat_ws(',', {0})), 15), 16, 10))"


@dataclass(frozen=True, slots=True)
class Range:
    """A range of the key: its number, how many rows it has, and all that a part of it depends on."""

    number: int
    rows: int
    depends: str


@dataclass(frozen=True, slots=True)
class PartedReading:
    """A table on its way in parts; keeps `TableReading`.

    `reading` reads one range; `told` hears of each that is here, and of the bytes of one that was kept.
    """

    columns: Sequence[Column]
    key: Sequence[str]
    parts: TableParts
    ranges: Sequence[Range]
    reading: Callable[[Range], TableReading]
    told: Callable[[Range, int | None], None]
    unique: bool = True

    def rows(self) -> Iterator[Row]:
        """Every row, hashed."""
        place = [column.name for column in self.columns].index(self.key[0])
        for part in self._made("rows"):
            with part.open("rb") as file:
                for line in file:
                    values = [_value(one) for one in json.loads(line)]
                    yield row_hash([values[place]]), row_hash(values), values

    def text(self, native: bool = False) -> Iterator[bytes]:
        """Every row in CSV."""
        for part in self._made("native" if native else "text"):
            with part.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    yield chunk

    def files(self) -> Sequence[Path]:
        """Every row in CSV, in the parts themselves."""
        return list(self._made("text"))

    def _made(self, form: str) -> Iterator[Path]:
        places = [self.parts.place(f"{form} {one.depends}") for one in self.ranges]
        self.parts.keep(set(places))
        for one, place in zip(self.ranges, places, strict=True):
            if place.exists():
                self.told(one, place.stat().st_size)
            else:
                came = self.reading(one)
                self.parts.add(place, _lines(came.rows()) if form == "rows" else came.text(form == "native"))
                self.told(one, None)
            yield place


def total_of(source: Source, columns: Sequence[Column], kind: str) -> str:
    """What rows of a range add up to, in SQL; empty where there is no way to say it."""
    if source.dialect == "postgresql":
        # The table's own number is in it too: one that took another's name, or its place as a partition, is another.
        return "sum(hashint8extended(q.xmin::text::bigint, q.tableoid::bigint))" if kind == "xmin" else ROW_SUM
    if source.dialect in ("mysql", "mariadb"):
        return _MYSQL.format(", ".join(f"coalesce(hex(concat(q.{source.quoted(c.name)})), '-')" for c in columns))
    return ""


def ranges_of(
    source: Source, columns: Sequence[Column], key: str, seen: Look, total: str, parts: TableParts
) -> list[Range]:
    """The ranges of a table at this moment, in the width that `parts` has, or has now; none if its key has none."""
    extent = source.extent(key)
    if extent is None:
        return []
    least, most = extent
    width = parts.width()
    if not width or (most - least) // width > 2 * RANGES:
        width = part_width(least, most, seen.rows // PART)
        parts.set_width(width)
    shape = source.shape() if seen.kind == "xmin" else ""
    of = (1, total, shape, key, width, [(column.name, column.type, column.native) for column in columns])
    found = source.sums(key, width, total)
    return [Range(one, found[one][0], ascii((of, one, found[one]))) for one in sorted(found)]


def _lines(rows: Iterable[Row]) -> Iterator[bytes]:
    for _, _, values in rows:
        yield json.dumps([{"hex": v.hex()} if isinstance(v, bytes) else v for v in values]).encode() + b"\n"


def _value(kept: Plain | dict[str, str]) -> Plain:
    return bytes.fromhex(kept["hex"]) if isinstance(kept, dict) else kept
