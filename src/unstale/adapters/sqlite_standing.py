"""Who stands otherwise in SQLite than was told: compared by SQLite, so that only what differs becomes objects.

Rules of this file:
1. What was told lies in a table of the connection's own, in memory: the store is not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import apsw

from unstale.ports import Head

_TABLE = (
    "PRAGMA temp_store = MEMORY;"
    "CREATE TEMP TABLE told(source INTEGER PRIMARY KEY, latest, version, checked, due, failures)"
)
_UNLIKE = (
    "SELECT t.source, b.latest, b.version, b.last, b.due, b.failures "
    "FROM temp.told t LEFT JOIN beliefs b ON b.source = t.source "
    "WHERE b.latest IS NOT t.latest OR b.due IS NOT t.due OR b.failures IS NOT t.failures OR b.last IS NOT t.checked "
    "OR b.version IS NOT t.version"
)


class ToldHeads:
    """What one connection was told, as the table has it."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db, self._told = db, dict[int, Head]()
        db.execute(_TABLE)

    def unlike(self, told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        """Those that stand otherwise now, and those that are gone."""
        # Nothing is known of the table while it is written: then all of it is written anew.
        before, self._told = self._told, {}
        if not before:
            self._db.execute("DELETE FROM temp.told")
        self._db.executemany("DELETE FROM temp.told WHERE source = ?", [(one,) for one in before.keys() - told.keys()])
        # Of most it is the same object as last time.
        new = [head for source, head in told.items() if before.get(source) is not head]
        self._db.executemany("INSERT OR REPLACE INTO temp.told VALUES (?, ?, ?, ?, ?, ?)", new)
        self._told = dict(told)
        rows: Any = self._db.execute(_UNLIKE).fetchall()
        return [Head._make(row) for row in rows if row[1] is not None], [row[0] for row in rows if row[1] is None]
