"""The log of edits in SQLite: who changed what, the newest of it."""

from __future__ import annotations

from typing import Any

import apsw

from unstale.ports import MOST_EDITS, Edit


def keep(db: apsw.Connection, at: float, who: str, what: str) -> None:
    """Note an edit, and let go what is too much. Inside a transaction."""
    db.execute("INSERT INTO edits(at, who, what) VALUES (?, ?, ?)", (at, who, what))
    db.execute("DELETE FROM edits WHERE number <= ?", (db.last_insert_rowid() - MOST_EDITS,))


def read(db: apsw.Connection, limit: int, before: int | None) -> list[Edit]:
    """Edits, newest first."""
    rows: Any = db.execute(
        "SELECT number, at, who, what FROM edits WHERE number < ? ORDER BY number DESC LIMIT ?",
        (2**62 if before is None else before, limit),
    )
    return [Edit(*row) for row in rows]
