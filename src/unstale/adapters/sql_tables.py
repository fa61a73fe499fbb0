"""The local side of SQL sources: one SQLite file with a table for each, and a view under a readable name.

Rules of this file:
1. What a poll read is staged in a temporary table, without a lock; one transaction then brings the table to it. Who
   reads sees all of the old copy or all of the new one, and so does who opens the file after a kill.
2. Rows are matched by the hash of their key and compared by the hash of all they hold; equal rows are not written.
3. Values are as `unstale.adapters.sql_values` made them, in columns declared as `sqlite_types` says. A table of an
   earlier version has no declared types, and stays as it is until all of its source is read again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import md5
from pathlib import Path
from typing import Any

import apsw

from unstale.adapters.sql_ranges import KeyRanges, Sums
from unstale.adapters.sql_records import Records, quoted, shown_names, worded
from unstale.adapters.sql_targets import LocalTable, TableReading, account
from unstale.adapters.sql_types import Column
from unstale.adapters.sql_values import Plain, moved, row_hash
from unstale.adapters.sqlite_types import DIGITS, declared, is_number
from unstale.errors import InputError


class Tables(Records):
    """The file of local tables and their records, opened by one poll."""

    def __init__(self, path: Path, patient: Callable[[], bool]) -> None:
        self._notes: dict[str, str] = {}
        self._columns: tuple[Column, ...] = ()
        self._key: tuple[str, ...] = ()
        super().__init__(path, patient)
        self._db.create_scalar_function("unstale_md5", _md5, 1, deterministic=True)
        self._db.create_scalar_function("unstale_number", _number, 3, deterministic=True)

    def take(self, reading: TableReading, types: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put rows aside; the types that columns need here to hold them: those given, if they do."""
        self._columns, self._key = tuple(reading.columns), tuple(reading.key)
        self.stage([column.name for column in reading.columns], reading.rows())
        if len(types) != len(reading.columns):
            types = ("",) * len(reading.columns)
        with worded(self._path):
            found = [
                self._declared(place, column.type, had)
                for place, column, had in zip(_local(types), reading.columns, types, strict=True)
            ]
        self._notes = {c.name: note for c, (_, note) in zip(reading.columns, found, strict=True) if note}
        return tuple(declared for declared, _ in found)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all tables that are merged meanwhile be switched to in one step, or none."""
        with self.writing():
            yield

    def take_keys(self, reading: TableReading) -> None:
        """Put aside the keys of all rows that the source has: what is not among them is gone."""
        self.stage_keys(key for key, _, _ in reading.rows())

    def stage(self, columns: Sequence[str], rows: Iterable[tuple[bytes, bytes, Sequence[Plain]]]) -> None:
        """Put aside rows as (key, hash, values); rows without a key of their own are told apart by their number."""
        names = ", ".join(map(quoted, _local(columns)))
        marks = ", ".join("?" * (len(columns) + 2))
        with worded(self._path):
            self._db.execute("DROP TABLE IF EXISTS temp.incoming")
            self._db.execute(f"CREATE TEMP TABLE incoming(unstale_key, unstale_hash, {names})")
            alone = self._db.get_autocommit()
            self._db.execute("BEGIN" if alone else "SAVEPOINT staging")
            self._db.executemany(f"INSERT INTO temp.incoming VALUES({marks})", ((k, h, *v) for k, h, v in rows))
            self._db.execute(
                "UPDATE temp.incoming SET unstale_key = hex(unstale_hash) || n FROM (SELECT rowid AS place, "
                "row_number() OVER (PARTITION BY unstale_hash) AS n FROM temp.incoming WHERE unstale_key IS x'') "
                "AS numbered WHERE incoming.rowid = place"
            )
            try:
                self._db.execute("CREATE UNIQUE INDEX temp.incoming_key ON incoming(unstale_key)")
            except apsw.ConstraintError:
                raise InputError("key is the same in several rows: name columns that are unique together") from None
            self._db.execute("COMMIT" if alone else "RELEASE staging")

    def stage_keys(self, keys: Iterable[bytes]) -> None:
        """Put aside the keys of all rows that the source has: what is not among them is gone."""
        with worded(self._path):
            alone = self._db.get_autocommit()
            self._db.execute("DROP TABLE IF EXISTS temp.present")
            self._db.execute("CREATE TEMP TABLE present(unstale_key PRIMARY KEY) WITHOUT ROWID")
            self._db.execute("BEGIN" if alone else "SAVEPOINT staging")
            self._db.executemany("INSERT OR IGNORE INTO temp.present VALUES(?)", ((k,) for k in keys))
            self._db.execute("COMMIT" if alone else "RELEASE staging")

    def new_rows(self, name: str) -> int:
        """How many of the rows put aside are not in the table."""
        with worded(self._path):
            found: int = self._db.execute(
                "SELECT count(*) FROM temp.incoming AS i WHERE NOT EXISTS (SELECT 1 FROM "
                f"{quoted(name)} AS t WHERE t.unstale_key = i.unstale_key)"
            ).get
        return found

    def absent(self, name: str) -> int:
        """How many keys of the source belong to no row that is in the table or put aside."""
        with worded(self._path):
            found: int = self._db.execute(
                "SELECT count(*) FROM temp.present WHERE unstale_key NOT IN (SELECT unstale_key FROM temp.incoming) "
                f"AND unstale_key NOT IN (SELECT unstale_key FROM {quoted(name)})"
            ).get
        return found

    def sums(self, name: str, cut: KeyRanges) -> Sums:
        """What ranges of the key add up to, of the rows in the table and those put aside together."""
        places = self._key_places()
        told = (cut.number("sqlite", places), "count(*)", cut.total("sqlite", places))
        keys = ", ".join(places)
        with worded(self._path):
            found = self._db.execute(
                f"SELECT {', '.join(told)} FROM "
                f"(SELECT {keys} FROM {quoted(name)} UNION SELECT {keys} FROM temp.incoming) GROUP BY 1"
            )
            return {one: (rows, total) for one, rows, total in found}

    def keep(self, name: str, cut: KeyRanges, ranges: Collection[int]) -> None:
        """Put aside the keys that are here in all other ranges too: nothing is gone there."""
        inside = cut.within("sqlite", self._key_places(), ranges)
        with worded(self._path):
            for table in (quoted(name), "temp.incoming"):
                self._db.execute(
                    f"INSERT OR IGNORE INTO temp.present SELECT unstale_key FROM {table} WHERE NOT ({inside})"
                )

    def merge(self, held: LocalTable, *, kind: str, among: str | None) -> LocalTable:
        """Bring the table to what was put aside, and record `held`'s shape and progress with it, in one transaction.

        `among` names what rows must be in to stay, `incoming` or `present`; None removes no row. Nothing is done if
        another poll has recorded since `held` was read.
        """
        with self.writing():
            lost = 0
            if not self.same_shape(held):
                lost, held = held.rows, self._begin(held)
            done = self._apply(held, kind, among, lost)
            self.record(done)
        return done

    def _key_places(self) -> list[str]:
        names = [column.name for column in self._columns]
        return [_local(names)[names.index(name)] for name in self._key]

    def _declared(self, place: str, type_: str, had: str) -> tuple[str, str]:
        """How a column put aside is declared, and what is to be said about it; as it was, if that holds its values."""
        widest = odd = 0
        if is_number(type_):
            widest, odd = self._db.execute(
                f"SELECT coalesce(max(length({DIGITS.format(place)})), 0), coalesce(max({place} GLOB '*[fN]*'), 0) "
                f"FROM temp.incoming WHERE typeof({place}) = 'text'"
            ).get
        return declared(type_, had, widest, bool(odd))

    def _begin(self, held: LocalTable) -> LocalTable:
        """An empty table of this shape, seen under its name unless another one has it."""
        view = self.free_name(held)
        types = held.types or ("",) * len(held.columns)
        names = ", ".join(f"{quoted(n)} {t}" for n, t in zip(_local(held.columns), types, strict=True))
        shown = ", ".join(
            f"{quoted(n)} AS {quoted(s)}" for n, s in zip(_local(held.columns), shown_names(held.columns), strict=True)
        )
        self._db.execute(f"DROP VIEW IF EXISTS {quoted(view)}")
        self._db.execute(f"DROP TABLE IF EXISTS {quoted(held.name)}")
        self._db.execute(f"CREATE TABLE {quoted(held.name)}(unstale_key BLOB PRIMARY KEY, unstale_hash BLOB, {names})")
        self._db.execute(f"CREATE VIEW {quoted(view)} AS SELECT {shown} FROM {quoted(held.name)}")
        return replace(held, view=view, rows=0, digest=row_hash(held.columns))

    def _apply(self, held: LocalTable, kind: str, among: str | None, lost: int) -> LocalTable:
        table = quoted(held.name)
        new = f"FROM temp.incoming AS i WHERE NOT EXISTS (SELECT 1 FROM {table} t WHERE t.unstale_key = i.unstale_key)"
        other = "t.unstale_key = i.unstale_key AND t.unstale_hash <> i.unstale_hash"
        gone = f"FROM {table} WHERE unstale_key NOT IN (SELECT unstale_key FROM temp.{among})"
        removed = self._total(f"SELECT unstale_hash {gone}") if among else (0, 0)
        replaced = self._total(f"SELECT t.unstale_hash FROM temp.incoming i CROSS JOIN {table} t ON {other}")
        come = self._total(f"SELECT i.unstale_hash FROM temp.incoming i CROSS JOIN {table} t ON {other}")
        inserted = self._total(f"SELECT i.unstale_hash {new}")
        if removed[0]:
            self._db.execute(f"DELETE {gone}")
        if replaced[0]:
            put = ", ".join(f"{c} = i.{c}" for c in ("unstale_hash", *_local(held.columns)))
            self._db.execute(f"UPDATE {table} AS t SET {put} FROM temp.incoming AS i WHERE {other}")
        if inserted[0]:
            self._db.execute(f"INSERT INTO {table} SELECT i.* {new}")
        done = replace(
            held,
            rows=held.rows + inserted[0] - removed[0],
            edition=held.edition + 1,
            digest=moved(held.digest, come[1] + inserted[1] - removed[1] - replaced[1]),
        )
        if held.manifest and not (removed[0] or replaced[0] or inserted[0] or lost):
            return done
        told = account(done, kind, (inserted[0], replaced[0], removed[0] + lost), self._notes, self._columns)
        return replace(done, manifest=json.dumps(told, sort_keys=True, separators=(",", ":")).encode())

    def _total(self, statement: str) -> tuple[int, int]:
        """How many hashes the statement gives, and their sum."""
        count = total = 0
        for (found,) in self._db.execute(statement):
            count, total = count + 1, total + int.from_bytes(found)
        return count, total


def _md5(*told: Any) -> str:
    """As other databases hash a key's text."""
    return md5(str(told[0]).encode("utf-8", "replace"), usedforsecurity=False).hexdigest()


def _number(*told: Any) -> int:
    """The number that some digits of a hash are."""
    digits, first, count = told
    return int(digits[first - 1 : first - 1 + count], 16)


def _local(columns: Sequence[str]) -> list[str]:
    """The names of columns in the table itself: plain numbers, since two names may differ only in their case."""
    return [f"c{i}" for i in range(1, len(columns) + 1)]
