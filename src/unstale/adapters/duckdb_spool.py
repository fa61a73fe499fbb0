"""Rows put aside in files of text, and loaded by DuckDB as values of the types that their columns shall have.

Rules of this file:
1. A file stands beside the target, and goes with the poll that made it; parts that outlive it are read where they are.
2. What is not of its type, or would be rounded to be, is refused in a sentence that shows nothing of it.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path
from typing import TYPE_CHECKING

from unstale.adapters import duckdb_types
from unstale.adapters.sql_records import quoted, shown_names
from unstale.adapters.sql_targets import TableReading
from unstale.adapters.sql_types import Column
from unstale.errors import InputError, sentence

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: seconds after which a file is nobody's
KEPT = 2 * 86400.0
#: bytes that one row may have
LINE = 256 * 2**20


class Spool:
    """Rows of one reading. They are a table of DuckDB's under `name` once they are loaded."""

    def __init__(self, db: DuckDBPyConnection, name: str, beside: Path, reading: TableReading) -> None:
        self._db, self.name = db, name
        self.columns = tuple(reading.columns)
        self.types: tuple[str, ...] = ()
        self.notes: dict[str, str] = {}
        self._loaded, self._own = False, False
        self._files: Sequence[Path] = reading.files()
        if self._files:
            return
        _forget(beside)
        handle, path = tempfile.mkstemp(prefix=f".{beside.name}.", suffix=".csv", dir=beside.parent)
        self._files, self._own = [Path(path)], True
        try:
            with os.fdopen(handle, "wb") as file:
                file.writelines(reading.text())
        except BaseException:
            self.close()
            raise

    def settle(self, types: Sequence[str]) -> tuple[str, ...]:
        """Find the types that columns need to hold the rows: those given, if they do."""
        had = types if len(types) == len(self.columns) else ("",) * len(self.columns)
        found = [
            duckdb_types.declared(column.type, one, *self._digits(place, column.type))
            for place, column, one in zip(self._places(), self.columns, had, strict=True)
        ]
        self.types = tuple(one for one, _ in found)
        self.notes = {c.name: note for c, (_, note) in zip(self.columns, found, strict=True) if note}
        return self.types

    def load(self) -> None:
        """Make a table of the rows, unless there is one."""
        if not self._loaded:
            shown = map(quoted, shown_names([column.name for column in self.columns]))
            chosen = ", ".join(f"{value} AS {one}" for value, one in zip(self._values(), shown, strict=True))
            with self._typed():
                self._db.execute(f"CREATE OR REPLACE TEMP TABLE {self.name} AS SELECT {chosen} FROM {self._rows()}")
            self._loaded = True

    def insert(self, table: str) -> None:
        """Put the rows into a table that has their types, straight from the file."""
        with self._typed():
            self._db.execute(f"INSERT INTO {table} SELECT {', '.join(self._values())} FROM {self._rows()}")

    def close(self) -> None:
        """Remove the file, unless it is another's."""
        if self._own:
            self._files[0].unlink(missing_ok=True)

    def _places(self) -> list[str]:
        return [f"c{i}" for i in range(1, len(self.columns) + 1)]

    def _values(self) -> list[str]:
        # What nobody answers for is cast by DuckDB itself: the reader of the file is less strict.
        texts = (p if c.sure else f"({p} || '')" for p, c in zip(self._places(), self.columns, strict=True))
        return list(map(duckdb_types.value, texts, self.types))

    def _rows(self) -> str:
        kinds = ", ".join(f"'{place}': 'VARCHAR'" for place in self._places())
        files = ", ".join("'" + str(one).replace("'", "''") + "'" for one in self._files)
        return (
            f"read_csv([{files}], columns={{{kinds}}}, header=false, auto_detect=false, delim=',', quote='\"', "
            f"escape='\"', nullstr='\\N', allow_quoted_nulls=false, new_line='\\n', max_line_size={LINE})"
        )

    def _digits(self, place: str, type_: str) -> tuple[int, int]:
        """The most digits that values of a decimal without a bound have before the point and behind it."""
        if type_ != "decimal":
            return 0, 0
        bare = f"ltrim({place}, '-0')"
        found = self._db.execute(
            f"SELECT max(length(split_part({bare}, '.', 1))), max(length(rtrim(split_part({bare}, '.', 2), '0'))) "
            f"FROM {self._rows()}"
        ).fetchone()
        return (found[0] or 0, found[1] or 0) if found else (0, 0)

    @contextmanager
    def _typed(self) -> Iterator[None]:
        import duckdb

        placed = list(zip(self._places(), self.columns, self.types, self._values(), strict=True))
        try:
            for place, column, type_, _ in placed:
                if not column.sure and self._any(duckdb_types.bent(place, type_)):
                    raise _refused(column, type_, "rounds")
            yield
        except duckdb.OutOfMemoryException:
            # Says nothing of the values.
            raise
        except duckdb.Error:
            for place, column, type_, value in placed:
                if self._any(f"{place} IS NOT NULL AND TRY({value}) IS NULL"):
                    raise _refused(column, type_, "cannot hold") from None
            raise

    def _any(self, condition: str) -> bool:
        return self._db.execute(f"SELECT 1 FROM {self._rows()} WHERE {condition} LIMIT 1").fetchone() is not None


def _forget(beside: Path) -> None:
    """Remove files of polls that were killed: none takes that long."""
    for left in beside.parent.glob(f".{escape(beside.name)}.*.csv"):
        with suppress(FileNotFoundError):
            if left.stat().st_mtime < time.time() - KEPT:
                left.unlink()


def _refused(column: Column, type_: str, what: str) -> InputError:
    other = json.dumps({column.name: "text"})
    remedy = f"choose another one with the option types, like types={other}"
    return InputError(sentence(f"column {column.name}", "has values", f"that {type_} of DuckDB {what}", remedy))
