"""The fleet in columns is read table by table, and only of those who are listed otherwise than the first is more."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import numpy as np

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
        with closing(apsw.Connection(str(tmp_path / "fleet.db"))) as db:
            db.execute("DELETE FROM beliefs WHERE source = ?", (ids[1],))
            db.execute("DELETE FROM sources WHERE id = ?", (ids[4],))
        fleet = store.fleet(3)
    assert fleet.source.tolist() == [ids[0], ids[2], ids[3], ids[5]]
    assert fleet.weight.tolist() == [0.0, 2.0, 3.0, 5.0]
    assert fleet.beliefs.shape == (4, 3)
