"""Tables that change without end in every kind of database, and their copies in every kind of target, for a walk.

What is asked of both sides is a checksum of all that they hold, columns and rows, whatever form a number has.
"""

from __future__ import annotations

import json
import random
import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import duckdb
import psycopg
import pymysql

from support.mariadb import MariaDb
from support.postgres import Postgres

#: rows at the beginning
FIRST = 400
#: databases that are a file: no connection can be cut there
FILES = ("sqlite", "duckdb")


def checksum(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """What is the same for the same columns and rows, on both sides."""
    told = sorted(tuple(_plain(value) for value in row) for row in rows)
    return blake2b(ascii((tuple(names), told)).encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> str:
    # As many digits as a number needs, whatever its column says.
    return f"{Decimal(str(value)).normalize():f}" if isinstance(value, Decimal | float | int) else ascii(value)


def act(chance: random.Random, n: int, kind: str, more: bool) -> list[str]:
    """One transaction on a table that has the column `more` or not."""
    some = chance.randrange(FIRST)
    new = [f"({1000 + 40 * n + i}, {i}.25, 'n{i}')" for i in range(chance.randrange(1, 40))]
    # A SQLite that has more than 15 digits has text.
    numeric = f"numeric({chance.choice(['12,4', '14,4', '15,6' if kind == 'sqlite' else '20,6'])})"
    column = "ALTER TABLE walk ADD COLUMN more int DEFAULT 3"
    retyped = {
        "mariadb": [f"ALTER TABLE walk MODIFY amount {numeric}"],
        "sqlite": [
            f"CREATE TABLE other(id bigint PRIMARY KEY, amount {numeric}, note text{', more int' if more else ''})",
            "INSERT INTO other SELECT * FROM walk",
            "DROP TABLE walk",
            "ALTER TABLE other RENAME TO walk",
        ],
    }.get(kind, [f"ALTER TABLE walk ALTER COLUMN amount TYPE {numeric}"])
    rewritten = {"mariadb": "ALTER TABLE walk ENGINE=InnoDB", "postgresql": "VACUUM FULL walk"}.get(kind, "VACUUM")
    emptied = "DELETE FROM walk" if kind in FILES else "TRUNCATE walk"
    acts = {
        "insert": [f"INSERT INTO walk(id, amount, note) VALUES {', '.join(new)}"],
        "update": [f"UPDATE walk SET amount = amount + 0.25, note = NULL WHERE id % 97 = {chance.randrange(97)}"],
        "key": [f"UPDATE walk SET id = {10**6 + n} WHERE id = {some}"],
        "delete": [f"DELETE FROM walk WHERE id BETWEEN {some} AND {some + chance.randrange(30)}"],
        "swap": [f"DELETE FROM walk WHERE id = {some}", f"INSERT INTO walk(id, amount) VALUES({2 * 10**6 + n}, 1)"],
        "back": [f"DELETE FROM walk WHERE id = {some}", f"INSERT INTO walk(id, amount) VALUES({some}, {n}.5)"],
        "many": [f"DELETE FROM walk WHERE id > {1000 + 40 * (n - 20)} AND id < 1000000"],
        "column": [] if more else [column],
        "less": ["ALTER TABLE walk DROP COLUMN more"] if more else [],
        "type": retyped,
        "rewrite": [rewritten],
        "empty": [emptied, f"INSERT INTO walk(id, amount, note) VALUES {', '.join(new)}"],
    }
    often = {"insert": 8, "update": 6, "delete": 4, "key": 3, "swap": 3, "back": 3}
    return acts[chance.choices([*acts], [often.get(one, 1) for one in acts])[0]]


class Origin:
    """A database with the table `walk`, of one kind; `address` is how it is polled."""

    def __init__(self, kind: str, server: Postgres, maria: MariaDb | None, folder: Path) -> None:
        self.kind, self._server, self._maria = kind, server, maria
        self._file = folder / "origin.db"
        self._db: Any = None
        addresses: dict[str, Callable[[], str]] = {
            "postgresql": lambda: server.address(user="reader"),
            "mariadb": lambda: maria.address() if maria else "",
            "sqlite": lambda: f"sqlite:///{self._file}",
            "duckdb": lambda: f"duckdb:///{self._file}",
        }
        self.address = f"{addresses[kind]()}#walk"
        self.roots = [str(server.folder), str(folder)]

    def make(self) -> str:
        """The table as it is at first: its checksum."""
        rows = ", ".join(f"({i}, {i}.75, 'row {i}')" for i in range(-50, FIRST))
        note = "varchar(40)" if self.kind == "mariadb" else "text"
        made = f"CREATE TABLE walk(id bigint PRIMARY KEY, amount numeric(12,4), note {note})"
        return self.run([["DROP TABLE IF EXISTS walk"], [made], [f"INSERT INTO walk VALUES {rows}"]])[-1]

    def run(self, steps: Sequence[Sequence[str]]) -> list[str]:
        """Execute transactions one after the other: the checksum after each."""
        cursor = self._cursor()
        try:
            return [self._step(cursor, statements) for statements in steps]
        finally:
            if self.kind == "duckdb":
                # Whoever has it open for writing keeps readers out.
                self.close()

    def act(self, chance: random.Random, n: int) -> list[str]:
        """Change the table: the checksums that it had on the way."""
        cursor = self._cursor()
        try:
            cursor.execute("SELECT * FROM walk LIMIT 0" if self.kind != "mariadb" else "SELECT * FROM walk WHERE false")
            more = any(one[0] == "more" for one in cursor.description)
            cursor.fetchall()
            statements = act(chance, n, self.kind, more)
            # These are transactions of their own, in MariaDB each of them.
            alone = ("VACUUM", "ALTER", "TRUNCATE") if self.kind == "mariadb" else ("VACUUM",)
            if not statements:
                return []
            steps = [[one] for one in statements] if statements[0].startswith(alone) else [statements]
            return [self._step(cursor, step) for step in steps]
        finally:
            if self.kind == "duckdb":
                self.close()

    def cut(self) -> None:
        """Cut the connections of whoever copies, at the source and at the target."""
        self._server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('reader', 'writer')")
        if self._maria is not None:
            for (number,) in self._maria.run("SELECT id FROM information_schema.processlist WHERE user = 'reader'"):
                with suppress(pymysql.Error):
                    self._maria.run(f"KILL CONNECTION {number}")

    def close(self) -> None:
        """Give back what is open."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _step(self, cursor: Any, statements: Sequence[str]) -> str:
        alone = statements[0].startswith("VACUUM")
        for statement in statements if alone else ("BEGIN", *statements, "COMMIT"):
            cursor.execute(statement)
        cursor.execute("SELECT * FROM walk" if not statements[0].startswith("DROP") else "SELECT 1")
        return checksum([one[0] for one in cursor.description], cursor.fetchall())

    def _cursor(self) -> Any:
        while self._db is None:
            try:
                self._db = self._connect()
            except duckdb.IOException:
                # A poll has it open.
                time.sleep(0.002)
        return self._db.cursor()

    def _connect(self) -> Any:
        if self.kind == "postgresql":
            # What a statement brings changes with the columns: none is prepared.
            return self._server.connect(prepare_threshold=None)
        if self.kind == "mariadb":
            assert self._maria is not None
            return pymysql.connect(
                host="127.0.0.1", port=self._maria.port, user="owner", database="shop", autocommit=True
            )
        if self.kind == "duckdb":
            return duckdb.connect(str(self._file))
        lite = sqlite3.connect(self._file, timeout=60, isolation_level=None, check_same_thread=False)
        lite.execute("PRAGMA journal_mode = WAL")
        return lite


class Copy:
    """A target, and how its copy is seen from outside."""

    def __init__(self, name: str, server: Postgres, folder: Path) -> None:
        self.name, self._server = name, server
        self.target = f"{server.address('lake', 'writer')}&schema=copies" if name == "postgres" else str(folder / name)

    def sum(self) -> str:
        """The checksum of the copy."""
        if self.name == "postgres":
            with psycopg.connect(self._server.address("lake")) as db:
                found = db.execute("SELECT * FROM copies.walk")
                return checksum([one.name for one in found.description or ()], found.fetchall())
        if self.name.endswith(".duckdb"):
            with duckdb.connect(self.target, read_only=True) as ducks:
                return _told(ducks.execute("SELECT * FROM walk"))
        if self.name.endswith(".parquet"):
            place = Path(self.target) / "walk"
            files = [str(place / one["path"]) for one in json.loads((place / "manifest.json").read_text())["files"]]
            with duckdb.connect() as ducks:
                return _told(ducks.execute(f"SELECT * FROM read_parquet({files})"))
        lite = apsw.Connection(self.target, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            names = [str(row[1]) for row in lite.execute("PRAGMA table_info(walk)")]
            # Long decimals are text here.
            chosen = ", ".join(f"CAST({one} AS TEXT)" if one == "amount" else one for one in names)
            rows = [list(row) for row in lite.execute(f"SELECT {chosen} FROM walk")]
            place_of = names.index("amount")
            for row in rows:
                row[place_of] = None if row[place_of] is None else Decimal(str(row[place_of]))
            return checksum(names, rows)
        finally:
            lite.close()


def _told(asked: Any) -> str:
    return checksum([one[0] for one in asked.description or ()], asked.fetchall())
