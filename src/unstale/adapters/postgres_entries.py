"""Entries of feeds in PostgreSQL: each once, from the first version of the feed that had it to the last."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unstale.adapters.feed_versions import Told
from unstale.adapters.postgres_schema import Connection
from unstale.adapters.sqlite_entries import COLUMNS
from unstale.listings.feed_entries import MOST_ENTRIES, ToldEntry
from unstale.ports import KeptEntry


def keep(db: Connection, source: int, version: int, at: float, told: Sequence[ToldEntry]) -> None:
    """Take up what a version of a feed tells. Inside a transaction that holds the source's claim."""
    row: Any = db.execute("SELECT coalesce(max(number), 0) FROM entries WHERE source = %s", (source,)).fetchone()
    # A feed has its newest entry on top, which gets the highest number.
    db.execute(
        "INSERT INTO entries(source, number, name, digest, title, link, time, first_at, last_at, first_version, "
        "last_version, edits) SELECT %s, number, name, digest, title, link, time, %s, %s, %s, %s, 0 "
        "FROM unnest(%s::bigint[], %b::bytea[], %b::bytea[], %s::text[], %s::text[], %s::text[]) "
        "n(number, name, digest, title, link, time) ON CONFLICT (source, name) DO UPDATE SET "
        "digest = excluded.digest, title = excluded.title, link = excluded.link, time = excluded.time, "
        "last_at = excluded.last_at, last_version = excluded.last_version, "
        "edits = entries.edits + (entries.digest <> excluded.digest)::int, "
        "edited_at = CASE WHEN entries.digest <> excluded.digest THEN excluded.last_at ELSE entries.edited_at END",
        (
            source,
            at,
            at,
            version,
            version,
            [row[0] + len(told) - i for i in range(len(told))],
            [one.name for one in told],
            [one.digest for one in told],
            [one.title for one in told],
            [one.link for one in told],
            [one.time for one in told],
        ),
    )


def take_up(db: Connection, again: bool, *, source: int, earlier: Sequence[tuple[int, float, Told]]) -> None:
    """Take up what the versions of a feed told that were kept before its entries were."""
    for version in earlier:
        keep(db, source, *version)


def drop(db: Connection, source: int, version: int, limit: float) -> None:
    """Let go what the newest version has not and was last seen before the limit, and what is too many."""
    db.execute("DELETE FROM entries WHERE source = %s AND last_version < %s AND last_at < %s", (source, version, limit))
    more = count(db, source) - MOST_ENTRIES
    if more > 0:
        db.execute(
            "DELETE FROM entries WHERE source = %s AND number IN (SELECT number FROM entries "
            "WHERE source = %s AND last_version < %s ORDER BY number LIMIT %s)",
            (source, source, version, more),
        )


def read(db: Connection, source: int, limit: int, before: int | None) -> list[KeptEntry]:
    """Entries of a feed, newest first."""
    rows: Any = db.execute(
        f"SELECT {COLUMNS} FROM entries WHERE source = %s AND number < %s ORDER BY number DESC LIMIT %s".encode(),
        (source, 2**62 if before is None else before, limit),
    ).fetchall()
    return [KeptEntry(*row) for row in rows]


def count(db: Connection, source: int) -> int:
    """How many entries of a feed are kept."""
    row: Any = db.execute("SELECT count(*) FROM entries WHERE source = %s", (source,)).fetchone()
    return int(row[0])
