r"""Rows as text on their way to a typed copy: CSV, the text of every value exact, NULL `\N` and unquoted.

    boolean              t or f
    numbers              all their digits; NaN, Infinity
    bytes                hexadecimal
    dates and times      as in ISO 8601; with a zone: in UTC
    interval             months, days and microseconds, each with its sign
    JSON                 as it is
    arrays               a JSON array of texts, nested as they are
    anything else        its text

Rules of this file:
1. PostgreSQL writes its rows itself, and they pass through unread; other databases' rows are written here. For a target
   that is a PostgreSQL too (`native`) bytes, intervals and arrays are as it writes them.
2. A value that is not of its column's type is refused, never bent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from unstale.adapters.sql_types import Column, digits_of, item_of
from unstale.errors import InputError, sentence

#: bytes that are handed on at a time, about
CHUNK = 2**20
#: no value, unquoted; a value of these two characters is quoted
NULL = r"\N"
_WHOLE = {"smallint", "integer", "bigint"}
_TIMES: dict[str, type[date | time]] = {"date": date, "time": time, "timestamp": datetime, "timestamptz": datetime}
#: a length of time in the form above, in SQL
INTERVAL = (
    "(extract(year from {0}) * 12 + extract(month from {0}))::int || ' months ' || extract(day from {0})::int || "
    "' days ' || (extract(hour from {0}) * 3600000000 + extract(minute from {0}) * 60000000 "
    "+ extract(microseconds from {0}))::bigint || ' microseconds'"
)


def postgres_text(quoted: str, type_: str) -> str:
    """What PostgreSQL is asked for to have a column in the form above.

    >>> postgres_text("q.raw", "bytes"), postgres_text("q.id", "bigint")
    ("encode(q.raw, 'hex')", 'q.id')
    """
    if type_ == "bytes":
        return f"encode({quoted}, 'hex')"
    if type_ == "interval":
        return INTERVAL.format(quoted)
    return f"to_json({quoted}::text[])" if item_of(type_) else quoted


def chunks(rows: Iterable[Sequence[Any]], columns: Sequence[Column], native: bool = False) -> Iterator[bytes]:
    """Rows as they come from a driver, in CSV."""
    kept: list[str] = []
    size = 0
    for row in rows:
        line = ",".join(_cell(value, column, native) for value, column in zip(row, columns, strict=True))
        kept.append(line)
        size += len(line)
        if size >= CHUNK:
            yield _encoded(kept)
            kept, size = [], 0
    if kept:
        yield _encoded(kept)


def _encoded(lines: list[str]) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _cell(value: Any, column: Column, native: bool) -> str:
    if value is None:
        return NULL
    text = written(value, column.type)
    if native and text is not None:
        text = f"\\x{text}" if column.type == "bytes" else _array(value) if item_of(column.type) else text
    try:
        if text is not None and not (native and "\0" in text):
            text.encode()
            return '"' + text.replace('"', '""') + '"'
    except UnicodeEncodeError:
        pass
    raise InputError(
        sentence(
            f"column {column.name}",
            f"with a value of {type(value).__name__}",
            f"is not what its type {column.type} says",
            f"give it another one with the option types, like types={json.dumps({column.name: 'text'})}",
        )
    )


def written(value: Any, type_: str) -> str | None:
    """A value in the form above; None if it is not of this type.

    >>> written(Decimal("1E+2"), "decimal(12,2)"), written(0.5, "bigint"), written(timedelta(hours=-1), "interval")
    ('100', None, '0 months 0 days -3600000000 microseconds')
    """
    if type_ in ("text", "any", "json", "uuid", "timetz"):
        return _loose(value, type_)
    if type_ == "boolean":
        return {0: "f", 1: "t"}.get(value) if isinstance(value, int) else None
    if type_ == "bytes":
        return bytes(value).hex() if isinstance(value, bytes | bytearray | memoryview) else None
    if type_ in _WHOLE:
        return str(int(value)) if isinstance(value, int | Decimal) and value == int(value) else None
    if type_ == "decimal" or digits_of(type_):
        return _decimal(value)
    if type_ in ("real", "double"):
        return _float(value)
    if type_ == "interval" and isinstance(value, timedelta):
        return f"0 months 0 days {value // timedelta(microseconds=1)} microseconds"
    if type_ == "interval":
        # A database may write it in this form itself.
        return value if isinstance(value, str) else None
    if type_ in _TIMES:
        # A driver may give what Python's calendar does not have as text.
        return value if isinstance(value, str) else _moment(value) if isinstance(value, _TIMES[type_]) else None
    return json.dumps(_texts(value), ensure_ascii=False) if isinstance(value, list | tuple) else None


def _loose(value: Any, type_: str) -> str | None:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value).hex() if type_ == "any" else None
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)
    if isinstance(value, bool) or type_ == "json":
        return json.dumps(value, default=str)
    if isinstance(value, float):
        return _float(value)
    return str(value) if isinstance(value, int | Decimal | UUID | date | time | timedelta) or type_ != "uuid" else None


def _decimal(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        return f"{value:f}"
    return str(value) if isinstance(value, int) else _float(value)


def _float(value: Any) -> str | None:
    if not isinstance(value, int | float):
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return repr(value)


def _moment(value: date | time) -> str:
    if isinstance(value, datetime):
        then = value if value.tzinfo is None else value.astimezone(UTC)
        return then.isoformat(sep=" ")
    return value.isoformat()


def _array(value: Any) -> str:
    """An array as PostgreSQL writes it.

    >>> print(_array(["a", None, 'b"', [1]]))
    {"a",NULL,"b\\"",{"1"}}
    """
    if isinstance(value, list | tuple):
        return "{" + ",".join(map(_array, value)) + "}"
    if value is None:
        return "NULL"
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def _texts(value: Any) -> Any:
    return [_texts(one) for one in value] if isinstance(value, list | tuple) else None if value is None else str(value)
