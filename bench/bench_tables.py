"""Copies of tables: PostgreSQL to DuckDB and Parquet against the bare COPY to a file and its loading, and what a change
costs."""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import duckdb
import psycopg

from bench_postgres import server
from harness import Table
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.ports import Fetched, Request

MADE = """
CREATE TABLE orders AS SELECT i AS id, ((i * 7919) % 10000000 / 100.0)::numeric(12,2) AS amount,
    'customer ' || i % 100000 AS customer, timestamptz '2026-01-01' + i * interval '1 second' AS ordered_at,
    i % 3 = 0 AS paid FROM generate_series(1::bigint, {rows}) AS i
"""
TYPES = "{'id': 'BIGINT', 'amount': 'DECIMAL(12,2)', 'customer': 'VARCHAR', 'at': 'TIMESTAMPTZ', 'paid': 'BOOLEAN'}"


def bare(dsn: str, folder: Path, ending: str) -> None:
    """COPY to a file, and the file loaded: what nobody can do without."""
    spool, target = folder / "bare.csv", folder / f"bare{ending}"
    target.unlink(missing_ok=True)
    with psycopg.connect(dsn) as db, spool.open("wb") as file:
        db.pgconn.exec_(b"COPY (SELECT * FROM orders) TO STDOUT (FORMAT csv)")
        while True:
            length, row = db.pgconn.get_copy_data(0)
            if length < 0:
                break
            file.write(row)
        db.pgconn.get_result()
        db.pgconn.get_result()
    came = f"read_csv('{spool}', header=false, columns={TYPES})"
    with duckdb.connect(str(target) if ending == ".duckdb" else ":memory:") as here:
        if ending == ".duckdb":
            here.execute(f"CREATE TABLE orders AS FROM {came}")
        else:
            here.execute(f"COPY (FROM {came}) TO '{target}' (FORMAT parquet, COMPRESSION zstd)")


def poll(dsn: str, target: Path, roots: list[Path], etag: str | None = None) -> Fetched:
    """One poll of ours."""

    async def scene() -> Fetched:
        fetcher = SqlFetcher(target, roots=roots)
        try:
            options = {"max_bytes": 2**40}
            return await fetcher.fetch(Request(f"{dsn}#orders", etag, options=options, seconds=1800.0))
        finally:
            await fetcher.close()

    got = asyncio.run(scene())
    assert not got.reason, got.reason
    return got


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    told = parser.parse_args()
    table = Table("tables", "Copies of tables: PostgreSQL to DuckDB and Parquet")
    with server() as dsn, tempfile.TemporaryDirectory() as temporary:
        folder, roots = Path(temporary), [Path(unquote(dsn.partition("host=")[2]))]
        with psycopg.connect(dsn, autocommit=True) as db:
            db.execute(MADE.format(rows=told.rows))
            db.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
            db.execute("VACUUM ANALYZE orders")
        numbers = count()

        def ours(ending: str) -> None:
            for old in folder.glob("ours*"):
                shutil.rmtree(old) if old.is_dir() else old.unlink()
            poll(dsn, folder / f"ours{next(numbers)}{ending}", roots)

        for name, ending in {"DuckDB": ".duckdb", "Parquet": ".parquet"}.items():
            candidates: dict[str, Callable[[], Any]] = {
                "COPY, file, load": partial(bare, dsn, folder, ending),
                "ours": partial(ours, ending),
            }
            medians = table.measure(f"{told.rows:,} rows, {name}", candidates, reference="ours", rounds=told.rounds)
            table.fact(f"{name}: bare / ours", round(medians["COPY, file, load"] / medians["ours"], 3), "≥ 0.7")
        changes(table, dsn, folder, roots)
    table.write()


def changes(table: Table, dsn: str, folder: Path, roots: list[Path]) -> None:
    """What a change of a hundred rows brings over the wire, as a share of what the whole table does."""
    target = folder / "changed.duckdb"
    first = poll(dsn, target, roots)
    half = {
        "100 rows updated": ["UPDATE orders SET paid = NOT paid WHERE id % (SELECT count(*) / 100 FROM orders) = 7"],
        "100 rows deleted": ["DELETE FROM orders WHERE id % (SELECT count(*) / 100 FROM orders) = 9"],
        "nothing": [],
    }
    etag = first.etag
    for name, statements in half.items():
        with psycopg.connect(dsn, autocommit=True) as db:
            for statement in statements:
                db.execute(statement)
        got = poll(dsn, target, roots, etag)
        etag = got.etag
        table.fact(f"{name}: share of the table's bytes read", f"{got.received / first.received:.2e}", "≤ 1e-2")


if __name__ == "__main__":
    main()
