"""Claims in PostgreSQL: who is being polled, kept by batches of those that were claimed at once.

Rules of this file:
1. A batch is a row with its sources and their tokens; a claim is open while its bit is set. Claiming inserts batches,
   ending claims takes their bits away, and a batch without any goes. The view `claims` shows one by one what is open.
2. A claim's slot says where its bit is, without one it is searched for; it ends only if its source and token stand
   there and it is open.
3. Who claims what is due, whoever's it is, waits until nobody else claims, and nobody does meanwhile; such claims are
   strays. Who holds the shards of sources says which of them it claims: it looks at strays and its own claims alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from unstale.adapters.postgres_arrays import float8s, int8s
from unstale.adapters.postgres_asked import AskedMemory, asked_of
from unstale.adapters.postgres_counting import COUNTING, counted
from unstale.adapters.postgres_schema import CLAIMING, Connection, lock, through_all
from unstale.adapters.postgres_shelf import NOW
from unstale.ports import Claim, Entry

#: seconds by which the clocks of workers may differ
SKEW = 60.0
#: claims of a batch: as many as a number has bits
MEMBERS = 64
_ALL = 2**MEMBERS - 1
_UNCLAIMED = "s.source NOT IN (SELECT source FROM claims)"
_COUNTED = "bit_count(open::bit(64))"


def claim(db: Connection, now: float, limit: int, lease: float, owner: str, among: Sequence[int] | None) -> list[Claim]:
    """Up to `limit` claims on what is due, longest overdue first."""
    lock(db, CLAIMING)
    chosen_only = "" if among is None else "AND source = ANY(%s::bigint[]) "
    rows: Any = db.execute(
        "SELECT source, due, mark, nextval('tokens') FROM ("
        f"SELECT source, due, mark FROM schedule s WHERE awake AND due <= %s {chosen_only}AND {_UNCLAIMED} "
        "ORDER BY due, source LIMIT %s FOR UPDATE OF s SKIP LOCKED) n".encode(),
        (now, *([] if among is None else [int8s([int(source) for source in among])]), limit),
        binary=True,
    ).fetchall()
    return _begun(db, rows, (now, now + lease, owner, True), math.inf, AskedMemory(0))


def take(
    db: Connection, now: float, lease: float, owner: str, sources: Sequence[int], until: float, asked: AskedMemory
) -> list[Claim]:
    """Claims on those of these sources that are due until then and neither a stray nor the owner has claimed.

    Inside a transaction that shares the lock of those who claim (`postgres_shards.may_claim`). Their polls have to
    begin in the first half of the lease, so that they end before it.
    """
    rows: Any = db.execute(
        "SELECT source, due, mark, nextval('tokens') FROM (SELECT source, due, mark FROM schedule "
        "WHERE source = ANY(%s::bigint[]) AND awake AND due <= %s "
        "AND source NOT IN (SELECT source FROM claims WHERE stray UNION ALL SELECT source FROM claims WHERE owner = %s)"
        " ORDER BY due, source) n",
        (int8s(sources), until, owner),
        binary=True,
    ).fetchall()
    return _begun(db, rows, (now, now + lease, owner, False), now + 0.5 * lease, asked)


def _begun(
    db: Connection,
    rows: Sequence[tuple[int, float, int, int]],
    batch: tuple[float, float, str, bool],
    begin_by: float,
    asked: AskedMemory,
) -> list[Claim]:
    """Claims on sources with (due, mark, token), which nobody has claimed; they are counted."""
    if not rows:
        return []
    tokens = [row[3] for row in rows]
    db.execute(
        f"WITH counted AS ({COUNTING}) "
        "INSERT INTO batches(id, claimed_at, claimed_until, owner, stray, open, sources, tokens) "
        f"SELECT n.tokens[i + 1], %s, %s, %s, %s, CASE WHEN n.size - i >= {MEMBERS} THEN -1 "
        "ELSE ~(-1::bigint << (n.size - i)) END, "
        f"n.sources[i + 1:i + {MEMBERS}], n.tokens[i + 1:i + {MEMBERS}] "
        "FROM (SELECT %s::bigint[] AS sources, %s::bigint[] AS tokens, %s::int AS size) n, "
        f"generate_series(0, n.size - 1, {MEMBERS}) i".encode(),
        (*counted({"claimed": len(rows)}), *batch, int8s([row[0] for row in rows]), int8s(tokens), len(rows)),
    )
    remembered = asked.of(rows)
    unknown = [row[0] for row, known in zip(rows, remembered, strict=True) if known is None]
    read = asked_of(db, unknown) if unknown else {}
    claims, slot = [], 0
    for i, ((source, due, _, token), known) in enumerate(zip(rows, remembered, strict=True)):
        slot = slot + 1 if i % MEMBERS else token * MEMBERS
        if known or (known := read.get(source)):
            claims.append(Claim(source, token, known[1], known[2], due, *known[3:], begin_by, slot))
    asked.begun(rows)
    return claims


def set_due(db: Connection, moves: Mapping[int, tuple[float, float | None]]) -> list[int]:
    """Move the due times of sources, where the second number is given only if they still are that; who is due now."""
    rows: Any = db.execute(
        "WITH moved AS (UPDATE schedule s SET due = n.due FROM (SELECT s.source, m.due, m.was FROM schedule s JOIN "
        " unnest(%s::bigint[], %s::float8[], %s::float8[]) m(source, due, was) USING (source) "
        " ORDER BY s.source FOR UPDATE OF s) n WHERE s.source = n.source AND n.was IN (s.due, 'NaN') "
        " RETURNING s.source, s.due) "
        f"SELECT source FROM moved WHERE due <= {NOW} + 1.0".encode(),
        (
            int8s(list(moves)),
            float8s([time for time, _ in moves.values()]),
            float8s([old for _, old in moves.values()]),
        ),
    ).fetchall()
    return [source for (source,) in rows]


def expire(db: Connection, now: float) -> int:
    """End the claims whose time is over, and those made under a clock that was far ahead; how many."""
    rows: Any = db.execute(
        "DELETE FROM batches WHERE id IN (SELECT id FROM batches WHERE claimed_until <= %s OR claimed_at > %s "
        f"FOR UPDATE SKIP LOCKED) RETURNING {_COUNTED}".encode(),
        (now, now + SKEW),
    ).fetchall()
    return sum(count for (count,) in rows)


def end(db: Connection, owner: str, claims: Sequence[Claim] | None = None, claimed_at: float | None = None) -> int:
    """End these claims of an owner, or all, or those of one moment; how many."""
    if claims is None:
        rows: Any = db.execute(
            "DELETE FROM batches WHERE owner = %s AND claimed_at = coalesce(%s::float8, claimed_at) "
            f"RETURNING {_COUNTED}".encode(),
            (owner, claimed_at),
        ).fetchall()
        return sum(count for (count,) in rows)
    return len(_spent(db, claims, owner))


def spend(db: Connection, entries: Sequence[Entry]) -> set[int]:
    """End the claims of these entries that are held; their tokens."""
    return _spent(db, [entry.claim for entry in entries], None)


def end_of(db: Connection, sources: Sequence[int]) -> int:
    """End whatever claims there are on these sources; how many."""
    return len(ended(db, "source = ANY(%s::bigint[])", (int8s(sources),))) if len(sources) else 0


def ended(db: Connection, which: str, values: tuple[Any, ...]) -> list[tuple[int, float]]:
    """End the open claims that an expression chooses: their sources, and when they would have ended."""
    chosen = f"SELECT batch, source, place, claimed_until FROM claims c WHERE {which}"
    found: Any = db.execute(chosen.encode(), values).fetchall()
    if not (open_bits := {row[0]: row[1] & _ALL for row in _locked(db, [batch * MEMBERS for batch, *_ in found])}):
        return []
    rows: Any = db.execute(chosen.encode(), values).fetchall()
    rows = [row for row in rows if row[0] in open_bits]
    for batch, _, place, _ in rows:
        open_bits[batch] &= ~(1 << place)
    _keep_open(db, open_bits)
    return [(source, until) for _, source, _, until in rows]


def waiting(db: Connection, until: float) -> list[tuple[int, float]]:
    """Who waits and is due by then, longest overdue first. Inside a transaction."""
    through_all(db)
    rows: Any = db.execute(
        f"SELECT source, due FROM schedule s WHERE awake AND due <= %s AND {_UNCLAIMED} ORDER BY due, source".encode(),
        (until,),
    ).fetchall()
    return [(source, due) for source, due in rows]


def _spent(db: Connection, claims: Sequence[Claim], owner: str | None) -> set[int]:
    """End these claims if they are held, and by that owner if one is named; the tokens of those that were."""
    slots = [claim.slot for claim in claims]
    if not all(slots):
        slots = _found(db, claims)
    # Of each batch what is open, its sources and its tokens.
    held = {row[0]: [row[1] & _ALL, *row[3:]] for row in _locked(db, slots) if owner in (None, row[2])}
    if not held:
        return set()
    spent, nothing = set(), [0]
    for claim, slot in zip(claims, slots, strict=True):
        row, place = held.get(slot // MEMBERS, nothing), slot % MEMBERS
        # What is open is there.
        if row[0] >> place & 1 and row[2][place] == claim.token and row[1][place] == claim.source:
            row[0] &= ~(1 << place)
            spent.add(claim.token)
    _keep_open(db, {batch: row[0] for batch, row in held.items()})
    return spent


def _found(db: Connection, claims: Sequence[Claim]) -> list[int]:
    """Where claims are kept whose slots nobody has told."""
    rows: Any = db.execute(
        "SELECT token, batch, place FROM claims WHERE token = ANY(%s)", (int8s([claim.token for claim in claims]),)
    ).fetchall()
    known = {token: batch * MEMBERS + place for token, batch, place in rows}
    return [claim.slot or known.get(claim.token, 0) for claim in claims]


def _locked(db: Connection, slots: Sequence[int]) -> list[tuple[Any, ...]]:
    """Hold the batches of these until the transaction ends, in their order: id, open, owner, sources and tokens."""
    which = sorted({slot // MEMBERS for slot in slots})
    if not which:
        return []
    rows: Any = db.execute(
        "SELECT id, open, owner, sources, tokens FROM batches WHERE id = ANY(%s) ORDER BY id FOR UPDATE",
        (int8s(which),),
        binary=True,
    ).fetchall()
    return list(rows)


def _keep_open(db: Connection, open_bits: Mapping[int, int]) -> None:
    """What is still open of batches that are held by us; those of which nothing is are over."""
    if over := [batch for batch, bits in open_bits.items() if not bits]:
        db.execute("DELETE FROM batches WHERE id = ANY(%s)", (int8s(over),))
    # As the server has it, whose numbers are signed.
    if left := {batch: bits - (bits >> 63 << 64) for batch, bits in open_bits.items() if bits}:
        db.execute(
            "UPDATE batches b SET open = n.open FROM unnest(%s::bigint[], %s::bigint[]) n(id, open) WHERE b.id = n.id",
            (int8s(list(left)), int8s(list(left.values()))),
        )
