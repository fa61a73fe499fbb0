"""Copies of tables as Parquet files, read by Arrow, which nobody here wrote: types, decimals, manifests."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.postgres import Postgres, postgres
from unstale.adapters import parquet_tables
from unstale.adapters.parquet_tables import ParquetTables
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as found:
        yield found


def ask(address: str, target: Path, roots: list[Path], etag: str | None = None, **options: Any) -> Fetched:
    async def scene() -> Fetched:
        fetcher = SqlFetcher(target, roots=roots)
        try:
            return await fetcher.fetch(Request(address, etag, options=options, seconds=120.0))
        finally:
            await fetcher.close()

    return asyncio.run(scene())


def manifest(target: Path, table: str = "things") -> dict[str, Any]:
    found: dict[str, Any] = json.loads((target / table / "manifest.json").read_text("utf-8"))
    return found


def rows(target: Path, table: str = "things") -> Any:
    """What a reader has who goes by the manifest."""
    files = [target / table / one["path"] for one in manifest(target, table)["files"]]
    return pa.concat_tables([pq.read_table(file) for file in files])


#: a value as PostgreSQL writes it, its type in Arrow, and its value there
ZOO: list[tuple[str, Any, Any]] = [
    ("true", pa.bool_(), True),
    ("9223372036854775807::int8", pa.int64(), 2**63 - 1),
    ("99.00::numeric(12,2)", pa.decimal128(12, 2), Decimal("99.00")),
    (f"{'9' * 38}::numeric(38,0)", pa.decimal128(38, 0), Decimal("9" * 38)),
    ("0.000123::numeric", pa.decimal128(38, 6), Decimal("0.000123")),
    ("0.1::float8", pa.float64(), 0.1),
    ("'-Infinity'::float4", pa.float32(), float("-inf")),
    ("'ä'::text", pa.string(), "ä"),
    (r"'\x00ff'::bytea", pa.binary(), b"\x00\xff"),
    ("'2026-01-31'::date", pa.date32(), date(2026, 1, 31)),
    ("'2026-01-31 12:00:00.000001'::timestamp", pa.timestamp("us"), datetime(2026, 1, 31, 12, 0, 0, 1)),
    (
        "'2026-01-31 12:00:00+02'::timestamptz",
        pa.timestamp("us", "UTC"),
        datetime(2026, 1, 31, 10, tzinfo=UTC),
    ),
    ("'1 mon 00:00:00.000001'::interval", pa.string(), "1 month 00:00:00.000001"),
    ("'12:00:00+02'::timetz", pa.string(), "12:00:00+02"),
    ("ARRAY[1.50, NULL]::numeric(12,2)[]", pa.list_(pa.decimal128(12, 2)), [Decimal("1.50"), None]),
    ("NULL::int4", pa.int32(), None),
]


def test_every_type_is_what_arrow_takes_it_for(server: Postgres, tmp_path: Path) -> None:
    columns = ", ".join(f"{written} AS c{i}" for i, (written, *_) in enumerate(ZOO))
    server.run(f"CREATE TABLE zoo AS SELECT {columns}", "COMMENT ON COLUMN zoo.c2 IS 'worth'")
    target = tmp_path / "copies.parquet"
    got = ask(f"{server.address()}#zoo", target, [server.folder])
    assert (got.reason, got.answer) == ("", Answer.CHANGED)
    assert got.body is not None
    assert set(json.loads(got.body)["notes"]) == {"c12", "c13"}
    found = rows(target, "zoo")
    assert [str(field.type).replace("item", "element") for field in found.schema] == [
        str(kind).replace("item", "element") for _, kind, _ in ZOO
    ]
    assert list(found.to_pylist()[0].values()) == [value for *_, value in ZOO]
    assert manifest(target, "zoo")["columns"][2] == {"name": "c2", "type": "DECIMAL(12,2)", "comment": "worth"}


def test_a_time_without_an_end_is_refused(server: Postgres, tmp_path: Path) -> None:
    server.run("CREATE TABLE ends AS SELECT 'infinity'::timestamptz AS a")
    target = tmp_path / "copies.parquet"
    got = ask(f"{server.address()}#ends", target, [server.folder])
    told = "column a has values that TIMESTAMP WITH TIME ZONE of Parquet cannot hold: choose another one"
    assert got.reason.startswith(told)
    assert not (target / "ends").exists()
    got = ask(f"{server.address()}#ends", target, [server.folder], types={"a": "text"})
    assert (got.reason, rows(target, "ends").to_pylist()) == ("", [{"a": "infinity"}])


class Shop:
    """A source database with a table `things`, and its copy in Parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.target = folder, folder / "copies.parquet"
        self.db = sqlite3.connect(folder / "shop.db", isolation_level=None)
        self.db.execute("CREATE TABLE things(id INTEGER PRIMARY KEY, a TEXT)")
        self.db.execute("INSERT INTO things VALUES(1, 'x'), (2, 'y')")

    def poll(self) -> Fetched:
        return ask(f"sqlite:///{self.folder / 'shop.db'}#things", self.target, [self.folder])

    def same(self) -> bool:
        here = sorted(tuple(row.values()) for row in rows(self.target).to_pylist())
        return here == self.db.execute("SELECT id, a FROM things ORDER BY id").fetchall()


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path)
    yield found
    found.db.close()


def test_a_manifest_names_a_whole_edition_and_the_one_before_stays_for_a_while(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.poll().reason == ""
    assert shop.same()
    first = manifest(shop.target)
    assert (first["rows"], first["key"], first["before"]) == (2, ["id"], [])
    shop.db.execute("DELETE FROM things WHERE id = 1")
    assert shop.poll().reason == ""
    assert shop.same()
    # Who has read the first manifest finds its files, and what it read in them.
    files = [shop.target / "things" / one["path"] for one in first["files"]]
    assert sum(pq.read_table(file).num_rows for file in files) == 2
    # An hour later they go with the next change.
    later = parquet_tables.time.time() + parquet_tables.KEPT + 1.0
    monkeypatch.setattr(parquet_tables.time, "time", lambda: later)
    shop.db.execute("INSERT INTO things VALUES(3, 'z')")
    assert shop.poll().reason == ""
    assert shop.same()
    assert not any(file.exists() for file in files)


def test_an_edition_that_a_kill_left_unwritten_is_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.poll()
    first = manifest(shop.target)
    shop.db.execute("UPDATE things SET a = 'new'")

    def killed(*_: object) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(ParquetTables, "_write", killed)
        assert shop.poll().answer is Answer.FAILED
    assert manifest(shop.target) == first
    assert shop.poll().reason == ""
    assert shop.same()


def test_what_did_not_change_is_not_written(shop: Shop) -> None:
    shop.poll()
    first = manifest(shop.target)
    assert shop.poll().reason == ""
    assert manifest(shop.target) == first
