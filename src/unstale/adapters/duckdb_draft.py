"""A change of a DuckDB file: made in a draft beside it, which takes its place when it is whole.

Rules of this file:
1. What only passes through, the rows of a first copy or of a digest, is given LITTLE memory: DuckDB keeps blocks of the
   file for as long as it may take more, so more rows would take more of it. What needs more gets MEMORY, once.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from unstale.adapters import duckdb_types
from unstale.adapters.duckdb_spool import Spool
from unstale.adapters.sql_records import quoted, shown_names
from unstale.adapters.sql_targets import LocalTable
from unstale.adapters.sql_values import WIDTH
from unstale.errors import InputError

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

#: memory that one poll may take; what is more goes to the disk
MEMORY = "1GB"
#: what suffices for rows that pass through, if they are not very long
LITTLE = "128MB"
_Done = TypeVar("_Done")


class DuckDraft:
    """Makes drafts of the file at `_path` from what was put aside in `_spools`."""

    _db: DuckDBPyConnection
    _path: Path
    _spools: dict[str, Spool]
    _key: tuple[str, ...]
    _unique: bool
    #: whether several tables are changed in one draft
    _gathering = False

    def _publish(self, held: LocalTable, *, anew: bool) -> tuple[int, bytes]:
        """Make the change in a draft and put it in the file's place: how many rows there are, and their digest."""
        if anew and not self._gathering:
            return self._sparing(lambda: self._drafted(held, anew))
        # A draft with other tables in it cannot be begun anew.
        return self._drafted(held, anew)

    def _sparing(self, work: Callable[[], _Done]) -> _Done:
        """Do what can be done twice in little memory, and if that is not enough, in all that there is."""
        import duckdb

        try:
            self._db.execute(f"SET memory_limit = '{LITTLE}'")
            return work()
        except (duckdb.OutOfMemoryException, duckdb.FatalException):
            self._db.execute(f"SET memory_limit = '{MEMORY}'")
            return work()
        finally:
            self._db.execute(f"SET memory_limit = '{MEMORY}'")

    def _drafted(self, held: LocalTable, anew: bool) -> tuple[int, bytes]:
        draft = self._draft()
        try:
            if not (self._gathering and draft.exists()):
                self._begin(draft)
            self._db.execute(f"ATTACH '{escaped(draft)}' AS new")
            try:
                # No transaction: a draft that breaks off is nobody's.
                self._make(held) if anew else self._change(held)
                rows, digest = self._digest(held)
                self._note(held, rows, digest)
                self._db.execute("CHECKPOINT new")
            finally:
                # Which writes what is left, also of a draft that had too little.
                self._db.execute(f"SET memory_limit = '{MEMORY}'")
                self._db.execute("DETACH new")
            if not self._gathering:
                self._switch()
        except BaseException:
            self._discard()
            raise
        return rows, digest

    def _begin(self, draft: Path) -> None:
        """Make the draft a copy of the file: who may read the one may read the other."""
        self._discard()
        target = self._path.resolve()
        if target.exists():
            shutil.copyfile(target, draft)
            shutil.copymode(target, draft)

    def _switch(self) -> bool:
        """Put the draft in the file's place, if there is one."""
        draft = self._draft()
        if not draft.exists():
            return False
        with draft.open("rb") as file:
            os.fsync(file.fileno())
        draft.replace(self._path.resolve())
        return True

    def _discard(self) -> None:
        draft = self._draft()
        for rest in (draft, draft.with_name(f"{draft.name}.wal")):
            rest.unlink(missing_ok=True)

    def _draft(self) -> Path:
        # Links are followed.
        target = self._path.resolve()
        return target.with_name(f".{target.name}.draft")

    def _make(self, held: LocalTable) -> None:
        table, shown = f"new.{quoted(held.view)}", shown_names(held.columns)
        key = set(held.key)
        declared = ", ".join(
            f"{quoted(one)} {type_}{' NOT NULL' if name in key and self._unique else ''}"
            for one, type_, name in zip(shown, held.types, held.columns, strict=True)
        )
        self._db.execute(f"CREATE OR REPLACE TABLE {table}({declared})")
        self._spools["incoming"].insert(table)
        self._check_key(table, held)
        for one, column in zip(shown, self._spools["incoming"].columns, strict=True):
            if column.comment:
                self._db.execute(f"COMMENT ON COLUMN {table}.{quoted(one)} IS {_literal(column.comment)}")
        told = [held.comment, f"key: {', '.join(held.key)}" if held.key else ""]
        if any(told):
            self._db.execute(f"COMMENT ON TABLE {table} IS {_literal('; '.join(filter(None, told)))}")

    def _change(self, held: LocalTable) -> None:
        table = f"new.{quoted(held.view)}"
        self._db.execute(f"DELETE FROM {table} WHERE rowid IN (SELECT place FROM doomed)")
        self._db.execute(f"INSERT INTO {table} FROM fresh")

    def _digest(self, held: LocalTable) -> tuple[int, bytes]:
        columns = [
            duckdb_types.compared(quoted(one), type_)
            for one, type_ in zip(shown_names(held.columns), held.types, strict=True)
        ]
        sums = (f"sum(hash({', '.join(one)})::HUGEINT)" for one in (columns, ["7", *columns]))
        asked = f"SELECT count(*), {', '.join(sums)} FROM new.{quoted(held.view)}"
        found = self._sparing(lambda: self._db.execute(asked).fetchone())
        assert found is not None
        told = ascii((held.columns, held.types, *found))
        return found[0], blake2b(told.encode("ascii"), digest_size=WIDTH).digest()

    def _note(self, held: LocalTable, rows: int, digest: bytes) -> None:
        """What readers may want to know of the table, in the file itself."""
        self._db.execute(
            'CREATE TABLE IF NOT EXISTS new.unstale_tables(name VARCHAR, "table" VARCHAR, key VARCHAR[], rows BIGINT, '
            "digest VARCHAR)"
        )
        self._db.execute("DELETE FROM new.unstale_tables WHERE name = ?", [held.name])
        noted = [held.name, held.view, list(held.key), rows, digest.hex()]
        self._db.execute("INSERT INTO new.unstale_tables VALUES(?, ?, ?, ?, ?)", noted)

    def _check_key(self, table: str, held: LocalTable) -> None:
        if held.key and not self._unique:
            key = ", ".join(self._shown_key())
            if self._count(f"{table} GROUP BY {key} HAVING count(*) > 1"):
                raise InputError("key is the same in several rows: name columns that are unique together")

    def _shown_key(self) -> list[str]:
        names = [column.name for column in self._spools["incoming"].columns]
        shown = shown_names(names)
        return [quoted(shown[names.index(name)]) for name in self._key]

    def _count(self, rows: str) -> int:
        found = self._db.execute(f"SELECT count(*) FROM {rows}").fetchone()
        return int(found[0]) if found else 0


def escaped(path: Path) -> str:
    """A path between the quotes of SQL."""
    return str(path).replace("'", "''")


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
