"""The page "a warehouse copy in ten minutes", command by command, against a real PostgreSQL; and who writes there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import closing
from decimal import Decimal
from pathlib import Path

import duckdb
import pymysql
import pytest
from click.testing import CliRunner

from support.mariadb import MISSING, mariadb
from support.postgres import Postgres, postgres
from unstale.adapters.addresses import Gate
from unstale.adapters.sql_places import ask
from unstale.adapters.sql_source import Source
from unstale.cli.main import unstale

PAGE = Path(__file__).parents[2] / "docs/howto/warehouse-in-ten-minutes.md"
THERE = "postgresql://reader:$WAREHOUSE@10.0.0.5/shop"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


def test_the_page_does_what_it_says(server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.run(
        "CREATE TABLE orders(id bigint PRIMARY KEY, amount numeric(12,2), updated_at timestamptz DEFAULT now())",
        "INSERT INTO orders(id, amount) SELECT i, i * 1.01 FROM generate_series(1, 1000) i",
        "CREATE TABLE customers(id uuid PRIMARY KEY DEFAULT gen_random_uuid(), name text)",
        "INSERT INTO customers(name) VALUES('Ada'), ('Grace')",
        "CREATE ROLE reader LOGIN",
        "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
    )
    text = PAGE.read_text("utf-8")
    (settings,) = re.findall(r"```toml[^\n]*\n(.*?)```", text, re.DOTALL)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    # The server of tests is reached by its socket.
    Path("unstale.toml").write_text(f'{settings}\n[files]\nroots = ["{server.folder}"]\n')
    said = {}
    for command in "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines():
        words, _, file = command.partition(" > ")
        args = shlex.split(words.replace(THERE, server.address(user="reader")))
        done = CliRunner().invoke(unstale, args[1:])
        assert done.exit_code == 0, f"{command}: {done.output}"
        said[command] = done.output
        if file:
            Path(file).write_text(done.output)
    assert "contract" in said["unstale status --limit 5"]
    assert "1,000" in said["unstale tables"]
    with duckdb.connect("tables.duckdb", read_only=True) as db:
        assert db.execute("SELECT sum(amount) FROM orders").fetchall() == [(Decimal("505505.00"),)]
        assert db.execute("SELECT name FROM customers ORDER BY 1").fetchall() == [("Ada",), ("Grace",)]
    (shown,) = re.findall(r"```text\n(import duckdb\n.*?)```", text, re.DOTALL)
    exec(shown)
    freshness = json.loads(Path("sources.json").read_text())["results"]
    limits = [one["criteria"]["error_after"]["count"] for one in freshness]
    assert sorted(limits, key=str) == [1, None]
    assert 'name: "customers"' in Path("sources.yml").read_text()


def test_no_writer_waits_for_a_copy_of_postgresql(server: Postgres) -> None:
    server.run("CREATE TABLE busy(id int PRIMARY KEY, note text)")
    server.run("INSERT INTO busy SELECT i, repeat('x', 100) FROM generate_series(1, 50000) i")
    source = Source(ask(f"{server.address()}#busy", {}), lambda: False)
    source.open(Gate(), [server.folder], [], 60.0)
    with closing(source):
        reading = source.text(source.typed(source.columns()))
        first = next(reading)
        with server.connect() as db:
            db.execute("SET lock_timeout = '200ms'")
            db.execute("UPDATE busy SET note = 'y' WHERE id % 2 = 0")
            db.execute("DELETE FROM busy WHERE id % 3 = 0")
            db.execute("INSERT INTO busy VALUES(0, 'new')")
            db.execute("CREATE INDEX ON busy(note)")
        rows = (first + b"".join(reading)).splitlines()
    # The copy is of one moment: that before all of these.
    assert (len(rows), sum(b"y" in row or b"new" in row for row in rows)) == (50_000, 0)


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_no_writer_waits_for_a_copy_of_mariadb() -> None:
    with mariadb() as server:
        server.run("CREATE TABLE busy(id int PRIMARY KEY, note text) ENGINE=InnoDB")
        server.run("INSERT INTO busy SELECT seq, repeat('x', 100) FROM seq_1_to_20000")
        source = Source(ask(f"{server.address()}#busy", {}), lambda: False)
        source.open(Gate(["127.0.0.0/8"]), [], [], 60.0)
        with closing(source):
            source.columns()
            reading = source.rows()
            first = next(reading)
            with pymysql.connect(host="127.0.0.1", port=server.port, user="owner", database="shop") as db:
                cursor = db.cursor()
                cursor.execute("SET innodb_lock_wait_timeout = 1")
                cursor.execute("UPDATE busy SET note = 'y' WHERE id % 2 = 0")
                cursor.execute("DELETE FROM busy WHERE id % 3 = 0")
                db.commit()
            rows = [first, *reading]
        assert (len(rows), sum("y" in row[1] for row in rows)) == (20_000, 0)
