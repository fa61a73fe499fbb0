"""Outcomes in SQLite: what each poll taught, and how its source stands after it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import apsw

from unstale.adapters.sqlite_states import StoreConnection, append, carray
from unstale.adapters.store_checks import LONGEST_REASON
from unstale.adapters.store_shared import NUMBER, answered
from unstale.keeper.outcomes import Answer
from unstale.ports import COST_IN, Entry


def observe(db: apsw.Connection, entries: Sequence[Entry], epoch: int) -> None:
    """Keep what polls taught, under the learner's state in force."""
    never = -math.inf
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
                # As `elapsed`.
                None if claim.last == never else e.polled_at - claim.last,
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
            # As nearly always; the same as below.
            (c.source, e.due, e.polled_at, min(e.polled_at, found[c.source]), 0, c.token, version, e.belief)
            if e.answer is Answer.UNCHANGED and e.belief is not None
            else _after(e, version, found[c.source], beliefs.get(c.source))
            for e, version in zip(entries, versions, strict=True)
            for c in (e.claim,)
            # Of a damaged store: who was nowhere stays nowhere.
            if c.source in found
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
    made, claim = answered(entry), entry.claim
    last_found = min(made.bound, found if made.found is None else made.found)
    known = belief if entry.belief is None else entry.belief
    return claim.source, entry.due, made.last, last_found, made.failures, claim.token, version, known
