"""Copies of tables in a schema of a real PostgreSQL: every type as it was, keys, comments, one switch."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
from click.testing import CliRunner

from support.mariadb import MISSING, MariaDb, mariadb
from support.postgres import Postgres, postgres
from support.sql_copies import account, fetched
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.target_places import TargetPlace, target_place
from unstale.cli.main import unstale
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE DATABASE lake")
        yield found


@pytest.fixture
def lake(server: Postgres) -> Iterator[psycopg.Connection[Any]]:
    """The target's database, as others see it."""
    with psycopg.connect(server.address("lake"), autocommit=True) as db:
        yield db
        db.execute("DROP SCHEMA IF EXISTS copies CASCADE")


def place(server: Postgres) -> TargetPlace:
    return target_place(f"{server.address('lake')}&schema=copies")


def ask(
    server: Postgres, address: str, etag: str | None = None, roots: tuple[Path, ...] = (), **options: Any
) -> Fetched:
    fetcher = SqlFetcher(place(server), Gate(["127.0.0.0/8"]), roots=[server.folder, *roots])
    return fetched(fetcher, Request(address, etag, options=options, seconds=120.0))


def poll(server: Postgres, table: str, **options: Any) -> dict[str, Any]:
    return account(ask(server, f"{server.address()}#{table}", **options))


#: a value as PostgreSQL writes it, and its type in the copy
ZOO = [
    ("true", "boolean"),
    ("(-32768)::int2", "smallint"),
    ("2147483647", "integer"),
    ("9223372036854775807", "bigint"),
    ("99.00::numeric(12,2)", "numeric(12,2)"),
    (f"{'9' * 60}.{'1' * 40}::numeric(100,40)", "numeric(100,40)"),
    ("1.50000::numeric", "numeric"),
    ("1234::numeric(3,-2)", "numeric(3,-2)"),
    ("'NaN'::numeric", "numeric"),
    ("'-Infinity'::numeric", "numeric"),
    ("0.1::float4", "real"),
    ("0.30000000000000004::float8", "double precision"),
    ("'NaN'::float8", "double precision"),
    ("NULL::int4", "integer"),
    ("''::text", "text"),
    (r"'\N'::text", "text"),
    ("E'a,\"b\"\\r\\n\\tä\\\\'::varchar(20)", "character varying(20)"),
    ("'x'::char(3)", "character(3)"),
    (r"'\x00ff'::bytea", "bytea"),
    ("'0044-03-15 BC'::date", "date"),
    ("'infinity'::date", "date"),
    ("'24:00:00'::time", "time without time zone"),
    ("'12:00:00.000001+02:30'::timetz", "time with time zone"),
    ("'294276-12-31 23:59:59.999999'::timestamp", "timestamp without time zone"),
    ("'2026-01-31 12:00:00.123+02'::timestamptz(3)", "timestamp(3) with time zone"),
    ("'-infinity'::timestamptz", "timestamp with time zone"),
    ("'-1 year -2 mons +3 days -04:05:06.789'::interval", "interval"),
    ("'00000000-0000-0000-0000-00000000000a'::uuid", "uuid"),
    ("""'{"b": 1,  "a": [1e400], "b": 2}'::json""", "json"),
    ("""'{"b":1.10}'::jsonb""", "jsonb"),
    ("ARRAY[1, NULL, 3]", "integer[]"),
    ("ARRAY[[1.50], [2]]::numeric(12,2)[]", "numeric(12,2)[]"),
    ("'[0:1]={7,8}'::int8[]", "bigint[]"),
    ("ARRAY['a,\"b\"\\', NULL, 'NULL', '']", "text[]"),
    ("'10.0.0.0/8'::cidr", "cidr"),
    ("'[1,5)'::int4range", "int4range"),
    ("B'101'::bit(3)", "bit(3)"),
    ("'fat & cat'::tsquery", "tsquery"),
    ("'happy'::mood", "text"),
    ("ROW(1, 'a')::pair", "text"),
]


def test_every_type_of_postgresql_lands_as_it_is(server: Postgres, lake: psycopg.Connection[Any]) -> None:
    columns = ", ".join(f"{written} AS c{i}" for i, (written, _) in enumerate(ZOO))
    server.run("CREATE TYPE mood AS ENUM('happy')", "CREATE TYPE pair AS (a int, b text)")
    server.run(f"CREATE TABLE zoo AS SELECT 1 AS id, {columns}", "ALTER TABLE zoo ADD PRIMARY KEY(id)")
    server.run("COMMENT ON COLUMN zoo.c4 IS 'what it''s worth'", "COMMENT ON TABLE zoo IS 'all'")
    told = poll(server, "zoo")
    asked = (
        "SELECT format_type(atttypid, atttypmod) FROM pg_attribute WHERE attrelid = '{}'::regclass AND attnum > 0 "
        "AND NOT attisdropped ORDER BY attnum"
    )
    types = [kind for (kind,) in lake.execute(asked.format("copies.zoo"))]
    assert dict(zip([w for w, _ in ZOO], types[1:], strict=True)) == dict(ZOO)
    # What is a type of the source's own is said to be text, and nothing else is.
    assert {told["columns"].index(name) - 1 for name in told["notes"]} == {len(ZOO) - 2, len(ZOO) - 1}
    names = ", ".join(f"c{i}::text" for i in range(len(ZOO)))
    with server.connect() as db:
        (there,) = db.execute(f"SELECT {names} FROM zoo").fetchall()
    (here,) = lake.execute(f"SELECT {names} FROM copies.zoo").fetchall()
    assert dict(zip([w for w, _ in ZOO], here, strict=True)) == dict(zip([w for w, _ in ZOO], there, strict=True))
    assert (told["key"], told["comments"]) == (["id"], {"c4": "what it's worth"})
    assert lake.execute("SELECT obj_description('copies.zoo'::regclass)").fetchall() == [("all",)]
    assert lake.execute("SELECT col_description('copies.zoo'::regclass, 6)").fetchone() == ("what it's worth",)
    key = "SELECT conkey FROM pg_constraint WHERE conrelid = 'copies.zoo'::regclass AND contype = 'p'"
    assert lake.execute(key).fetchone() == ([1],)
    # Everything is read and compared again, and nothing is written.
    before = lake.execute("SELECT xmin::text FROM copies.zoo").fetchone()
    again = ask(server, f"{server.address()}#zoo", etag="x-" + told["digest"], sweep=1e-9)
    assert (again.answer, again.reason) == (Answer.UNCHANGED, "")
    assert lake.execute("SELECT xmin::text FROM copies.zoo").fetchone() == before


#: a type of MariaDB's, a value, its type and its text in the copy
MARIA = [
    ("BOOLEAN", "TRUE", "smallint", "1"),
    ("BIGINT UNSIGNED", "18446744073709551615", "numeric(20,0)", "18446744073709551615"),
    ("DECIMAL(38,10)", f"{'9' * 28}.0123456789", "numeric(38,10)", f"{'9' * 28}.0123456789"),
    ("FLOAT", "0.5", "real", "0.5"),
    ("DOUBLE", "0.1", "double precision", "0.1"),
    ("VARCHAR(20)", "'a,\"ä\\\\'", "text", 'a,"ä\\'),
    ("ENUM('x','y')", "'y'", "text", "y"),
    ("VARBINARY(9)", "x'00ff'", "bytea", r"\x00ff"),
    ("DATE", "'2026-01-31'", "date", "2026-01-31"),
    ("DATETIME(6)", "'2026-01-31 12:00:00.000001'", "timestamp without time zone", "2026-01-31 12:00:00.000001"),
    ("TIMESTAMP", "'2026-01-31 12:00:00'", "timestamp with time zone", "2026-01-31 06:30:00+00"),
    ("TIME(3)", "'-838:59:58.5'", "interval", "-838:59:58.5"),
    ("YEAR", "2026", "smallint", "2026"),
    ("INT", "NULL", "integer", None),
]


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_every_type_of_mariadb_lands_as_it_is(server: Postgres, lake: psycopg.Connection[Any]) -> None:
    with mariadb() as maria:
        columns = ", ".join(f"c{i} {type_} NULL COMMENT 'number {i}'" for i, (type_, *_) in enumerate(MARIA))
        maria.run(f"CREATE TABLE zoo(id INT PRIMARY KEY, {columns})")
        maria.run(f"INSERT INTO zoo VALUES(1, {', '.join(value for _, value, *_ in MARIA)})")
        told = account(ask(server, f"{maria.address()}#zoo"))
        _nul_is_refused(server, maria)
    assert list(told["notes"].values()) == ["kept as text, for its type (ENUM) is its source's own"]
    assert told["comments"]["c13"] == "number 13"
    lake.execute("SET TimeZone = 'UTC'")
    chosen = ", ".join(f"pg_typeof(c{i})::text || coalesce(' ' || c{i}::text, '')" for i in range(len(MARIA)))
    (row,) = lake.execute(f"SELECT {chosen} FROM copies.zoo").fetchall()
    wanted = [kind.partition("(")[0] + ("" if text is None else f" {text}") for _, _, kind, text in MARIA]
    assert list(row) == wanted
    assert told["types"][2:4] == ["numeric(20,0)", "numeric(38,10)"]


def _nul_is_refused(server: Postgres, maria: MariaDb) -> None:
    maria.run("CREATE TABLE nul(id INT PRIMARY KEY, b INT, a VARCHAR(9))", "INSERT INTO nul VALUES(1, 1, 'x\\0y')")
    got = ask(server, f"{maria.address()}#nul")
    assert got.reason.startswith("column a with a value of str is not what its type text says")


def test_what_sqlite_holds_lands_or_is_refused(server: Postgres, lake: psycopg.Connection[Any], tmp_path: Path) -> None:
    db = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY, a DECIMAL(12,2), b BLOB, c REAL, d, e DATE, f TEXT)")
    db.execute(
        "INSERT INTO t VALUES(1, 99.1, x'00ff', 0.1, 'x', '2026-01-31', 'ä'), (2, NULL, x'', 1e300, 7, NULL, '')"
    )
    address = f"sqlite:///{tmp_path / 'shop.db'}#t"
    told = account(ask(server, address, roots=(tmp_path,)))
    assert told["types"] == ["bigint", "numeric(12,2)", "bytea", "double precision", "text", "date", "text"]
    rows = lake.execute("SELECT id, a, b, c, d, e::text, f FROM copies.t ORDER BY id").fetchall()
    assert rows == [
        (1, Decimal("99.10"), b"\x00\xff", 0.1, "x", "2026-01-31", "ä"),
        (2, None, b"", 1e300, "7", None, ""),
    ]
    odd = {
        ("f", "1.239", "decimal(12,2)"): "column f has values that numeric(12,2) of PostgreSQL would change",
        ("f", "now", "timestamptz"): "column f has values that timestamptz of PostgreSQL would change",
        ("f", "2026-01-31 12:00+02", "timestamp"): "column f has values that timestamp of PostgreSQL would change",
        ("f", "2026-01-31 12:00:00.1234567", "timestamp"): "column f has values that timestamp of PostgreSQL would",
        ("f", "2026-02-30", "date"): "column f has values that date of PostgreSQL cannot hold",
        ("f", "1.5", "bigint"): "column f ",
    }
    db.execute("UPDATE t SET f = NULL WHERE id = 2")
    for (column, value, type_), reason in odd.items():
        db.execute(f"UPDATE t SET {column} = ? WHERE id = 1", (value,))
        got = ask(server, address, roots=(tmp_path,), types={column: type_})
        assert got.answer is Answer.FAILED
        assert got.reason.startswith(reason), got.reason
        assert value not in got.reason
        assert lake.execute("SELECT f FROM copies.t WHERE id = 1").fetchone() == ("ä",)
    db.close()


def test_rows_come_change_and_go_and_who_reads_keeps_what_he_began_with(
    server: Postgres, lake: psycopg.Connection[Any]
) -> None:
    server.run(
        "CREATE TABLE orders(id bigint PRIMARY KEY, a text, b numeric(12,2))",
        "INSERT INTO orders SELECT i, 'row ' || i, i / 4.0 FROM generate_series(1, 20000) i",
    )
    first = poll(server, "orders")
    assert (first["rows"], first["inserted"]) == (20000, 20000)
    # What others make of the copy stays.
    lake.execute("CREATE INDEX mine ON copies.orders(a)")
    lake.execute("CREATE VIEW copies.dear AS SELECT id FROM copies.orders WHERE b > 4000")
    with psycopg.connect(server.address("lake")) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        asked = "SELECT count(*), sum(b), min(id) FROM copies.orders"
        began = reader.execute(asked).fetchone()
        server.run(
            "DELETE FROM orders WHERE id IN (1, 2, 19999)",
            "UPDATE orders SET b = b + 1 WHERE id % 1000 = 0",
            "INSERT INTO orders VALUES(-7, NULL, 0.07)",
        )
        second = poll(server, "orders")
        assert [second[one] for one in ("rows", "inserted", "changed", "deleted")] == [19998, 1, 20, 3]
        assert second["probe"] == "xmin"
        assert reader.execute(asked).fetchone() == began
        # A new column is added under who reads not, and everything is one switch again.
    server.run("ALTER TABLE orders ADD COLUMN c int DEFAULT 3")
    third = poll(server, "orders")
    assert (third["rows"], third["changed"], third["types"][-1]) == (19998, 19998, "int4")
    assert lake.execute("SELECT count(*) FROM copies.dear").fetchone() == (4000,)
    with server.connect() as db:
        there = db.execute("SELECT id, a, b, c FROM orders ORDER BY id").fetchall()
    assert lake.execute("SELECT id, a, b, c FROM copies.orders ORDER BY id").fetchall() == there
    # Back to what it was: the same content has the same digest.
    server.run("UPDATE orders SET b = b WHERE id = 5", "DELETE FROM orders WHERE id = 6")
    poll(server, "orders")
    server.run("INSERT INTO orders VALUES(6, 'row 6', 1.5, 3)")
    assert poll(server, "orders", etag="x")["digest"] == third["digest"]


def test_another_shape_waits_for_readers_and_spares_what_depends_on_it(
    server: Postgres, lake: psycopg.Connection[Any]
) -> None:
    server.run("CREATE TABLE shape(id int PRIMARY KEY, a text)", "INSERT INTO shape VALUES(1, '7')")
    poll(server, "shape")
    server.run("ALTER TABLE shape ALTER a TYPE int USING a::int")
    follow = {"schema": "follow"}
    with psycopg.connect(server.address("lake")) as reader:
        assert reader.execute("SELECT a FROM copies.shape").fetchall() == [("7",)]
        got = ask(server, f"{server.address()}#shape", **follow)
        assert "has a table that is being read, whose columns changed" in got.reason
        assert reader.execute("SELECT a FROM copies.shape").fetchall() == [("7",)]
    lake.execute("CREATE VIEW copies.looks AS SELECT a FROM copies.shape")
    assert "has views or others that depend on" in ask(server, f"{server.address()}#shape", **follow).reason
    assert lake.execute("SELECT a FROM copies.looks").fetchall() == [("7",)]
    lake.execute("DROP VIEW copies.looks")
    assert poll(server, "shape", **follow)["types"] == ["int4", "int4"]
    assert lake.execute("SELECT a FROM copies.shape").fetchall() == [(7,)]
    # Another one's table of that name is left alone, and a copy that was taken away comes back.
    lake.execute("DROP TABLE copies.shape")
    lake.execute("CREATE TABLE copies.other(mine int)")
    assert poll(server, "shape", etag="x", **follow)["rows"] == 1
    server.run("CREATE TABLE other(id int PRIMARY KEY)")
    assert poll(server, "other")["table"].startswith("other_")
    assert lake.execute("SELECT count(*) FROM copies.other").fetchone() == (0,)


def test_rows_without_a_key_and_with_a_key_of_the_owners(server: Postgres, lake: psycopg.Connection[Any]) -> None:
    server.run("CREATE TABLE loose(a text, b int)", "INSERT INTO loose VALUES('x', 1), ('x', 1), ('y', NULL)")
    assert poll(server, "loose")["rows"] == 3
    server.run("DELETE FROM loose WHERE ctid = (SELECT min(ctid) FROM loose)", "INSERT INTO loose VALUES(NULL, 2)")
    told = poll(server, "loose")
    assert [told[one] for one in ("rows", "inserted", "changed", "deleted")] == [3, 1, 0, 1]
    found = lake.execute("SELECT a, b FROM copies.loose ORDER BY a, b").fetchall()
    assert found == [("x", 1), ("y", None), (None, 2)]
    server.run("UPDATE loose SET b = 9 WHERE a IS NULL")
    told = poll(server, "loose", key="a", schema="follow")
    server.run("UPDATE loose SET b = 10 WHERE a IS NULL")
    told = poll(server, "loose", key="a")
    assert [told[one] for one in ("rows", "inserted", "changed", "deleted")] == [3, 0, 1, 0]
    server.run("INSERT INTO loose VALUES('x', 5)")
    got = ask(server, f"{server.address()}#loose", key="a")
    assert got.reason == "key is the same in several rows: name columns that are unique together"


def test_the_settings_name_the_schema_and_commands_go_by_it(
    server: Postgres, lake: psycopg.Connection[Any], tmp_path: Path
) -> None:
    server.run("DROP TABLE IF EXISTS shown", "CREATE TABLE shown(id int PRIMARY KEY, a numeric(9,2))")
    lines = ['store = "a.db"', "[sql]", f'target = "{server.address("lake")}&schema=copies"']
    config = tmp_path / "unstale.toml"
    config.write_text("\n".join([*lines, "[files]", f'roots = ["{server.folder}"]', ""]))

    def run(*words: str) -> str:
        done = CliRunner().invoke(unstale, [words[0], "--config", str(config), *words[1:]])
        assert done.exit_code == 0, done.output
        return done.output

    run("add", f"{server.address()}#shown")
    run("poll", "shown")
    server.run("ALTER TABLE shown DROP COLUMN a")
    assert "the copy is held" in CliRunner().invoke(unstale, ["poll", "--config", str(config), "shown"]).output
    assert "held" in run("tables")
    run("tables", "accept", "shown")
    run("poll", "shown")
    assert lake.execute("SELECT * FROM copies.shown").fetchall() == []
    written = run("tables", "dbt")
    assert 'schema: "copies"' in written
    assert 'target: "postgresql:///lake?schema=copies"' in written


def test_a_password_in_the_settings_is_refused() -> None:
    with pytest.raises(InputError, match=r"target \(not shown\) holds a password: write \$NAME"):
        target_place("postgresql://me:secret@host/lake")
    shown = target_place("postgresql://me:$SECRET@host:5433/lake?schema=a&sslmode=require")
    assert str(shown) == "postgresql://host:5433/lake?schema=a"
    with pytest.raises(InputError, match="schema 'A b' must be letters, digits and underscores"):
        target_place("postgresql://host/lake?schema=A b")
