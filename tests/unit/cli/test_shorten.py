"""Rows that differ look different, in columns as narrow as a telephone's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.cli.shorten import fitted, shortened

FLEETS = {
    "tables": [f"postgresql://reader:$WAREHOUSE@10.0.0.5/shop#{name}" for name in ("orders", "order_lines", "users")],
    "editions": [
        f"https://www.example.org/archive/{year}/edition/index.html?format=html" for year in range(1990, 2025)
    ],
    "hosts": [f"https://{name}.blogs.example.org/feed.xml" for name in ("anna", "annabel", "bert")],
    "keys": [f"s3://bucket/warehouse/part={i}/data/file.parquet" for i in range(30)],
    "long": ["https://example.org/" + "a" * 7000 + end for end in ("1", "2", "3/b")],
}


@pytest.mark.parametrize("width", [12, 16, 20, 30, 45])
@pytest.mark.parametrize("fleet", FLEETS)
def test_rows_are_told_apart_at_every_width(fleet: str, width: int) -> None:
    rows = shortened(FLEETS[fleet], width)
    assert all(len(row) <= width for row in rows)
    assert len(set(rows)) == len(rows), rows


def test_what_fits_stays_and_secrets_never_show() -> None:
    assert shortened(["https://a.org/", "https://b.org/x"], 20) == ["https://a.org/", "https://b.org/x"]
    assert shortened(["https://me:$PW@a.example.org/some/path"], 24) == ["a.example.org/some/path"]
    assert "abc" not in shortened(["https://a.org/?token=abc"], 80)[0]


@given(st.lists(st.text(max_size=60), max_size=8), st.integers(0, 50))
def test_never_wider_and_never_fewer(addresses: list[str], width: int) -> None:
    rows = shortened(addresses, width)
    assert len(rows) == len(addresses)
    assert all(len(row) <= width for row in rows)


@pytest.mark.parametrize("width", [40, 80, 120])
def test_a_table_keeps_sources_and_what_matters_most(width: int) -> None:
    rows = [[address, "97.3 %", "1.5 min ago", "in 12 min", "4.2/day"] for address in FLEETS["tables"]]
    head, fit = fitted(["source", "fresh", "checked", "next poll", "changes"], rows, width)
    assert head[:2] == ["source", "fresh"]
    assert len({row[0] for row in fit}) == 3
    assert all(len("  ".join(row)) <= width for row in fit)
    assert len(head) == {40: 3, 80: 5, 120: 5}[width]
