"""Copies in Parquet by the values of columns: only partitions that changed are written, in folders as Hive has them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from support.sql_copies import account, fetched
from unstale.adapters import parquet_tables
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.ports import Fetched, Request


class Shop:
    """A table of orders in three countries and two months, and its copy in Parquet."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.place = folder, folder / "copies.parquet/orders"
        self.db = sqlite3.connect(folder / "shop.db", isolation_level=None)
        self.db.execute("CREATE TABLE orders(id INTEGER PRIMARY KEY, country TEXT, at TIMESTAMP)")
        for i in range(12):
            country = (None, "DE", "a/b=c")[i % 3]
            self.db.execute("INSERT INTO orders VALUES(?, ?, ?)", (i, country, f"2026-0{1 + i % 2}-03 10:00:00"))

    def poll(self, target: str = "copies.parquet", **options: Any) -> Fetched:
        fetcher = SqlFetcher(self.folder / target, roots=[self.folder])
        return fetched(fetcher, Request(f"sqlite:///{self.folder / 'shop.db'}#orders", options=options, seconds=60.0))

    def manifest(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.place / "manifest.json").read_text("utf-8"))
        return found

    def paths(self) -> set[str]:
        return {one["path"] for one in self.manifest()["files"]}

    def same(self) -> bool:
        """Whether who goes by the manifest reads what the source holds, each row in its partition."""
        found = []
        for one in self.manifest()["files"]:
            rows = pq.read_table(self.place / one["path"], partitioning=None).to_pylist()
            for row in rows:
                assert one["partition"] == {"country": row["country"], "at_month": str(row["at"])[:7]}
            found += [tuple(row.values()) for row in rows]
        here = sorted((i, country, str(at)) for i, country, at in found)
        return here == self.db.execute("SELECT * FROM orders ORDER BY id").fetchall()


BY = {"partition": ["country", "at:month"]}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    found = Shop(tmp_path)
    yield found
    found.db.close()


def test_only_partitions_that_changed_are_written(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    account(shop.poll(**BY))
    assert shop.same()
    first, paths = shop.manifest(), shop.paths()
    assert (first["partition"], len(paths)) == (BY["partition"], 6)
    folders = {path.partition("/")[2].rpartition("/")[0] for path in paths}
    assert "country=DE/at_month=2026-01" in folders
    assert "country=a%2Fb%3Dc/at_month=2026-02" in folders
    assert "country=__HIVE_DEFAULT_PARTITION__/at_month=2026-01" in folders
    # One row goes from one partition to another: two are written, and four are the files that they were.
    shop.db.execute("UPDATE orders SET country = 'DE' WHERE id = 0")
    account(shop.poll(**BY))
    assert shop.same()
    second = shop.paths()
    assert len(second & paths) == 4
    assert len(second) == 6
    # Who has the first manifest finds its files still; an hour later those go that no manifest names.
    assert all((shop.place / path).exists() for path in paths)
    later = parquet_tables.time.time() + parquet_tables.KEPT + 1.0
    monkeypatch.setattr(parquet_tables.time, "time", lambda: later)
    shop.db.execute("DELETE FROM orders WHERE country = 'DE'")
    (shop.place / "9-killed/country=DE").mkdir(parents=True)
    account(shop.poll(**BY))
    assert shop.same()
    assert len(shop.paths()) == 4
    assert {path for path in paths if (shop.place / path).exists()} == paths & second
    assert not (shop.place / "9-killed").exists()


def test_folders_are_as_hive_names_them(shop: Shop) -> None:
    account(shop.poll(partition="country"))
    (edition,) = (one for one in shop.place.iterdir() if one.is_dir())
    read = ds.dataset(edition, partitioning=ds.partitioning(flavor="hive"))
    assert read.count_rows(filter=ds.field("country") == "DE") == 4
    assert read.count_rows() == 12


def test_another_partition_is_taken_up_though_no_row_changed(shop: Shop) -> None:
    shop.poll()
    assert len(shop.paths()) == 1
    assert shop.poll(**BY).reason == ""
    assert shop.same()
    assert shop.poll().reason == ""
    assert len(shop.paths()) == 1
    assert "partition" not in shop.manifest()


@pytest.mark.parametrize(
    ("target", "by", "said"),
    [
        ("copies.duckdb", "country", "partition 'country' is of Parquet files alone: leave it out"),
        ("copies.parquet", "land", "column 'land' is not there: choose from id, country, at"),
        ("copies.parquet", "country:month", "partition 'country:month' is no time but VARCHAR: name a column"),
    ],
)
def test_what_cannot_be_is_refused(shop: Shop, target: str, by: str, said: str) -> None:
    assert shop.poll(target, partition=by).reason.startswith(said)


def test_too_many_values_are_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_tables.parquet_partitions, "MOST", 11)
    assert shop.poll(partition="id").reason == "partition 'id' has more than 11 values: choose fewer"
    assert not (shop.place / "manifest.json").exists()
