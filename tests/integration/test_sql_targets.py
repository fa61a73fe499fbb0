"""Types of a real PostgreSQL in typed copies: nothing is bent, and what cannot be held is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import apsw
import pytest

from support.postgres import Postgres, postgres
from support.sql_copies import account, duck, fetched, sqlite
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.target_places import TargetPlace, target_place
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture(autouse=True)
def empty(server: Postgres) -> None:
    server.run("DROP SCHEMA public CASCADE", "CREATE SCHEMA public")


def ask(server: Postgres, target: TargetPlace, table: str, etag: str | None = None, **options: Any) -> Fetched:
    request = Request(f"{server.address()}#{table}", etag, options=options, seconds=60.0)
    return fetched(SqlFetcher(target, roots=[server.folder]), request)


def poll(server: Postgres, target: Path, table: str, **options: Any) -> dict[str, Any]:
    return account(ask(server, target, table, **options))


AMOUNTS = (
    "CREATE TABLE orders(id int PRIMARY KEY, amount numeric(12,2), free numeric, long numeric(30,10))",
    "INSERT INTO orders VALUES(1, 99, 0.10, 12345678901234567890.0123456789), "
    "(2, 1234567890.12, 123456789012.345, -1), (3, 0.07, -7, 0.0000000001), (4, NULL, NULL, NULL)",
)


def test_numbers_are_numbers_in_sqlite(server: Postgres, tmp_path: Path) -> None:
    server.run(*AMOUNTS)
    told = poll(server, tmp_path / "copies.db", "orders")
    assert told["types"] == ["INTEGER", "DECIMAL(12,2)", "DECIMAL", "TEXT"]
    assert list(told["notes"]) == ["long"]
    assert "kept as text" in told["notes"]["long"]
    ((most, beyond, first),) = sqlite(
        tmp_path / "copies.db",
        "SELECT max(amount), (SELECT count(*) FROM orders WHERE amount > 98), "
        "(SELECT group_concat(id) FROM (SELECT id FROM orders WHERE amount IS NOT NULL ORDER BY amount)) FROM orders",
    )
    assert (most, beyond, first) == (1234567890.12, 2, "3,1,2")
    # Fifteen digits come back exactly, and text has them all.
    rows = sqlite(tmp_path / "copies.db", "SELECT id, amount, free, long FROM orders ORDER BY id")
    assert [None if a is None else Decimal(repr(a)) for _, a, _, _ in rows] == [
        *map(Decimal, ("99", "1234567890.12", "0.07")),
        None,
    ]
    assert [None if f is None else Decimal(repr(f)) for _, _, f, _ in rows] == [
        *map(Decimal, ("0.10", "123456789012.345", "-7")),
        None,
    ]
    assert [long for *_, long in rows] == ["12345678901234567890.0123456789", "-1.0000000000", "0.0000000001", None]


def test_a_decimal_that_outgrows_sqlite_becomes_text_as_a_whole(server: Postgres, tmp_path: Path) -> None:
    server.run(*AMOUNTS)
    first = ask(server, tmp_path / "copies.db", "orders")
    server.run("INSERT INTO orders VALUES(5, 1, 1234567890.0123456789, 1)")
    second = poll(server, tmp_path / "copies.db", "orders", etag=first.etag)
    assert second["types"][2] == "TEXT"
    assert set(second["notes"]) == {"free", "long"}
    free = sqlite(tmp_path / "copies.db", "SELECT free FROM orders ORDER BY id")
    assert free == [("0.10",), ("123456789012.345",), ("-7",), (None,), ("1234567890.0123456789",)]
    # Short ones alone do not turn it back.
    server.run("INSERT INTO orders VALUES(6, 1, 1.5, 1)")
    third = poll(server, tmp_path / "copies.db", "orders", etag="other")
    assert (third["inserted"], third["changed"], third["types"][2]) == (1, 0, "TEXT")


def test_what_is_no_number_is_said(server: Postgres, tmp_path: Path) -> None:
    server.run(
        "CREATE TABLE odd(id int PRIMARY KEY, a numeric(12,2), b float8, c float8)",
        "INSERT INTO odd VALUES(1, 'NaN', 'NaN', 'Infinity'), (2, 1, 1, 1)",
    )
    told = poll(server, tmp_path / "copies.db", "odd")
    assert set(told["notes"]) == {"a", "b"}
    assert sqlite(tmp_path / "copies.db", "SELECT a, b, c FROM odd ORDER BY id") == [
        ("NaN", "NaN", float("inf")),
        (1, 1.0, 1.0),
    ]


def test_owners_choose_types(server: Postgres, tmp_path: Path) -> None:
    server.run(*AMOUNTS)
    told = poll(server, tmp_path / "copies.db", "orders", types={"free": "text", "long": "decimal(15,2)"})
    # One who calls a long number short is not believed.
    assert told["types"][2:] == ["TEXT", "TEXT"]
    assert sqlite(tmp_path / "copies.db", "SELECT free, long FROM orders WHERE id = 1") == [
        ("0.10", "12345678901234567890.0123456789")
    ]
    got = ask(server, tmp_path / "copies.db", "orders", types={"lnog": "text"})
    assert got.reason.startswith("types 'lnog' names no column: choose from id, amount, free, long")


def test_a_copy_of_the_first_version_is_read_on_and_typed_when_all_is_read(server: Postgres, tmp_path: Path) -> None:
    server.run(*AMOUNTS)
    target = tmp_path / "copies.db"
    ask(server, target, "orders")
    # As 0.1 left it: no column of types in its record, no types in its table, decimals as text.
    db = apsw.Connection(str(target))
    ((name,),) = list(db.execute("SELECT name FROM unstale_tables"))
    db.execute("ALTER TABLE unstale_tables DROP COLUMN types")
    db.execute("DROP VIEW orders")
    db.execute(f"ALTER TABLE {name} RENAME TO typed")
    db.execute(f"CREATE TABLE {name}(unstale_key BLOB PRIMARY KEY, unstale_hash BLOB, c1, c2, c3, c4)")
    db.execute(f"INSERT INTO {name} SELECT unstale_key, unstale_hash, c1, printf('%.2f', c2), c3, c4 FROM typed")
    db.execute("DROP TABLE typed")
    db.execute(f"CREATE VIEW orders AS SELECT c1 AS id, c2 AS amount, c3 AS free, c4 AS long FROM {name}")
    db.close()
    server.run("INSERT INTO orders VALUES(5, 7.50, 1, 1)")
    told = poll(server, target, "orders")
    assert (told["inserted"], told["deleted"], told.get("types")) == (1, 0, None)
    assert ("7.50",) in sqlite(target, "SELECT amount FROM orders")
    # Everything is read again, and numbers are numbers from then on.
    server.run("INSERT INTO orders VALUES(6, 8.50, 1, 1)")
    told = poll(server, target, "orders", sweep=1e-9)
    assert told["types"] == ["INTEGER", "DECIMAL(12,2)", "DECIMAL", "TEXT"]
    assert sqlite(target, "SELECT amount FROM orders WHERE id > 4 ORDER BY id") == [(7.5,), (8.5,)]


#: a value as PostgreSQL writes it, its type in DuckDB, and its text there
ZOO = [
    ("true", "BOOLEAN", "true"),
    ("(-32768)::int2", "SMALLINT", "-32768"),
    ("2147483647::int4", "INTEGER", "2147483647"),
    ("9223372036854775807::int8", "BIGINT", "9223372036854775807"),
    ("4294967295::oid", "BIGINT", "4294967295"),
    ("99.00::numeric(12,2)", "DECIMAL(12,2)", "99.00"),
    (f"{'9' * 38}::numeric(38,0)", "DECIMAL(38,0)", "9" * 38),
    (
        "-123456789012345678901234567890.12345678::numeric(38,8)",
        "DECIMAL(38,8)",
        "-123456789012345678901234567890.12345678",
    ),
    ("0.000123::numeric", "DECIMAL(38,6)", "0.000123"),
    (f"{'9' * 39}::numeric(39,0)", "VARCHAR", "9" * 39),
    (f"{'9' * 30}.123456789::numeric", "VARCHAR", f"{'9' * 30}.123456789"),
    ("0.1::float4", "FLOAT", "0.1"),
    ("0.1::float8", "DOUBLE", "0.1"),
    ("'NaN'::float8", "DOUBLE", "nan"),
    ("'-Infinity'::float8", "DOUBLE", "-inf"),
    ("NULL::int4", "INTEGER", None),
    ("''::text", "VARCHAR", ""),
    (r"'\N'::text", "VARCHAR", r"\N"),
    ("E'a,\"b\"\\r\\n\\tä'::varchar(20)", "VARCHAR", 'a,"b"\r\n\tä'),
    (r"'\x00ff'::bytea", "BLOB", r"\x00\xFF"),
    (r"'\x'::bytea", "BLOB", ""),
    ("'2026-01-31'::date", "DATE", "2026-01-31"),
    ("'20000-01-01'::date", "DATE", "20000-01-01"),
    ("'infinity'::date", "DATE", "infinity"),
    ("'0044-03-15 BC'::date", "DATE", "0044-03-15 (BC)"),
    ("'0044-03-15 12:00:00+00 BC'::timestamptz", "TIMESTAMP WITH TIME ZONE", "0044-03-15 (BC) 12:00:00+00"),
    ("'12:34:56.789012'::time", "TIME", "12:34:56.789012"),
    ("'24:00:00'::time", "TIME", "24:00:00"),
    ("'12:00:00+02'::timetz", "TIME WITH TIME ZONE", "12:00:00+02"),
    ("'2026-01-31 12:00:00.000001'::timestamp", "TIMESTAMP", "2026-01-31 12:00:00.000001"),
    ("'2026-01-31 12:00:00.5+02'::timestamptz", "TIMESTAMP WITH TIME ZONE", "2026-01-31 10:00:00.5+00"),
    ("'-infinity'::timestamptz", "TIMESTAMP WITH TIME ZONE", "-infinity"),
    ("'-1 year -2 mons +3 days -04:05:06.789'::interval", "INTERVAL", "-1 year -2 months 3 days -04:05:06.789"),
    ("'00000000-0000-0000-0000-00000000000a'::uuid", "UUID", "00000000-0000-0000-0000-00000000000a"),
    ("""'{"b": 1, "a": [1e400]}'::json""", "JSON", '{"b": 1, "a": [1e400]}'),
    ("""'{"b":1.10}'::jsonb""", "JSON", '{"b": 1.10}'),
    ("ARRAY[1, NULL, 3]", "INTEGER[]", "[1, NULL, 3]"),
    ("ARRAY[1.50, 2]::numeric(12,2)[]", "DECIMAL(12,2)[]", "[1.50, 2.00]"),
    ("ARRAY['a,b', NULL]", "VARCHAR[]", "['a,b', NULL]"),
    ("'{}'::int8[]", "BIGINT[]", "[]"),
    ("'happy'::mood", "VARCHAR", "happy"),
    ("'10.0.0.0/8'::cidr", "VARCHAR", "10.0.0.0/8"),
    ("'[1,5)'::int4range", "VARCHAR", "[1,5)"),
]


def test_every_type_lands_in_duckdb_as_it_is(server: Postgres, tmp_path: Path) -> None:
    columns = ", ".join(f"{written} AS c{i}" for i, (written, *_) in enumerate(ZOO))
    server.run("CREATE TYPE mood AS ENUM('happy')", f"CREATE TABLE zoo AS SELECT {columns}", "CREATE TABLE one(a text)")
    server.run("INSERT INTO one VALUES(NULL), (''), ('x')")
    target = tmp_path / "copies.duckdb"
    told = poll(server, target, "zoo")
    assert told["types"] == [kind for _, kind, _ in ZOO]
    # Too many digits, and types that DuckDB does not have.
    said = {i for i, (w, k, _) in enumerate(ZOO) if k == "VARCHAR" and not w.endswith(("text", "varchar(20)"))}
    assert {int(name[1:]) for name in told["notes"]} == said
    assert told["notes"]["c41"] == "kept as text, for its type (cidr) is its source's own"
    assert [row[1] for row in duck(target, "DESCRIBE zoo")] == [kind for _, kind, _ in ZOO]
    chosen = ", ".join(f"c{i}::VARCHAR" for i in range(len(ZOO)))
    (row,) = duck(target, f"SELECT {chosen} FROM zoo")
    assert {w: v for (w, *_), v in zip(ZOO, row, strict=True)} == {w: v for w, _, v in ZOO}
    assert ask(server, target, "zoo", etag="x-" + told["digest"], sweep=1e-9).answer is Answer.UNCHANGED
    poll(server, target, "one")
    assert sorted(duck(target, "SELECT a FROM one"), key=repr) == [("",), ("x",), (None,)]


def test_decimals_are_exact_in_duckdb(server: Postgres, tmp_path: Path) -> None:
    server.run(*AMOUNTS, "COMMENT ON COLUMN orders.amount IS 'what it''s worth'", "COMMENT ON TABLE orders IS 'all'")
    target = tmp_path / "copies.duckdb"
    told = poll(server, target, "orders")
    assert told["types"] == ["INTEGER", "DECIMAL(12,2)", "DECIMAL(38,3)", "DECIMAL(30,10)"]
    assert (told["comments"], told["key"]) == ({"amount": "what it's worth"}, ["id"])
    assert duck(target, "SELECT max(amount), count(*) FILTER (amount > 98), sum(long) FROM orders") == [
        (Decimal("1234567890.12"), 2, Decimal("12345678901234567889.0123456790"))
    ]
    assert duck(target, "SELECT comment FROM duckdb_columns() WHERE column_name = 'amount'") == [("what it's worth",)]
    assert duck(target, "SELECT comment FROM duckdb_tables() WHERE table_name = 'orders'") == [("all; key: id",)]
    # One that needs more digits widens the column, and the rows before it stay exact.
    server.run("INSERT INTO orders VALUES(5, 1, 0.12345, 1)")
    assert poll(server, target, "orders")["types"][2] == "DECIMAL(38,5)"
    assert duck(target, "SELECT free FROM orders ORDER BY id")[4] == (Decimal("0.12345"),)


def test_links_are_followed_and_who_may_read_a_file_still_may(server: Postgres, tmp_path: Path) -> None:
    server.run(*AMOUNTS)
    real, link = tmp_path / "real.duckdb", tmp_path / "link.duckdb"
    poll(server, real, "orders")
    real.chmod(0o640)
    link.symlink_to(real)
    server.run("INSERT INTO orders VALUES(5, 1, 1, 1)")
    poll(server, link, "orders")
    assert link.is_symlink()
    assert real.stat().st_mode & 0o777 == 0o640
    assert duck(real, "SELECT count(*) FROM orders") == [(5,)]


@pytest.mark.parametrize(
    ("column", "types", "reason"),
    [
        ("'NaN'::numeric(12,2)", {}, "column a has values that DECIMAL(12,2) of DuckDB cannot hold"),
        ("ARRAY[[1],[2]]", {}, "column a has values that INTEGER[] of DuckDB cannot hold"),
        ("'294276-12-31'::timestamp", {}, "column a has values that TIMESTAMP of DuckDB cannot hold"),
        ("'2026-01-31x'::text", {"a": "date"}, "column a has values that DATE of DuckDB cannot hold"),
        ("1.239::numeric", {"a": "decimal(12,2)"}, "column a has values that DECIMAL(12,2) of DuckDB rounds"),
        ("1.5::numeric", {"a": "bigint"}, "column a has values that BIGINT of DuckDB rounds"),
        ("'x'::text", {"a": "integer"}, "column a has values that INTEGER of DuckDB cannot hold"),
    ],
)
def test_what_duckdb_cannot_hold_is_refused(
    server: Postgres, tmp_path: Path, column: str, types: dict[str, str], reason: str
) -> None:
    server.run(f"CREATE TABLE odd AS SELECT {column} AS a")
    target = tmp_path / "copies.duckdb"
    got = ask(server, target, "odd", types=types)
    assert got.answer is Answer.FAILED
    assert got.reason == f'{reason}: choose another one with the option types, like types={{"a": "text"}}'
    assert not target.exists()
    assert poll(server, target, "odd", types={"a": "text"})["types"] == ["VARCHAR"]
    assert not list(tmp_path.glob("*.csv"))


@pytest.mark.parametrize("target", ["copies.db", "copies.duckdb"])
def test_only_the_ranges_of_keys_in_which_rows_are_gone_are_read(server: Postgres, tmp_path: Path, target: str) -> None:
    server.run(
        "CREATE TABLE many(id bigint PRIMARY KEY, a text)",
        "INSERT INTO many SELECT i * 7 - 60000, 'row ' || i FROM generate_series(1, 20000) i",
    )
    file = tmp_path / target
    read = sqlite if target == "copies.db" else duck
    first = ask(server, file, "many")
    server.run("DELETE FROM many WHERE id IN (-59993, 4, 11, 80000)", "INSERT INTO many VALUES(-1, 'new')")
    server.run("UPDATE many SET a = 'other' WHERE id = 18")
    second = ask(server, file, "many", etag=first.etag)
    assert second.body is not None
    told = json.loads(second.body)
    assert (told["rows"], told["inserted"], told["changed"], told["deleted"]) == (19997, 1, 1, 4)
    # All keys would be 160,000 bytes; of each range three numbers come.
    assert second.received < 24 * 4096 + 4000
    with server.connect() as db:
        there = db.execute("SELECT id, a FROM many ORDER BY id").fetchall()
    assert read(file, "SELECT id, a FROM many ORDER BY id") == there
    server.run("DELETE FROM many WHERE id % 2 = 0")
    assert poll(server, file, "many")["rows"] == len([id for id, _ in there if id % 2])


@pytest.mark.parametrize(("table", "target"), [("many", "a schema"), ("seen", "copies.duckdb")])
def test_so_it_is_with_a_key_of_any_type(server: Postgres, tmp_path: Path, table: str, target: str) -> None:
    """A table by the versions of its rows, a view by the sums of its ranges."""
    server.run(
        "CREATE TABLE many(id uuid, n int, a text)",
        "INSERT INTO many SELECT md5(i::text)::uuid, i, repeat('x', 300) FROM generate_series(1, 10100) i",
    )
    server.run("ALTER TABLE many ADD PRIMARY KEY (id)" if table == "many" else "UPDATE many SET id = NULL WHERE n = 9")
    server.run("CREATE VIEW seen AS SELECT * FROM many")
    options: dict[str, Any] = {} if table == "many" else {"key": "id"}
    place = tmp_path / target if table == "seen" else target_place(f"{server.address()}&schema=copies")
    first = ask(server, place, table, **options)
    server.run("DELETE FROM many WHERE n IN (5, 6000)", "INSERT INTO many VALUES(md5('new')::uuid, 0, 'new')")
    server.run("UPDATE many SET a = 'other' WHERE n = 18")
    second = ask(server, place, table, first.etag, **options)
    told = account(second)
    assert (told["rows"], told["inserted"], told["changed"], told["deleted"]) == (10099, 1, 1, 2)
    assert second.received < first.received / 20
    asked = "SELECT CAST(id AS VARCHAR), n, a FROM {} ORDER BY n"
    with server.connect() as db:
        there = db.execute(asked.format("many")).fetchall()
        here = [] if isinstance(place, Path) else db.execute(asked.format("copies.many")).fetchall()
    assert (duck(place, asked.format("seen")) if isinstance(place, Path) else here) == there


@pytest.mark.parametrize("target", ["copies.db", "copies.duckdb"])
def test_a_key_that_two_rows_come_to_share_hides_none_of_them(server: Postgres, tmp_path: Path, target: str) -> None:
    server.run("DROP TABLE IF EXISTS keyed", "CREATE TABLE keyed(a text, b int)")
    server.run("INSERT INTO keyed VALUES('x', 1), ('y', 2), ('z', 3)")
    poll(server, tmp_path / target, "keyed", key="a")
    # As many rows as before, and no key that is not here already.
    server.run("DELETE FROM keyed WHERE a = 'y'", "INSERT INTO keyed VALUES('x', 4)")
    got = ask(server, tmp_path / target, "keyed", key="a")
    assert got.reason == "key is the same in several rows: name columns that are unique together"
