"""The cheap look at a table that tells whether it must be read, and from where.

    changed   count(*), the newest value of the column of last change, and the rows within `overlap` of it: a commit
              that comes late, or a second change within one tick of the clock, lies there. PostgreSQL hashes these
              rows itself; elsewhere only their number counts if they are more than WINDOW. A change that does not
              touch the column is found at the next sweep.
    xmin      PostgreSQL: count(*) and the sum of the hashed transaction numbers of all row versions. A sum needs no
              order, so neither the wraparound of the 32-bit numbers nor a late commit can hide a change. A view has
              no such numbers. Rows are then read from the oldest transaction that still ran at the last reading.
    checksum  PostgreSQL, MySQL, MariaDB: the sum of the hashes of all rows as text; `sql_changed_ranges` tells which
              rows are read then. Elsewhere there is no probe: rows are read and compared at every poll.
    count     count(*) alone, for tables that only grow.

Names, key and wanted types are part of every probe, for a column that comes or goes touches no row; so are their places
and the primary key where nothing but row versions would tell.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from unstale.adapters.sql_ranges import MYSQL
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_values import plain, row_hash
from unstale.errors import require
from unstale.frozen import dataclass

#: the 64-bit number of a transaction, from the next one to be given out and the 32 bits that a row keeps
FULL_XID = "{following} - mod({following} - {kept}, 4294967296)"
#: rows near the newest change that a probe reads
WINDOW = 10_000
#: the sum of the hashes of rows as PostgreSQL writes them
ROW_SUM = "coalesce(sum(hashtextextended((q.*)::text, 0)), 0)::text"
_MYSQL_SUM = "sum(CAST(conv(left(md5(concat_ws(',', {0})), 15), 16, 10) AS unsigned))"
_FOLLOWING = "txid_snapshot_xmax(txid_current_snapshot())"
# A column that was dropped and came again touches no row, though its value is another; nor does another key.
_XMIN = """
SELECT count(*), coalesce(sum(hashint8extended(q.xmin::text::bigint, 0)), 0)::text,
    txid_snapshot_xmin(txid_current_snapshot()), txid_snapshot_xmax(txid_current_snapshot()),
    (SELECT string_agg(attnum::text, ',' ORDER BY attnum) FROM pg_attribute
        WHERE attrelid = to_regclass(:full) AND attnum > 0 AND NOT attisdropped),
    (SELECT conkey::text FROM pg_constraint WHERE conrelid = to_regclass(:full) AND contype = 'p')
FROM {full} AS q
"""


@dataclass(frozen=True, slots=True)
class Look:
    """What a probe saw: its text (empty if there is none), how many rows, from where the next reading may begin.

    `since` is the condition for rows that may have changed after a mark, None where all must be read.
    """

    kind: str
    probe: str
    rows: int
    mark: str = ""
    since: Any = None
    changed_at: float | None = None


def look(source: Source, columns: Sequence[str], mark: str) -> Look:
    """Probe a table whose copy was last read up to `mark` (empty: never)."""
    wanted = source.ask
    kind = wanted.probe
    if kind == "auto":
        kind = "changed" if wanted.changed else "xmin" if source.is_plain_table() else "checksum"
    if kind == "xmin":
        require(source.is_plain_table(), "probe", "'xmin'", "needs a table of PostgreSQL", "choose checksum")
    shape = [kind, *columns, "key", *wanted.key, *(part for pair in sorted(wanted.types.items()) for part in pair)]
    shape += ["partition", *wanted.partition] if wanted.partition else []
    if kind == "changed":
        return _changed(source, shape, mark)
    if kind == "xmin":
        return _xmin(source, shape, mark)
    if kind == "checksum" and source.dialect in ("postgresql", *MYSQL):
        rows, total = source.one("count(*)", row_sum(source, columns))
        return Look(kind, _hashed(shape, rows, total), rows)
    (rows,) = source.one("count(*)")
    return Look(kind, _hashed(shape, rows) if kind == "count" else "", rows)


def row_sum(source: Source, names: Sequence[str]) -> str:
    """What the hashes of rows of PostgreSQL, MySQL or MariaDB add up to, in SQL."""
    if source.dialect == "postgresql":
        return ROW_SUM
    return _MYSQL_SUM.format(", ".join(f"coalesce(hex(concat(q.{source.quoted(name)})), '-')" for name in names))


def _changed(source: Source, shape: list[str], mark: str) -> Look:
    column, overlap = source.quoted(source.ask.changed), source.ask.overlap
    rows, filled, newest = source.one("count(*)", f"count({column})", f"max({column})")
    near: int = 0
    within: object = 0
    begin = before(newest, overlap)
    if begin is not None:
        window = source.condition(f"{column} >= :value", value=begin)
        (near,) = source.one("count(*)", where=window)
        if source.dialect == "postgresql":
            (within,) = source.one(ROW_SUM, where=window)
        elif near <= WINDOW:
            within = sum(int.from_bytes(row_hash([plain(v) for v in row])) for row in source.rows(where=window))
    since = None
    # The newest row may have been deleted: what came after the one before it is read from there.
    earlier = before(_earlier(newest, mark), overlap) if mark and begin is not None else None
    if earlier is not None:
        since = source.condition(f"{column} >= :value OR {column} IS NULL", value=earlier)
    probe = _hashed(shape, rows, filled, plain(newest), near, within)
    return Look("changed", probe, rows, json.dumps(plain(newest), default=bytes.hex), since, _time(newest))


def _xmin(source: Source, shape: list[str], mark: str) -> Look:
    ((rows, total, running, following, places, key),) = source.told(_XMIN)
    since = None
    known, _, had = mark.partition(" ")
    # A mark from the future is that of another server, or of one that was set back. One from before there were places
    # is believed.
    if known and int(known) <= following and had in ("", places):
        written = FULL_XID.format(following=_FOLLOWING, kept="q.xmin::text::bigint")
        since = source.condition(f"{written} >= :value", value=int(known))
    return Look("xmin", _hashed(shape, rows, total, places, key), rows, f"{running} {places}", since)


def before(newest: Any, overlap: float) -> Any:
    """The value `overlap` before the newest one, never later; None if it cannot be told.

    Times go back by seconds; numbers by their own unit. Text must be a time as in ISO 8601, or a number.

    >>> before("2026-01-31T00:01:00.5Z", 60.0), before(7, 2.0), before("yesterday", 1.0)
    ('2026-01-31T00:00:00', 5, None)
    """
    try:
        if isinstance(newest, bool) or newest is None:
            return None
        if isinstance(newest, int):
            return newest - int(overlap + 1) if overlap % 1 else newest - int(overlap)
        if isinstance(newest, float):
            return newest - overlap
        if isinstance(newest, Decimal):
            return newest - Decimal(overlap)
        if isinstance(newest, datetime):
            return newest - timedelta(seconds=overlap)
        if isinstance(newest, date):
            return newest - timedelta(days=overlap // 86400 + 1)
        return _text_before(newest, overlap) if isinstance(newest, str) else None
    except (OverflowError, ValueError, InvalidOperation):
        return None


def _text_before(newest: str, overlap: float) -> str:
    if newest.lstrip("-").replace(".", "", 1).isdecimal():
        return str(Decimal(newest) - Decimal(overlap))
    then = datetime.fromisoformat(newest) - timedelta(seconds=overlap)
    # A shorter text sorts before all that begin with it, so whole seconds and no zone are early enough.
    return then.strftime("%Y-%m-%d") if len(newest) == 10 else then.strftime(f"%Y-%m-%d{newest[10]}%H:%M:%S")


def _earlier(newest: Any, mark: str) -> Any:
    """The lesser of the newest value and that of the last reading, in the newest one's type; None if they differ."""
    kept = json.loads(mark)
    try:
        if isinstance(newest, datetime):
            kept = datetime.fromisoformat(kept)
            kept = kept if newest.tzinfo is None or kept is None else kept.astimezone(newest.tzinfo)
        elif isinstance(newest, date):
            kept = date.fromisoformat(kept)
        elif isinstance(newest, Decimal):
            kept = Decimal(kept)
        elif isinstance(newest, str) and newest.lstrip("-").replace(".", "", 1).isdecimal():
            return min(newest, kept, key=Decimal)
        return min(newest, kept)
    except (TypeError, ValueError, InvalidOperation):
        return None


def _time(newest: Any) -> float | None:
    """The newest change in seconds since the epoch, where its zone is known."""
    try:
        then = datetime.fromisoformat(newest) if isinstance(newest, str) else newest
        return then.astimezone(UTC).timestamp() if isinstance(then, datetime) and then.tzinfo else None
    except (ValueError, OverflowError):
        return None


def _hashed(shape: list[str], *seen: Any) -> str:
    return row_hash([*shape, *map(plain, seen)]).hex()
