"""Columns of what people write for a point in time: numbers, Arrow timestamps, ISO 8601, RFC 822."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unstale.core.checks import Floats
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.moments import moment as moment

#: the first second of the year 1: what is earlier is no date
FIRST = -62_135_596_800.0
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_UNITS = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}


@dataclass(frozen=True, slots=True)
class Times:
    """A column of times: seconds since the epoch, NaN where there is none; which were missing, which had no zone."""

    seconds: Floats
    missing: np.ndarray
    zoneless: np.ndarray


def column(name: str, values: pa.ChunkedArray) -> Times:
    """The times in a column of numbers (Unix seconds), timestamps, dates or text."""
    kind = values.type
    if pa.types.is_dictionary(kind):
        return column(name, values.cast(kind.value_type))
    missing = values.is_null().to_numpy()
    none = np.zeros(len(values), dtype=bool)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Times(_sane(values.cast(pa.float64(), safe=False).to_numpy()), missing, none)
    if pa.types.is_date(kind):
        values, kind = values.cast(pa.timestamp("s")), pa.timestamp("s")
    if pa.types.is_timestamp(kind):
        ticks = values.cast(pa.int64()).fill_null(0).to_numpy()
        seconds = np.where(missing, np.nan, ticks / _UNITS[kind.unit])
        return Times(_sane(seconds), missing, none if kind.tz else ~missing)
    if pa.types.is_null(kind):
        return Times(np.full(len(values), np.nan), missing, none)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _texts(values.cast(pa.string()))
    raise InputError(sentence("column", repr(name), f"holds {kind}, not times", "give Unix seconds or ISO 8601 texts"))


def _texts(values: pa.ChunkedArray) -> Times:
    bare = pc.utf8_trim_whitespace(values)
    missing = pc.equal(pc.fill_null(bare, ""), "").to_numpy()
    numeric = pc.fill_null(pc.match_substring_regex(bare, _NUMBER), False)
    seconds = pc.if_else(numeric, bare, None).cast(pa.float64()).to_numpy().copy()
    zoneless = np.zeros(len(seconds), dtype=bool)
    rest = np.flatnonzero(~missing & ~numeric.to_numpy())
    # Many sources change at the same moments, and a table names them all.
    known = cache(moment)
    for row, text in zip(rest.tolist(), bare.take(pa.array(rest)).to_pylist(), strict=True):
        seconds[row], zoneless[row] = known(text)
    return Times(_sane(seconds), missing, zoneless)


def _sane(seconds: Floats) -> Floats:
    return np.where(np.isfinite(seconds) & (seconds >= FIRST), seconds, np.nan)
