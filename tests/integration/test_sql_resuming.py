"""The copy of a large table that is killed on its way goes on where it was, and is the table at one moment.

Polls are processes of their own that die by SIGKILL when so many parts are kept. What the next one reads is counted by
the server itself, which writes down every statement: each part that is read is one, of one range of its blocks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pytest

from support.mariadb import MISSING, mariadb
from support.poll_forker import Forker
from support.postgres import Postgres, postgres
from support.sql_copies import duck, sqlite

ROWS = 1000
#: parts that the table has: 2 blocks each, which are 31, of 33 rows
PARTS = 16
MADE = (
    "DROP TABLE IF EXISTS big",
    "CREATE TABLE big(id bigint PRIMARY KEY, amount numeric(12,2), note text)",
    f"INSERT INTO big SELECT i, i * 0.25, repeat('row ', 50) || i FROM generate_series(1, {ROWS}) i",
)
#: what the key is instead, by target: two columns, texts in no order, none
KEYS = {
    "duckdb": (),
    "db": ("ALTER TABLE big DROP CONSTRAINT big_pkey", "ALTER TABLE big ADD PRIMARY KEY (amount, id)"),
    "parquet": ("ALTER TABLE big DROP CONSTRAINT big_pkey",),
    "postgres": (
        "ALTER TABLE big DROP CONSTRAINT big_pkey",
        "ALTER TABLE big ALTER COLUMN note SET DEFAULT gen_random_uuid(), ADD PRIMARY KEY (note)",
    ),
}
#: in one kept part a row changes, in another one is gone, and new ones come at the end
CHANGES = (
    "UPDATE big SET amount = -1 WHERE id = 10",
    "DELETE FROM big WHERE id = 100",
    "INSERT INTO big(id, amount) SELECT i, 0 FROM generate_series(1001, 1005) i",
)


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        found.run("CREATE DATABASE lake", "CREATE ROLE reader LOGIN", "GRANT pg_read_all_data TO reader")
        found.run("ALTER ROLE reader SET log_statement = 'all'")
        yield found


@dataclass
class Scene:
    """A table, its copy in a target of one form, and polls of it."""

    server: Postgres
    forker: Forker
    folder: Path
    form: str
    address: str = ""
    probe: str = "auto"
    group: str = ""

    def poll(self, **more: Any) -> str:
        target = str(self.folder / f"copies.{self.form}")
        if self.form == "postgres":
            target = f"{self.server.address('lake')}&schema=copies"
        address = self.address or f"{self.server.address(user='reader')}#big"
        asked: dict[str, Any] = {"target": target, "roots": [str(self.server.folder)], "address": address}
        asked["options"] = {"probe": self.probe, "group": self.group}
        self.forker.begin(**asked, parts=str(self.folder / "parts"), **more)
        return self.forker.ended()

    def read(self) -> int:
        """How many parts have been read from the source until now, by its own account."""
        return sum(" q.ctid >= '(" in line for line in (self.server.folder / "log").read_text().splitlines())

    def kept(self) -> list[Path]:
        """The files of parts."""
        return list(self.folder.rglob("*.parts/*/*.csv")) + list(self.folder.rglob("parts/*/*.csv"))

    def copy(self) -> list[tuple[Any, ...]]:
        asked = "SELECT id, amount, note FROM {} ORDER BY id"
        if self.form == "postgres":
            with psycopg.connect(self.server.address("lake")) as db:
                return db.execute(asked.format("copies.big").encode()).fetchall()
        if self.form == "duckdb":
            return duck(self.folder / "copies.duckdb", asked.format("big"))
        if self.form == "parquet":
            place = self.folder / "copies.parquet/big"
            manifest = json.loads((place / "manifest.json").read_text())
            files = [str(place / one["path"]) for one in manifest["files"]]
            return duckdb.sql(asked.format(f"read_parquet({files})")).fetchall()
        found = sqlite(self.folder / "copies.db", asked.format("big"))
        return [(one, Decimal(str(amount)), note) for one, amount, note in found]

    def source(self) -> list[tuple[Any, ...]]:
        with self.server.connect() as db:
            return db.execute("SELECT id, amount, note FROM big ORDER BY id").fetchall()


FORMS = ("duckdb", "db", "parquet", "postgres")


@pytest.mark.parametrize("form", FORMS)
def test_a_killed_copy_goes_on_and_only_what_changed_is_read_again(
    server: Postgres, forker: Forker, tmp_path: Path, form: str
) -> None:
    server.run(*MADE, *KEYS[form])
    with psycopg.connect(server.address("lake"), autocommit=True) as db:
        db.execute("DROP SCHEMA IF EXISTS copies CASCADE")
    scene = Scene(server, forker, tmp_path, form)
    begun = scene.read()
    assert scene.poll(dies=12) == "killed"
    assert (scene.read() - begun, len(scene.kept())) == (12, 12)
    server.run(*CHANGES)
    # Killed once more: two of the twelve changed and one is new, so ten are kept and one is added.
    assert scene.poll(dies=1) == "killed"
    assert (scene.read() - begun, len(scene.kept())) == (13, 11)
    ended, received = scene.poll().split()
    assert ended == "changed"
    assert scene.read() - begun == 13 + PARTS - 11
    assert scene.copy() == scene.source()
    assert int(received) < 0.4 * ROWS * 200
    assert scene.kept() == []


@pytest.mark.parametrize("kind", ["xmin", "checksum"])
def test_a_column_that_came_anew_is_another_though_no_row_was_written(
    server: Postgres, forker: Forker, tmp_path: Path, kind: str
) -> None:
    server.run(*MADE, "ALTER TABLE big DROP COLUMN note", "ALTER TABLE big ADD COLUMN note text DEFAULT 'old'")
    scene = Scene(server, forker, tmp_path, "duckdb", probe=kind)
    assert scene.poll(dies=12) == "killed"
    server.run("ALTER TABLE big DROP COLUMN note", "ALTER TABLE big ADD COLUMN note text DEFAULT 'new'")
    assert scene.poll().startswith("changed")
    assert scene.copy() == scene.source()
    assert {note for _, _, note in scene.copy()} == {"new"}


def test_a_table_that_took_the_name_of_another_is_another(server: Postgres, forker: Forker, tmp_path: Path) -> None:
    server.run("DROP TABLE IF EXISTS other", *MADE[:2], "CREATE TABLE other(LIKE big INCLUDING ALL)")
    with server.connect() as db, db.transaction():
        # Written by one transaction: nothing but the table tells their rows apart.
        for name, sign in (("big", ""), ("other", "-")):
            db.execute(f"INSERT INTO {name} SELECT i, {sign}i, 'row' FROM generate_series(1, {ROWS}) i".encode())
    scene = Scene(server, forker, tmp_path, "duckdb")
    assert scene.poll(dies=2) == "killed"
    server.run("ALTER TABLE big RENAME TO mine", "ALTER TABLE other RENAME TO big", "DROP TABLE mine")
    assert scene.poll().startswith("changed")
    assert scene.copy() == scene.source()


def test_tables_of_a_group_keep_their_parts_until_all_are_switched_to(
    server: Postgres, forker: Forker, tmp_path: Path
) -> None:
    server.run(
        *MADE,
        "DROP TABLE IF EXISTS more",
        "CREATE TABLE more AS SELECT * FROM big",
        "ALTER TABLE more ADD PRIMARY KEY (id)",
    )
    scene = Scene(server, forker, tmp_path, "duckdb", group="shop")
    begun = scene.read()
    assert scene.poll(dies=12) == "killed"
    # A poll of the other member copies both, whichever comes first, and is killed in the second one.
    beside = Scene(server, forker, tmp_path, "duckdb", f"{server.address(user='reader')}#more", group="shop")
    assert beside.poll(dies=PARTS - 12 + PARTS - 1) == "killed"
    assert len(scene.kept()) == 2 * PARTS - 1
    assert beside.poll().startswith("changed")
    assert scene.read() - begun == 2 * PARTS
    assert scene.copy() == scene.source()
    assert duck(tmp_path / "copies.duckdb", "SELECT count(*), sum(id) FROM more") == [(ROWS, ROWS * (ROWS + 1) // 2)]
    assert scene.kept() == []


def test_rows_that_moved_are_read_again_though_nobody_wrote_them(
    server: Postgres, forker: Forker, tmp_path: Path
) -> None:
    backwards = f"SELECT i, 1, lpad(i::text, 200, '0') FROM generate_series({ROWS}, 1, -1) i"
    server.run(*MADE[:2], f"INSERT INTO big {backwards}")
    scene = Scene(server, forker, tmp_path, "duckdb")
    assert scene.poll(dies=8) == "killed"
    # Each now lies where another one lay, which the same transaction had written.
    server.run("CLUSTER big USING big_pkey")
    assert scene.poll().startswith("changed")
    assert scene.copy() == scene.source()


def test_parts_of_a_partitioned_table_are_of_all_its_partitions(
    server: Postgres, forker: Forker, tmp_path: Path
) -> None:
    server.run(
        *MADE[:1],
        "CREATE TABLE big(id bigint, amount numeric(12,2), note text) PARTITION BY RANGE (id)",
        "CREATE TABLE big_1 PARTITION OF big FOR VALUES FROM (0) TO (300)",
        "CREATE TABLE big_2 PARTITION OF big FOR VALUES FROM (300) TO (2000)",
        MADE[2],
    )
    scene = Scene(server, forker, tmp_path, "duckdb")
    begun = scene.read()
    assert scene.poll(dies=8) == "killed"
    server.run("UPDATE big SET amount = -1 WHERE id = 10")
    # Another table in the place of one of them.
    server.run(
        "ALTER TABLE big DETACH PARTITION big_1",
        "CREATE TABLE big_3(LIKE big)",
        "INSERT INTO big_3 SELECT id, -amount, note FROM big_1",
        "ALTER TABLE big ATTACH PARTITION big_3 FOR VALUES FROM (0) TO (300)",
        "DROP TABLE big_1",
    )
    assert scene.poll().startswith("changed")
    assert scene.copy() == scene.source()
    assert scene.read() - begun > 8


MARIA = {"whole": "id", "words": "word", "days": "day, id", "raws": "raw"}


@pytest.mark.skipif(bool(MISSING), reason=MISSING)
def test_a_killed_copy_of_mariadb_goes_on_whatever_its_key(server: Postgres, forker: Forker, tmp_path: Path) -> None:
    columns = "id bigint, amount numeric(9,2), note varchar(99), x float, word varchar(40), day date, raw binary(16)"
    # Words in both cases, which are the same to its order.
    word, day = "concat(if(seq % 2, 'A', 'a'), md5(seq))", "date('2026-01-01') + interval seq % 50 day"
    came = f"seq, seq * 0.25, repeat('ä', 99), seq / 3, {word}, {day}, unhex(md5(seq))"
    with mariadb() as maria:
        for name, key in MARIA.items():
            maria.run(
                f"CREATE TABLE {name}({columns}, PRIMARY KEY ({key}))",
                f"INSERT INTO {name} SELECT {came} FROM seq_1_to_{ROWS}",
            )
            folder = tmp_path / name
            folder.mkdir()
            scene = Scene(server, forker, folder, "duckdb", f"{maria.address()}#{name}")
            assert scene.poll(dies=12) == "killed"
            assert len(scene.kept()) == 12
            maria.run(f"UPDATE {name} SET amount = -1 WHERE id = 10", f"DELETE FROM {name} WHERE id = 100")
            maria.run(f"UPDATE {name} SET note = NULL WHERE id = 200")
            ended, received = scene.poll().split()
            assert ended == "changed"
            # All of it are 25 parts; at most three of the kept ones changed.
            assert int(received) < 0.75 * ROWS * 330
            asked = f"SELECT id, amount, note, word, day, raw FROM {name} ORDER BY id"
            assert duck(folder / "copies.duckdb", asked) == list(maria.run(asked))
        # In another order of its key the same words begin other parts.
        maria.run("INSERT INTO words SELECT id + 1000, amount, note, x, concat('B', word), day, raw FROM words")
        (tmp_path / "other").mkdir()
        scene = Scene(server, forker, tmp_path / "other", "duckdb", f"{maria.address()}#words")
        assert scene.poll(dies=12) == "killed"
        maria.run("ALTER TABLE words MODIFY word varchar(50) COLLATE utf8mb4_bin")
        assert scene.poll().startswith("changed")
        found = duck(tmp_path / "other/copies.duckdb", "SELECT count(*), sum(id) FROM words")
        assert found == list(maria.run("SELECT count(*), sum(id) FROM words"))
