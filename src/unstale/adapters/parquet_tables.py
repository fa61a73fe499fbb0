"""Copies of tables as Parquet files in a folder, for whatever reads Parquet; a manifest says which files a copy is.

    tables.parquet/orders/manifest.json            the copy as it is: its files, columns, key, rows and digest
    tables.parquet/orders/7-9d3c…/data_0.parquet   an edition, in files of at most FILE bytes, about

Rules of this file:
1. Rows are compared in a DuckDB file of our own in the same folder; an edition is written from there, whole.
2. The manifest is replaced when all files of its edition are there: that is the switch. Files are never changed. Those
   of an edition that was replaced stay for KEPT seconds, for who has read the manifest and not yet all files.
3. The record is written last: after a kill the table is read again, and an edition that is missing is written.
4. Parquet has no interval finer than a millisecond and no time with a zone of its own: both are text there, which is
   said in the account. Dates and times without an end have no value in Parquet, and are refused.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unstale.adapters.duckdb_draft import escaped
from unstale.adapters.duckdb_tables import DuckTables
from unstale.adapters.sql_records import quoted, shown_names
from unstale.adapters.sql_targets import LocalTable, TableReading
from unstale.errors import InputError, sentence
from unstale.writing import whole_file

#: bytes of one file, about
FILE = 128 * 2**20
#: seconds that the files of a replaced edition stay
KEPT = 3600.0
_TEXTUAL = ("INTERVAL", "TIME WITH TIME ZONE")
_ENDLESS = ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE")
_NOTE = "kept as text, for Parquet has no type that holds it exactly"


def tables_file(folder: Path) -> Path:
    """The file from which a folder's Parquet files are written."""
    return folder / ".tables.duckdb"


class ParquetTables(DuckTables):
    """The folder of local tables, opened by one poll."""

    def __init__(self, folder: Path, patient: Callable[[], bool]) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        super().__init__(tables_file(folder), patient)

    @contextmanager
    def together(self) -> Iterator[None]:
        """No: each table has a manifest of its own."""
        remedy = "choose a .duckdb or .db file, or a PostgreSQL schema, as target, or leave group out"
        raise InputError(sentence("group", "of tables", "cannot be switched to at once in Parquet files", remedy))
        yield

    def take(self, reading: TableReading, types: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put rows aside; the types that columns need here to hold them: those given, if they do."""
        found = super().take(reading, types)
        notes = self._spools["incoming"].notes
        notes |= {column.name: _NOTE for column, one in zip(reading.columns, found, strict=True) if one in _TEXTUAL}
        return found

    def _settle(self, done: LocalTable) -> None:
        """Write an edition of the table as it is now, and switch to it, unless that was done."""
        place = self._folder / done.view
        old = _manifest(place)
        if old.get("digest") == done.digest.hex():
            return
        self._check_ends(done)
        edition = f"{done.edition}-{done.digest.hex()[:8]}"
        shutil.rmtree(place / edition, ignore_errors=True)
        (place / edition).mkdir(parents=True)
        self._write(done, place / edition)
        now = time.time()
        before = [*old.get("before", ()), {"edition": old["edition"], "until": now + KEPT}] if old else []
        came = {column.name: column.comment for column in self._spools["incoming"].columns}
        manifest = {
            "table": done.view,
            "edition": edition,
            "digest": done.digest.hex(),
            "rows": done.rows,
            "key": list(done.key),
            "columns": [
                {"name": one, "type": "VARCHAR" if type_ in _TEXTUAL else type_, "comment": came.get(name, "")}
                for name, one, type_ in zip(done.columns, shown_names(done.columns), done.types, strict=True)
            ],
            "files": [
                {"path": f"{edition}/{file.name}", "bytes": file.stat().st_size}
                for file in sorted((place / edition).iterdir())
            ],
            "before": [one for one in before if one["until"] > now],
        }
        with whole_file(place / "manifest.json", "target") as out:
            out.write(json.dumps(manifest, indent=1).encode())
        for one in before:
            if one["until"] <= now:
                shutil.rmtree(place / one["edition"], ignore_errors=True)

    def _write(self, done: LocalTable, place: Path) -> None:
        chosen = ", ".join(
            f"CAST({quoted(one)} AS VARCHAR) AS {quoted(one)}" if type_ in _TEXTUAL else quoted(one)
            for one, type_ in zip(shown_names(done.columns), done.types, strict=True)
        )
        with self._attached():
            self._db.execute(
                f"COPY (SELECT {chosen} FROM old.{quoted(done.view)}) TO '{escaped(place)}' "
                f"(FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES {FILE}, OVERWRITE_OR_IGNORE true)"
            )
        for file in place.iterdir():
            with file.open("rb") as written:
                os.fsync(written.fileno())

    def _check_ends(self, done: LocalTable) -> None:
        with self._attached():
            for name, one, type_ in zip(done.columns, shown_names(done.columns), done.types, strict=True):
                if type_ in _ENDLESS and self._count(f"old.{quoted(done.view)} WHERE isinf({quoted(one)})"):
                    remedy = f"choose another one with the option types, like types={json.dumps({name: 'text'})}"
                    raise InputError(
                        sentence(f"column {name}", "has values", f"that {type_} of Parquet cannot hold", remedy)
                    )


def _manifest(place: Path) -> dict[str, Any]:
    """The manifest of a table; empty if there is none that can be read."""
    try:
        found = json.loads((place / "manifest.json").read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and "edition" in found else {}
