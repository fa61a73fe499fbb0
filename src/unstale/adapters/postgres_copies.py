"""Copies in PostgreSQL: compressed bytes beside their SHA-256, against which they are checked when read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from secrets import token_bytes
from typing import Any

from unstale.adapters.postgres_schema import Connection
from unstale.adapters.store_shared import damaged_copy, kept_versions, packed, unpacked
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Copy, Entry

_NEWEST = 2**31 - 1


def clean(text: str | None) -> str | None:
    """Text as PostgreSQL takes it: no NUL, no lone surrogates."""
    if text is None or (text.isascii() and "\0" not in text):
        return text
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode("utf-8")


def keep(db: Connection, entries: Iterable[Entry], versions: int) -> dict[int, tuple[int, bytes | None]]:
    """Keep bodies as next versions and drop the oldest; by source, the newest version then, and its digest if new.

    Inside a transaction that holds the sources' rows.
    """
    having = [(entry, sha256(entry.body.data).digest()) for entry in entries if entry.body is not None]
    if not having:
        return {}
    newest = dict(
        db.execute(
            "SELECT c.source, c.digest FROM copies c JOIN unnest(%s::bigint[], %s::int[]) n(source, version) "
            "USING (source, version)",
            ([e.claim.source for e, _ in having], [e.claim.version for e, _ in having]),
        ).fetchall()
    )
    kept: dict[int, tuple[int, bytes | None]] = {}
    renewed, added, bounds = [], [], []
    for entry, digest in having:
        claim, body = entry.claim, entry.body
        assert body is not None
        told = (
            clean(body.media_type),
            clean(body.etag),
            clean(body.last_modified),
            body.fingerprint,
            clean(body.address),
            clean(body.via),
        )
        held = newest.get(claim.source)
        # What counts as what we hold already leaves the bytes as they are.
        if held == digest or (held is not None and entry.answer is Answer.UNCHANGED):
            renewed.append((*told, claim.source, claim.version))
            kept[claim.source] = claim.version, None
        else:
            frame = packed(body.data)
            added.append((claim.source, claim.version + 1, entry.polled_at, digest, len(body.data), frame, *told))
            kept[claim.source] = claim.version + 1, digest
            bounds.append(kept_versions(claim, versions))
    with db.cursor() as cursor:
        if renewed:
            cursor.executemany(
                "UPDATE copies SET media_type = %s, etag = %s, last_modified = %s, fingerprint = %s, address = %s, "
                "via = %s WHERE source = %s AND version = %s",
                renewed,
            )
        if added:
            with cursor.copy(
                "COPY copies(source, version, taken_at, digest, size, body, media_type, etag, last_modified, "
                "fingerprint, address, via) FROM STDIN (FORMAT binary)"
            ) as copy:
                copy.set_types(
                    [
                        "int8",
                        "int4",
                        "float8",
                        "bytea",
                        "int8",
                        "bytea",
                        "text",
                        "text",
                        "text",
                        "bytea",
                        "text",
                        "text",
                    ]
                )
                for row in added:
                    copy.write_row(row)
            cursor.execute(
                "DELETE FROM copies c USING unnest(%s::bigint[], %s::int[]) n(source, gone) "
                "WHERE c.source = n.source AND c.version <= n.gone",
                ([row[0] for row in added], [row[1] - most for row, most in zip(added, bounds, strict=True)]),
            )
    return kept


def read(db: Connection, source: int, version: int | None) -> Copy | None:
    """A version of a source, the newest if none is named, with its bytes checked."""
    row: Any = db.execute(
        "SELECT version, taken_at, digest, size, body, media_type, etag, last_modified, fingerprint, address, via "
        "FROM copies WHERE source = %s AND version BETWEEN %s AND %s ORDER BY version DESC LIMIT 1",
        (source, version or 0, version or _NEWEST),
        binary=True,
    ).fetchone()
    if row is None:
        return None
    number, taken_at, digest, size, frame, *told = row
    data = unpacked(digest, size, frame)
    if data is None:
        raise damaged_copy(source, number)
    return Copy(source, number, taken_at, digest, Body(data, *told))


def distrust(db: Connection, copies: Iterable[tuple[int, int]]) -> None:
    """Forget what polls ask with, and the digest that what they bring would be recognised by. Inside a transaction."""
    copies = list(copies)
    which = [source for source, _ in copies]
    db.execute("SELECT 1 FROM schedule WHERE source = ANY(%s) ORDER BY source FOR UPDATE", (which,))
    db.execute("UPDATE schedule SET mark = mark + 1 WHERE source = ANY(%s)", (which,))
    with db.cursor() as cursor:
        cursor.executemany(
            "UPDATE copies SET etag = NULL, last_modified = NULL, fingerprint = NULL, digest = %s "
            "WHERE source = %s AND version = %s",
            [(token_bytes(32), source, version) for source, version in copies],
        )


def damaged(db: Connection) -> Iterator[tuple[int, int]]:
    """Every (source, version) whose bytes are not what was stored."""
    with db.transaction(), db.cursor("bodies", binary=True) as cursor:
        cursor.itersize = 100
        cursor.execute("SELECT source, version, digest, size, body FROM copies ORDER BY source, version")
        for source, version, digest, size, frame in cursor:
            if unpacked(digest, size, frame) is None:
                yield source, version
