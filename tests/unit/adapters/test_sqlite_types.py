"""How columns of copies are declared in SQLite."""

from __future__ import annotations

import sqlite3
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.sqlite_types import DIGITS, declared


@pytest.mark.parametrize(
    ("type_", "widest", "here"),
    [
        ("boolean", 0, "BOOLEAN"),
        ("bigint", 0, "BIGINT"),
        ("decimal(15,15)", 15, "DECIMAL(15,15)"),
        ("decimal(16,2)", 15, "DECIMAL(16,2)"),
        ("decimal(16,2)", 16, "TEXT"),
        ("decimal(20,0)", 18, "DECIMAL(20,0)"),
        ("decimal(20,0)", 19, "TEXT"),
        ("decimal(12,2)", 16, "TEXT"),
        ("decimal", 15, "DECIMAL"),
        ("decimal", 16, "TEXT"),
        ("uuid", 0, "TEXT"),
        ("json", 0, "TEXT"),
        ("array(integer)", 0, "TEXT"),
        ("timestamptz", 0, "TIMESTAMPTZ"),
        ("any", 0, ""),
    ],
)
def test_declared_types(type_: str, widest: int, here: str) -> None:
    found, note = declared(type_, "", widest, False)
    assert (found, bool(note)) == (here, type_.startswith("decimal") and here == "TEXT")


@given(st.decimals(allow_nan=False, allow_infinity=False, places=4, min_value=-(10**14), max_value=10**14))
def test_decimals_of_fifteen_digits_come_back_exactly(value: Decimal) -> None:
    db = sqlite3.connect(":memory:")
    text = f"{value:f}"
    (width,) = db.execute(f"SELECT length({DIGITS.format(':text')})", {"text": text}).fetchone()
    kind, _ = declared("decimal", "", width, False)
    db.execute(f"CREATE TABLE t(a {kind})")
    db.execute("INSERT INTO t VALUES(?)", (text,))
    ((found,),) = db.execute("SELECT a FROM t")
    db.close()
    assert (kind == "TEXT") == (len(value.normalize().as_tuple().digits) > 15)
    assert Decimal(found if isinstance(found, str) else repr(found)) == value


@pytest.mark.parametrize(("type_", "text"), [("json", "1.0"), ("uuid", "12345678"), ("text", "007"), ("bytes", "1")])
def test_text_that_looks_like_a_number_stays_text(type_: str, text: str) -> None:
    db = sqlite3.connect(":memory:")
    db.execute(f"CREATE TABLE t(a {declared(type_, '', 0, False)[0]})")
    db.execute("INSERT INTO t VALUES(?)", (text,))
    assert list(db.execute("SELECT a FROM t")) == [(text,)]
    db.close()
