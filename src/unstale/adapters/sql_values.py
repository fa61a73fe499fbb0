"""What a value of any database becomes in SQLite, and the hash by which two rows are the same.

    NULL                      NULL
    boolean                   0 or 1
    integer                   integer; beyond 64 bits its digits as text
    float                     real; NaN, which SQLite does not have, as the text 'NaN'
    decimal                   text, every digit kept
    text                      text; what is not valid UTF-8 as a blob of its bytes
    bytes                     blob
    timestamp                 text, '2026-01-31 13:45:00.000000'; with a zone: in UTC, ending in '+00:00'
    date, time                text as in ISO 8601
    interval                  seconds; from PostgreSQL its text
    JSON, arrays, composites  JSON text, keys sorted; PostgreSQL's json and jsonb as they are printed
    anything else             its text (UUIDs, network addresses, ranges, ...)

PostgreSQL's dates and times come as it prints them in UTC, because 'infinity' and the year 10000 exist there.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from hashlib import blake2b
from typing import Any

from unstale.errors import InputError, sentence

#: what SQLite can hold
Plain = int | float | str | bytes | None
#: bytes of a row's hash, and of the digest of a table
WIDTH = 16
_LEAST, _MOST = -(2**63), 2**63 - 1


def plain(value: Any) -> Plain:
    """`value` as SQLite keeps it; the table above says how.

    >>> [plain(v) for v in (True, 2**64, float("nan"), Decimal("1.50"), [1, None], timedelta(minutes=1))]
    [1, '18446744073709551616', 'NaN', '1.50', '[1,null]', 60.0]
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value) if _LEAST <= value <= _MOST else str(int(value))
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else float(value)
    if isinstance(value, datetime):
        then: datetime = value
        # The first and last hours of all time stay in their own zone.
        with suppress(OverflowError):
            then = value if value.tzinfo is None else value.astimezone(UTC)
        return then.isoformat(sep=" ", timespec="microseconds")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, dict | list | tuple | set | frozenset):
        return _json(value)
    return _named(value)


def row_hash(values: Sequence[Plain]) -> bytes:
    """The same for the same values only; 1, 1.0, '1' and b'1' are four values.

    >>> row_hash([1, "a"]).hex()
    'd4d983a1d4800117f54e6787d0da687e'
    """
    # ascii() tells types apart, ends every value, and is the same in every version of Python.
    return blake2b(ascii(tuple(values)).encode("ascii"), digest_size=WIDTH).digest()


def size(values: Sequence[Plain]) -> int:
    """The bytes that values take: their length, or 8 for a number.

    >>> size([7, "abc", None])
    11
    """
    return sum(len(v) if isinstance(v, str | bytes) else 8 for v in values if v is not None)


def moved(digest: bytes, by: int) -> bytes:
    """The digest of a table after rows have come and gone: the sum of its rows' hashes, whatever their order.

    >>> moved(bytes(WIDTH), int.from_bytes(row_hash([1]))) == row_hash([1])
    True
    """
    total: int = (int.from_bytes(digest) + by) % 256**WIDTH
    return total.to_bytes(WIDTH)


def _text(value: str) -> str | bytes:
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode(errors="surrogateescape") if _escaped(value) else value.encode(errors="surrogatepass")
    return str(value)


def _escaped(value: str) -> bool:
    return all(not 0xD800 <= ord(c) <= 0xDFFF or 0xDC80 <= ord(c) <= 0xDCFF for c in value)


def _json(value: Any) -> str:
    if isinstance(value, set | frozenset):
        value = sorted(value, key=repr)
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_in_json)


def _in_json(value: Any) -> Any:
    found = plain(value)
    return found.hex() if isinstance(found, bytes) else found


def _named(value: Any) -> str:
    if isinstance(value, Decimal):
        return str(value)
    if object.__repr__(value) == str(value):
        # Its text would name a place in memory, and be another one at every poll.
        raise InputError(
            sentence("column", f"of type {type(value).__name__}", "has no text of its own", "leave it out with a query")
        )
    return str(value)
