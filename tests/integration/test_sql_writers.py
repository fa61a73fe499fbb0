"""While a table is read no writer waits, and nobody can rewrite it under its reader: real PostgreSQL and MariaDB."""

from __future__ import annotations

import psycopg
import pymysql
import pytest

from support.mariadb import MISSING, mariadb
from support.postgres import postgres
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_places import ask
from unstale.adapters.sql_source import Source

MADE = (
    "CREATE TABLE t(id int PRIMARY KEY, a int)",
    "INSERT INTO t VALUES (1, 1), (2, 2), (3, 3), (4, 4)",
)
WRITES = (
    "INSERT INTO t VALUES(5, 5)",
    "UPDATE t SET a = 9 WHERE id = 1",
    "DELETE FROM t WHERE id = 2",
    "CREATE INDEX beside ON t(a)",
)
REWRITES = ("TRUNCATE TABLE t", "ALTER TABLE t ADD COLUMN b int DEFAULT 7", "DROP TABLE t")


def test_writers_of_postgresql_do_not_wait_and_rewriters_do() -> None:
    with postgres() as server:
        server.run(*MADE)
        source = Source(ask(f"{server.address()}#t", {"batch": 1}), lambda: True)
        source.open(Gate(), [server.folder], [], 60.0)
        try:
            # Held before anything is read: whatever rewrites it now would leave nothing to read.
            with server.connect() as writer:
                writer.execute("SET lock_timeout = '1s'")
                for statement in REWRITES:
                    with pytest.raises(psycopg.errors.LockNotAvailable):
                        writer.execute(statement.encode())
                rows = source.rows()
                first = next(rows)
                for statement in WRITES:
                    writer.execute(statement.encode())
            assert sorted(map(tuple, [first, *rows])) == [(i, i) for i in range(1, 5)]
        finally:
            source.close()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_writers_of_mariadb_do_not_wait_and_rewriters_do() -> None:
    with mariadb() as server:
        server.run(*MADE)
        source = Source(ask(f"{server.address()}#t", {"batch": 1}), lambda: True)
        source.open(Gate(["127.0.0.0/8"]), [], [], 60.0)
        short = ("SET lock_wait_timeout = 1", "SET innodb_lock_wait_timeout = 1")
        try:
            for statement in REWRITES:
                with pytest.raises(pymysql.err.OperationalError, match="Lock wait timeout"):
                    server.run(*short, statement)
            rows = source.rows()
            first = next(rows)
            # An index is a change of the table's shape there, for which MariaDB waits.
            server.run(*short, *WRITES[:-1])
            assert sorted(map(tuple, [first, *rows])) == [(i, i) for i in range(1, 5)]
        finally:
            source.close()
