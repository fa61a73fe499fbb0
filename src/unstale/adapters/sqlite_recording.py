"""Outcomes in SQLite: what each poll taught, and how its source stands after it."""

from __future__ import annotations

from collections.abc import Sequence

import apsw

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


def stand(db: apsw.Connection, entries: Sequence[Entry], versions: Sequence[int]) -> None:
    """How sources stand after their polls, with these versions of them kept, and until when they wait."""
    db.executemany(
        "UPDATE beliefs SET due = ?, last = ?, found = min(?, coalesce(?, found)), failures = ?, latest = ?, "
        "version = ?, belief = coalesce(?, belief) WHERE source = ?",
        [
            (e.due, *_after(e), e.claim.token, version, e.belief, e.claim.source)
            for e, version in zip(entries, versions, strict=True)
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


def _after(entry: Entry) -> tuple[float, float, float | None, int]:
    if entry.answer is Answer.UNCHANGED:
        # As nearly always; the same as below.
        return entry.polled_at, entry.polled_at, None, 0
    made = answered(entry)
    return made.last, made.bound, made.found, made.failures
