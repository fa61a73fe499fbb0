"""Polling a real MariaDB: its types in typed copies, read at one moment."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.mariadb import MISSING, MariaDb, mariadb
from support.sql_copies import account, duck, fetched, sqlite
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

pytestmark = pytest.mark.skipif(bool(MISSING), reason=MISSING)


@pytest.fixture(scope="module")
def server() -> Iterator[MariaDb]:
    with mariadb() as found:
        yield found


def ask(server: MariaDb, target: Path, table: str, etag: str | None = None, **options: Any) -> Fetched:
    request = Request(f"{server.address()}#{table}", etag, options=options, seconds=120.0)
    return fetched(SqlFetcher(target, Gate(["127.0.0.0/8"])), request)


def poll(server: MariaDb, target: Path, table: str, **options: Any) -> dict[str, Any]:
    return account(ask(server, target, table, **options))


#: a type of MariaDB's, a value, its type in SQLite and in DuckDB, and its text in DuckDB
ZOO = [
    ("BOOLEAN", "TRUE", "SMALLINT", "SMALLINT", "1"),
    ("TINYINT UNSIGNED", "255", "INTEGER", "INTEGER", "255"),
    ("INT", "-2147483648", "INTEGER", "INTEGER", "-2147483648"),
    ("INT UNSIGNED", "4294967295", "BIGINT", "BIGINT", "4294967295"),
    ("BIGINT", "9223372036854775807", "BIGINT", "BIGINT", "9223372036854775807"),
    ("BIGINT UNSIGNED", "18446744073709551615", "TEXT", "DECIMAL(20,0)", "18446744073709551615"),
    ("DECIMAL(12,2)", "99.10", "DECIMAL(12,2)", "DECIMAL(12,2)", "99.10"),
    ("DECIMAL(38,10)", f"{'9' * 28}.0123456789", "TEXT", "DECIMAL(38,10)", f"{'9' * 28}.0123456789"),
    ("FLOAT", "0.5", "REAL", "FLOAT", "0.5"),
    ("DOUBLE", "0.1", "DOUBLE", "DOUBLE", "0.1"),
    ("VARCHAR(20)", "'a,\"ä'", "TEXT", "VARCHAR", 'a,"ä'),
    ("ENUM('x','y')", "'y'", "TEXT", "VARCHAR", "y"),
    ("VARBINARY(9)", "x'00ff'", "BLOB", "BLOB", r"\x00\xFF"),
    ("DATE", "'2026-01-31'", "DATE", "DATE", "2026-01-31"),
    ("DATETIME(6)", "'2026-01-31 12:00:00.000001'", "TIMESTAMP", "TIMESTAMP", "2026-01-31 12:00:00.000001"),
    ("TIMESTAMP", "'2026-01-31 12:00:00'", "TIMESTAMPTZ", "TIMESTAMP WITH TIME ZONE", "2026-01-31 06:30:00+00"),
    ("TIME(3)", "'-838:59:58.5'", "INTERVAL", "INTERVAL", "-838:59:58.5"),
    ("YEAR", "2026", "SMALLINT", "SMALLINT", "2026"),
    ("INT", "NULL", "INTEGER", "INTEGER", None),
]


@pytest.fixture(scope="module")
def zoo(server: MariaDb) -> MariaDb:
    columns = ", ".join(f"c{i} {type_} NULL COMMENT 'number {i}'" for i, (type_, *_) in enumerate(ZOO))
    values = ", ".join(value for _, value, *_ in ZOO)
    server.run(f"CREATE TABLE zoo(id INT PRIMARY KEY, {columns}) COMMENT 'all'", f"INSERT INTO zoo VALUES(1, {values})")
    return server


def test_every_type_lands_in_duckdb_as_it_is(zoo: MariaDb, tmp_path: Path) -> None:
    target = tmp_path / "copies.duckdb"
    told = poll(zoo, target, "zoo")
    assert dict(zip([one[0] for one in ZOO], told["types"][1:], strict=True)) == {one[0]: one[3] for one in ZOO}
    assert (told["key"], told["comment"], told["comments"]["c0"]) == (["id"], "all", "number 0")
    (row,) = duck(target, f"SELECT {', '.join(f'c{i}::VARCHAR' for i in range(len(ZOO)))} FROM zoo")
    assert list(zip([one[0] for one in ZOO], row, strict=True)) == [(one[0], one[4]) for one in ZOO]
    # The server itself says that nothing changed, and that something did: a number, bytes, a time.
    again = ask(zoo, target, "zoo", etag="x-" + told["digest"])
    assert (again.answer, again.rows) == (Answer.UNCHANGED, 0)
    zoo.run("CREATE OR REPLACE TABLE once AS SELECT * FROM zoo")
    for i in (6, 11, 15):
        zoo.run(f"UPDATE zoo SET c{i} = NULL")
        assert poll(zoo, target, "zoo")["changed"] == 1
    zoo.run("DELETE FROM zoo", "INSERT INTO zoo SELECT * FROM once")


def test_numbers_are_numbers_in_sqlite(zoo: MariaDb, tmp_path: Path) -> None:
    target = tmp_path / "copies.db"
    told = poll(zoo, target, "zoo")
    assert told["types"][1:] == [one[2] for one in ZOO]
    assert sqlite(target, "SELECT c0, c5, c6, c7, c15 FROM zoo") == [
        (1, "18446744073709551615", 99.1, f"{'9' * 28}.0123456789", "2026-01-31 06:30:00.000000")
    ]
    # Declared with more digits than any value has.
    zoo.run("CREATE OR REPLACE TABLE ids(id BIGINT UNSIGNED PRIMARY KEY, a DECIMAL(38,10))")
    zoo.run("INSERT INTO ids VALUES(9, 99), (123456789012345678, 1234.5)")
    poll(zoo, target, "ids")
    assert sqlite(target, "SELECT max(id), max(a), sum(id > 100), sum(a > 100) FROM ids") == [
        (123456789012345678, 1234.5, 1, 1)
    ]


@pytest.mark.parametrize("target", ["copies.db", "copies.duckdb"])
def test_the_copy_equals_the_source(server: MariaDb, tmp_path: Path, target: str) -> None:
    file, read = tmp_path / target, sqlite if target == "copies.db" else duck
    server.run(
        "CREATE OR REPLACE TABLE orders(id INT PRIMARY KEY, amount DECIMAL(12,2), changed DATETIME(6))",
        "INSERT INTO orders SELECT seq, seq / 4, '2026-01-01' + INTERVAL seq SECOND FROM seq_1_to_12000",
    )
    options = {"changed": "changed", "overlap": 1}
    assert poll(server, file, "orders", **options)["rows"] == 12000
    server.run(
        "DELETE FROM orders WHERE id IN (5, 6000)",
        "UPDATE orders SET amount = 7.77, changed = '2026-02-01' WHERE id = 9",
        "INSERT INTO orders VALUES(20000, 0.01, '2026-02-01 00:00:00.5')",
    )
    told = poll(server, file, "orders", **options)
    assert (told["rows"], told["inserted"], told["changed"], told["deleted"]) == (11999, 1, 1, 2)
    there = [(id, amount) for id, amount in server.run("SELECT id, amount FROM orders ORDER BY id")]
    here = read(file, "SELECT id, amount FROM orders ORDER BY id")
    assert [(id, Decimal(str(amount))) for id, amount in here] == there


@pytest.mark.parametrize(
    ("key", "columns", "value", "target"),
    [
        ("id", "id BIGINT UNSIGNED", "seq", "copies.duckdb"),
        ("id", "id BINARY(16)", "unhex(md5(seq))", "copies.duckdb"),
        ("`y:z`, id", "`y:z` INT, id VARCHAR(12)", "seq % 7, concat('ä', seq)", "copies.db"),
    ],
)
def test_of_a_table_without_a_column_of_changes_only_ranges_of_its_key_are_read(
    server: MariaDb, tmp_path: Path, key: str, columns: str, value: str, target: str
) -> None:
    file, read = tmp_path / target, sqlite if target == "copies.db" else duck
    server.run(
        f"CREATE OR REPLACE TABLE ranged({columns}, n INT, a VARCHAR(300), PRIMARY KEY({key}))",
        f"INSERT INTO ranged SELECT {value}, seq, repeat('x', 300) FROM seq_1_to_10100",
    )
    first = ask(server, file, "ranged")
    server.run(
        "UPDATE ranged SET a = 'other' WHERE n IN (7, 6000)",
        f"INSERT INTO ranged SELECT {value}, seq, 'new' FROM seq_10101_to_10103",
    )
    second = ask(server, file, "ranged", first.etag)
    told = account(second)
    assert (told["rows"], told["inserted"], told["changed"], told["deleted"]) == (10103, 3, 2, 0)
    assert second.received < first.received / 20
    server.run("DELETE FROM ranged WHERE n IN (5, 10102)", "UPDATE ranged SET id = 0 WHERE n = 77")
    third = ask(server, file, "ranged", second.etag)
    told = account(third)
    assert (told["rows"], told["inserted"], told["changed"], told["deleted"]) == (10101, 1, 0, 3)
    assert third.received < first.received / 20
    assert read(file, "SELECT n, a FROM ranged ORDER BY n") == server.run("SELECT n, a FROM ranged ORDER BY n")
    assert ask(server, file, "ranged", third.etag).received == 0


def test_a_look_at_all_tables_takes_one_query(server: MariaDb, tmp_path: Path) -> None:
    server.run("CREATE TABLE IF NOT EXISTS looked_at(id INT PRIMARY KEY)")

    def selects() -> int:
        return int(server.run("SHOW GLOBAL STATUS LIKE 'Com_select'")[0][1])

    before = selects()
    assert ask(server, tmp_path / "copies.db", "*", collection=True).answer is Answer.CHANGED
    assert selects() - before == 1


def test_a_zero_date_is_refused_and_can_be_text(server: MariaDb, tmp_path: Path) -> None:
    server.run("SET sql_mode = ''", "CREATE OR REPLACE TABLE odd(a DATE)", "INSERT INTO odd VALUES('0000-00-00')")
    got = ask(server, tmp_path / "copies.duckdb", "odd")
    assert got.reason.startswith("column a has values that DATE of DuckDB cannot hold: choose another one")
    assert poll(server, tmp_path / "copies.duckdb", "odd", types={"a": "text"})["types"] == ["VARCHAR"]


def test_nothing_can_be_written(server: MariaDb, tmp_path: Path) -> None:
    server.run("CREATE OR REPLACE TABLE safe(a INT)", "INSERT INTO safe VALUES(1)")

    async def scene() -> Fetched:
        fetcher = SqlFetcher(tmp_path / "copies.db", Gate(["127.0.0.0/8"]))
        query = "WITH x AS (SELECT 1) SELECT * FROM safe FOR UPDATE"
        address = server.address("owner")
        try:
            return await fetcher.fetch(Request(address, options={"query": query}, seconds=60.0))
        finally:
            await fetcher.close()

    asyncio.run(scene())
    assert server.run("SELECT a FROM safe") == [(1,)]
