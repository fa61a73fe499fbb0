"""What polls leave behind in PostgreSQL, within the transaction that spends their claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from typing import Any

from unstale.adapters import postgres_copies, postgres_entries, postgres_outbox
from unstale.adapters.feed_versions import Told
from unstale.adapters.postgres_arrays import byteas, float8s, int4s, int8s
from unstale.adapters.postgres_columns import PRICE
from unstale.adapters.postgres_counting import COUNTING, counted
from unstale.adapters.postgres_observations import checkpoint, observe
from unstale.adapters.postgres_schema import Connection
from unstale.adapters.store_shared import answered
from unstale.ports import COST_IN, LEARNER, Entry, Price


def record(
    db: Connection,
    mine: Sequence[Entry],
    told: Mapping[int, Told],
    versions: int,
    horizon: float,
    epoch: int,
    counts: Mapping[str, int],
) -> None:
    """Observations, copies, beliefs, due times and events of polls whose claims were held, which they are no longer.

    `told` has the entries of feeds, by tokens; `counts` is what all this adds to the counters.
    """
    # Rows are locked in the order of their sources.
    mine = sorted(mine, key=lambda entry: entry.claim.source)
    checkpoint(db, mine, horizon)
    observe(db, mine, epoch)
    kept = postgres_copies.keep(db, mine, versions)
    made: Any = zip(*map(answered, mine), strict=True)
    lasts, bounds, founds, failures = made
    # What is beside the last part of a statement is done after it: rows are locked in the order of these tables.
    db.execute(
        "WITH n AS (SELECT * FROM unnest(%s::bigint[], %s::bigint[], %s::float8[], %s::float8[], %s::float8[], "
        " %s::int[], %s::int[], %s::bytea[], %s::float8[]) "
        " n(source, token, last, bound, found, failures, version, belief, due)), "
        "moved AS (UPDATE schedule s SET due = n.due, mark = s.mark + 1 FROM n WHERE s.source = n.source), "
        f"counted AS ({COUNTING}) "
        "UPDATE beliefs b SET last = n.last, found = least(n.bound, coalesce(nullif(n.found, 'NaN'), b.found)), "
        "failures = n.failures, latest = n.token, version = n.version, belief = coalesce(n.belief, b.belief) "
        "FROM n WHERE b.source = n.source".encode(),
        (
            int8s([e.claim.source for e in mine]),
            int8s([e.claim.token for e in mine]),
            float8s(lasts),
            float8s(bounds),
            float8s(founds),
            int4s(failures),
            int4s([kept[e.claim.source][0] if e.claim.source in kept else e.claim.version for e in mine]),
            byteas([e.belief for e in mine]),
            float8s([e.due for e in mine]),
            *counted(counts),
        ),
    )
    if dear := [(e.claim.source, e.learned) for e in mine if e.learned is not None]:
        db.execute(
            "UPDATE sources s SET learned = n.cost FROM unnest(%s::bigint[], %s::float8[]) n(source, cost) "
            "WHERE s.id = n.source",
            ([source for source, _ in dear], [cost for _, cost in dear]),
        )
    numbered = [(e, *kept[e.claim.source]) for e in mine if e.claim.source in kept] if kept else []
    new = [(e, version, digest) for e, version, digest in numbered if digest]
    for e, version, _ in new:
        if e.claim.token in told:
            postgres_entries.keep(db, e.claim.source, version, e.polled_at, told[e.claim.token])
            postgres_entries.drop(db, e.claim.source, version, e.polled_at - horizon)
    postgres_outbox.append(db, new, horizon)


def publish(
    db: Connection, mine: Sequence[Entry], settings: Mapping[str, bytes], price: Price | None, horizon: float
) -> int | None:
    """Keep settings and a price; the number of the learner's state, if there is a new one among them.

    Where polls are counted in another unit, what they were found to cost is forgotten.
    """
    epoch = None
    if COST_IN in settings:
        db.execute(
            "UPDATE sources SET learned = NULL WHERE learned IS NOT NULL AND %s IS DISTINCT FROM "
            "(SELECT value FROM settings WHERE name = %s)",
            (settings[COST_IN], COST_IN),
        )
    for name in sorted(settings):
        db.execute(
            "INSERT INTO settings(name, value) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            (name, settings[name]),
        )
    if LEARNER in settings:
        at = max((e.polled_at for e in mine), default=price.at if price else None)
        db.execute(
            "INSERT INTO epochs(id, at, value) SELECT coalesce(max(id), 0) + 1, %s, %s FROM epochs HAVING "
            "(SELECT value FROM epochs ORDER BY id DESC LIMIT 1) IS DISTINCT FROM %s",
            (at, settings[LEARNER], settings[LEARNER]),
        )
        row: Any = db.execute("SELECT max(id) FROM epochs").fetchone()
        epoch = int(row[0])
    if price is not None:
        marks = ", ".join(["%s"] * len(Price.__slots__))
        db.execute(f"INSERT INTO prices({PRICE}) VALUES ({marks})".encode(), astuple(price))
        db.execute("DELETE FROM prices WHERE at < %s", (price.at - horizon,))
    return epoch
