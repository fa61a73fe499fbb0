"""From where a table must be read again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from unstale.adapters.sql_probe import before


@pytest.mark.parametrize(
    ("newest", "overlap", "begin"),
    [
        (100, 10.0, 90),
        (100, 0.5, 99),
        (-5, 0.0, -5),
        (1.5, 1.0, 0.5),
        (Decimal("10.5"), 0.5, Decimal("10")),
        ("10.5", 0.5, "10.0"),
        (datetime(2026, 1, 1, tzinfo=UTC), 1.0, datetime(2025, 12, 31, 23, 59, 59, tzinfo=UTC)),
        (date(2026, 1, 2), 0.0, date(2026, 1, 1)),
        (date(2026, 1, 2), 86400.0, date(2025, 12, 31)),
        ("2026-01-01 00:00:00.5+00", 1.0, "2025-12-31 23:59:59"),
        ("2026-01-01T00:00:00Z", 0.0, "2026-01-01T00:00:00"),
        ("2026-01-02", 86400.0, "2026-01-01"),
        ("infinity", 1.0, None),
        ("yesterday", 1.0, None),
        ("0001-01-01 00:00:00", 1.0, None),
        (b"\x00\x01", 1.0, None),
        (True, 1.0, None),
        (None, 1.0, None),
    ],
)
def test_the_value_an_overlap_before_the_newest(newest: Any, overlap: float, begin: Any) -> None:
    found = before(newest, overlap)
    assert (type(found), found) == (type(begin), begin)


@pytest.mark.parametrize("tail", ["", ".1", ".000001", "Z", "+00:00"])
def test_no_text_within_the_overlap_sorts_before_it(tail: str) -> None:
    begin = before(f"2026-01-01 12:00:00{tail}", 0.0)
    assert begin is not None
    assert f"2026-01-01 12:00:00{tail}" >= begin
    assert f"2026-01-01 11:59:59.999999{tail[:0]}" < begin
