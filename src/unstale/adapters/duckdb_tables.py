"""Copies of tables in a DuckDB file, typed; what is known of them is in a file of records beside it.

Rules of this file:
1. The published file is never written to. A change is made in a draft, a copy of it, which takes its place when it is
   whole: who opens the file sees all of the old copy or all of the new one, who has it open keeps what it has, and no
   reader and no writer waits for the other. A change costs a copy of the file on this disk.
2. The record is written last. It knows the file by its inode, time and size: a file that it does not know, after a
   kill or because somebody put another one there, makes all records doubtful, and every table is read whole again.
3. Rows are loaded from text by DuckDB itself, and compared as values of their types.
4. No key is declared, for DuckDB's index would take longer than the rows; its columns are NOT NULL, and the comment of
   the table names them.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from unstale.adapters import duckdb_types
from unstale.adapters.duckdb_draft import MEMORY, DuckDraft, escaped
from unstale.adapters.duckdb_spool import Spool
from unstale.adapters.sql_ranges import KeyRanges, Sums
from unstale.adapters.sql_records import Records, doubted, quoted, shown_names
from unstale.adapters.sql_schema import Schemas
from unstale.adapters.sql_targets import LocalTable, TableReading, account
from unstale.errors import MissingExtraError, StoreError, sentence

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class DuckTables(DuckDraft):
    """The file of local tables, opened by one poll; `patient` says whether to wait on for another's turn."""

    def __init__(self, path: Path, patient: Callable[[], bool]) -> None:
        try:
            import duckdb
        except ImportError:
            raise MissingExtraError("DuckDB", "warehouse") from None
        self._error, self._path = duckdb.Error, path
        self._records = Records(path.with_name(f"{path.name}.state"), patient)
        self._spools: dict[str, Spool] = {}
        self._key: tuple[str, ...] = ()
        self._unique, self._view = False, ""
        self._db: DuckDBPyConnection = duckdb.connect(
            ":memory:",
            config={
                "memory_limit": MEMORY,
                "temp_directory": str(path.with_name(f".{path.name}.spill")),
                "preserve_insertion_order": "false",
            },
        )
        # It would get into the output of a command.
        self._db.execute("SET enable_progress_bar = false")

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0. `view` is the name to be seen by, if free."""
        found = self._records.held(name, view)
        if found.edition and self._records.seal() != _seal(self._path):
            # Nothing that was read before counts for this file.
            found = doubted(found)
        self._view = found.view
        return found

    def take(self, reading: TableReading, types: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put rows aside; the types that columns need here to hold them: those given, if they do."""
        self._key, self._unique = tuple(reading.key), reading.unique
        with self._worded():
            return self._spool("incoming", reading).settle(types)

    def take_keys(self, reading: TableReading) -> None:
        """Put aside the keys of all rows that the source has: what is not among them is gone."""
        rows = self._spools["incoming"]
        types = {column.name: type_ for column, type_ in zip(rows.columns, rows.types, strict=True)}
        with self._worded():
            keys = self._spool("present", reading)
            keys.types = tuple(types[column.name] for column in keys.columns)
            keys.load()

    def new_rows(self, name: str) -> int:
        """How many of the rows put aside are not in the table."""
        with self._attached():
            self._spools["incoming"].load()
            return self._count(f"incoming AS i ANTI JOIN old.{quoted(self._view)} AS t ON {self._same_key()}")

    def absent(self, name: str) -> int:
        """How many keys of the source belong to no row that is in the table or put aside."""
        same = self._same_key()
        with self._attached():
            unknown = f"(FROM present AS i ANTI JOIN old.{quoted(self._view)} AS t ON {same})"
            return self._count(f"{unknown} AS i ANTI JOIN incoming AS t ON {same}")

    def sums(self, name: str, cut: KeyRanges) -> Sums:
        """What ranges of the key add up to, of the rows in the table and those put aside together."""
        told = (cut.number("duckdb", self._shown_key()), "count(*)", cut.total("duckdb", self._shown_key()))
        with self._attached():
            found = self._db.execute(f"SELECT {', '.join(told)} FROM ({self._keys()}) GROUP BY 1").fetchall()
        return {int(one): (int(rows), int(total)) for one, rows, total in found}

    def keep(self, name: str, cut: KeyRanges, ranges: Collection[int]) -> None:
        """Put aside the keys that are here in all other ranges too: nothing is gone there."""
        inside = cut.within("duckdb", self._shown_key(), ranges)
        with self._attached():
            self._db.execute(f"INSERT INTO present FROM ({self._keys()}) WHERE NOT ({inside})")

    def merge(self, held: LocalTable, *, kind: str, among: str | None) -> LocalTable:
        """Bring the table to what was put aside; see `Target`."""
        with self._records.writing(), self._worded():
            if self._records.seal() != _seal(self._path):
                # Of no table it is known that the file holds what its record says.
                self._records.doubt()
                held = replace(held, manifest=b"")
            same = self._records.same_shape(held)
            inserted = changed = deleted = 0
            with self._attached() as there:
                known = there and self._has(held.view) and held.edition > 0
                if known and same:
                    inserted, changed, deleted = self._differences(held, among)
            if known and same and held.manifest and not inserted + changed + deleted:
                done = replace(held, edition=held.edition + 1)
            else:
                held = held if known else replace(held, view=self._records.free_name(held))
                rows, digest = self._publish(held, anew=not (known and same))
                if not (known and same):
                    inserted, deleted = rows, held.rows if known else 0
                done = replace(held, rows=rows, digest=digest, edition=held.edition + 1)
                came = self._spools["incoming"]
                told = account(done, kind, (inserted, changed, deleted), came.notes, came.columns)
                done = replace(done, manifest=json.dumps(told, sort_keys=True, separators=(",", ":")).encode())
                if not self._gathering:
                    self._records.set_seal(_seal(self._path))
            self._settle(done)
            self._records.record(done)
        return done

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all tables that are merged meanwhile be switched to in one step, or none."""
        with self._records.writing(), self._worded():
            self._gathering = True
            try:
                yield
                if self._switch():
                    self._records.set_seal(_seal(self._path))
            finally:
                self._gathering = False
                self._discard()

    def join_group(self, group: str, name: str, asked: str, now: float) -> None:
        """Write down that a table is polled as one of a group, and how."""
        self._records.join_group(group, name, asked, now)

    def group(self, group: str, since: float) -> list[str]:
        """How those of a group are polled who were polled themselves since then."""
        return self._records.group(group, since)

    def schemas(self, name: str) -> Schemas:
        """What is known of the schema of a table's source."""
        return self._records.schemas(name)

    def set_schemas(self, name: str, known: Schemas) -> None:
        """Write down what is known of it now."""
        self._records.set_schemas(name, known)

    def close(self) -> None:
        """Give back the files, and what was put aside."""
        self._db.close()
        self._records.close()
        for spool in self._spools.values():
            spool.close()

    def interrupt(self) -> None:
        """Let what runs end with an error; for another thread."""
        self._records.interrupt()
        with suppress(Exception):
            self._db.interrupt()

    def _settle(self, done: LocalTable) -> None:
        """What else is to be done before a table is recorded: nothing, where the file is what is read."""

    def _spool(self, name: str, reading: TableReading) -> Spool:
        if name in self._spools:
            self._spools[name].close()
        self._spools[name] = spool = Spool(self._db, name, self._path, reading)
        return spool

    @contextmanager
    def _attached(self) -> Iterator[bool]:
        """The published file for reading, if there is one; StoreError if it is another program's."""
        if not self._path.exists():
            yield False
            return
        with self._worded():
            self._db.execute(f"ATTACH '{escaped(self._path)}' AS old (READ_ONLY)")
            try:
                if not self._has("unstale_tables"):
                    raise StoreError(
                        sentence(
                            "target", repr(str(self._path)), "is another program's database", "choose another file"
                        )
                    )
                yield True
            finally:
                self._db.execute("DETACH old")

    def _has(self, table: str) -> bool:
        asked = "SELECT 1 FROM duckdb_tables() WHERE database_name = 'old' AND table_name = ?"
        return self._db.execute(asked, [table]).fetchone() is not None

    def _differences(self, held: LocalTable, among: str | None) -> tuple[int, int, int]:
        """Put aside which rows of the table go (`doomed`) and which come (`fresh`): inserted, changed, deleted."""
        self._spools["incoming"].load()
        table = f"old.{quoted(held.view)}"
        if not held.key:
            inserted = self._count(f"(FROM incoming EXCEPT ALL FROM {table})")
            deleted = self._count(f"(FROM {table} EXCEPT ALL FROM incoming)")
            self._db.execute(f"CREATE OR REPLACE TEMP TABLE doomed AS SELECT rowid AS place FROM {table}")
            self._db.execute("CREATE OR REPLACE TEMP TABLE fresh AS FROM incoming")
            return inserted, 0, deleted
        self._check_key("incoming", held)
        shown = shown_names(held.columns)
        pairs = [
            " IS DISTINCT FROM ".join(duckdb_types.compared(f"{side}.{quoted(one)}", type_) for side in "it")
            for one, type_ in zip(shown, held.types, strict=True)
        ]
        same, other = self._same_key(), " OR ".join(pairs)
        self._db.execute(
            f"CREATE OR REPLACE TEMP TABLE doomed AS SELECT t.rowid AS place FROM incoming AS i JOIN {table} AS t "
            f"ON {same} WHERE {other}"
        )
        changed = self._count("doomed")
        if among is not None:
            self._db.execute(f"INSERT INTO doomed SELECT t.rowid FROM {table} AS t ANTI JOIN {among} AS i ON {same}")
        self._db.execute(
            f"CREATE OR REPLACE TEMP TABLE fresh AS SELECT i.* FROM incoming AS i LEFT JOIN {table} AS t ON {same} "
            f"WHERE t.rowid IS NULL OR {other}"
        )
        return self._count("fresh") - changed, changed, self._count("doomed") - changed

    def _same_key(self) -> str:
        return " AND ".join(f"i.{one} IS NOT DISTINCT FROM t.{one}" for one in self._shown_key())

    def _keys(self) -> str:
        key = ", ".join(self._shown_key())
        return f"SELECT {key} FROM old.{quoted(self._view)} UNION SELECT {key} FROM incoming"

    @contextmanager
    def _worded(self) -> Iterator[None]:
        """DuckDB's errors as one sentence."""
        try:
            yield
        except self._error as error:
            why = type(error).__name__
            raise StoreError(
                sentence("target", repr(str(self._path)), f"could not be used ({why})", "check the disk and its space")
            ) from error


def _seal(path: Path) -> int:
    """By what a file is known again, in 31 bits; 0 if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return 0
    return zlib.crc32(ascii((found.st_ino, found.st_mtime_ns, found.st_size)).encode()) & 0x7FFFFFFF
