"""What may be forgotten: observations beyond the horizon, once a checkpoint of the belief holds what they taught.

A checkpoint is the belief as it was after one observation, `latest`. Checkpoint and the observations after it give
the belief of today, whatever was dropped before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import apsw

from unstale.adapters import sqlite_epochs
from unstale.adapters.sqlite_states import StoreConnection, settle
from unstale.adapters.store_shared import first_in_stretch, stride
from unstale.ports import Entry

#: at most so many old observations are looked at per new one, so that catching up never stops the engine
_LOOKS = 4
#: a share of the horizon: so long a time without an observation is one in which nothing ran
_GAP = 1 / 30
_FOLD = (
    "INSERT OR REPLACE INTO checkpoints(source, latest, last, found, belief) "
    "SELECT source, latest, last, found, belief FROM beliefs WHERE "
)


#: the setting that holds until when observations may have been dropped, and seconds after which it is kept anew
RETAINED, KEPT = "retained", 60.0


class Retention:
    """Until when observations, prices and events may be dropped: the horizon, in time that was observed.

    A clock that jumps forward by years makes nothing old. With `steady`, a monotonic clock, the limit moves on no
    faster than that one; across restarts it stands still, and it is never later than the wall clock allows. Without,
    times are taken for what they say.

    Nor does a clock that was set back: it dates what is recorded years before it was. So the limit is noted now and
    then with the last observation that there was, and whatever came after one of these is no older than that.
    """

    def __init__(self, horizon: float, steady: Callable[[], float] | None) -> None:
        self._horizon, self._steady = horizon, steady
        self._at = self._kept = math.nan
        self._marks: list[tuple[float, int]] = []
        self._limit: float | None = None
        self._dropping = False

    def limit(self, db: apsw.Connection, now: float) -> float:
        """What is dated before this may go."""
        latest = now - self._horizon
        if self._steady is None or math.isinf(latest):
            return latest
        here = self._steady()
        oldest = db.execute("SELECT polled_at FROM observations ORDER BY token LIMIT 1").get
        if self._limit is None:
            known = db.execute("SELECT value FROM settings WHERE name = ?", (RETAINED,)).get
            first, *marks = known.decode().split() if known else [""]
            self._marks = [(float(limit), int(token)) for limit, _, token in (one.partition(":") for one in marks)]
            self._kept = float(first) if known else -math.inf
            self._limit = self._kept if known else min(latest, latest if oldest is None else oldest)
            self._at = here
        # It is not set back with the wall clock: that may be set forward again.
        self._limit, self._at = self._limit + (here - self._at), here
        if self._dropping and oldest is not None and oldest - self._limit > _GAP * self._horizon:
            # What was recorded before a time in which nothing ran is gone: the limit steps over that time.
            self._limit = oldest
        self._dropping = oldest is not None and oldest <= self._limit
        if not self._marks or self._limit - self._marks[-1][0] >= _GAP * self._horizon:
            token = db.execute("SELECT max(token) FROM observations").get or 0
            self._marks = [one for one in self._marks if self._limit - one[0] < self._horizon] + [(self._limit, token)]
            self._kept = -math.inf
        if abs(self._limit - self._kept) >= KEPT:
            self._kept = self._limit
            said = " ".join([repr(self._limit), *(f"{limit!r}:{token}" for limit, token in self._marks)])
            db.execute(
                "INSERT INTO settings(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (RETAINED, said.encode()),
            )
        return min(self._limit, latest)

    def last_old(self) -> float:
        """The last observation that can be as old as the horizon; whatever the later ones say, they are not."""
        if self._steady is None or self._limit is None:
            return math.inf
        return next((token for limit, token in self._marks if self._limit - limit < self._horizon), math.inf)


def checkpoint(db: apsw.Connection, entries: Iterable[Entry], horizon: float) -> None:
    """Keep the belief as it was before these polls, where they are a source's first in a new stretch of time."""
    length = stride(horizon)
    if math.isinf(length):
        return
    first = [
        (claim.source,)
        for e in entries
        for claim in (e.claim,)
        # As nearly always: the same stretch as the poll before.
        if not (claim.last > -math.inf and e.polled_at // length == claim.last // length)
        and first_in_stretch(e, horizon)
    ]
    if first:
        db.executemany(_FOLD + "source = ?", first)


def forget(db: StoreConnection, sources: Iterable[int]) -> None:
    """Begin beliefs anew, and remember from which observation on. Inside a transaction."""
    which = [(int(source),) for source in sources]
    db.executemany("UPDATE beliefs SET belief = NULL WHERE source = ?", which)
    settle(db, len(which))
    db.executemany(_FOLD + "source = ?", which)


def drop_old(db: apsw.Connection, now: float, limit: float, last_old: float, recorded: int) -> None:
    """Drop what is dated before the limit and checkpointed, from the old end.

    Age is decided by tokens where clocks jumped: what was recorded before something old is old, even if it is dated
    in the future; what is dated within the horizon stays, and so does what came after the last that can be old.
    """
    last = db.execute(
        "SELECT max(token) FROM (SELECT token, polled_at FROM observations ORDER BY token LIMIT ?) "
        "WHERE polled_at < ? AND token <= ?",
        (_LOOKS * recorded, limit, last_old),
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
