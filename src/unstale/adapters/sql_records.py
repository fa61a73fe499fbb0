"""What is known of local tables, in a SQLite file: the target itself, or one beside a target of another form.

Rules of this file:
1. Who writes is alone: the transaction in which a record is written is the lock of its target.
2. Whoever waits for it asks its poll whether there is time to wait on.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import apsw

from unstale.adapters.sql_schema import Schema, Schemas
from unstale.adapters.sql_targets import LocalTable
from unstale.adapters.sqlite_schema import safe
from unstale.errors import StoreError, sentence

#: "unsq" in the file's header
APPLICATION = 0x756E7371
_HELD = """
CREATE TABLE IF NOT EXISTS unstale_tables(
    name TEXT PRIMARY KEY, view TEXT NOT NULL UNIQUE COLLATE NOCASE, columns TEXT NOT NULL, key TEXT NOT NULL,
    rows INTEGER NOT NULL, digest BLOB NOT NULL, probe TEXT NOT NULL, mark TEXT NOT NULL, read_at REAL NOT NULL,
    manifest BLOB NOT NULL, edition INTEGER NOT NULL, types TEXT NOT NULL DEFAULT '[]'
) STRICT
"""
_SCHEMAS = """
CREATE TABLE IF NOT EXISTS unstale_schemas(
    name TEXT PRIMARY KEY, held TEXT NOT NULL, pending TEXT NOT NULL DEFAULT '', accepted INTEGER NOT NULL DEFAULT 0
) STRICT
"""
_GROUPS = """
CREATE TABLE IF NOT EXISTS unstale_groups(
    name TEXT PRIMARY KEY, grp TEXT NOT NULL, asked TEXT NOT NULL, at REAL NOT NULL
) STRICT
"""


class Records:
    """The file of records, opened by one poll; `patient` says whether to wait on for another's transaction."""

    def __init__(self, path: Path, patient: Callable[[], bool]) -> None:
        library = apsw.sqlite_lib_version()
        if not safe(tuple(int(part) for part in library.split("."))):
            raise StoreError(
                sentence(
                    "SQLite", library, "can lose what it has committed (WAL-reset bug)", "install apsw 3.51.3 or later"
                )
            )
        with worded(path):
            self._db = apsw.Connection(str(path))
        self._path = path
        try:
            with worded(path):
                self._db.set_busy_handler(lambda _: patient())
                self._prepare()
        except BaseException:
            self.close()
            raise

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0. `view` is the name to be seen by, if free."""
        with worded(self._path):
            row = self._db.execute("SELECT * FROM unstale_tables WHERE name = ?", (name,)).get
        if row is None:
            return LocalTable(name, view)
        _, view, columns, key, *rest, types = row
        found = LocalTable(name, view, tuple(json.loads(columns)), tuple(json.loads(key)), *rest)
        return replace(found, types=tuple(json.loads(types)))

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be alone with the target; what is recorded meanwhile is recorded at the end, or not at all."""
        if not self._db.get_autocommit():
            # One step of a larger one.
            yield
            return
        with worded(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if not self._db.get_autocommit():
                    self._db.execute("ROLLBACK")
                raise

    def same_shape(self, held: LocalTable) -> bool:
        """Whether the table as recorded has this shape; StoreError if another poll has recorded since."""
        found = self._db.execute(
            "SELECT edition, columns, key, types FROM unstale_tables WHERE name = ?", (held.name,)
        ).get
        edition, *shape = found or (0, "", "", "")
        if edition != held.edition:
            raise StoreError("the copy was changed by another poll meanwhile: it is polled again when it is due")
        return bool(shape == [json.dumps(one) for one in (held.columns, held.key, held.types)])

    def free_name(self, held: LocalTable) -> str:
        """The name that a new table is seen by: its own, unless another one has it."""
        taken = self._db.execute(
            "SELECT 1 FROM unstale_tables WHERE view = ? AND name <> ? UNION SELECT 1 FROM sqlite_schema "
            "WHERE name = ? COLLATE NOCASE AND type <> 'view'",
            (held.view, held.name, held.view),
        ).get
        return f"{held.view}_{held.name[-6:]}" if taken else held.view

    def record(self, done: LocalTable) -> None:
        """Write down what is known of a table now."""
        marks = ", ".join("?" * 12)
        self._db.execute(
            f"INSERT OR REPLACE INTO unstale_tables VALUES({marks})",
            (
                done.name,
                done.view,
                json.dumps(done.columns),
                json.dumps(done.key),
                done.rows,
                done.digest,
                done.probe,
                done.mark,
                done.read_at,
                done.manifest,
                done.edition,
                json.dumps(done.types),
            ),
        )

    def schemas(self, name: str) -> Schemas:
        """What is known of the schema of a table's source."""
        with worded(self._path):
            if not self._db.execute("SELECT 1 FROM sqlite_schema WHERE name = 'unstale_schemas'").get:
                return Schemas()
            row = self._db.execute("SELECT held, pending, accepted FROM unstale_schemas WHERE name = ?", (name,)).get
        return Schemas() if row is None else Schemas(Schema.read(row[0]), Schema.read(row[1]), bool(row[2]))

    def set_schemas(self, name: str, known: Schemas) -> None:
        """Write down what is known of it now."""
        kept = ["" if one is None else one.kept() for one in (known.held, known.pending)]
        with self.writing():
            self._db.execute(_SCHEMAS)
            self._db.execute(
                "INSERT OR REPLACE INTO unstale_schemas VALUES(?, ?, ?, ?)", (name, *kept, int(known.accepted))
            )

    def join_group(self, group: str, name: str, asked: str, now: float) -> None:
        """Write down that a table is polled as one of a group, and how."""
        with self.writing():
            self._db.execute(_GROUPS)
            self._db.execute("INSERT OR REPLACE INTO unstale_groups VALUES(?, ?, ?, ?)", (name, group, asked, now))

    def group(self, group: str, since: float) -> list[str]:
        """How those of a group are polled who were polled themselves since then."""
        with worded(self._path):
            return [
                asked
                for (asked,) in self._db.execute(
                    "SELECT asked FROM unstale_groups WHERE grp = ? AND at >= ?", (group, since)
                )
            ]

    def seal(self) -> int:
        """By what the file beside which this one is was known when it was last recorded; 0 before that."""
        with worded(self._path):
            return int(self._db.pragma("user_version"))

    def set_seal(self, seal: int) -> None:
        """Write down by what that file is known now."""
        self._db.execute(f"PRAGMA user_version = {seal}")

    def doubt(self) -> None:
        """Let nothing that is recorded count for more than the names: see `doubted`."""
        self._db.execute("UPDATE unstale_tables SET probe = '', mark = '', read_at = 0.0, manifest = x''")

    def close(self) -> None:
        """Give back the file, and what was put aside."""
        self._db.close()

    def interrupt(self) -> None:
        """Let what runs end with an error; for another thread."""
        with suppress(apsw.Error):
            self._db.interrupt()

    def _prepare(self) -> None:
        application = self._db.pragma("application_id")
        if application != APPLICATION:
            if application or self._db.execute("SELECT count(*) FROM sqlite_schema").get:
                raise StoreError(
                    sentence("target", repr(str(self._path)), "is another program's database", "choose another file")
                )
            self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        if application == APPLICATION and self._has_types():
            return
        with self.writing():
            self._db.execute(_HELD)
            # Version 0.1 declared no types, and kept none.
            if not self._has_types():
                self._db.execute("ALTER TABLE unstale_tables ADD COLUMN types TEXT NOT NULL DEFAULT '[]'")
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")

    def _has_types(self) -> bool:
        return bool(self._db.execute("SELECT 1 FROM pragma_table_info('unstale_tables') WHERE name = 'types'").get)


def doubted(found: LocalTable) -> LocalTable:
    """A record that no longer says what the table holds: all of its source must be read, and its digest be found."""
    return replace(found, probe="", mark="", read_at=0.0, manifest=b"")


def view_name(text: str) -> str:
    """A readable name for a view, made of letters, digits and underscores.

    >>> view_name("public.Order lines"), view_name("2024")
    ('public_Order_lines', 't_2024')
    """
    name = re.sub(r"\W+", "_", text).strip("_")[:60]
    # SQLite keeps names that begin with its own to itself.
    return name if name and not name[0].isdigit() and not name.lower().startswith("sqlite_") else f"t_{name}"


def shown_names(columns: Sequence[str]) -> list[str]:
    """The names of columns as they are seen, a number behind those that SQLite takes for the same.

    >>> shown_names(["id", "ID", "name"])
    ['id', 'ID_2', 'name']
    """
    seen: set[str] = set()
    shown = []
    for column in columns:
        name, n = column, 1
        while name.lower() in seen:
            n += 1
            name = f"{column}_{n}"
        seen.add(name.lower())
        shown.append(name)
    return shown


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def worded(path: Path) -> Iterator[None]:
    """SQLite's errors as one sentence."""
    try:
        yield
    except apsw.Error as error:
        raise StoreError(
            sentence(
                "target", repr(str(path)), f"could not be used ({error})", "check the disk and who else has it open"
            )
        ) from error
