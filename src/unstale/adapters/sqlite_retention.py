"""What may be forgotten: observations beyond the horizon, once a checkpoint of the belief holds what they taught.

A checkpoint is the belief as it was after one observation, `latest`. Checkpoint and the observations after it give
the belief of today, whatever was dropped before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apsw

from unstale.adapters import sqlite_epochs
from unstale.adapters.store_shared import first_in_stretch
from unstale.ports import Entry

#: at most so many old observations are looked at per new one, so that catching up never stops the engine
_LOOKS = 4
_FOLD = (
    "INSERT OR REPLACE INTO checkpoints(source, latest, last, found, belief) "
    "SELECT source, latest, last, found, belief FROM beliefs WHERE "
)


def checkpoint(db: apsw.Connection, entries: Iterable[Entry], horizon: float) -> None:
    """Keep the belief as it was before these polls, where they are a source's first in a new stretch of time."""
    db.executemany(_FOLD + "source = ?", ((e.claim.source,) for e in entries if first_in_stretch(e, horizon)))


def drop_old(db: apsw.Connection, now: float, horizon: float, recorded: int) -> None:
    """Drop what is older than the horizon and checkpointed, from the old end.

    Age is decided by tokens where clocks jumped: what was recorded before something old is old, even if it is dated
    in the future; what is dated within the horizon stays.
    """
    limit = now - horizon
    last = db.execute(
        "SELECT max(token) FROM (SELECT token, polled_at FROM observations ORDER BY token LIMIT ?) WHERE polled_at < ?",
        (_LOOKS * recorded, limit),
    ).get
    if last is None:
        return
    # A source that was not polled since is folded now; one that was, when its polls pass the next stride.
    db.execute(_FOLD + "latest <= ?1 AND source IN (SELECT source FROM observations WHERE token <= ?1)", (last,))
    gone: Any = db.execute(
        "DELETE FROM observations WHERE token <= ? AND (polled_at < ? OR polled_at > ?) AND token <= "
        "(SELECT latest FROM checkpoints c WHERE c.source = observations.source) RETURNING epoch",
        (last, limit, now),
    ).fetchall()
    sqlite_epochs.release(db, gone)
