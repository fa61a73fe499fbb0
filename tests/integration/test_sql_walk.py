"""A long random walk of tables in real servers: every copy that was switched to equals its source at one moment.

While polls go on, one transaction after the other changes the table: rows come, change and go, also their keys; columns
come, go and change their types; everything is removed. Polls are killed, and their connections are cut at the source
and at the target. Both sides are compared by a checksum of all they hold: after a poll that answered, the copy must be
what the source was at one moment between its beginning and its end; after one that broke off it may be the old one too.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import duckdb
import psycopg
import pymysql
import pytest

from support.mariadb import MISSING, MariaDb, mariadb
from support.poll_forker import Forker
from support.postgres import Postgres, postgres

#: more of them in a campaign of its own, `make walk`
STEPS = int(os.environ.get("UNSTALE_WALK", "12"))
SEED = os.environ.get("UNSTALE_WALK_SEED", "1")
FIRST = 400


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE DATABASE lake", "CREATE ROLE reader LOGIN", "GRANT pg_read_all_data TO reader")
        found.run("CREATE ROLE writer LOGIN", "GRANT CREATE ON DATABASE lake TO writer")
        yield found


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    found = Forker()
    yield found
    found.close()


def checksum(names: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """What is the same for the same columns and rows, on both sides."""
    told = sorted(tuple(_plain(value) for value in row) for row in rows)
    return blake2b(ascii((tuple(names), told)).encode(), digest_size=8).hexdigest()


def _plain(value: Any) -> str:
    # As many digits as a number needs, whatever its column says.
    return f"{Decimal(str(value)).normalize():f}" if isinstance(value, Decimal | float | int) else ascii(value)


def act(chance: random.Random, n: int, maria: bool) -> list[str]:
    """One transaction."""
    some = chance.randrange(FIRST)
    more = [f"({1000 + 40 * n + i}, {i}.25, 'n{i}')" for i in range(chance.randrange(1, 40))]
    numeric = chance.choice(["12,4", "14,4", "20,6"])
    acts = {
        "insert": [f"INSERT INTO walk(id, amount, note) VALUES {', '.join(more)}"],
        "update": [f"UPDATE walk SET amount = amount + 0.25, note = NULL WHERE id % 97 = {chance.randrange(97)}"],
        "key": [f"UPDATE walk SET id = {10**6 + n} WHERE id = {some}"],
        "delete": [f"DELETE FROM walk WHERE id BETWEEN {some} AND {some + chance.randrange(30)}"],
        "swap": [f"DELETE FROM walk WHERE id = {some}", f"INSERT INTO walk(id, amount) VALUES({2 * 10**6 + n}, 1)"],
        "back": [f"DELETE FROM walk WHERE id = {some}", f"INSERT INTO walk(id, amount) VALUES({some}, {n}.5)"],
        "many": [f"DELETE FROM walk WHERE id > {1000 + 40 * (n - 20)} AND id < 1000000"],
        "column": ["ALTER TABLE walk ADD COLUMN IF NOT EXISTS more int DEFAULT 3"],
        "less": ["ALTER TABLE walk DROP COLUMN IF EXISTS more"],
        "type": [f"ALTER TABLE walk {'MODIFY amount' if maria else 'ALTER COLUMN amount TYPE'} numeric({numeric})"],
        "rewrite": ["ALTER TABLE walk ENGINE=InnoDB" if maria else "VACUUM FULL walk"],
        "empty": ["TRUNCATE walk", f"INSERT INTO walk(id, amount, note) VALUES {', '.join(more)}"],
    }
    often = {"insert": 8, "update": 6, "delete": 4, "key": 3, "swap": 3, "back": 3}
    return acts[chance.choices([*acts], [often.get(one, 1) for one in acts])[0]]


class Walk(threading.Thread):
    """Changes a table without end. `states` are the checksums that it had, whole whenever `step` is free."""

    def __init__(self, connect: Callable[[], Any], chance: random.Random, maria: bool) -> None:
        super().__init__(daemon=True)
        self._db, self._chance, self._maria = connect(), chance, maria
        self.states: list[str] = []
        self.step = threading.Lock()
        self.acts, self._end = 0, threading.Event()
        self.failed: BaseException | None = None
        self._told(self._db.cursor())

    def run(self) -> None:
        try:
            while not self._end.wait(0.03):
                with self.step:
                    self._act(self._db.cursor())
        except BaseException as error:
            self.failed = error

    def close(self) -> None:
        self._end.set()
        self.join()
        self._db.close()
        assert self.failed is None, self.failed

    def _act(self, cursor: Any) -> None:
        self.acts += 1
        statements = act(self._chance, self.acts, self._maria)
        # These are transactions of their own, in MariaDB each of them.
        alone = ("VACUUM", "ALTER", "TRUNCATE") if self._maria else ("VACUUM",)
        if statements[0].startswith(alone):
            for statement in statements:
                cursor.execute(statement)
                self._told(cursor)
            return
        for statement in ("BEGIN", *statements, "COMMIT"):
            cursor.execute(statement)
        self._told(cursor)

    def _told(self, cursor: Any) -> None:
        cursor.execute("SELECT * FROM walk")
        self.states.append(checksum([one[0] for one in cursor.description], cursor.fetchall()))


class Copy:
    """A target, and how its copy and its connections are seen from outside."""

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
                asked = ducks.execute("SELECT * FROM walk")
                return checksum([one[0] for one in asked.description or ()], asked.fetchall())
        lite = apsw.Connection(self.target, flags=apsw.SQLITE_OPEN_READONLY)
        try:
            names = [str(row[1]) for row in lite.execute("PRAGMA table_info(walk)")]
            # Long decimals are text here.
            chosen = ", ".join(f"CAST({one} AS TEXT)" if one == "amount" else one for one in names)
            rows = [list(row) for row in lite.execute(f"SELECT {chosen} FROM walk")]
            place = names.index("amount")
            for row in rows:
                row[place] = None if row[place] is None else Decimal(str(row[place]))
            return checksum(names, rows)
        finally:
            lite.close()


def cut(server: Postgres, maria: MariaDb | None) -> None:
    """Cut the connections of whoever copies, at the source and at the target."""
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename IN ('reader', 'writer')")
    if maria is not None:
        for (number,) in maria.run("SELECT id FROM information_schema.processlist WHERE user = 'reader'"):
            with suppress(pymysql.Error):
                maria.run(f"KILL CONNECTION {number}")


@contextmanager
def cutting(server: Postgres, maria: MariaDb | None, wanted: bool) -> Iterator[None]:
    """Cut whatever connection there is again and again meanwhile, if that is wanted."""
    end = threading.Event()

    def again() -> None:
        while wanted and not end.wait(0.01):
            cut(server, maria)

    thread = threading.Thread(target=again)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


PAIRS = [("postgresql", "copies.duckdb"), ("postgresql", "postgres"), ("mariadb", "copies.db"), ("mariadb", "postgres")]


@pytest.mark.parametrize(("origin", "name"), PAIRS)
def test_every_copy_equals_its_source_at_one_moment(
    server: Postgres, forker: Forker, tmp_path: Path, origin: str, name: str
) -> None:
    if origin == "postgresql":
        with psycopg.connect(server.address("lake"), autocommit=True) as db:
            db.execute("DROP SCHEMA IF EXISTS copies CASCADE")
        told = walk(server, None, forker, tmp_path, name)
    elif MISSING:
        pytest.skip(MISSING)
    else:
        with psycopg.connect(server.address("lake"), autocommit=True) as db:
            db.execute("DROP SCHEMA IF EXISTS copies CASCADE")
        with mariadb() as maria:
            told = walk(server, maria, forker, tmp_path, name)
    sys.stdout.write(f"{origin} to {name}: {told}\n")
    assert told["answered"] > STEPS / 4
    assert told["killed"] > 0
    assert told["failed"] > 0


def walk(server: Postgres, maria: MariaDb | None, forker: Forker, folder: Path, name: str) -> dict[str, int]:
    """Polls one after the other while the table changes: how many ended how."""
    chance, copy = random.Random(f"{SEED} {name} {maria is None}"), Copy(name, server, folder)
    rows = ", ".join(f"({i}, {i}.75, 'row {i}')" for i in range(-50, FIRST))
    made = [
        "DROP TABLE IF EXISTS walk",
        f"CREATE TABLE walk(id bigint PRIMARY KEY, amount numeric(12,4), note {'varchar(40)' if maria else 'text'})",
        f"INSERT INTO walk VALUES {rows}",
    ]
    (maria or server).run(*made)
    # What a statement brings changes with the columns: none is prepared.
    connect = (
        (lambda: server.connect(prepare_threshold=None))
        if maria is None
        else lambda: pymysql.connect(host="127.0.0.1", port=maria.port, user="owner", database="shop", autocommit=True)
    )
    address = f"{server.address(user='reader') if maria is None else maria.address()}#walk"
    asked = {"target": copy.target, "roots": [str(server.folder)], "address": address, "options": {"schema": "follow"}}
    # Parts of what was killed are kept, and some of them are right still.
    asked["parts"] = str(folder / "parts")
    counts = {"answered": 0, "unchanged": 0, "failed": 0, "killed": 0, "cut": 0}
    changes = Walk(connect, random.Random(f"{SEED} acts"), maria is not None)
    forker.begin(**asked)
    assert forker.ended().startswith("changed")
    changes.start()
    before, since, usual = "", 0, 0.2
    try:
        for n in range(STEPS):
            # One kill comes before the poll can have ended, however fast it is, and one poll is cut off until it fails;
            # the others come when they may.
            sure = n == 1
            fate = "kill" if sure else chance.choices(["none", "kill", "cut"], [2, 1, 1])[0]
            fate = "cut off" if n > 1 and not counts["failed"] else fate
            with changes.step:
                begun = len(changes.states) - 1
            since = min(since, begun) if since else begun
            clock = time.monotonic()
            number = forker.begin(**asked)
            if fate in ("kill", "cut"):
                time.sleep(0.0 if sure else chance.uniform(0.0, usual))
            if fate == "kill":
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)
            counts["cut"] += fate.startswith("cut")
            with cutting(server, maria, fate == "cut off"):
                if fate == "cut":
                    cut(server, maria)
                ended, _, reason = forker.ended().partition(" ")
            with changes.step:
                ends = len(changes.states)
            now = copy.sum()
            if ended in ("changed", "unchanged"):
                counts["answered"] += 1
                counts["unchanged"] += ended == "unchanged"
                usual = 0.8 * usual + 0.2 * (time.monotonic() - clock)
                assert now in changes.states[begun:ends], f"after step {n}: it equals no moment of the poll"
                since = 0
            else:
                counts[ended] += 1
                told = f"after step {n}, which {ended} ({reason})"
                assert now == before or now in changes.states[since:ends], told
            before = now
    finally:
        changes.close()
    return {**counts, "transactions": changes.acts, "steps": STEPS}
