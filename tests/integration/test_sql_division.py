"""How large tables are divided where it is not by blocks, and whatever their columns are called.

An old PostgreSQL is one of today that is taken for old: which way is taken is tested, and that its parts are right;
what a server before 14 would say to its statements is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mariadb import MISSING, mariadb
from support.poll_forker import Forker
from support.postgres import Postgres, postgres
from support.sql_copies import duck

ROWS = 1000
#: newer than any server
NEVER = 10**9
COLUMNS = "id bigint, amount numeric(9,2), note text, word varchar(60), day date, at timestamptz, raw bytea"
CAME = (
    "i, i * 0.25, repeat('ä', 99), md5(i::text), date '2026-01-01' + i % 50, "
    "timestamptz '2026-01-01 00:00:00.5 UTC' + i * interval '1 hour', decode(md5(i::text), 'hex')"
)
KEYS = {"whole": "id", "words": "word", "days": "day, id", "times": "at", "raws": "raw"}
#: names that our own statements use
NAMES = ("n", "part", "q", "s", "rows", "total", "b0")


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE ROLE reader LOGIN", "GRANT pg_read_all_data TO reader")
        found.run("ALTER ROLE reader SET log_statement = 'all'")
        yield found


def poll(forker: Forker, folder: Path, root: Path, address: str, **more: Any) -> str:
    asked = {"target": str(folder / "copies.duckdb"), "roots": [str(root)], "address": address, "options": {}}
    forker.begin(**asked, **more)
    return forker.ended()


def kept(folder: Path) -> int:
    return len(list(folder.rglob("*.parts/*/*.csv")))


def by_blocks(server: Postgres) -> int:
    """How many statements have asked for ranges of blocks until now."""
    return (server.folder / "log").read_text().count("q.ctid >=")


@pytest.mark.parametrize("name", [*KEYS])
def test_a_killed_copy_of_an_old_postgresql_goes_on_by_ranges_of_its_key(
    server: Postgres, forker: Forker, tmp_path: Path, name: str
) -> None:
    server.run(
        f"CREATE TABLE {name}({COLUMNS}, PRIMARY KEY ({KEYS[name]}))",
        f"INSERT INTO {name} SELECT {CAME} FROM generate_series(1, {ROWS}) i",
    )
    address, blocks = f"{server.address(user='reader')}#{name}", by_blocks(server)
    assert poll(forker, tmp_path, server.folder, address, blocks_since=NEVER, dies=12) == "killed"
    assert kept(tmp_path) == 12
    server.run(f"UPDATE {name} SET amount = -1 WHERE id = 10", f"DELETE FROM {name} WHERE id = 100")
    server.run(f"UPDATE {name} SET note = NULL WHERE id = 200")
    ended, received = poll(forker, tmp_path, server.folder, address, blocks_since=NEVER).split()
    assert ended == "changed"
    # All of it are 25 parts of 300 bytes a row; at most three of the kept ones changed.
    assert int(received) < 0.75 * ROWS * 300
    assert by_blocks(server) == blocks
    asked = f"SELECT id, amount, note, word, day, raw FROM {name} ORDER BY id"
    with server.connect() as db:
        assert duck(tmp_path / "copies.duckdb", asked) == db.execute(asked.encode()).fetchall()


@pytest.mark.parametrize("key", ["PRIMARY KEY (mood)", "PRIMARY KEY (code)", "UNIQUE (id)"])
def test_without_a_key_in_a_plain_order_an_old_postgresql_is_read_in_one_part(
    server: Postgres, forker: Forker, tmp_path: Path, key: str
) -> None:
    moods = ", ".join(f"'m{i}'" for i in range(ROWS))
    server.run("DROP TABLE IF EXISTS plain", "DROP TYPE IF EXISTS mood", f"CREATE TYPE mood AS ENUM ({moods})")
    server.run(
        f"CREATE TABLE plain(id bigint, mood mood, code uuid DEFAULT gen_random_uuid(), {key})",
        f"INSERT INTO plain SELECT i, ('m' || i)::mood FROM generate_series(0, {ROWS - 1}) i",
    )
    address, blocks = f"{server.address(user='reader')}#plain", by_blocks(server)
    assert poll(forker, tmp_path, server.folder, address, blocks_since=NEVER, dies=1).startswith("changed")
    assert by_blocks(server) == blocks
    assert duck(tmp_path / "copies.duckdb", "SELECT count(*), sum(id) FROM plain") == [(ROWS, ROWS * (ROWS - 1) // 2)]


def named(text: str) -> str:
    """A table whose columns have the names of ours."""
    return f"CREATE TABLE named(id bigint PRIMARY KEY, note {text}, {', '.join(f'{one} bigint' for one in NAMES)})"


@pytest.mark.parametrize("since", [0, NEVER])
def test_columns_may_be_called_as_ours_are(server: Postgres, forker: Forker, tmp_path: Path, since: int) -> None:
    values = ", ".join(["0"] * len(NAMES))
    made = f"INSERT INTO named SELECT i, repeat('row ', 50), {values} FROM generate_series(1, {ROWS}) i"
    server.run("DROP TABLE IF EXISTS named", named("text"), made)
    address = f"{server.address(user='reader')}#named"
    assert poll(forker, tmp_path, server.folder, address, blocks_since=since, dies=3) == "killed"
    # In a part that is kept, and not the first.
    server.run("UPDATE named SET n = 0, total = 7 WHERE id = 60")
    assert poll(forker, tmp_path, server.folder, address, blocks_since=since).startswith("changed")
    asked = "SELECT count(*), sum(id)::bigint, sum(total)::bigint FROM named"
    with server.connect() as db:
        assert duck(tmp_path / "copies.duckdb", asked) == db.execute(asked.encode()).fetchall()


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_columns_of_mariadb_may_be_called_as_ours_are(forker: Forker, tmp_path: Path) -> None:
    with mariadb() as maria:
        text = named("varchar(300)").replace("rows bigint", "`rows` bigint")
        values = ", ".join(["seq * 1000"] * len(NAMES))
        maria.run(text, f"INSERT INTO named SELECT seq, repeat('row ', 50), {values} FROM seq_1_to_{ROWS}")
        address = f"{maria.address()}#named"
        assert poll(forker, tmp_path, tmp_path, address, dies=3) == "killed"
        assert poll(forker, tmp_path, tmp_path, address).startswith("changed")
        found = duck(tmp_path / "copies.duckdb", "SELECT count(*), sum(id)::bigint, sum(n)::bigint FROM named")
        assert found == [(ROWS, ROWS * (ROWS + 1) // 2, 1000 * ROWS * (ROWS + 1) // 2)]
