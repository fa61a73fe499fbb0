"""Copies of tables in a schema of a PostgreSQL server: tables of their own types, with their keys and comments.

Rules of this file:
1. Rows are put aside in temporary tables; one transaction then brings the table to them and records it. Who reads sees
   all of the old copy or all of the new one, and who reads in a transaction of one moment keeps the old one.
2. Rows are matched by their key and compared by the text of all they hold; equal rows are not written, so that indexes,
   grants and views that others made stay, and cost nothing.
3. A column that came is added. Any other change of shape makes the table anew: that waits for who reads it, for
   READERS seconds, and is refused while views depend on it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import replace

from unstale.adapters.postgres_target_records import SchemaRecords, quoted
from unstale.adapters.postgres_target_types import bent, declared
from unstale.adapters.sql_ranges import KeyRanges, Sums
from unstale.adapters.sql_targets import LocalTable, TableReading, account
from unstale.adapters.sql_text import NULL
from unstale.adapters.sql_types import Column
from unstale.adapters.sql_values import moved, row_hash
from unstale.errors import InputError, sentence

#: bytes that a name may have
_NAME = 63
_HASH = "hashtextextended({0}, 0)::numeric * 18446744073709551616 + hashtextextended({0}, 7)"


class SchemaTables(SchemaRecords):
    """The tables of a schema, opened for one poll of one of them."""

    _columns: tuple[Column, ...] = ()
    _key: tuple[str, ...] = ()
    _unique = False
    _types: tuple[str, ...] = ()
    _table = ""

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0. `view` is the name to be seen by, if free."""
        found = super().held(name, view)
        self._table = self._full(found.view)
        return found

    def take(self, reading: TableReading, types: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Put rows aside; the types that columns need here to hold them: those given, if they do."""
        self._columns, self._key, self._unique = tuple(reading.columns), tuple(reading.key), reading.unique
        for column in self._columns:
            if len(column.name.encode()) > _NAME:
                rule, remedy = f"is longer than the {_NAME} bytes of PostgreSQL's names", "give it another in a query"
                raise InputError(sentence("column", repr(column.name), rule, remedy))
        self._types = tuple(declared(column)[0] for column in self._columns)
        with self._worded():
            self._stage("incoming", reading, self._types)
        return self._types

    def take_keys(self, reading: TableReading) -> None:
        """Put aside the keys of all rows that the source has: what is not among them is gone."""
        types = dict(zip((column.name for column in self._columns), self._types, strict=True))
        with self._worded():
            self._stage("present", reading, tuple(types[column.name] for column in reading.columns))

    def new_rows(self, name: str) -> int:
        """How many of the rows put aside are not in the table."""
        with self._worded():
            return self._count(f"incoming i WHERE NOT EXISTS (SELECT FROM {self._table} t WHERE {self._same()})")

    def absent(self, name: str) -> int:
        """How many keys of the source belong to no row that is in the table or put aside."""
        among = (f"NOT EXISTS (SELECT FROM {one} t WHERE {self._same()})" for one in (self._table, "incoming"))
        with self._worded():
            return self._count(f"present i WHERE {' AND '.join(among)}")

    def sums(self, name: str, cut: KeyRanges) -> Sums:
        """What ranges of the key add up to, of the rows in the table and those put aside together."""
        key = list(map(quoted, self._key))
        told = (cut.number("postgresql", key), "count(*)", cut.total("postgresql", key))
        with self._worded():
            asked = f"SELECT {', '.join(told)} FROM ({self._keys()}) k GROUP BY 1"
            found = self._db.execute(asked.encode()).fetchall()
        return {int(one): (int(rows), int(total)) for one, rows, total in found}

    def keep(self, name: str, cut: KeyRanges, ranges: Collection[int]) -> None:
        """Put aside the keys that are here in all other ranges too: nothing is gone there."""
        inside = cut.within("postgresql", list(map(quoted, self._key)), ranges)
        with self._worded():
            self._db.execute(f"INSERT INTO present SELECT * FROM ({self._keys()}) k WHERE NOT ({inside})".encode())

    def merge(self, held: LocalTable, *, kind: str, among: str | None) -> LocalTable:
        """Bring the table to what was put aside; see `Target`."""
        whole, self._table = among == "incoming", self._full(held.view)
        with self.writing(held.name):
            same, there = self.same_shape(held), held.edition > 0 and self._has(held.view)
            lost = 0
            if not (same and there) and not (there and self._grown(held)):
                lost, held = held.rows if there else 0, self._make(held, there)
            self._check_key()
            deleted, gone = self._delete(among, whole) if among else (0, 0)
            changed, other = self._change(whole)
            inserted, come = self._insert(whole)
            rows, digest = held.rows + inserted - deleted, moved(held.digest, come + other - gone)
            if whole:
                # Whatever others wrote into it is gone now: it is counted as it is.
                rows, total = self._row(f"SELECT count(*), coalesce(sum({self._hash('t')}), 0) FROM {self._table} t")
                digest = moved(row_hash([*held.columns, *held.types]), int(total))
            done = replace(held, rows=rows, digest=digest, edition=held.edition + 1)
            if not held.manifest or not same or inserted or changed or deleted or lost:
                notes = {c.name: note for c in self._columns if (note := declared(c)[1])}
                told = account(done, kind, (inserted, changed, deleted + lost), notes, self._columns)
                done = replace(done, manifest=json.dumps(told, sort_keys=True, separators=(",", ":")).encode())
            self.record(done)
        return done

    def _stage(self, name: str, reading: TableReading, types: tuple[str, ...]) -> None:
        """Rows in a temporary table under their columns' names. What no database is sure of comes as text first."""
        places = [f"c{i}" for i in range(1, len(types) + 1)]
        came = [type_ if column.sure else "text" for column, type_ in zip(reading.columns, types, strict=True)]
        kinds = ", ".join(f"{place} {type_}" for place, type_ in zip(places, came, strict=True))
        self._db.execute(f"DROP TABLE IF EXISTS pg_temp.{name}, pg_temp.staged".encode())
        self._db.execute(f"CREATE TEMP TABLE staged({kinds})".encode())
        asked = f"COPY staged FROM STDIN (FORMAT csv, NULL '{NULL}', ENCODING 'UTF8')".encode()
        with self._typed(reading.columns, types), self._db.cursor() as cursor, cursor.copy(asked) as into:
            for chunk in reading.text(native=True):
                into.write(chunk)
        for place, column, type_ in zip(places, reading.columns, types, strict=True):
            if not column.sure:
                self._check(place, column, type_)
        chosen = ", ".join(
            f"{place}{'' if column.sure else f'::{type_}'} AS {quoted(column.name)}"
            for place, column, type_ in zip(places, reading.columns, types, strict=True)
        )
        if all(column.sure for column in reading.columns):
            for place, column in zip(places, reading.columns, strict=True):
                self._db.execute(f"ALTER TABLE staged RENAME {place} TO {quoted(column.name)}".encode())
            self._db.execute(f"ALTER TABLE staged RENAME TO {name}".encode())
        else:
            self._db.execute(f"CREATE TEMP TABLE {name} AS SELECT {chosen} FROM staged".encode())
            self._db.execute(b"DROP TABLE staged")
        self._db.execute(f"ANALYZE {name}".encode())

    def _check(self, place: str, column: Column, type_: str) -> None:
        with self._typed((column,), (type_,)):
            asked = f"SELECT count({place}::{type_}), count(*) FILTER (WHERE {bent(place, column.type)}) FROM staged"
            _, odd = self._row(asked)
        if odd:
            raise _refused(column, type_, "would change")

    @contextmanager
    def _typed(self, columns: Collection[Column], types: Collection[str]) -> Iterator[None]:
        """What is not of its type is refused in a sentence that shows nothing of it."""
        try:
            with self._db.transaction():
                yield
        except self._error as error:
            if not str(getattr(error, "sqlstate", None) or "").startswith("22"):
                raise
            found = re.search(r"\bc(\d+)\b", str(error.diag.context or ""))
            at = int(found[1]) - 1 if found and len(columns) > 1 else 0
            raise _refused(list(columns)[at], list(types)[at], "cannot hold") from None

    def _grown(self, held: LocalTable) -> bool:
        """Add the columns that came, if nothing else is different; whether that was so."""
        asked = f"SELECT columns, key, types FROM {self._schema}.unstale_tables WHERE name = %s"
        names, key, types = map(json.loads, self._row(asked, held.name))
        old, new = dict(zip(names, types, strict=True)), dict(zip(held.columns, held.types, strict=True))
        if key != list(held.key) or any(new.get(name) != type_ for name, type_ in old.items()):
            return False
        for column in self._columns:
            if column.name not in old:
                kind = new[column.name]
                self._db.execute(f"ALTER TABLE {self._table} ADD COLUMN {quoted(column.name)} {kind}".encode())
                self._comment(column)
        return True

    def _make(self, held: LocalTable, there: bool) -> LocalTable:
        """An empty table of this shape, under its name unless another one has it."""
        if there:
            self._db.execute(f"DROP TABLE {self._table}".encode())
        else:
            held = replace(held, view=self._free_name(held))
            self._table = self._full(held.view)
        kinds = [f"{quoted(name)} {type_}" for name, type_ in zip(held.columns, held.types, strict=True)]
        if held.key and self._unique:
            kinds.append(f"PRIMARY KEY ({', '.join(map(quoted, held.key))})")
        self._db.execute(f"CREATE TABLE {self._table}({', '.join(kinds)})".encode())
        for column in self._columns:
            self._comment(column)
        if held.comment:
            self._say(f"TABLE {self._table}", held.comment)
        return replace(held, rows=0, digest=row_hash([*held.columns, *held.types]))

    def _comment(self, column: Column) -> None:
        if column.comment:
            self._say(f"COLUMN {self._table}.{quoted(column.name)}", column.comment)

    def _say(self, what: str, comment: str) -> None:
        from psycopg.sql import Literal

        self._db.execute(f"COMMENT ON {what} IS {Literal(comment).as_string(self._db)}".encode())

    def _free_name(self, held: LocalTable) -> str:
        asked = f'SELECT count(*) FROM {self._schema}.unstale_tables WHERE "table" = %s AND name <> %s'
        view = held.view.encode()[: _NAME - 7].decode(errors="ignore")
        taken = self._row(asked, view, held.name)[0] or self._has(view)
        return f"{view}_{held.name[-6:]}" if taken else view

    def _check_key(self) -> None:
        if self._key and not self._unique:
            key = ", ".join(map(quoted, self._key))
            if self._count(f"(SELECT FROM incoming GROUP BY {key} HAVING count(*) > 1) k"):
                raise InputError("key is the same in several rows: name columns that are unique together")

    def _delete(self, among: str, whole: bool) -> tuple[int, int]:
        same, hashed = self._same("o"), "0" if whole else self._hash("t")
        if self._key:
            gone = f"SELECT o.ctid AS place FROM {self._table} o WHERE NOT EXISTS (SELECT FROM {among} i WHERE {same})"
        else:
            gone = f"SELECT o.place FROM {self._numbered(self._table)} o WHERE NOT EXISTS (SELECT FROM " + (
                f"{self._numbered(among)} i WHERE (i.text, i.n) = (o.text, o.n))"
            )
        return self._told(
            f"DELETE FROM {self._table} t USING ({gone}) g WHERE t.ctid = g.place RETURNING {hashed} AS h"
        )

    def _change(self, whole: bool) -> tuple[int, int]:
        if not self._key:
            return 0, 0
        names = ", ".join(quoted(column.name) for column in self._columns)
        values = ", ".join(f"i.{quoted(column.name)}" for column in self._columns)
        pairs = f"incoming i JOIN {self._table} o ON {self._same('o')} WHERE {self._text('i')} <> {self._text('o')}"
        # The hash of before is taken along, for the digest.
        was, now = ("0", "0") if whole else (self._hash("o"), self._hash("t"))
        changed = f"SELECT o.ctid AS place, i.ctid AS other, {was} AS was FROM {pairs}"
        self._db.execute(b"DROP TABLE IF EXISTS pg_temp.changes")
        self._db.execute(f"CREATE TEMP TABLE changes ON COMMIT DROP AS {changed}".encode())
        return self._told(
            f"UPDATE {self._table} t SET ({names}) = ROW({values}) FROM incoming i JOIN changes c ON i.ctid = c.other "
            f"WHERE t.ctid = c.place RETURNING {now} - c.was AS h"
        )

    def _insert(self, whole: bool) -> tuple[int, int]:
        names = ", ".join(quoted(column.name) for column in self._columns)
        if self._key:
            new = f"FROM incoming i WHERE NOT EXISTS (SELECT FROM {self._table} t WHERE {self._same()})"
        else:
            new = f"FROM incoming i JOIN {self._numbered('incoming')} m ON m.place = i.ctid WHERE NOT EXISTS " + (
                f"(SELECT FROM {self._numbered(self._table)} t WHERE (m.text, m.n) = (t.text, t.n))"
            )
        values = ", ".join(f"i.{quoted(column.name)}" for column in self._columns)
        hashed = "0" if whole else self._hash("t")
        return self._told(f"INSERT INTO {self._table} AS t ({names}) SELECT {values} {new} RETURNING {hashed} AS h")

    def _told(self, statement: str) -> tuple[int, int]:
        """How many rows a statement changed, and what it adds to the digest."""
        rows, total = self._row(f"WITH done AS ({statement}) SELECT count(*), coalesce(sum(h), 0) FROM done")
        return rows, int(total)

    def _numbered(self, table: str) -> str:
        """Rows that are told apart by all they hold, and counted."""
        text = self._text("x")
        return f"(SELECT x.ctid AS place, {text} AS text, row_number() OVER (PARTITION BY {text}) AS n FROM {table} x)"

    def _same(self, other: str = "t") -> str:
        key = list(map(quoted, self._key))
        if self._unique:
            return " AND ".join(f"i.{one} = {other}.{one}" for one in key)
        # A key of its owner's may have no value somewhere: as text it can still be found quickly.
        each = (f"ROW({', '.join(f'{side}.{one}' for one in key)})::text" for side in ("i", other))
        return " = ".join(each)

    def _text(self, side: str) -> str:
        return f"ROW({', '.join(f'{side}.{quoted(column.name)}' for column in self._columns)})::text"

    def _hash(self, side: str) -> str:
        return _HASH.format(self._text(side))

    def _keys(self) -> str:
        key = ", ".join(map(quoted, self._key))
        return f"SELECT {key} FROM {self._table} UNION SELECT {key} FROM incoming"

    def _count(self, rows: str) -> int:
        return int(self._row(f"SELECT count(*) FROM {rows}")[0])

    def _full(self, view: str) -> str:
        return f"{self._schema}.{quoted(view)}"


def _refused(column: Column, type_: str, what: str) -> InputError:
    other = json.dumps({column.name: "text"})
    remedy = f"choose another one with the option types, like types={other}"
    return InputError(sentence(f"column {column.name}", "has values", f"that {type_} of PostgreSQL {what}", remedy))
