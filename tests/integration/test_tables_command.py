"""Tables of a real PostgreSQL in a DuckDB file, by the commands: one look for many, schemas that change, dbt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from support.postgres import Postgres, postgres
from unstale.cli.main import unstale


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


@pytest.fixture
def shop(server: Postgres, tmp_path: Path) -> Path:
    server.run(
        "DROP TABLE IF EXISTS orders",
        "CREATE TABLE orders(id bigint PRIMARY KEY, amount numeric(12,2), note text)",
        "COMMENT ON COLUMN orders.amount IS 'euros: gross'",
        "COMMENT ON TABLE orders IS 'what was sold'",
        "INSERT INTO orders VALUES(1, 99.90, 'a'), (2, 100.00, 'b')",
    )
    lines = ['store = "a.db"', "[sql]", 'target = "tables.duckdb"', "[files]", f'roots = ["{server.folder}"]']
    (tmp_path / "unstale.toml").write_text("\n".join([*lines, "[contracts.finance]", 'fresh_within = "1h"', ""]))
    done = run(tmp_path, "add", f"{server.address()}#orders", "--option", "tags=finance")
    assert done.exit_code == 0, done.output
    assert run(tmp_path, "poll", "orders").exit_code == 0
    return tmp_path


def run(folder: Path, *args: str) -> Result:
    return CliRunner().invoke(unstale, [args[0], "--config", str(folder / "unstale.toml"), *args[1:]])


def copy(folder: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(folder / "tables.duckdb"), read_only=True) as db:
        return db.execute(query).fetchall()


def test_a_schema_that_grows_is_taken_up_and_any_other_is_held_until_it_is_accepted(
    server: Postgres, shop: Path
) -> None:
    server.run(
        "ALTER TABLE orders ADD COLUMN paid boolean DEFAULT true", "ALTER TABLE orders ALTER amount TYPE numeric(14,2)"
    )
    assert run(shop, "poll", "orders").exit_code == 0
    assert copy(shop, "SELECT sum(amount)::VARCHAR, bool_and(paid) FROM orders") == [("199.90", True)]
    assert run(shop, "tables", "diff").exit_code == 0

    server.run("ALTER TABLE orders RENAME COLUMN note TO remark", "ALTER TABLE orders ALTER amount TYPE integer")
    before = copy(shop, "FROM orders ORDER BY id")
    assert "its schema changed and the copy is held" in run(shop, "poll", "orders").output
    assert copy(shop, "FROM orders ORDER BY id") == before
    told = run(shop, "tables", "diff")
    assert told.exit_code == 1
    assert told.output.splitlines() == [
        "orders: the copy is held",
        "  column note is called remark now, or was dropped and another one added",
        "  column amount was decimal(14,2) and is integer",
    ]
    assert json.loads(run(shop, "tables", "--json").output)["held"][1]["after"] == "integer"

    assert run(shop, "tables", "accept", "orders").exit_code == 0
    assert run(shop, "poll", "orders").exit_code == 0
    assert copy(shop, "SELECT remark, amount FROM orders ORDER BY id") == [("a", 100), ("b", 100)]
    assert run(shop, "tables", "diff").exit_code == 0
    # Accepted once is not accepted for ever.
    server.run("ALTER TABLE orders DROP COLUMN remark")
    assert "column remark (text) was dropped" in run(shop, "poll", "orders").output


def test_copies_are_described_for_dbt_with_what_their_contract_allows(shop: Path) -> None:
    told = run(shop, "tables", "dbt").output
    for line in ('      - name: "orders"', '        - name: "amount"', '          data_type: "DECIMAL(12,2)"'):
        assert line.strip() in told, told
    assert 'description: "euros: gross"' in told
    assert 'description: "what was sold\\nCopy of postgresql://' in told
    assert re.search(r'error_after:\s+count: 1\s+period: "hour"', told), told
    yaml = pytest.importorskip("yaml")
    (source,) = yaml.safe_load(told)["sources"]
    assert (source["database"], source["schema"]) == ("tables", "main")
    assert source["tables"][0]["columns"][0] == {"name": "id", "data_type": "BIGINT", "tests": ["not_null", "unique"]}


def test_a_look_that_finds_two_hundred_tables_unchanged_takes_two_queries(server: Postgres, tmp_path: Path) -> None:
    made = " ".join(f"CREATE TABLE many.t{i}(id int PRIMARY KEY);" for i in range(200))
    server.run("CREATE SCHEMA many", made, "CREATE ROLE looker LOGIN", "GRANT USAGE ON SCHEMA many TO looker")
    server.run("GRANT SELECT ON ALL TABLES IN SCHEMA many TO looker", "ALTER ROLE looker SET log_statement = 'all'")
    (tmp_path / "unstale.toml").write_text(f'[files]\nroots = ["{server.folder}"]\n')
    address = f"{server.address(user='looker')}#many.*"
    done = run(tmp_path, "add", "--collection", address, "--option", "most_members=500")
    assert done.exit_code == 0, done.output
    assert run(tmp_path, "poll", "1").exit_code == 0
    log = server.folder / "log"
    before = len(log.read_text())
    assert run(tmp_path, "poll", "1").exit_code == 0
    asked = re.findall(r"LOG:  (?:statement|execute [^:]*): (.*)", log.read_text()[before:])
    assert [one.split()[0] for one in asked if one.split()[0] not in ("BEGIN", "ROLLBACK", "COMMIT")] == ["SELECT"] * 2


def test_explain_says_how_a_table_is_looked_at_and_why(server: Postgres, shop: Path) -> None:
    told = run(shop, "explain", "orders").output
    assert "looked at by the numbers of its row versions, which PostgreSQL keeps" in told
    assert "it has 2 rows." in told
    server.run("CREATE OR REPLACE VIEW seen AS SELECT 1 AS id")
    assert run(shop, "add", f"{server.address()}#seen").exit_code == 0
    assert json.loads(run(shop, "explain", "--json", "seen").output)["looked_at"] == ""
    assert run(shop, "poll", "seen").exit_code == 0
    found = json.loads(run(shop, "explain", "--json", "seen").output)["looked_at"]
    assert found.startswith("looked at by a checksum that PostgreSQL makes of all rows: it is a view or a query")
