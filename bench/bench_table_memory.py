"""The most memory that the first copy of a table takes, from table to table ten times as large: PostgreSQL to targets.

Every copy is made by a process of its own, which says the most memory that it held. Tables are those of `bench_tables`,
with a key, and narrow ones of a number and a short text, without one, of which there can be ten times as many rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import unquote

import psycopg

from bench_postgres import server
from bench_tables import MADE, poll
from harness import Table, peak_memory

NARROW = "CREATE UNLOGGED TABLE orders AS SELECT i AS id, 'n' || i % 1000 AS note FROM generate_series(1, {rows}) AS i"


def copied(dsn: str, target: Path, roots: list[Path]) -> dict[str, float]:
    """What a process that makes the copy says of itself."""
    asked = json.dumps({"dsn": dsn, "target": str(target), "roots": [str(root) for root in roots]})
    done = subprocess.run([sys.executable, __file__, "--copy", asked], check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def copy(asked: dict[str, str]) -> None:
    """Make one copy, and say how much memory this process held, before it and at most."""
    before = peak_memory()
    poll(asked["dsn"], Path(asked["target"]), [Path(root) for root in asked["roots"]])
    sys.stdout.write(json.dumps({"before": before / 1e6, "peak": peak_memory() / 1e6}))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--narrow", type=int, nargs="*", default=[1_000_000, 10_000_000, 100_000_000])
    parser.add_argument("--sqlite", type=int, default=1_000_000, help="rows up to which SQLite is a target")
    parser.add_argument("--copy", type=json.loads, help="used by itself")
    told = parser.parse_args()
    if told.copy:
        copy(told.copy)
        return
    table = Table("table_memory", "The most memory that a first copy of a table takes")
    with server() as dsn, tempfile.TemporaryDirectory() as temporary:
        roots = [Path(unquote(dsn.partition("host=")[2]))]
        for rows in told.rows:
            make(dsn, MADE.format(rows=rows), "ALTER TABLE orders ADD PRIMARY KEY (id)", "VACUUM ANALYZE orders")
            for ending in (".duckdb", ".parquet", ".db"):
                if ending != ".db" or rows <= told.sqlite:
                    measure(table, f"{ending}, {rows:,} rows", dsn, Path(temporary), roots, ending)
        for rows in told.narrow:
            make(dsn, NARROW.format(rows=rows))
            for ending in (".duckdb", ".parquet"):
                measure(table, f"{ending}, {rows:,} narrow rows", dsn, Path(temporary), roots, ending)
    table.write()


def make(dsn: str, *statements: str) -> None:
    """The table, as these statements make it."""
    with psycopg.connect(dsn, autocommit=True) as db:
        for statement in ("DROP TABLE IF EXISTS orders", *statements):
            db.execute(statement.encode())


def measure(table: Table, name: str, dsn: str, temporary: Path, roots: list[Path], ending: str) -> None:
    """Make a copy into a folder of its own, and write down what it took."""
    with tempfile.TemporaryDirectory(dir=temporary) as folder:
        found = copied(dsn, Path(folder) / f"copies{ending}", roots)
    table.fact(name, f"{found['peak']:.0f} MB (the process alone {found['before']:.0f})")


if __name__ == "__main__":
    main()
