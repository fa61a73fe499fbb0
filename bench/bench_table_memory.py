"""The most memory that the first copy of a table takes, from table to table ten times as large: PostgreSQL to targets.

Every copy is made by a process of its own, which says the most memory that it held. DuckDB is given a bound of its own,
below which it takes more for more rows; what else a poll holds does not depend on them.
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
            with psycopg.connect(dsn, autocommit=True) as db:
                db.execute("DROP TABLE IF EXISTS orders")
                db.execute(MADE.format(rows=rows).encode())
                db.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
                db.execute("VACUUM ANALYZE orders")
            for ending in (".duckdb", ".parquet", ".db"):
                if ending != ".db" or rows <= told.sqlite:
                    with tempfile.TemporaryDirectory(dir=temporary) as folder:
                        found = copied(dsn, Path(folder) / f"copies{ending}", roots)
                    said = f"{found['peak']:.0f} MB (the process alone {found['before']:.0f})"
                    table.fact(f"{ending}, {rows:,} rows", said)
    table.write()


if __name__ == "__main__":
    main()
