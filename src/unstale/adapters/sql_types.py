"""The types of columns in words of our own, whatever database they come from and wherever their copy goes.

    boolean  smallint  integer  bigint  decimal(p,s)  decimal  real  double  text  bytes  date  time  timetz
    timestamp  timestamptz  interval  uuid  json  array(...)  any

`decimal` alone has no bound that its source would tell; `any` is a column whose values say themselves what they are,
as in SQLite. Enums, ranges, network addresses and whatever else has a text are `text`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from unstale.errors import require, suggestion
from unstale.frozen import dataclass

if TYPE_CHECKING:
    from sqlalchemy.types import TypeEngine

#: types without anything in brackets
PLAIN = (
    *("boolean", "smallint", "integer", "bigint", "decimal", "real", "double", "text", "bytes", "date", "time"),
    *("timetz", "timestamp", "timestamptz", "interval", "uuid", "json", "any"),
)
#: types whose values are texts, in the words of sources
TEXTS = ("", "text", "varchar", "bpchar", "char", "name")
_MADE = "an enum or one that was made there"
#: decimal digits that every number of SQLite's keeps
SQLITE_DIGITS = 15
_DECIMAL = re.compile(r"decimal\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\)")
_ARRAY = re.compile(r"array\((.+)\)")
# As PostgreSQL names them, without what is in brackets.
_POSTGRES = {
    "bool": "boolean",
    "int2": "smallint",
    "int4": "integer",
    "int8": "bigint",
    "oid": "bigint",
    "numeric": "decimal",
    "float4": "real",
    "float8": "double",
    "bytea": "bytes",
    "date": "date",
    "time": "time",
    "timetz": "timetz",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "interval": "interval",
    "uuid": "uuid",
    "json": "json",
    "jsonb": "json",
}
_DISPLAYED = re.compile(r"([\w ]+?)\s*(?:\(([\d ,-]+)\))?\s*((?:\[\])*)")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a source. `sure`: the database itself sees to it that values are of the type.

    `native` is the type in the source's own words, where a target may want to know them.
    """

    name: str
    type: str
    sure: bool = True
    comment: str = ""
    native: str = ""


def own_type(column: Column) -> str:
    """What is to be said of a column that is text where it is copied to, and was something else; empty for a text.

    >>> own_type(Column("price", "text", native="money"))
    "kept as text, for its type (money) is its source's own"
    """
    native = column.native.partition("(")[0].strip()
    if column.type != "text" or native.lower() in TEXTS:
        return ""
    return f"kept as text, for its type ({_MADE if native.isdigit() else native}) is its source's own"


def known_type(text: str) -> str:
    """A type in its one spelling, or InputError.

    >>> known_type("Decimal(12, 2)"), known_type("array(decimal(5))")
    ('decimal(12,2)', 'array(decimal(5,0))')
    """
    word = text.strip().lower()
    if found := _ARRAY.fullmatch(word):
        return f"array({known_type(found[1])})"
    if found := _DECIMAL.fullmatch(word):
        digits, scale = int(found[1]), int(found[2] or 0)
        require(0 < digits <= 1000 and scale <= digits, "type", repr(text), "has no digits", "write decimal(12,2)")
        return f"decimal({digits},{scale})"
    remedy = suggestion(word, PLAIN, f"there are {', '.join(PLAIN)}, decimal(12,2) and array(text)")
    require(word in PLAIN, "type", repr(text[:40]), "is not known", remedy)
    return word


def digits_of(type_: str) -> tuple[int, int] | None:
    """The digits of a bounded decimal, all and behind the point; None for any other type.

    >>> digits_of("decimal(12,2)"), digits_of("decimal")
    ((12, 2), None)
    """
    found = _DECIMAL.fullmatch(type_)
    return (int(found[1]), int(found[2] or 0)) if found else None


def item_of(type_: str) -> str | None:
    """What an array is of; None for any other type."""
    found = _ARRAY.fullmatch(type_)
    return found[1] if found else None


def chosen(columns: Sequence[Column], types: Mapping[str, Any]) -> tuple[Column, ...]:
    """Columns with the types that their owner wants for them instead."""
    names = [column.name for column in columns]
    for name in types:
        require(name in names, "types", repr(name), "names no column", f"choose from {', '.join(names)[:200]}")
    return tuple(
        Column(one.name, known_type(str(types[one.name])), False, one.comment) if one.name in types else one
        for one in columns
    )


def from_postgres(displayed: str) -> str:
    """The type that PostgreSQL calls so.

    >>> [from_postgres(name) for name in ("numeric(12,2)", "int4[]", "timestamptz(3)", "varchar(9)", "int4range")]
    ['decimal(12,2)', 'array(integer)', 'timestamptz', 'text', 'text']
    """
    found = _DISPLAYED.fullmatch(displayed)
    if found is None:
        return "text"
    name, inside, array = found[1], found[2], found[3]
    type_ = _POSTGRES.get(name.strip(), "text")
    if type_ == "decimal" and inside:
        digits, _, scale = inside.partition(",")
        # A scale below zero, or above the digits, is PostgreSQL's alone.
        if 0 <= int(scale or 0) <= int(digits):
            type_ = f"decimal({int(digits)},{int(scale or 0)})"
    return f"array({type_})" if array else type_


def from_sqlalchemy(type_: TypeEngine[Any], dialect: str) -> str:
    """The type that SQLAlchemy found in the catalogue of a database.

    >>> from sqlalchemy import types
    >>> [from_sqlalchemy(t, "mysql") for t in (types.NUMERIC(12, 2), types.BIGINT(), types.VARCHAR(9), types.TIME())]
    ['decimal(12,2)', 'bigint', 'text', 'interval']
    """
    from sqlalchemy import types

    unsigned, name = bool(getattr(type_, "unsigned", False)), type_.__class__.__name__.upper()
    if dialect in ("mysql", "mariadb") and name in _MYSQL:
        return _MYSQL[name]
    if isinstance(type_, types.Integer):
        if isinstance(type_, types.BigInteger) or dialect == "sqlite":
            return "decimal(20,0)" if unsigned else "bigint"
        small = isinstance(type_, types.SmallInteger) or name == "TINYINT"
        return ("integer" if unsigned else "smallint") if small else ("bigint" if unsigned else "integer")
    if isinstance(type_, types.Numeric) and not isinstance(type_, types.Float):
        bounded = type_.precision and not (dialect == "sqlite" and type_.precision > SQLITE_DIGITS)
        return (
            f"decimal({type_.precision},{type_.scale or 0})" if bounded else "any" if dialect == "sqlite" else "decimal"
        )
    for kind, ours in _kinds(types):
        if isinstance(type_, kind):
            return ours
    return "text" if isinstance(type_, types.String) else "any"


# MySQL's TIME is a length of time of up to 838 hours, its TIMESTAMP a moment.
_MYSQL = {"TIMESTAMP": "timestamptz", "TIME": "interval", "YEAR": "smallint", "BIT": "bytes", "FLOAT": "real"}


def _kinds(types: Any) -> list[tuple[type, str]]:
    return [
        (types.Boolean, "boolean"),
        (types.Float, "double"),
        (types.DateTime, "timestamp"),
        (types.Date, "date"),
        (types.Time, "time"),
        (types.Interval, "interval"),
        (types.Uuid, "uuid"),
        (types.JSON, "json"),
        (types._Binary, "bytes"),
    ]
