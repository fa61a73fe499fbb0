"""A long random walk of a table in a real PostgreSQL: every copy that was switched to equals its source, row by row.

Rows come, change and go, also their keys; columns come, go and change their types; polls break off. A poll that fails
leaves the copy as it was.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import duckdb
import pytest

from support.postgres import Postgres, postgres
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Request

STEPS = 40


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


def act(chance: random.Random, n: int) -> list[str]:
    """One thing that happens to the table."""
    low, high = sorted(chance.randrange(-300, 12_000) for _ in range(2))
    some = chance.randrange(12_000)
    acts = {
        "insert": [
            f"INSERT INTO walk(id, amount, note) SELECT {20_000 + 40 * n} + i, i / 8.0, 'n' || i "
            f"FROM generate_series(1, {chance.randrange(1, 40)}) i"
        ],
        "update": [f"UPDATE walk SET amount = amount + 0.25, note = NULL WHERE id % 97 = {chance.randrange(97)}"],
        "key": [f"UPDATE walk SET id = {10**6 + n} WHERE id = (SELECT min(id) FROM walk WHERE id >= {some})"],
        "delete": [f"DELETE FROM walk WHERE id BETWEEN {some} AND {some + chance.randrange(30)}"],
        "swap": [f"DELETE FROM walk WHERE id = {some}", f"INSERT INTO walk(id, amount) VALUES({2 * 10**6 + n}, 1)"],
        "same": [f"UPDATE walk SET note = note WHERE id < {some}"],
        "many": [f"DELETE FROM walk WHERE id BETWEEN {low} AND {low + min(high - low, 2_000)}"],
        "column": ["ALTER TABLE walk ADD COLUMN IF NOT EXISTS more int DEFAULT 3"],
        "less": ["ALTER TABLE walk DROP COLUMN IF EXISTS more"],
        "type": [f"ALTER TABLE walk ALTER COLUMN amount TYPE numeric({chance.choice(['12,4', '14,4', '20,6'])})"],
        "vacuum": ["VACUUM FREEZE walk"],
    }
    often = {"insert": 6, "update": 6, "delete": 6, "key": 3, "swap": 3, "nothing": 3}
    name = chance.choices([*acts, "nothing"], [often.get(one, 1) for one in (*acts, "nothing")])[0]
    return acts.get(name, [])


def here(target: Path) -> list[tuple[str | None, ...]]:
    """The copy as text; decimals with as many digits as they need."""
    if target.suffix == ".duckdb":
        with duckdb.connect(str(target), read_only=True) as ducks:
            names = [row[0] for row in ducks.execute("DESCRIBE walk").fetchall()]
            return _told(ducks.execute(f"SELECT {', '.join(names)} FROM walk").fetchall(), names)
    db = apsw.Connection(str(target), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        cursor = db.execute("SELECT * FROM walk")
        found = list(cursor)
        names = [row[1] for row in db.execute("PRAGMA table_info(walk)")]
        return _told(found, names)
    finally:
        db.close()


def _told(rows: list[tuple[Any, ...]], names: list[str]) -> list[tuple[str | None, ...]]:
    place = names.index("amount")
    return sorted(
        (
            tuple(None if v is None else str(float(v)) if i == place else str(v) for i, v in enumerate(row))
            for row in rows
        ),
        key=repr,
    )


@pytest.mark.parametrize("name", ["copies.duckdb", "copies.db"])
def test_every_copy_equals_its_source(server: Postgres, tmp_path: Path, name: str) -> None:
    chance, target = random.Random(name), tmp_path / name
    server.run(
        "DROP TABLE IF EXISTS walk",
        "CREATE TABLE walk(id bigint PRIMARY KEY, amount numeric(12,4), note text)",
        "INSERT INTO walk SELECT i - 300, i / 4.0, 'row ' || i FROM generate_series(1, 12000) i",
    )

    async def poll(seconds: float) -> Answer:
        fetcher = SqlFetcher(target, roots=[server.folder])
        try:
            got = await fetcher.fetch(Request(f"{server.address()}#walk", seconds=seconds))
            assert seconds < 1.0 or got.reason == ""
            return got.answer
        finally:
            await fetcher.close()

    failed = 0
    #: what the copy may hold: a poll that broke off may have switched in its last moment, also after it answered
    may: list[list[tuple[str | None, ...]]] = []
    with server.connect() as db:
        for n in range(STEPS):
            for statement in act(chance, n):
                db.execute(statement.encode())
            wanted = db.execute("SELECT * FROM walk")
            there = _told(wanted.fetchall(), [one.name for one in wanted.description or ()])
            broken = n > 0 and chance.random() < 0.2
            if (
                asyncio.run(poll(chance.choice([1e-6, chance.uniform(0.01, 0.3)]) if broken else 300.0))
                is Answer.FAILED
            ):
                failed += 1
                may.append(there)
                assert here(target) in may, f"after step {n}, which broke off"
            else:
                may = [there]
                assert here(target) == there, f"after step {n}"
    assert failed > 0
