"""How columns of copies are declared in a PostgreSQL schema, and what is no value of theirs.

    from PostgreSQL                       the type that the column has there, with its length and its digits
    boolean, smallint, integer, bigint    the same
    decimal(p,s), decimal                 numeric(p,s), numeric: exact, NaN and the infinities are values
    real, double                          real, double precision
    text, and any                         text
    bytes                                 bytea
    dates, times, interval, uuid, json    the same
    arrays                                arrays
    enums, and types of the source's own  text; this is said in the account of the table

PostgreSQL rounds, cuts and guesses where text is not quite of its type ('now' is a date, a zone is left out where there
is none): what nobody answers for must have the one form that means itself, or it is refused.
"""

from __future__ import annotations

import re

from unstale.adapters.sql_types import Column, digits_of, item_of, own_type

_DECLARED = {
    "boolean": "boolean",
    "smallint": "smallint",
    "integer": "integer",
    "bigint": "bigint",
    "decimal": "numeric",
    "real": "real",
    "double": "double precision",
    "bytes": "bytea",
    "date": "date",
    "time": "time",
    "timetz": "timetz",
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
    "interval": "interval",
    "uuid": "uuid",
    "json": "json",
}
# Types that every server has, and whose text is the same on all of them.
_NATIVE = re.compile(
    r"(bool|int2|int4|int8|oid|numeric|float4|float8|text|varchar|bpchar|name|bytea|date|time|timetz|timestamp|"
    r"timestamptz|interval|uuid|json|jsonb|inet|cidr|macaddr|macaddr8|bit|varbit|int4range|int8range|numrange|"
    r"daterange|tsrange|tstzrange|int4multirange|int8multirange|nummultirange|datemultirange|tsmultirange|"
    r"tstzmultirange|tsvector|tsquery|point|line|lseg|box|path|polygon|circle)(\(-?\d+(,-?\d+)?\))?(\[\])?"
)
_DAY = r"\d{4,}-\d\d-\d\d"
_HOUR = r"\d\d:\d\d(:\d\d(\.\d{1,6}0*)?)?"
_ZONE = r"(Z|[+-]\d\d(:?\d\d(:?\d\d)?)?)"
_ENDLESS = r"-?infinity"
#: what text must look like to mean itself
_FORMS = {
    "date": rf"({_DAY}( BC)?|{_ENDLESS})",
    "time": _HOUR,
    "timetz": rf"{_HOUR}{_ZONE}",
    "timestamp": rf"({_DAY}([ T]{_HOUR})?( BC)?|{_ENDLESS})",
    "timestamptz": rf"({_DAY}([ T]{_HOUR} ?{_ZONE}?)?( BC)?|{_ENDLESS})",
}


def declared(column: Column) -> tuple[str, str]:
    """The type in PostgreSQL's words, and what is to be said about it.

    >>> declared(Column("a", "text", native="varchar(9)")), declared(Column("a", "array(decimal(12,2))"))
    (('varchar(9)', ''), ('numeric(12,2)[]', ''))
    >>> declared(Column("a", "text", native="ENUM"))[1]
    "kept as text, for its type (ENUM) is its source's own"
    """
    native = column.native.replace(" ", "")
    if _NATIVE.fullmatch(native):
        return native, ""
    return _plain(column.type), own_type(column)


def _plain(type_: str) -> str:
    if (item := item_of(type_)) is not None:
        return f"{_plain(item)}[]"
    if (bound := digits_of(type_)) is not None:
        return f"numeric({bound[0]},{bound[1]})"
    return _DECLARED.get(type_, "text")


def bent(text: str, type_: str) -> str:
    """The SQL that tells whether a text would become another value, in a column of which no database is sure.

    >>> bent("c1", "decimal(12,2)")
    'c1::numeric <> c1::numeric(12,2)'
    """
    if digits_of(type_) is not None:
        return f"{text}::numeric <> {text}::{_plain(type_)}"
    return f"{text} !~ '^{_FORMS[type_]}$'" if type_ in _FORMS else "false"
