"""From a SQLite file to a PostgreSQL database: everything, compared, before it has its name there.

Rules of this file:
1. The file is only read, as of one instant.
2. Ids, tokens, versions and counters stay what they were; claims that were held end as expired.
3. What was written is read back and compared row by row: floats and beliefs bit for bit, bodies by their SHA-256.
4. The store is filled under another name, some rows at a time, and gets its own when all is compared: who was killed
   goes on where it was, unless the file is another by then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
from psycopg import sql

from unstale.adapters.postgres_moved_tables import MovedTable, Row, rows_of, tables_of
from unstale.adapters.postgres_observations import cover
from unstale.adapters.postgres_schema import EDITING, Connection, lock, through_all
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_schema import connect_reading
from unstale.errors import StoreError, sentence

#: rows that are committed at a time
CHUNK = 50_000


def moved(path: str | Path, dsn: str, *, schema: str = "unstale") -> dict[str, int]:
    """Bring the store in a file to an empty database; how much of what was moved."""
    # What is wrong with the file is said in its own words.
    SqliteReplica(path).close()
    there = connect_reading(Path(path))
    store = PostgresStore(dsn, schema=f"{schema}_moving")
    try:
        there.execute("BEGIN")
        store.fill(lambda db: _begin(db, store.name, schema))
        stamp = _stamp(there)
        if store.fill(lambda db: _stamped(db, stamp)) is False:
            # It was begun from another state of the file.
            store.fill(lambda db: _drop(db, store.schema))
            store.close()
            store = PostgresStore(dsn, schema=f"{schema}_moving")
            store.fill(lambda db: _stamped(db, stamp))
        counts = _filled(store, there)
        store.fill(lambda db: _finish(db, there, store.schema, schema))
        return counts
    finally:
        there.close()
        store.close()


def _filled(store: PostgresStore, there: apsw.Connection) -> dict[str, int]:
    """Fill what is not filled yet, and compare all; how many rows of what there are."""
    newest = there.execute("SELECT max(token), max(polled_at) FROM observations").fetchone() or (None, None)
    store.fill(lambda db: cover(db, newest[0] or 0, newest[1] or 0.0, math.inf))
    counts: dict[str, int] = {}
    for table in store.fill(lambda db: tables_of(db, there)):
        done = store.fill(partial(_count, table=table))
        rows = (table.turned(row) for row in rows_of(there, f"{table.query} LIMIT -1 OFFSET {done}"))
        while some := list(islice(rows, CHUNK)):
            done += store.fill(partial(_copied, table=table, rows=some))
        counts[table.name] = done
        every = (table.turned(row) for row in rows_of(there, table.query))
        try:
            store.fill(partial(_compare, table=table, rows=every, name=store.name))
        except StoreError:
            store.fill(lambda db: _drop(db, store.schema))
            raise
    return {name: counts[name] for name in ("sources", "observations", "copies", "beliefs")}


def _begin(db: Connection, name: str, schema: str) -> None:
    lock(db, EDITING)
    there: Any = db.execute("SELECT to_regclass(%s)", (f"{schema}.sources",)).fetchone()
    taken = sql.SQL("SELECT 1 FROM {} LIMIT 1").format(sql.Identifier(schema, "sources"))
    if there[0] is not None and db.execute(taken).fetchone() is not None:
        raise StoreError(sentence("store", name, "holds sources already", "choose an empty database"))


def _stamp(there: apsw.Connection) -> str:
    """What is another one when anything that is moved is."""
    counted = rows_of(there, "SELECT name, value FROM counters ORDER BY name")
    known = rows_of(there, "SELECT name, value FROM settings ORDER BY name")
    moved_on = rows_of(there, "SELECT max(id), (SELECT sum(due) FROM beliefs) FROM prices")
    return sha256(repr([*counted, *known, *moved_on]).encode()).hexdigest()


def _stamped(db: Connection, stamp: str) -> bool:
    """Whether what was filled so far came from the file as it is; nothing was filled without a stamp."""
    db.execute("CREATE TABLE IF NOT EXISTS moving(stamp text NOT NULL)")
    known: Any = db.execute("SELECT stamp FROM moving").fetchone()
    if known is None:
        db.execute("INSERT INTO moving VALUES (%s)", (stamp,))
        return True
    return bool(known[0] == stamp)


def _finish(db: Connection, there: apsw.Connection, draft: str, schema: str) -> None:
    """All is there: it gets its name."""
    tally = dict(rows_of(there, "SELECT name, value FROM counters"))
    for sequence, last in (("ids", tally.get("added", 0)), ("tokens", tally.get("claimed", 0))):
        if last:
            db.execute("SELECT setval(%s, %s)", (sequence, last))
    # Prices go on counting, too, where the file's ended.
    db.execute("SELECT setval(pg_get_serial_sequence('prices', 'id'), max(id)) FROM prices")
    db.execute("ANALYZE sources, beliefs, schedule")
    db.execute("DROP TABLE moving")
    _drop(db, schema)
    db.execute(sql.SQL("ALTER SCHEMA {} RENAME TO {}").format(sql.Identifier(draft), sql.Identifier(schema)))


def _drop(db: Connection, schema: str) -> None:
    db.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(schema)))


def _count(db: Connection, table: MovedTable) -> int:
    through_all(db)
    row: Any = db.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(table.name))).fetchone()
    return int(row[0])


def _copied(db: Connection, table: MovedTable, rows: Iterable[Row]) -> int:
    names = sql.SQL(", ").join(sql.Identifier(name) for name, _ in table.columns)
    query = sql.SQL("COPY {}({}) FROM STDIN (FORMAT binary)").format(sql.Identifier(table.name), names)
    count = 0
    with db.cursor() as cursor, cursor.copy(query) as copy:
        copy.set_types([kind for _, kind in table.columns])
        for row in rows:
            copy.write_row(row)
            count += 1
    return count


def _compare(db: Connection, table: MovedTable, rows: Iterable[Row], name: str) -> None:
    hashed = [i for i, (column, _) in enumerate(table.columns) if column in dict(table.seen)]
    with db.cursor(f"moved_{table.name}", binary=True) as cursor:
        cursor.itersize = 5000
        cursor.execute(table.reading())
        # Here and there are in the same order; one that is longer ends in a row that has no partner.
        here = iter(cursor)
        for row in rows:
            expected = tuple(sha256(one).digest() if i in hashed else one for i, one in enumerate(row))
            if next(here, None) != expected:
                break
        else:
            if next(here, None) is None:
                return
    raise StoreError(
        sentence("store", name, f"does not hold the {table.name} that were moved, nothing was kept", "report it")
    )
