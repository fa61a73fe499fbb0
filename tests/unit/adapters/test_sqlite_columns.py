"""The fleet in columns is read table by table, and only of those who are listed otherwise than the first is more."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from unstale.adapters import sqlite_catalogue, sqlite_columns
from unstale.adapters.sqlite_schema import connect
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import FleetColumns, Listing

#: more than are turned into columns at once, every one another way
MANY = 600


def test_whoever_is_listed_otherwise_than_the_first_keeps_its_numbers(tmp_path: Path) -> None:
    listed = [
        Listing(
            f"https://a.example/{i}", weight=1.0 + i % 7, cost=1.0 + i % 3, shortest=float(i % 5), longest=1e6 + i % 2
        )
        for i in range(MANY)
    ]
    with closing(SqliteStore(tmp_path / "fleet.db")) as store:
        ids = store.add(listed, 0.0)
        store.remove(ids[5:9])
        fleet, one_by_one = store.fleet(3), store.columns_of(ids, 3)
    left = listed[:5] + listed[9:]
    assert fleet.weight.tolist() == [one.weight for one in left]
    assert fleet.longest.tolist() == [one.longest for one in left]
    for name in FleetColumns.__slots__:
        assert np.array_equal(getattr(fleet, name), getattr(one_by_one, name)), name


def test_a_source_in_one_table_alone_is_left_out(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "fleet.db")) as store:
        ids = store.add([Listing(f"https://a.example/{i}", weight=float(i)) for i in range(6)], 0.0)
        with closing(connect(tmp_path / "fleet.db")) as db:
            db.execute("DELETE FROM states WHERE source = ?", (ids[1],))
            db.execute("DELETE FROM sources WHERE id = ?", (ids[4],))
        fleet = store.fleet(3)
    assert fleet.source.tolist() == [ids[0], ids[2], ids[3], ids[5]]
    assert fleet.weight.tolist() == [0.0, 2.0, 3.0, 5.0]
    assert fleet.beliefs.shape == (4, 3)


def test_beliefs_of_any_length_and_none_are_read_as_they_are_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Parts in which all have a belief, none has, or theirs are of several lengths: 0 in the bytes ends no text.
    monkeypatch.setattr(sqlite_columns, "_PART", 100)
    with closing(SqliteStore(tmp_path / "fleet.db")) as store:
        ids = store.add([Listing(f"https://a.example/{i}") for i in range(MANY)], 0.0)
        rng = np.random.default_rng(3)
        lengths = [3] * 100 + [0] * 100 + [1 + i % 3 for i in range(100)] + [i % 4 for i in range(MANY - 300)]
        known = [
            (rng.normal(size=length).tobytes() if length else None, float(i), i % 5 if 200 < i < 210 else 0, source)
            for i, (source, length) in enumerate(zip(ids, lengths, strict=True))
        ]
        with closing(connect(tmp_path / "fleet.db")) as db:
            db.executemany("UPDATE beliefs SET belief = ?, due = ?, failures = ? WHERE source = ?", known)
        fleet, one_by_one = store.fleet(3), store.columns_of(ids, 3)
    for name in FleetColumns.__slots__:
        assert np.array_equal(getattr(fleet, name), getattr(one_by_one, name)), name
    assert fleet.beliefs[:100].all()
    assert not fleet.beliefs[100:200].any()
    assert fleet.beliefs[0].tobytes() == known[0][0]
    assert fleet.failures.sum() == sum(times for *_, times, _ in known) > 0


def test_who_has_read_many_keeps_a_small_cache_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(SqliteStore(tmp_path / "fleet.db")) as store:
        store.add([Listing(f"https://a.example/{i}") for i in range(6)], 0.0)
        assert store._db is not None
        usual = store._db.pragma("cache_size")
        store.fleet(3)
        assert store._db.pragma("cache_size") == usual
        monkeypatch.setattr(sqlite_catalogue, "MANY", 5)
        assert len(store.fleet(3).source) == 6
        assert store._db.pragma("cache_size") == -sqlite_catalogue.CACHE
        assert -usual > sqlite_catalogue.CACHE
