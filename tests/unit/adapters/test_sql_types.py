"""Types of columns in words of our own."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import types
from sqlalchemy.dialects import mysql

from unstale.adapters.sql_types import Column, chosen, from_postgres, from_sqlalchemy, known_type
from unstale.errors import InputError


@pytest.mark.parametrize(
    ("told", "ours"),
    [
        ("bool", "boolean"),
        ("int8", "bigint"),
        ("numeric", "decimal"),
        ("numeric(12,2)", "decimal(12,2)"),
        ("numeric(12)", "decimal(12,0)"),
        ("numeric(2,5)", "decimal"),
        ("numeric(5,-2)", "decimal"),
        ("numeric(12,2)[]", "array(decimal(12,2))"),
        ("timestamptz(3)", "timestamptz"),
        ("varchar(42)", "text"),
        ("16402", "text"),
        ("jsonb", "json"),
        ("inet", "text"),
    ],
)
def test_types_of_postgresql(told: str, ours: str) -> None:
    assert from_postgres(told) == ours


@pytest.mark.parametrize(
    ("told", "dialect", "ours"),
    [
        (mysql.TINYINT(1), "mysql", "smallint"),
        (mysql.INTEGER(unsigned=True), "mysql", "bigint"),
        (mysql.BIGINT(unsigned=True), "mysql", "decimal(20,0)"),
        (mysql.DECIMAL(12, 2), "mysql", "decimal(12,2)"),
        (mysql.DOUBLE(), "mysql", "double"),
        (mysql.FLOAT(), "mariadb", "real"),
        (mysql.TIME(), "mysql", "interval"),
        (mysql.TIMESTAMP(), "mysql", "timestamptz"),
        (mysql.DATETIME(), "mysql", "timestamp"),
        (mysql.ENUM("a"), "mysql", "text"),
        (mysql.LONGBLOB(), "mysql", "bytes"),
        (mysql.JSON(), "mysql", "json"),
        (types.INTEGER(), "sqlite", "bigint"),
        (types.NUMERIC(15, 2), "sqlite", "decimal(15,2)"),
        (types.NUMERIC(16, 2), "sqlite", "any"),
        (types.NUMERIC(), "sqlite", "any"),
        (types.NUMERIC(), "oracle", "decimal"),
        (types.BOOLEAN(), "oracle", "boolean"),
        (types.NullType(), "sqlite", "any"),
    ],
)
def test_types_in_catalogues(told: Any, dialect: str, ours: str) -> None:
    assert from_sqlalchemy(told, dialect) == ours


@pytest.mark.parametrize("text", ["decimal(2,3)", "decimal(0)", "number", "array()", "decimal(1001,1)"])
def test_what_is_no_type_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="type "):
        known_type(text)


def test_owners_choose() -> None:
    columns = (Column("a", "decimal"), Column("b", "text", True, "said"))
    assert chosen(columns, {"b": "JSON"}) == (columns[0], Column("b", "json", False, "said"))
    with pytest.raises(InputError, match="types 'c' names no column: choose from a, b"):
        chosen(columns, {"c": "text"})
