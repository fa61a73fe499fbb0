"""Copies in SQLite: bytes are kept once, compressed, under their SHA-256, and are checked against it when read.

The database's own integrity check does not see a flipped bit inside a body; the digest does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import sha256
from secrets import token_bytes

import apsw

from unstale.adapters.store_shared import damaged_copy, packed, unpacked
from unstale.ports import Body, Copy

_NEWEST = 2**62
#: bytes of a body that is not worth keeping in the database's cache
HEAVY = 2**20


def keep(
    db: apsw.Connection, source: int, newest: int, body: Body, taken_at: float, versions: int, *, same: bool
) -> tuple[int, bytes | None]:
    """Keep a body as the next version and drop the oldest; the newest version then, and its digest if it is new.

    `same` if it counts as what we hold already. Inside a transaction.
    """
    digest = sha256(body.data).digest()
    content = db.execute("SELECT id FROM contents WHERE digest = ?", (digest,)).get
    told = (body.media_type, body.etag, body.last_modified, body.fingerprint, body.address, body.via)
    held = db.execute("SELECT content FROM copies WHERE source = ? AND version = ?", (source, newest)).get
    if held is not None and (same or content == held):
        db.execute(
            "UPDATE copies SET media_type = ?, etag = ?, last_modified = ?, fingerprint = ?, address = ?, via = ? "
            "WHERE source = ? AND version = ?",
            (*told, source, newest),
        )
        return newest, None
    if content is None:
        db.execute(
            "INSERT INTO contents(digest, size, uses, body) VALUES (?, ?, 0, ?)",
            (digest, len(body.data), packed(body.data)),
        )
        content = db.last_insert_rowid()
    version = newest + 1
    db.execute(
        "INSERT INTO copies"
        "(source, version, content, taken_at, media_type, etag, last_modified, fingerprint, address, via) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (source, version, content, taken_at, *told),
    )
    db.execute("DELETE FROM copies WHERE source = ? AND version <= ?", (source, version - versions))
    return version, digest


def relax(db: apsw.Connection, bodies: Iterable[Body]) -> None:
    """After these were kept: pages of large ones, which nobody reads again soon, would stay in the database's cache."""
    if any(len(body.data) > HEAVY for body in bodies):
        db.release_memory()


def read(db: apsw.Connection, source: int, version: int | None) -> Copy | None:
    """A version of a source, the newest if none is named, with its bytes checked."""
    row = db.execute(
        "SELECT c.version, c.taken_at, c.media_type, c.etag, c.last_modified, c.fingerprint, c.address, c.via, "
        "t.digest, t.size, t.body FROM copies c LEFT JOIN contents t ON t.id = c.content "
        "WHERE c.source = ? AND c.version BETWEEN ? AND ? ORDER BY c.version DESC LIMIT 1",
        (source, version or 0, version or _NEWEST),
    ).fetchone()
    if row is None:
        return None
    number, taken_at, *told, digest, size, frame = row
    data = unpacked(digest, size, frame)
    if data is None:
        raise damaged_copy(source, number)
    return Copy(source, number, taken_at, digest, Body(data, *told))


def distrust(db: apsw.Connection, copies: Iterable[tuple[int, int]]) -> None:
    """Forget what polls ask with, and the digest that what they bring would be recognised by. Inside a transaction."""
    for source, version in copies:
        content = db.execute(
            "UPDATE copies SET etag = NULL, last_modified = NULL, fingerprint = NULL WHERE source = ? AND version = ? "
            "RETURNING content",
            (source, version),
        ).get
        # No content has it, so whoever reads these bytes is told that they are damaged.
        db.execute("UPDATE contents SET digest = ? WHERE id = ?", (token_bytes(32), content))


def damaged(db: apsw.Connection) -> Iterator[tuple[int, int]]:
    """Every (source, version) whose bytes are not what was stored."""
    broken = [
        content
        for content, digest, size, frame in db.execute("SELECT id, digest, size, body FROM contents ORDER BY id")
        if unpacked(digest, size, frame) is None
    ]
    for content in broken:
        yield from db.execute("SELECT source, version FROM copies WHERE content = ? ORDER BY 1, 2", (content,))
    yield from db.execute("SELECT source, version FROM copies WHERE content NOT IN (SELECT id FROM contents)")
