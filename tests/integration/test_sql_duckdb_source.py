"""Tables of DuckDB files as sources: every type in every target on this machine, changes, and nothing but reading."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest

from support.sql_copies import account, duck, fetched, sqlite
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.ports import Fetched, Request

#: a type, a value as DuckDB writes it, its type in a copy in DuckDB, and the value there as text
ZOO = [
    ("BOOLEAN", "true", "BOOLEAN", "true"),
    ("UTINYINT", "255", "SMALLINT", "255"),
    ("UBIGINT", "18446744073709551615", "DECIMAL(20,0)", "18446744073709551615"),
    ("HUGEINT", "-170141183460469231731687303715884105727", "VARCHAR", "-170141183460469231731687303715884105727"),
    ("DECIMAL(38,10)", f"{'9' * 28}.0123456789", "DECIMAL(38,10)", f"{'9' * 28}.0123456789"),
    ("FLOAT", "'nan'", "FLOAT", "nan"),
    ("DOUBLE", "'-infinity'", "DOUBLE", "-inf"),
    ("VARCHAR", "'a,\"b\"\n\\N'", "VARCHAR", 'a,"b"\n\\N'),
    ("BLOB", "'\\x00\\xFF'::BLOB", "BLOB", "\\x00\\xFF"),
    ("DATE", "'infinity'", "DATE", "infinity"),
    ("DATE", "'0044-03-15 (BC)'", "DATE", "0044-03-15 (BC)"),
    ("TIME", "'12:34:56.789'", "TIME", "12:34:56.789"),
    ("TIMETZ", "'12:34:56+05:30'", "TIME WITH TIME ZONE", "12:34:56+05:30"),
    ("TIMESTAMP", "'2026-01-31 23:59:59.999999'", "TIMESTAMP", "2026-01-31 23:59:59.999999"),
    ("TIMESTAMP_NS", "'2026-01-31 00:00:00.123456789'", "VARCHAR", "2026-01-31 00:00:00.123456789"),
    ("INTERVAL", "INTERVAL '14 months -3 days 4 hours'", "INTERVAL", "1 year 2 months -3 days 04:00:00"),
    ("UUID", "'9d3c0a52-0000-4000-8000-000000000001'", "UUID", "9d3c0a52-0000-4000-8000-000000000001"),
    ("JSON", "'{\"a\": [1, null]}'", "JSON", '{"a": [1, null]}'),
    ("INTEGER[]", "[1, NULL, 3]", "INTEGER[]", "[1, NULL, 3]"),
    ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': 'x'}", "JSON", '{"a":1,"b":"x"}'),
    ("ENUM('x', 'y')", "'y'", "VARCHAR", "y"),
    ("HUGEINT", "7", "DECIMAL(38,0)", "7"),
]


def run(file: Path, *statements: str) -> None:
    with duckdb.connect(str(file)) as db:
        for statement in statements:
            db.execute(statement)


def poll(folder: Path, target: str, table: str = "", **options: Any) -> Fetched:
    fetcher = SqlFetcher(folder / target, roots=[folder])
    address = f"duckdb:///{folder / 'lake.duckdb'}{table and '#'}{table}"
    return fetched(fetcher, Request(address, options=options, seconds=120.0))


def test_every_type_is_what_it_was(tmp_path: Path) -> None:
    columns = ", ".join(f"c{i} {type_}" for i, (type_, *_) in enumerate(ZOO))
    values = ", ".join(value for _, value, *_ in ZOO)
    made = [f"CREATE TABLE zoo(id INTEGER PRIMARY KEY, {columns})", f"INSERT INTO zoo VALUES(1, {values})"]
    run(tmp_path / "lake.duckdb", *made, "COMMENT ON COLUMN zoo.c0 IS 'whether'", "COMMENT ON TABLE zoo IS 'all'")
    told = account(poll(tmp_path, "copies.duckdb", "zoo"))
    assert told["types"][1:] == [one[2] for one in ZOO]
    assert (told["key"], told["comment"], told["comments"]) == (["id"], "all", {"c0": "whether"})
    # What has more digits than a decimal, nanoseconds and an enum.
    assert [*told["notes"]] == ["c14", "c20", "c3"]
    (row,) = duck(tmp_path / "copies.duckdb", f"SELECT {', '.join(f'c{i}::VARCHAR' for i in range(len(ZOO)))} FROM zoo")
    assert list(row) == [one[3] for one in ZOO]
    assert account(poll(tmp_path, "copies.db", "zoo"))["rows"] == 1
    assert sqlite(tmp_path / "copies.db", "SELECT c2, c4, c13 FROM zoo") == [(ZOO[2][3], ZOO[4][3], ZOO[13][3])]


@pytest.mark.parametrize("target", ["copies.duckdb", "copies.db"])
def test_a_copy_follows_its_file(tmp_path: Path, target: str) -> None:
    file, read = tmp_path / "lake.duckdb", sqlite if target == "copies.db" else duck
    run(file, "CREATE TABLE t(id BIGINT PRIMARY KEY, moved TIMESTAMP)")
    run(file, "INSERT INTO t SELECT i, TIMESTAMP '2026-01-01' + to_hours(i::INT) FROM range(3000) r(i)")
    options = {"changed": "moved", "overlap": 60.0}
    assert account(poll(tmp_path, target, "main.t", **options))["rows"] == 3000
    run(file, "DELETE FROM t WHERE id = 7", "INSERT INTO t VALUES(9000, '2026-12-01')")
    got = poll(tmp_path, target, "main.t", **options)
    told = account(got)
    assert (told["inserted"], told["deleted"], told["rows"]) == (1, 1, 3000)
    assert read(tmp_path / target, "SELECT sum(id) FROM main_t") == [(sum(range(3000)) - 7 + 9000,)]


def test_a_query_reads_the_file_and_nothing_else(tmp_path: Path) -> None:
    run(tmp_path / "lake.duckdb", "CREATE TABLE t AS SELECT 1 AS a")
    (tmp_path / "secret.csv").write_text("x\n1\n")
    assert account(poll(tmp_path, "copies.db", query="SELECT a + 1 AS b FROM t"))["columns"] == ["b"]
    got = poll(tmp_path, "copies.db", query=f"SELECT * FROM read_csv('{tmp_path / 'secret.csv'}')")
    assert "DuckDB says: Permission Error" in got.reason
    assert "is not there" in poll(tmp_path, "copies.db", "absent").reason


def test_a_file_that_another_process_writes_is_not_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "lake.duckdb"
    run(file, "CREATE TABLE t AS SELECT 1 AS a")
    held = f"import duckdb; db = duckdb.connect({str(file)!r}); print('open', flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", held], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        other.stdout.readline()
        assert poll(tmp_path, "copies.db", "t").reason == (
            "lake.duckdb: another process writes to it, or it is no DuckDB file"
        )
        other.stdin.write(b"\n")
        other.stdin.flush()
        other.wait()
    assert poll(tmp_path, "copies.db", "t").reason == ""
