"""Copies of tables as Parquet files in a folder, for whatever reads Parquet; a manifest says which files a copy is.

    tables.parquet/orders/manifest.json            the copy as it is: its files, columns, key, rows and digest
    tables.parquet/orders/7-9d3c…/data_0.parquet   an edition, in files of at most FILE bytes, about; of a table with
                                                   partitions those that changed, see `parquet_partitions`

Rules of this file:
1. Rows are compared in a DuckDB file of our own in the same folder; an edition is written from there, whole.
2. The manifest is replaced when all files that it names are there: that is the switch. Files are never changed. Those
   that it names no more stay for KEPT seconds, for who has read the manifest before and not yet all files.
3. The record is written last: after a kill the table is read again, and an edition that is missing is written.
4. Parquet has no interval finer than a millisecond and no time with a zone of its own: both are text there, which is
   said in the account. Dates and times without an end have no value in Parquet, and are refused.
"""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unstale.adapters import parquet_partitions
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

    def __init__(self, folder: Path, patient: Callable[[], bool], partition: Sequence[str] = ()) -> None:
        folder.mkdir(exist_ok=True)
        self._folder, self._by = folder, tuple(partition)
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
        """Write what changed of the table as it is now, and switch to it, unless that was done."""
        place = self._folder / done.view
        old = _manifest(place)
        if old.get("digest") == done.digest.hex() and old.get("partition", []) == list(self._by):
            return
        self._check_ends(done)
        told = blake2b(ascii((done.digest, self._by)).encode(), digest_size=4).hexdigest()
        edition = f"{done.edition}-{told if self._by else done.digest.hex()[:8]}"
        shutil.rmtree(place / edition, ignore_errors=True)
        (place / edition).mkdir(parents=True)
        files = self._partitions(done, place, edition, old) if self._by else self._write(done, place, edition)
        now = time.time()
        kept = {one["path"] for one in files}
        gone = [{"path": one["path"], "until": now + KEPT} for one in old.get("files", ()) if one["path"] not in kept]
        before = [*old.get("before", ()), *gone]
        manifest: dict[str, Any] = {
            "table": done.view,
            "edition": edition,
            "digest": done.digest.hex(),
            "rows": done.rows,
            "key": list(done.key),
            **({"comment": done.comment} if done.comment else {}),
            "columns": self._told(done),
            **({"partition": list(self._by)} if self._by else {}),
            "files": files,
            "before": [one for one in before if one["until"] > now],
        }
        with whole_file(place / "manifest.json", "target") as out:
            out.write(json.dumps(manifest, indent=1).encode())
        for one in before:
            if one["until"] <= now:
                # Manifests of before named whole editions here.
                _remove(place, place / (one.get("path") or one["edition"]))
        known = {one.get("path", one.get("edition", "")).split("/")[0] for one in (*files, *manifest["before"])}
        for left in place.iterdir():
            # What a kill has left is nobody's.
            if left.is_dir() and left.name not in known:
                shutil.rmtree(left, ignore_errors=True)

    def _partitions(self, done: LocalTable, place: Path, edition: str, old: dict[str, Any]) -> list[dict[str, Any]]:
        """The files of a table with partitions, of which those are written that are new or changed."""
        with self._attached():
            table = f"old.{quoted(done.view)}"
            found = parquet_partitions.partitions(self._db, table, done, self._by)
            had: dict[str, list[dict[str, Any]]] = {}
            for one in old.get("files", ()) if old.get("columns") == self._told(done) else ():
                had.setdefault(ascii((one.get("partition"), one.get("digest"))), []).append(one)
            kept = [had.get(ascii((part.values, part.digest)), []) for part in found]
            wanted = [n for n, files in enumerate(kept) if not files]
            if wanted:
                rows = parquet_partitions.numbered(table, done, self._by, self._chosen(done), wanted)
                self._db.execute(
                    f"COPY ({rows}) TO '{escaped(place / edition)}' "
                    "(FORMAT parquet, COMPRESSION zstd, PARTITION_BY (unstale_part), OVERWRITE_OR_IGNORE true)"
                )
        for n in wanted:
            folder = place / edition / found[n].folder
            folder.parent.mkdir(parents=True, exist_ok=True)
            (place / edition / f"unstale_part={n}").rename(folder)
            known = {"partition": found[n].values, "digest": found[n].digest}
            kept[n] = [one | known for one in _written(place, folder)]
        return [one for files in kept for one in files]

    def _write(self, done: LocalTable, place: Path, edition: str) -> list[dict[str, Any]]:
        statement = (
            f"COPY (SELECT {self._chosen(done)} FROM old.{quoted(done.view)}) TO '{escaped(place / edition)}' "
            f"(FORMAT parquet, COMPRESSION zstd, FILE_SIZE_BYTES {FILE}, OVERWRITE_OR_IGNORE true)"
        )

        def write() -> None:
            for left in (place / edition).iterdir():
                # Of an attempt that had too little memory.
                left.unlink()
            self._db.execute(statement)

        with self._attached():
            self._sparing(write)
        return _written(place, place / edition)

    def _chosen(self, done: LocalTable) -> str:
        return ", ".join(
            f"CAST({quoted(one)} AS VARCHAR) AS {quoted(one)}" if type_ in _TEXTUAL else quoted(one)
            for one, type_ in zip(shown_names(done.columns), done.types, strict=True)
        )

    def _told(self, done: LocalTable) -> list[dict[str, str]]:
        """The columns as the manifest has them."""
        came = {column.name: column.comment for column in self._spools["incoming"].columns}
        return [
            {"name": one, "type": "VARCHAR" if type_ in _TEXTUAL else type_, "comment": came.get(name, "")}
            for name, one, type_ in zip(done.columns, shown_names(done.columns), done.types, strict=True)
        ]

    def _check_ends(self, done: LocalTable) -> None:
        with self._attached():
            self._sparing(lambda: self._refuse_ends(done))

    def _refuse_ends(self, done: LocalTable) -> None:
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


def _written(place: Path, folder: Path) -> list[dict[str, Any]]:
    """The files of a folder, when they are on the disk."""
    files = sorted(folder.iterdir())
    for file in files:
        with file.open("rb") as written:
            os.fsync(written.fileno())
    return [{"path": str(file.relative_to(place)), "bytes": file.stat().st_size} for file in files]


def _remove(place: Path, old: Path) -> None:
    """Remove a file or a folder, and the folders above it that are empty then."""
    shutil.rmtree(old, ignore_errors=True)
    old.unlink(missing_ok=True)
    for folder in old.relative_to(place).parents:
        with suppress(OSError):
            (place / folder).rmdir()
