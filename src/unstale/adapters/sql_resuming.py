"""Reading a large table in parts that outlive the poll: one that is killed or cut off goes on where it was.

At the moment of a poll the source says of every part how many rows it has and what they add up to (`sql_division`); a
file of an earlier poll of the same part and sum holds what the source holds now, and is taken as it is. All others are
read. So what is put together is the table at the moment of the last poll, whatever changed since the first.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from unstale.adapters.sql_division import RowRange
from unstale.adapters.sql_parts import TableParts
from unstale.adapters.sql_targets import Row, TableReading
from unstale.adapters.sql_types import Column
from unstale.adapters.sql_values import Plain, row_hash
from unstale.frozen import dataclass

#: bytes of a part that are handed on at a time
_CHUNK = 2**20


@dataclass(frozen=True, slots=True)
class PartedReading:
    """A table on its way in parts; keeps `TableReading`.

    `reading` reads one of `of`; `told` hears of each that is here, and of the bytes of one that was kept.
    """

    columns: Sequence[Column]
    key: Sequence[str]
    parts: TableParts
    of: Sequence[RowRange]
    reading: Callable[[RowRange], TableReading]
    told: Callable[[RowRange, int | None], None]
    unique: bool

    def rows(self) -> Iterator[Row]:
        """Every row, hashed."""
        names = [column.name for column in self.columns]
        places = [names.index(name) for name in self.key]
        for part in self._made("rows"):
            with part.open("rb") as file:
                for line in file:
                    values = [_value(one) for one in json.loads(line)]
                    yield row_hash([values[i] for i in places]) if places else b"", row_hash(values), values

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
        places = [self.parts.place(f"{form} {one.depends}") for one in self.of]
        self.parts.keep(set(places))
        for one, place in zip(self.of, places, strict=True):
            if place.exists():
                self.told(one, place.stat().st_size)
            else:
                came = self.reading(one)
                self.parts.add(place, _lines(came.rows()) if form == "rows" else came.text(form == "native"))
                self.told(one, None)
            yield place


def _lines(rows: Iterable[Row]) -> Iterator[bytes]:
    for _, _, values in rows:
        yield json.dumps([{"hex": v.hex()} if isinstance(v, bytes) else v for v in values]).encode() + b"\n"


def _value(kept: Plain | dict[str, str]) -> Plain:
    return bytes.fromhex(kept["hex"]) if isinstance(kept, dict) else kept
