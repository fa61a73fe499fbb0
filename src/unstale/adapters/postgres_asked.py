"""What is asked with a poll (address, options, etag and so on), read from PostgreSQL, or remembered by who polled last.

Rules of this file:
1. Whatever changes it raises the source's mark in the schedule, in the same transaction: an outcome, another listing, a
   copy that is no longer trusted. What is remembered holds while the mark is what it was then.
2. An outcome raises the mark by one. So who knows the mark of its claim knows the next one, unless somebody else has
   changed something meanwhile, and then it is another.
3. What brought a new copy is read anew. On another connection nothing is remembered: the server may be another one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unstale.adapters.postgres_arrays import int8s
from unstale.adapters.postgres_schema import Connection
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry

#: the mark, address, kind, options, last, failures, latest, version, etag, last_modified and fingerprint: a flat tuple,
#: of which the garbage collector need not know
Asked = tuple[int, str, str, Mapping[str, object], float, int, int, int, str | None, str | None, bytes | None]
#: sources that are remembered at most, some hundred bytes each
MOST = 100_000
_NONE: Mapping[str, object] = {}


def asked_of(db: Connection, sources: Sequence[int]) -> dict[int, Asked]:
    """What is asked with polls of these sources, as it is now."""
    rows: Any = db.execute(
        "SELECT s.id, s.address, s.kind, s.options, b.last, b.failures, b.latest, b.version, c.etag, c.last_modified, "
        "c.fingerprint FROM sources s JOIN beliefs b ON b.source = s.id "
        "LEFT JOIN copies c ON c.source = b.source AND c.version = b.version WHERE s.id = ANY(%s::bigint[])",
        (int8s(sources),),
        binary=True,
    ).fetchall()
    return {row[0]: (0, row[1], row[2], json.loads(row[3]) if row[3] else _NONE, *row[4:]) for row in rows}


class AskedMemory:
    """What is asked with the next polls of sources, so many at most, and the marks under which polls were begun."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._known: dict[int, Asked] = {}
        self._marks: dict[int, int] = {}

    def of(self, rows: Sequence[tuple[int, float, int, int]]) -> list[Asked | None]:
        """What is asked of sources with (due, mark, token), where it is known and still true."""
        known = self._known
        return [one if (one := known.get(row[0])) and one[0] == row[2] else None for row in rows]

    def begun(self, rows: Sequence[tuple[int, float, int, int]]) -> None:
        """Claims were made on sources with (due, mark, token)."""
        if len(self._marks) < self._most:
            self._marks.update([(row[3], row[2]) for row in rows])

    def ended(self, tokens: Sequence[int]) -> None:
        """These claims came to nothing."""
        for token in tokens:
            self._marks.pop(token, None)

    def recorded(self, entries: Sequence[Entry], held: Sequence[bool]) -> None:
        """What came of polls: without a new copy the next poll asks as this one did."""
        known, marks, failed = self._known, self._marks, Answer.FAILED
        for entry, done in zip(entries, held, strict=True):
            claim = entry.claim
            mark = marks.pop(claim.token, None)
            if mark is None or not done or entry.body is not None:
                known.pop(claim.source, None)
                continue
            answered = entry.answer is not failed
            known[claim.source] = (
                mark + 1,
                claim.address,
                claim.kind,
                claim.options,
                entry.polled_at if answered else claim.last,
                0 if answered else claim.failures + 1,
                claim.token,
                claim.version,
                claim.etag,
                claim.last_modified,
                claim.fingerprint,
            )
        while len(known) > self._most:
            del known[next(iter(known))]
