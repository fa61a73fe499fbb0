"""Values of any database in SQLite, and the hashes by which rows are the same."""

from __future__ import annotations

import ipaddress
import math
import random
import uuid
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.sql_values import WIDTH, moved, plain, row_hash, size
from unstale.errors import InputError

ZOO: list[tuple[Any, Any]] = [
    (None, None),
    (True, 1),
    (False, 0),
    (2**63 - 1, 2**63 - 1),
    (-(2**63), -(2**63)),
    (2**63, "9223372036854775808"),
    (-(2**63) - 1, "-9223372036854775809"),
    (1.5, 1.5),
    (math.inf, math.inf),
    (math.nan, "NaN"),
    (Decimal("1.500"), "1.500"),
    (Decimal("1E+30"), "1E+30"),
    ("", ""),
    ("a\x00b", "a\x00b"),
    ("\udcff", b"\xff"),
    ("\ud800", b"\xed\xa0\x80"),
    (b"\x00", b"\x00"),
    (bytearray(b"x"), b"x"),
    (memoryview(b"y"), b"y"),
    (date(2026, 1, 31), "2026-01-31"),
    (time(1, 2, 3), "01:02:03"),
    (datetime(2026, 1, 31, 1, 2, 3), "2026-01-31 01:02:03.000000"),
    (datetime(2026, 1, 31, 1, 2, 3, 4, UTC), "2026-01-31 01:02:03.000004+00:00"),
    (datetime(2026, 1, 31, tzinfo=timezone(timedelta(hours=2))), "2026-01-30 22:00:00.000000+00:00"),
    (datetime.max.replace(tzinfo=timezone(-timedelta(hours=1))), "9999-12-31 23:59:59.999999-01:00"),
    (timedelta(days=1, microseconds=1), 86400.000001),
    ([1, None, "ä"], '[1,null,"ä"]'),
    ({"b": 1, "a": [Decimal("0.1"), b"\x01"]}, '{"a":["0.1","01"],"b":1}'),
    ({2, 1}, "[1,2]"),
    (uuid.UUID(int=1), "00000000-0000-0000-0000-000000000001"),
    (ipaddress.ip_network("10.0.0.0/8"), "10.0.0.0/8"),
]


@pytest.mark.parametrize(("value", "kept"), ZOO, ids=[f"{i} {type(v).__name__}" for i, (v, _) in enumerate(ZOO)])
def test_what_sqlite_keeps(value: Any, kept: Any) -> None:
    found = plain(value)
    assert (type(found), found) == (type(kept), kept)
    # What is stored comes back as it is, with its type.
    back = apsw.Connection(":memory:").execute("SELECT ?", (found,)).get
    assert (type(back), back) == (type(kept), kept)


def test_a_value_whose_text_is_a_place_in_memory_is_refused() -> None:
    with pytest.raises(InputError, match="column of type object has no text of its own: leave it out with a query"):
        plain(object())


PLAIN = st.one_of(
    st.none(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), st.text(max_size=3), st.binary(max_size=3)
)


@given(st.lists(PLAIN, max_size=3), st.lists(PLAIN, max_size=3))
def test_hashes_tell_rows_apart_by_value_and_type(one: list[Any], other: list[Any]) -> None:
    same = [(type(v), repr(v)) for v in one] == [(type(v), repr(v)) for v in other]
    assert (row_hash(one) == row_hash(other)) == same


def test_alike_is_not_the_same() -> None:
    rows: list[list[Any]] = [[1], [1.0], ["1"], [b"1"], [None], [""], ["1", ""], ["", "1"], ["1, ''"], [1, None], []]
    assert len({row_hash(row) for row in rows}) == len(rows)


def test_the_digest_knows_what_is_there_and_not_in_which_order() -> None:
    hashes = [int.from_bytes(row_hash([i])) for i in range(100)]
    whole = moved(bytes(WIDTH), sum(hashes))
    digest = bytes(WIDTH)
    for h in random.Random(7).sample(hashes, 100):
        digest = moved(digest, h)
    assert digest == whole
    assert moved(moved(digest, -hashes[3]), hashes[3]) == whole
    assert moved(digest, hashes[3]) != whole
    assert moved(whole, -sum(hashes)) == bytes(WIDTH)


def test_sizes() -> None:
    assert size(["abc", b"de", 1, 1.5, None]) == 3 + 2 + 8 + 8
