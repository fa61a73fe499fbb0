"""Outcomes in SQLite: what each poll taught, and how its source stands after it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import apsw

from unstale.adapters.sqlite_states import StoreConnection, append, carray
from unstale.adapters.store_checks import LONGEST_REASON
from unstale.adapters.store_shared import NUMBER, answered, elapsed
from unstale.keeper.outcomes import Answer
from unstale.ports import COST_IN, Entry


def observe(db: apsw.Connection, entries: Sequence[Entry], epoch: int) -> None:
    """Keep what polls taught, under the learner's state in force."""
    db.executemany(
        "INSERT INTO observations(token, source, polled_at, answer, elapsed, modified, bytes, reason, previous, epoch, "
        "told) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                claim.token,
                claim.source,
                e.polled_at,
                # As nearly always; the hash of an answer is computed in Python.
                0 if e.answer is Answer.UNCHANGED else NUMBER[e.answer],
                elapsed(e),
                e.modified,
                e.received,
                e.reason[:LONGEST_REASON] or None,
                claim.latest,
                epoch,
                e.told,
            )
            for e in entries
            for claim in (e.claim,)
        ],
    )


def stand(db: StoreConnection, entries: Sequence[Entry], versions: Sequence[int]) -> None:
    """How sources stand after their polls, with these versions of them kept, and until when they wait."""
    found = dict(_before(db, "found", entries))
    beliefs = dict(_before(db, "belief", [e for e in entries if e.belief is None]))
    append(
        db,
        [
            _after(e, version, found[e.claim.source], beliefs.get(e.claim.source))
            for e, version in zip(entries, versions, strict=True)
            # Of a damaged store: who was nowhere stays nowhere.
            if e.claim.source in found
        ],
    )
    db.executemany(
        "UPDATE sources SET learned = ? WHERE id = ?",
        [(e.learned, e.claim.source) for e in entries if e.learned is not None],
    )


def measure_in(db: apsw.Connection, unit: bytes) -> None:
    """Polls are counted in a unit from now on: what they were found to cost in another one is forgotten."""
    if db.execute("SELECT value FROM settings WHERE name = ?", (COST_IN,)).get != unit:
        db.execute("UPDATE sources SET learned = NULL WHERE learned IS NOT NULL")


def _before(db: StoreConnection, column: str, entries: Sequence[Entry]) -> Any:
    """What is known of the sources of these in a column, each with its source."""
    if not entries:
        return ()
    return db.execute(
        f"SELECT source, {column} FROM carray(?) w CROSS JOIN states ON id = w.value",
        (carray(db.places.of_all([e.claim.source for e in entries])),),
    )


def _after(entry: Entry, version: int, found: float, belief: bytes | None) -> tuple[Any, ...]:
    """The state of a source after a poll, of which this was known before."""
    at, claim = entry.polled_at, entry.claim
    if entry.answer is Answer.UNCHANGED:
        # As nearly always; the same as below.
        stands: tuple[Any, ...] = at, min(at, found), 0
    else:
        made = answered(entry)
        stands = made.last, min(made.bound, found if made.found is None else made.found), made.failures
    return claim.source, entry.due, *stands, claim.token, version, belief if entry.belief is None else entry.belief
