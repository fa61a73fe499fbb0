"""Local tables of SQL sources: brought to what was read in one step, or left as they are."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import pytest

from unstale.adapters.sql_records import view_name
from unstale.adapters.sql_tables import Tables
from unstale.adapters.sql_targets import LocalTable
from unstale.adapters.sql_values import row_hash
from unstale.errors import InputError, StoreError


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Tables]:
    found = Tables(tmp_path / "copies.db", lambda: False)
    yield found
    found.close()


def staged(rows: Sequence[Sequence[Any]], keyed: bool = True) -> list[tuple[bytes, bytes, Sequence[Any]]]:
    return [(row_hash(row[:1]) if keyed else b"", row_hash(row), row) for row in rows]


def put(
    tables: Tables,
    rows: Sequence[Sequence[Any]],
    held: LocalTable | None = None,
    *,
    columns: Sequence[str] = ("id", "a"),
    keyed: bool = True,
) -> LocalTable:
    held = held or tables.held("source_0123456789", "things")
    tables.stage(columns, staged(rows, keyed))
    shape = replace(held, columns=tuple(columns), key=("id",) if keyed else ())
    return tables.merge(shape, kind="checksum", among="incoming")


def seen(path: Path, view: str = "things") -> list[tuple[Any, ...]]:
    db = apsw.Connection(str(path / "copies.db"), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return sorted(db.execute(f'SELECT * FROM "{view}"'), key=repr)
    finally:
        db.close()


def counts(held: LocalTable) -> tuple[int, int, int, int]:
    account = json.loads(held.manifest)
    return account["rows"], account["inserted"], account["changed"], account["deleted"]


def test_rows_come_change_and_go(tables: Tables, tmp_path: Path) -> None:
    first = put(tables, [(1, "x"), (2, "y"), (3, "z")])
    assert counts(first) == (3, 3, 0, 0)
    second = put(tables, [(1, "x"), (2, "Y"), (4, None)])
    assert counts(second) == (3, 1, 1, 1)
    assert seen(tmp_path) == [(1, "x"), (2, "Y"), (4, None)]
    back = put(tables, [(3, "z"), (2, "y"), (1, "x")])
    assert (back.digest, back.rows) == (first.digest, 3)
    assert back.digest != second.digest


def test_the_account_stays_the_same_until_something_changes(tables: Tables) -> None:
    first = put(tables, [(1, "x")])
    again = put(tables, [(1, "x")])
    assert (again.manifest, again.digest, again.edition) == (first.manifest, first.digest, first.edition + 1)


def test_equal_rows_are_not_written(tables: Tables, tmp_path: Path) -> None:
    put(tables, [(i, "x" * 1000) for i in range(500)])
    tables.close()
    before = (tmp_path / "copies.db-wal").stat().st_size if (tmp_path / "copies.db-wal").exists() else 0
    other = Tables(tmp_path / "copies.db", lambda: False)
    other.stage(("id", "a"), staged([(i, "x" * 1000 if i else "y") for i in range(500)]))
    shape = other.held("source_0123456789", "things")
    db = other._db
    begin = db.total_changes()
    done = other.merge(shape, kind="checksum", among="incoming")
    # One row and the record of the table.
    assert (counts(done), db.total_changes() - begin) == ((500, 0, 1, 0), 2)
    other.close()
    assert before == 0


def test_rows_without_a_key_are_counted(tables: Tables, tmp_path: Path) -> None:
    rows = [("x", 1), ("x", 1), ("y", 2)]
    first = put(tables, rows, keyed=False)
    assert seen(tmp_path) == sorted(rows)
    fewer = put(tables, rows[1:], keyed=False)
    assert counts(fewer) == (2, 0, 0, 1)
    assert seen(tmp_path) == sorted(rows[1:])
    assert put(tables, rows[::-1], keyed=False).digest == first.digest


def test_a_key_that_is_not_unique_is_refused(tables: Tables, tmp_path: Path) -> None:
    put(tables, [(1, "x")])
    with pytest.raises(InputError, match="key is the same in several rows: name columns that are unique together"):
        put(tables, [(1, "x"), (1, "y")])
    tables.close()
    assert seen(tmp_path) == [(1, "x")]


def test_keys_alone_find_what_is_gone_and_what_is_missing(tables: Tables, tmp_path: Path) -> None:
    held = put(tables, [(1, "x"), (2, "y"), (3, "z")])
    tables.stage(("id", "a"), staged([(2, "Y"), (5, "v")]))
    assert tables.new_rows(held.name) == 1
    tables.stage_keys(row_hash([i]) for i in (1, 2, 5, 9))
    assert tables.absent(held.name) == 1
    done = tables.merge(held, kind="changed", among="present")
    assert counts(done) == (3, 1, 1, 1)
    assert seen(tmp_path) == [(1, "x"), (2, "Y"), (5, "v")]


def test_another_shape_begins_anew(tables: Tables, tmp_path: Path) -> None:
    first = put(tables, [(1, "x"), (2, "y")])
    second = put(tables, [(1, "x", 0)], columns=("id", "a", "b"))
    assert counts(second) == (1, 1, 0, 2)
    assert seen(tmp_path) == [(1, "x", 0)]
    third = put(tables, [(1, "x"), (2, "y")], columns=("id", "other"))
    assert third.digest != first.digest


def test_names_that_sqlite_takes_for_one(tables: Tables, tmp_path: Path) -> None:
    names = ("id", "ID", 'we"ird', "unstale_key")
    put(tables, [(1, 2, 3, 4)], columns=names)
    db = apsw.Connection(str(tmp_path / "copies.db"), flags=apsw.SQLITE_OPEN_READONLY)
    cursor = db.execute("SELECT * FROM things")
    assert [c[0] for c in cursor.get_description()] == ["id", "ID_2", 'we"ird', "unstale_key"]
    assert cursor.get == (1, 2, 3, 4)
    db.close()


@pytest.mark.parametrize("taken", ["things", "THINGS", "unstale_tables", "source_0123456789"])
def test_a_name_that_is_taken_gets_a_tail(tables: Tables, tmp_path: Path, taken: str) -> None:
    put(tables, [(1, "x")])
    held = put(tables, [(2, "y")], tables.held("source_fedcba9876", taken))
    assert held.view == f"{taken}_ba9876"
    assert (seen(tmp_path), seen(tmp_path, held.view)) == ([(1, "x")], [(2, "y")])


def test_only_one_of_two_polls_that_began_together_is_recorded(tables: Tables, tmp_path: Path) -> None:
    held = put(tables, [(1, "x")])
    put(tables, [(1, "y")], held)
    with pytest.raises(StoreError, match="changed by another poll meanwhile"):
        put(tables, [(1, "z")], held)
    assert seen(tmp_path) == [(1, "y")]


def test_who_reads_meanwhile_sees_the_old_copy_whole(tables: Tables, tmp_path: Path) -> None:
    put(tables, [(1, "x"), (2, "y")])
    reader = apsw.Connection(str(tmp_path / "copies.db"), flags=apsw.SQLITE_OPEN_READONLY)
    reader.execute("BEGIN")
    assert len(list(reader.execute("SELECT * FROM things"))) == 2
    put(tables, [(i, "z") for i in range(100)])
    assert len(list(reader.execute("SELECT * FROM things"))) == 2
    reader.execute("COMMIT")
    assert len(list(reader.execute("SELECT * FROM things"))) == 100
    reader.close()


@pytest.mark.parametrize("step", range(1, 25, 3))
def test_a_poll_that_breaks_off_leaves_the_old_copy(tmp_path: Path, step: int) -> None:
    tables = Tables(tmp_path / "copies.db", lambda: False)
    put(tables, [(i, "x") for i in range(50)])
    left = step

    def counted(*_: object) -> bool:
        nonlocal left
        left -= 1
        return left < 0

    tables._db.set_progress_handler(counted, 60)
    broke = False
    with suppress(StoreError):
        broke = True
        put(tables, [(i, "y") for i in range(25, 90)])
        broke = False
    tables.close()
    old, new = [(i, "x") for i in range(50)], [(i, "y") for i in range(25, 90)]
    assert seen(tmp_path) == sorted(old if broke else new, key=repr)
    again = Tables(tmp_path / "copies.db", lambda: False)
    assert put(again, new).rows == 65
    again.close()
    assert seen(tmp_path) == sorted(new, key=repr)


def test_a_file_that_is_not_ours_is_refused(tmp_path: Path) -> None:
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE t(a)")
    other.close()
    with pytest.raises(StoreError, match=r"target '.*other.db' is another program's database: choose another file"):
        Tables(tmp_path / "other.db", lambda: False)
    (tmp_path / "text.db").write_text("no database " * 100)
    with pytest.raises(StoreError, match="could not be used"):
        Tables(tmp_path / "text.db", lambda: False)
    with pytest.raises(StoreError, match="could not be used"):
        Tables(tmp_path, lambda: False)


def test_readable_names() -> None:
    assert [view_name(t) for t in ("orders", "public.orders", "Ünïcode table", "", "9", "SQLite_x")] == [
        "orders",
        "public_orders",
        "Ünïcode_table",
        "t_",
        "t_9",
        "t_SQLite_x",
    ]
