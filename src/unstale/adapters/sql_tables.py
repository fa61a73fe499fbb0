"""The local side of SQL sources: one SQLite file with a table for each, and a view under a readable name.

Rules of this file:
1. What a poll read is staged in a temporary table, without a lock; one transaction then brings the table to it. Who
   reads sees all of the old copy or all of the new one, and so does who opens the file after a kill.
2. Rows are matched by the hash of their key and compared by the hash of all they hold; equal rows are not written.
3. A table has no declared types: values stay as `unstale.adapters.sql_values` made them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import apsw

from unstale.adapters.sql_values import WIDTH, Plain, moved, row_hash
from unstale.adapters.sqlite_schema import safe
from unstale.errors import InputError, StoreError, sentence

#: "unsq" in the file's header
APPLICATION = 0x756E7371
_HELD = """
CREATE TABLE IF NOT EXISTS unstale_tables(
    name TEXT PRIMARY KEY, view TEXT NOT NULL UNIQUE COLLATE NOCASE, columns TEXT NOT NULL, key TEXT NOT NULL,
    rows INTEGER NOT NULL, digest BLOB NOT NULL, probe TEXT NOT NULL, mark TEXT NOT NULL, read_at REAL NOT NULL,
    manifest BLOB NOT NULL, edition INTEGER NOT NULL
) STRICT
"""


@dataclass(frozen=True, slots=True)
class LocalTable:
    """What is known of a local table: its shape, its content's digest, and how far its source has been read.

    `probe` is the source's probe when it was last read, `mark` from where the next reading may begin, `read_at` when
    all of it was last read, `manifest` the account of its last change, `edition` counts what was recorded.
    """

    name: str
    view: str
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    rows: int = 0
    digest: bytes = bytes(WIDTH)
    probe: str = ""
    mark: str = ""
    read_at: float = 0.0
    manifest: bytes = b""
    edition: int = 0


class Tables:
    """The file of local tables, opened by one poll; `patient` says whether to wait on for another's transaction."""

    def __init__(self, path: Path, patient: Callable[[], bool]) -> None:
        library = apsw.sqlite_lib_version()
        if not safe(tuple(int(part) for part in library.split("."))):
            raise StoreError(
                sentence(
                    "SQLite", library, "can lose what it has committed (WAL-reset bug)", "install apsw 3.51.3 or later"
                )
            )
        with _worded(path):
            self._db = apsw.Connection(str(path))
        self._path = path
        try:
            with _worded(path):
                self._db.set_busy_handler(lambda _: patient())
                self._prepare()
        except BaseException:
            self.close()
            raise

    def held(self, name: str, view: str) -> LocalTable:
        """What is known of this table; nothing yet, if `edition` is 0. `view` is the name to be seen by, if free."""
        with _worded(self._path):
            row = self._db.execute("SELECT * FROM unstale_tables WHERE name = ?", (name,)).get
        if row is None:
            return LocalTable(name, view)
        _, view, columns, key, *rest = row
        return LocalTable(name, view, tuple(json.loads(columns)), tuple(json.loads(key)), *rest)

    def stage(self, columns: Sequence[str], rows: Iterable[tuple[bytes, bytes, Sequence[Plain]]]) -> None:
        """Put aside rows as (key, hash, values); rows without a key of their own are told apart by their number."""
        names = ", ".join(map(_quoted, _local(columns)))
        marks = ", ".join("?" * (len(columns) + 2))
        with _worded(self._path):
            self._db.execute("DROP TABLE IF EXISTS temp.incoming")
            self._db.execute(f"CREATE TEMP TABLE incoming(unstale_key, unstale_hash, {names})")
            self._db.execute("BEGIN")
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
            self._db.execute("COMMIT")

    def stage_keys(self, keys: Iterable[bytes]) -> None:
        """Put aside the keys of all rows that the source has: what is not among them is gone."""
        with _worded(self._path):
            self._db.execute("CREATE TEMP TABLE present(unstale_key PRIMARY KEY) WITHOUT ROWID")
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR IGNORE INTO temp.present VALUES(?)", ((k,) for k in keys))
            self._db.execute("COMMIT")

    def new_rows(self, name: str) -> int:
        """How many of the rows put aside are not in the table."""
        with _worded(self._path):
            found: int = self._db.execute(
                "SELECT count(*) FROM temp.incoming AS i WHERE NOT EXISTS (SELECT 1 FROM "
                f"{_quoted(name)} AS t WHERE t.unstale_key = i.unstale_key)"
            ).get
        return found

    def absent(self, name: str) -> int:
        """How many keys of the source belong to no row that is in the table or put aside."""
        with _worded(self._path):
            found: int = self._db.execute(
                "SELECT count(*) FROM temp.present WHERE unstale_key NOT IN (SELECT unstale_key FROM temp.incoming) "
                f"AND unstale_key NOT IN (SELECT unstale_key FROM {_quoted(name)})"
            ).get
        return found

    def merge(self, held: LocalTable, *, kind: str, among: str | None) -> LocalTable:
        """Bring the table to what was put aside, and record `held`'s shape and progress with it, in one transaction.

        `among` names what rows must be in to stay, `incoming` or `present`; None removes no row. Nothing is done if
        another poll has recorded since `held` was read.
        """
        with _worded(self._path), self._writing():
            now = self._db.execute("SELECT edition, columns, key FROM unstale_tables WHERE name = ?", (held.name,))
            edition, columns, key = now.get or (0, "", "")
            if edition != held.edition:
                raise StoreError("the copy was changed by another poll meanwhile: it is polled again when it is due")
            lost = 0
            if (columns, key) != (json.dumps(held.columns), json.dumps(held.key)):
                lost, held = held.rows, self._begin(held)
            done = self._apply(held, kind, among, lost)
            marks = ", ".join("?" * 11)
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
                ),
            )
        return done

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
        if application != APPLICATION:
            with self._writing():
                self._db.execute(_HELD)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._db.execute("COMMIT")
        except BaseException:
            if not self._db.get_autocommit():
                self._db.execute("ROLLBACK")
            raise

    def _begin(self, held: LocalTable) -> LocalTable:
        """An empty table of this shape, seen under its name unless another one has it."""
        taken = self._db.execute(
            "SELECT 1 FROM unstale_tables WHERE view = ? AND name <> ? UNION SELECT 1 FROM sqlite_schema "
            "WHERE name = ? COLLATE NOCASE AND type <> 'view'",
            (held.view, held.name, held.view),
        ).get
        view = f"{held.view}_{held.name[-6:]}" if taken else held.view
        names = ", ".join(map(_quoted, _local(held.columns)))
        shown = ", ".join(
            f"{_quoted(n)} AS {_quoted(s)}" for n, s in zip(_local(held.columns), _shown(held.columns), strict=True)
        )
        self._db.execute(f"DROP VIEW IF EXISTS {_quoted(view)}")
        self._db.execute(f"DROP TABLE IF EXISTS {_quoted(held.name)}")
        self._db.execute(f"CREATE TABLE {_quoted(held.name)}(unstale_key BLOB PRIMARY KEY, unstale_hash BLOB, {names})")
        self._db.execute(f"CREATE VIEW {_quoted(view)} AS SELECT {shown} FROM {_quoted(held.name)}")
        return replace(held, view=view, rows=0, digest=row_hash(held.columns))

    def _apply(self, held: LocalTable, kind: str, among: str | None, lost: int) -> LocalTable:
        table = _quoted(held.name)
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
        account = {
            "changed": replaced[0],
            "columns": list(done.columns),
            "deleted": removed[0] + lost,
            "digest": done.digest.hex(),
            "inserted": inserted[0],
            "probe": kind,
            "rows": done.rows,
            "table": done.view,
        }
        return replace(done, manifest=json.dumps(account, sort_keys=True, separators=(",", ":")).encode())

    def _total(self, statement: str) -> tuple[int, int]:
        """How many hashes the statement gives, and their sum."""
        count = total = 0
        for (found,) in self._db.execute(statement):
            count, total = count + 1, total + int.from_bytes(found)
        return count, total


def view_name(text: str) -> str:
    """A readable name for a view, made of letters, digits and underscores.

    >>> view_name("public.Order lines"), view_name("2024")
    ('public_Order_lines', 't_2024')
    """
    name = re.sub(r"\W+", "_", text).strip("_")[:60]
    # SQLite keeps names that begin with its own to itself.
    return name if name and not name[0].isdigit() and not name.lower().startswith("sqlite_") else f"t_{name}"


def _local(columns: Sequence[str]) -> list[str]:
    """The names of columns in the table itself: plain numbers, since two names may differ only in their case."""
    return [f"c{i}" for i in range(1, len(columns) + 1)]


def _shown(columns: Sequence[str]) -> list[str]:
    """The names of columns as they are seen, a number behind those that SQLite takes for the same.

    >>> _shown(["id", "ID", "name"])
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


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def _worded(path: Path) -> Iterator[None]:
    """SQLite's errors as one sentence."""
    try:
        yield
    except apsw.Error as error:
        raise StoreError(
            sentence(
                "target", repr(str(path)), f"could not be used ({error})", "check the disk and who else has it open"
            )
        ) from error
