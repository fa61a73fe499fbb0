"""From a PostgreSQL database back to a SQLite file: everything, compared, before the file has its name.

Rules of this file:
1. The database is only read, as of one instant; no worker may be alive.
2. Ids, tokens, versions and beliefs stay what they were; claims that were held end as expired. Tokens of claims that
   a server lost before anybody heard of them count as claimed and expired.
3. What was written is read back and compared row by row, bit for bit.
4. The file is filled under another name, some rows at a time: who was killed goes on where it was, unless the
   database holds something else by then.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from hashlib import sha256
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any

import apsw

from unstale.adapters.postgres_replica import PostgresReplica
from unstale.adapters.postgres_schema import Connection, through_all
from unstale.adapters.sqlite_schema import connect
from unstale.adapters.store_shared import unpacked
from unstale.errors import StoreError, require, sentence
from unstale.frozen import dataclass

Row = tuple[Any, ...]

#: rows that are committed at a time
CHUNK = 20_000


@dataclass(frozen=True, slots=True)
class _Kept:
    """A table of the file: how it is read there, and what is written and read back here."""

    name: str
    #: there, in an order that is the same each time
    query: str
    insert: str
    #: here, in the same order
    seen: str
    #: whether two rows that differ are the same all the same
    alike: Callable[[Row, Row], bool] = lambda mine, theirs: False


def moved_back(dsn: str, path: str | Path, *, schema: str = "unstale") -> dict[str, int]:
    """Bring a store from its database to a new file; how much of what was moved."""
    target = Path(path)
    require(not target.exists(), "file", repr(str(target)), "is there already", "choose another name")
    draft = target.with_name(f".{target.name}.moving")
    there = PostgresReplica(dsn, schema=schema)
    try:
        if there.alive():
            raise StoreError(sentence("store", there.name, "has workers that are alive", "end them first"))
        counts = there.at_once(lambda db: _filled(db, draft, there.name))
    finally:
        there.close()
    draft.rename(target)
    return counts


def _filled(db: Connection, draft: Path, name: str) -> dict[str, int]:
    through_all(db)
    db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
    stamp = _stamp(db)
    here = connect(draft)
    if (here.execute("SELECT value FROM settings WHERE name = 'moving'").get or stamp) != stamp:
        # It was begun from another state of the database.
        here.close()
        for ending in ("", "-wal", "-shm"):
            Path(f"{draft}{ending}").unlink(missing_ok=True)
        here = connect(draft)
    try:
        here.execute("INSERT OR REPLACE INTO settings VALUES ('moving', ?)", (stamp,))
        counts = {table.name: _continued(db, here, table) for table in _TABLES}
        with here:
            here.execute("DELETE FROM settings WHERE name = 'moving'")
            here.execute("UPDATE epochs SET uses = (SELECT count(*) FROM observations o WHERE o.epoch = epochs.id)")
        for table in _TABLES:
            _compare(db, here, table, name)
        here.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        here.close()
    return {table: counts[table] for table in ("sources", "observations", "copies", "beliefs")}


def _stamp(db: Connection) -> bytes:
    """What is another one when anything that is moved is."""
    parts = [
        db.execute("SELECT name, sum(value)::bigint FROM counters GROUP BY name ORDER BY name").fetchall(),
        db.execute("SELECT name, value FROM settings ORDER BY name").fetchall(),
        db.execute("SELECT max(id), (SELECT sum(due) FROM schedule) FROM prices").fetchall(),
    ]
    return sha256(repr(parts).encode()).digest()


def _continued(db: Connection, here: apsw.Connection, table: _Kept) -> int:
    """Write the rows that are not there yet; how many there are then."""
    done = int(here.execute(f"SELECT count(*) FROM ({table.seen})").get or 0)
    rows = _rows(db, table, done)
    while some := list(islice(rows, CHUNK)):
        with here:
            for statement in table.insert.split(";"):
                # Of contents and copies each takes its own of the row.
                here.executemany(statement, [_asked(statement, row) for row in some])
        done += len(some)
    return done


def _asked(statement: str, row: Row) -> Row:
    """The values of a row that a statement names by their numbers, from ?1 on."""
    return row[: max(map(int, re.findall(r"\?(\d+)", statement)))]


def _rows(db: Connection, table: _Kept, after: int = 0) -> Iterator[Row]:
    with db.cursor(f"back_{table.name}", binary=True) as cursor:
        cursor.itersize = 5000
        cursor.execute(f"{table.query} OFFSET {after}".encode())
        yield from cursor


def _compare(db: Connection, here: apsw.Connection, table: _Kept, name: str) -> None:
    for mine, theirs in zip_longest(here.execute(table.seen), _rows(db, table)):
        if mine != theirs and (mine is None or theirs is None or not table.alike(mine, theirs)):
            raise StoreError(
                sentence("store", name, f"has {table.name} that did not arrive as they are", "report it; all is there")
            )


def _same(name: str, columns: str, order: str, query: str = "", insert: str = "") -> _Kept:
    """A table whose columns are the same on both sides."""
    marks = ", ".join(f"?{i + 1}" for i in range(columns.count(",") + 1))
    return _Kept(
        name,
        query or f"SELECT {columns} FROM {name} ORDER BY {order}",
        insert or f"INSERT INTO {name}({columns}) VALUES ({marks})",
        f"SELECT {columns} FROM {name} ORDER BY {order}",
    )


def _same_bytes(mine: Row, theirs: Row) -> bool:
    """Whether copies differ only in how the bytes are packed: here one frame serves all copies of the same bytes."""
    return mine[:2] + mine[3:] == theirs[:2] + theirs[3:] and unpacked(*mine[:3]) is not None


_TEXT = 'name COLLATE "C"'
_HELD = "(SELECT count(*) FROM claims)"


def _beyond(sequence: str, counter: str) -> str:
    """How many numbers a sequence has given out that nothing was counted for: their transactions were lost."""
    counted = f"coalesce((SELECT sum(value) FROM counters WHERE name = '{counter}'), 0)"
    return f"(SELECT CASE WHEN is_called THEN greatest(last_value - {counted}, 0) ELSE 0 END FROM {sequence})"


_TABLES = (
    _same("hosts", "id, name", "id"),
    _same(
        "sources",
        "id, address, kind, weight, cost, host, shortest, longest, options, paused, added_at, learned",
        "id",
        "SELECT id, address, kind, weight, cost, host, shortest, longest, options, paused::int, added_at, learned "
        "FROM sources ORDER BY id",
    ),
    _same(
        "beliefs",
        "source, due, last, found, failures, latest, version, belief",
        "source",
        "SELECT source, due, last, found, failures, latest, version, belief FROM beliefs JOIN schedule USING (source) "
        "ORDER BY source",
    ),
    _same("checkpoints", "source, latest, last, found, belief", "source"),
    _same(
        "observations",
        "token, source, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, told",
        "token",
    ),
    _same(
        "entries",
        "source, number, name, digest, title, link, time, first_at, last_at, first_version, last_version, edits, "
        "edited_at",
        "source, number",
    ),
    _same("edits", "number, at, who, what", "number"),
    _same("members", "collection, source, address, time, tag, told", "collection, source"),
    _Kept(
        "copies",
        "SELECT digest, size, body, source, version, taken_at, media_type, etag, last_modified, fingerprint, address, "
        "via FROM copies ORDER BY source, version",
        "INSERT INTO contents(digest, size, uses, body) VALUES (?1, ?2, 0, ?3) ON CONFLICT DO NOTHING;"
        "INSERT INTO copies(content, source, version, taken_at, media_type, etag, last_modified, fingerprint, address, "
        "via) VALUES ((SELECT id FROM contents WHERE digest = ?1), ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        "SELECT t.digest, t.size, t.body, c.source, c.version, c.taken_at, c.media_type, c.etag, c.last_modified, "
        "c.fingerprint, c.address, c.via FROM copies c JOIN contents t ON t.id = c.content "
        "ORDER BY c.source, c.version",
        _same_bytes,
    ),
    _Kept(
        "epochs",
        "SELECT id, at, value FROM epochs ORDER BY id",
        "INSERT INTO epochs(id, at, uses, value) VALUES (?1, ?2, 0, ?3)",
        "SELECT id, at, value FROM epochs ORDER BY id",
    ),
    _Kept(
        "settings",
        f"SELECT name, value FROM settings ORDER BY {_TEXT}",
        "INSERT INTO settings(name, value) VALUES (?1, ?2)",
        "SELECT name, value FROM settings WHERE name <> 'moving' ORDER BY name",
    ),
    _same("prices", "id, at, price, budget, fresh, even, polls, changed, failed, spent", "id"),
    _Kept(
        "counters",
        # Tokens go on after the last one that was given out, and every one of them is accounted for.
        "SELECT name, sum(value)::bigint FROM (SELECT name, value FROM counters UNION ALL "
        f"SELECT 'claimed', {_beyond('tokens', 'claimed')} UNION ALL "
        f"SELECT 'expired', {_HELD} + {_beyond('tokens', 'claimed')} UNION ALL "
        f"SELECT 'added', {_beyond('ids', 'added')}) every WHERE value > 0 GROUP BY name ORDER BY {_TEXT}",
        "INSERT INTO counters(name, value) VALUES (?1, ?2)",
        "SELECT name, value FROM counters ORDER BY name",
    ),
    _Kept(
        "listeners",
        f"SELECT name, told FROM listeners ORDER BY {_TEXT}",
        "INSERT INTO listeners(name, told) VALUES (?1, ?2)",
        "SELECT name, told FROM listeners ORDER BY name",
    ),
    _same("events", "number, source, address, version, at, digest", "number"),
)
