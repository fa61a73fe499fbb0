"""Ranges of a key: every key lies in exactly one, in SQL as in the sums."""

from __future__ import annotations

import sqlite3

from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.sql_ranges import RANGES, differing, width_of, within

KEYS = st.sets(st.integers(-(2**40), 2**40), min_size=1, max_size=30)


@given(KEYS, st.integers(1, 2**30))
def test_a_key_lies_in_its_range_and_in_no_other(keys: set[int], width: int) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t(id INTEGER PRIMARY KEY)")
    db.executemany("INSERT INTO t VALUES(?)", [(key,) for key in keys])
    ranges = [one for (one,) in db.execute(f"SELECT DISTINCT id / {width} FROM t")]
    found = [id for one in ranges for (id,) in db.execute(f"SELECT id FROM t WHERE {within('id', width, {one})}")]
    db.close()
    assert sorted(found) == sorted(keys)


@given(KEYS)
def test_there_are_not_too_many_ranges(keys: set[int]) -> None:
    width = width_of(min(keys), max(keys))
    assert len({int(key / width) for key in keys}) <= RANGES + 1
    assert max(keys) - min(keys) < width * RANGES


def test_ranges_that_only_one_side_has_differ() -> None:
    assert differing({1: (1, 1)}, {1: (1, 1)}) == set()
    assert differing({}, {3: (1, 9)}) == {3}
    assert differing({3: (1, 9)}, {3: (1, 8)}) == {3}
    assert within("id", 5, set()) == "false"
