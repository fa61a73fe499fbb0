"""Entries of feeds in SQLite: each once, from the first version of the feed that had it to the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from unstale.listings.feed_entries import MOST_ENTRIES, ToldEntry
from unstale.ports import KeptEntry

COLUMNS = "number, title, link, time, first_at, last_at, first_version, last_version, edits, edited_at"


def keep(db: apsw.Connection, source: int, version: int, at: float, told: Sequence[ToldEntry]) -> None:
    """Take up what a version of a feed tells. Inside a transaction."""
    newest = db.execute("SELECT max(number) FROM entries WHERE source = ?", (source,)).get or 0
    # A feed has its newest entry on top, which gets the highest number.
    db.executemany(
        "INSERT INTO entries(source, number, name, digest, title, link, time, first_at, last_at, first_version, "
        "last_version, edits) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?9, ?9, 0) "
        "ON CONFLICT(source, name) DO UPDATE SET digest = excluded.digest, title = excluded.title, "
        "link = excluded.link, time = excluded.time, last_at = excluded.last_at, last_version = excluded.last_version, "
        "edits = edits + (digest <> excluded.digest), "
        "edited_at = CASE WHEN digest <> excluded.digest THEN excluded.last_at ELSE edited_at END",
        [
            (source, newest + len(told) - i, one.name, one.digest, one.title, one.link, one.time, at, version)
            for i, one in enumerate(told)
        ],
    )


def drop(db: apsw.Connection, source: int, version: int, limit: float) -> None:
    """Let go what the newest version has not and was last seen before the limit, and what is too many."""
    db.execute("DELETE FROM entries WHERE source = ? AND last_version < ? AND last_at < ?", (source, version, limit))
    more = count(db, source) - MOST_ENTRIES
    if more > 0:
        db.execute(
            "DELETE FROM entries WHERE source = ?1 AND number IN (SELECT number FROM entries "
            "WHERE source = ?1 AND last_version < ?2 ORDER BY number LIMIT ?3)",
            (source, version, more),
        )


def read(db: apsw.Connection, source: int, limit: int, before: int | None) -> list[KeptEntry]:
    """Entries of a feed, newest first."""
    rows: Any = db.execute(
        f"SELECT {COLUMNS} FROM entries WHERE source = ? AND number < ? ORDER BY number DESC LIMIT ?",
        (source, 2**62 if before is None else before, limit),
    )
    return [KeptEntry(*row) for row in rows]


def count(db: apsw.Connection, source: int) -> int:
    """How many entries of a feed are kept."""
    return int(db.execute("SELECT count(*) FROM entries WHERE source = ?", (source,)).get or 0)
