"""The log of edits in PostgreSQL: who changed what, the newest of it."""

from __future__ import annotations

from typing import Any

from unstale.adapters.postgres_copies import clean
from unstale.adapters.postgres_schema import EDITING, Connection, lock
from unstale.ports import MOST_EDITS, Edit


def keep(db: Connection, at: float, who: str, what: str) -> None:
    """Note an edit, and let go what is too much. Inside a transaction."""
    lock(db, EDITING)
    row: Any = db.execute(
        "INSERT INTO edits SELECT coalesce(max(number), 0) + 1, %s, %s, %s FROM edits RETURNING number",
        (at, clean(who), clean(what)),
    ).fetchone()
    db.execute("DELETE FROM edits WHERE number <= %s", (row[0] - MOST_EDITS,))


def read(db: Connection, limit: int, before: int | None) -> list[Edit]:
    """Edits, newest first."""
    rows: Any = db.execute(
        "SELECT number, at, who, what FROM edits WHERE number < %s ORDER BY number DESC LIMIT %s",
        (2**62 if before is None else before, limit),
    ).fetchall()
    return [Edit(*row) for row in rows]
