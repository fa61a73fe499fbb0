"""Observations in PostgreSQL: partitions by ranges of tokens, and what may be forgotten.

Rules of this file:
1. A partition is made before its first token is recorded, and attached without stopping those who record.
2. A partition is dropped as a whole, once all in it is older than the horizon and held by checkpoints of the beliefs.
3. A partition that fills within a day is followed by a larger one, one that lasts too long by a smaller one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from struct import Struct
from typing import Any

from psycopg import sql

from unstale.adapters.postgres_copies import clean
from unstale.adapters.postgres_schema import PARTING, Connection, lock, through_all
from unstale.adapters.store_checks import LONGEST_REASON
from unstale.adapters.store_shared import NUMBER, elapsed, first_in_stretch, stride
from unstale.ports import Entry

#: tokens of the first partition, of the smallest and of the largest
FIRST, SMALLEST, LARGEST = 100_000, 10_000, 50_000_000
_DAY = 86_400.0
#: a binary COPY and its fields, each with its length before it: packed here it takes a third of the time
_COPIED_HEAD, _COPIED_TAIL, _NULL = b"PGCOPY\n\xff\r\n\0" + bytes(8), b"\xff\xff", b"\xff\xff\xff\xff"
_BEGIN, _END = Struct("!hiqiqidih"), Struct("!iqii")
_WHOLE, _FLOAT, _SIZE = Struct("!iq"), Struct("!id"), Struct("!i")
#: most rows, packed in one go: no reason, no time that the source or a signal told, and an answer before it
_PLAIN = Struct("!hiqiqidihidiiqiiqiii")
_FOLD = (
    "INSERT INTO checkpoints(source, latest, last, found, belief) "
    "SELECT source, latest, last, found, belief FROM beliefs WHERE {} "
    "ON CONFLICT (source) DO UPDATE SET latest = excluded.latest, last = excluded.last, found = excluded.found, "
    "belief = excluded.belief"
)


def cover(db: Connection, token: int, now: float, horizon: float) -> int:
    """Make room for observations up to a token, and drop what is old; the first token beyond."""
    with db.transaction():
        lock(db, PARTING)
        newest: Any = db.execute("SELECT first, beyond, made_at FROM parts ORDER BY first DESC LIMIT 1").fetchone()
        beyond: int = newest[1] if newest else 0
        if beyond > token:
            return beyond
        span = FIRST
        if newest:
            span, lasted = newest[1] - newest[0], now - newest[2]
            span = min(4 * span, LARGEST) if lasted < _DAY else span
            span = max(span // 4, SMALLEST) if lasted > stride(horizon) else span
        while beyond <= token:
            first, beyond = beyond, beyond + span
            span = min(4 * span, LARGEST)
            part = sql.Identifier(f"observations_{first}")
            db.execute(sql.SQL("CREATE TABLE {} (LIKE observations INCLUDING ALL)").format(part))
            db.execute(
                sql.SQL("ALTER TABLE observations ATTACH PARTITION {} FOR VALUES FROM ({}) TO ({})").format(
                    part, first, beyond
                )
            )
            db.execute("INSERT INTO parts(first, beyond, made_at) VALUES (%s, %s, %s)", (first, beyond, now))
    drop_old(db, now, horizon)
    return beyond


def drop_old(db: Connection, now: float, horizon: float) -> int:
    """Drop the oldest partitions that are beyond the horizon and checkpointed; how many."""
    dropped = 0
    while not math.isinf(horizon):
        with db.transaction():
            lock(db, PARTING)
            parts: Any = db.execute("SELECT first, beyond, made_at FROM parts ORDER BY first LIMIT 2").fetchall()
            # The next one was made when this one was full.
            if len(parts) < 2 or parts[1][2] >= now - horizon:
                return dropped
            first, beyond, _ = parts[0]
            part = sql.Identifier(f"observations_{first}")
            through_all(db)
            # A source that was not polled since is folded now; one that was, when its polls pass the next stride.
            db.execute(
                sql.SQL(_FOLD).format(
                    sql.SQL("latest > 0 AND latest < {} AND source IN (SELECT source FROM {})").format(beyond, part)
                )
            )
            needed: Any = db.execute(
                sql.SQL(
                    "SELECT EXISTS (SELECT 1 FROM {} o JOIN beliefs USING (source) LEFT JOIN checkpoints c "
                    "USING (source) WHERE c.latest IS NULL OR o.token > c.latest OR "
                    "(o.polled_at >= {} AND o.polled_at <= {}))"
                ).format(part, now - horizon, now)
            ).fetchone()
            if needed[0]:
                return dropped
            db.execute(sql.SQL("DROP TABLE {}").format(part))
            db.execute("DELETE FROM parts WHERE first = %s", (first,))
            db.execute(
                "DELETE FROM epochs WHERE id < (SELECT coalesce(min(epoch), 0) FROM observations WHERE token = "
                "(SELECT min(token) FROM observations))"
            )
            dropped += 1
    return dropped


def forget(db: Connection, sources: Sequence[int]) -> None:
    """Begin beliefs anew, and remember from which observation on. Inside a transaction."""
    which = sorted({int(source) for source in sources})
    db.execute("SELECT 1 FROM beliefs WHERE source = ANY(%s) ORDER BY source FOR UPDATE", (which,))
    db.execute("UPDATE beliefs SET belief = NULL WHERE source = ANY(%s)", (which,))
    db.execute(_FOLD.format("source = ANY(%s)").encode(), (which,))


def checkpoint(db: Connection, entries: Sequence[Entry], horizon: float) -> None:
    """Keep the belief as it was before these polls, where they are a source's first in a new stretch of time."""
    new = [e.claim.source for e in entries if first_in_stretch(e, horizon)]
    if new:
        db.execute(_FOLD.format("source = ANY(%s)").encode(), (new,))


def observe(db: Connection, entries: Sequence[Entry], epoch: int) -> None:
    """Append what polls taught."""
    rows = [_COPIED_HEAD]
    for e in entries:
        claim, taken = e.claim, elapsed(e)
        if not e.reason and e.modified is None and e.told is None and taken is not None:
            found = e.polled_at, 2, NUMBER[e.answer], 8, taken
            rows.append(
                _PLAIN.pack(
                    11, 8, claim.token, 8, claim.source, 8, *found, -1, 8, e.received, -1, 8, claim.latest, 4, epoch, -1
                )
            )
            continue
        rows += (
            _BEGIN.pack(11, 8, claim.token, 8, claim.source, 8, e.polled_at, 2, NUMBER[e.answer]),
            _float(taken),
            _float(e.modified),
            _WHOLE.pack(8, e.received),
            _text(clean(e.reason[:LONGEST_REASON]) if e.reason else None),
            _END.pack(8, claim.latest, 4, epoch),
            _float(e.told),
        )
    rows.append(_COPIED_TAIL)
    with (
        db.cursor() as cursor,
        cursor.copy(
            "COPY observations(token, source, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, "
            "told) FROM STDIN (FORMAT binary)"
        ) as copy,
    ):
        copy.write(b"".join(rows))


def _float(value: float | None) -> bytes:
    return _NULL if value is None else _FLOAT.pack(8, value)


def _text(value: str | None) -> bytes:
    if not value:
        return _NULL
    data = value.encode()
    return _SIZE.pack(len(data)) + data
