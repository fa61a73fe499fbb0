"""Arrays in PostgreSQL's binary form: what goes with every batch is packed at once, not number by number as text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from unstale.adapters.postgres_schema import Connection

_HEAD, _SIZE = struct.Struct("!iiIii"), struct.Struct("!i")


class _Int8s(bytes):
    __slots__ = ()


class _Int4s(bytes):
    __slots__ = ()


class _Float8s(bytes):
    __slots__ = ()


class _Byteas(bytes):
    __slots__ = ()


def int8s(values: Sequence[int]) -> bytes:
    """A bigint[]."""
    return _Int8s(_numbers(20, 8, ">i8", values))


def int4s(values: Sequence[int]) -> bytes:
    """An int[]."""
    return _Int4s(_numbers(23, 4, ">i4", values))


def float8s(values: Sequence[float | None]) -> bytes:
    """A float8[]; for None there is NaN.

    >>> float8s([1.0, None])[20:].hex(" ", -4)
    '00000008 3ff00000 00000000 00000008 7ff80000 00000000'
    """
    return _Float8s(_numbers(701, 8, ">f8", values))


def byteas(values: Sequence[bytes | None]) -> bytes:
    """A bytea[]; None is NULL."""
    parts = [part for one in values for part in ((_SIZE.pack(-1),) if one is None else (_SIZE.pack(len(one)), one))]
    return _Byteas(_HEAD.pack(1, None in values, 17, len(values), 1) + b"".join(parts))


def register(db: Connection) -> None:
    """Let a connection take them as parameters."""
    for kind, number in ((_Int8s, 1016), (_Int4s, 1007), (_Float8s, 1022), (_Byteas, 1001)):
        db.adapters.register_dumper(kind, type(kind.__name__, (_PackedDumper,), {"oid": number}))


class _PackedDumper(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


def _numbers(element: int, size: int, kind: str, values: Sequence[Any]) -> bytes:
    rows = np.empty(len(values), [("size", ">i4"), ("value", kind)])
    rows["size"] = size
    rows["value"] = values
    return _HEAD.pack(1, 0, element, len(values), 1) + rows.tobytes()
