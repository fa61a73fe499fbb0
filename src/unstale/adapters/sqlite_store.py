"""The embedded store: everything the engine must not forget, in one SQLite file.

Rules of this file:
1. One public call is one transaction, synced to the disk before it returns. Many outcomes in one call share a sync.
2. A source that is not paused waits unless it is in `leases`: a claim begins and ends with one row there.
3. A token is spent by deleting its lease in the transaction that records: nothing is applied twice.
4. After an error of the disk itself nothing is tried again on the same file handle: it must be opened anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Literal

import apsw

from unstale.adapters import (
    sqlite_claims,
    sqlite_copies,
    sqlite_edits,
    sqlite_entries,
    sqlite_epochs,
    sqlite_listings,
    sqlite_members,
    sqlite_outbox,
    sqlite_recording,
    sqlite_states,
)
from unstale.adapters.feed_versions import told_by, untaken
from unstale.adapters.sqlite_claims import count, end_claims, spend
from unstale.adapters.sqlite_columns import PRICE
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_retention import Retention, checkpoint, drop_old, forget
from unstale.adapters.sqlite_schema import connect
from unstale.adapters.sqlite_states import StoreConnection
from unstale.adapters.store_checks import (
    check_claim,
    check_due,
    check_entries,
    check_listings,
    check_names,
)
from unstale.adapters.store_shared import HORIZON, VERSIONS, kept_versions, tally
from unstale.core.checks import number
from unstale.errors import require
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CollectionMember
from unstale.ports import COST_IN, LEARNER, Body, Claim, Entry, Event, Listing, Price, Setting


class SqliteStore(SqliteReplica):
    """Keeps the contract `Store` in one file.

    `versions` and `horizon` (seconds) bound its growth; with `steady`, a monotonic clock, the horizon counts time that
    was observed, so that a clock that jumps makes nothing old. A missing file is made, unless `create` is false.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        versions: int = VERSIONS,
        horizon: float = HORIZON,
        create: bool = True,
        steady: Callable[[], float] | None = None,
    ) -> None:
        require(versions >= 1, "versions", versions, "must be 1 or more", "keep at least the newest copy")
        self._versions, self._horizon = int(versions), number("horizon", horizon, above=0, infinite=True)
        self._create, self._retention = create, Retention(self._horizon, steady)
        super().__init__(path)

    def add(
        self, listings: Sequence[Listing], now: float, *, duplicates: Literal["refuse", "replace"] = "refuse"
    ) -> list[int]:
        """Add all or none; known addresses are refused or take the new listing."""
        options = check_listings(listings, now, duplicates)
        with self._writing() as db:
            return sqlite_listings.add(db, listings, options, now, refuse=duplicates == "refuse")

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources with all they taught."""
        which = [(int(source),) for source in sources]
        with self._writing() as db:
            end_claims(db, which)
            stamps: Any = db.executemany(
                "DELETE FROM observations WHERE token IN (WITH RECURSIVE chain(token) AS ("
                " SELECT latest FROM beliefs WHERE source = ?"
                " UNION ALL SELECT o.previous FROM observations o JOIN chain ON o.token = chain.token"
                ") SELECT token FROM chain) RETURNING epoch",
                which,
            )
            sqlite_epochs.release(db, stamps)
            for table in ("copies", "entries", "checkpoints"):
                db.executemany(f"DELETE FROM {table} WHERE source = ?", which)
            gone: Any = db.executemany("DELETE FROM sources WHERE id = ? RETURNING id", which).fetchall()
            sqlite_states.end(db, [source for (source,) in gone])
            count(db, {"edited": bool(gone)})
        return len(gone)

    def claim(
        self, now: float, limit: int, *, lease: float, owner: str, among: Sequence[int] | None = None
    ) -> list[Claim]:
        """Up to `limit` sources that are due, longest overdue first."""
        check_claim(now, limit, lease)
        with self._writing() as db:
            return sqlite_claims.claim(db, now, int(limit), lease, owner, among)

    def waiting(self, until: float) -> list[tuple[int, float]]:
        """Who waits and is due by then, longest overdue first."""
        with self._at_once() as db:
            return sqlite_claims.waiting(db, until)

    def record(
        self, entries: Sequence[Entry], *, settings: Mapping[str, bytes] | None = None, price: Price | None = None
    ) -> list[bool]:
        """Observations, copies, beliefs, due times, settings and a price, in one transaction."""
        check_entries(entries)
        told = told_by(entries)
        for source, earlier in untaken(self, entries, told):
            with self._writing() as db:
                for one in earlier:
                    sqlite_entries.keep(db, source, *one)
        with self._writing() as db:
            held = spend(db, entries)
            all_held = len(held) == len(entries)
            mine = entries if all_held else [entry for entry in entries if entry.claim.token in held]
            now = min((e.polled_at for e in mine), default=math.inf)
            limit = self._retention.limit(db, now) if mine else -math.inf
            checkpoint(db, mine, self._horizon)
            sqlite_recording.observe(db, mine, sqlite_epochs.current(db, stamped=len(mine)))
            kept = [(e.claim.version, None) if e.body is None else self._keep(db, e, e.body) for e in mine]
            sqlite_recording.stand(db, mine, [version for version, _ in kept])
            new = [(e, version, digest) for e, (version, digest) in zip(mine, kept, strict=True) if digest]
            for e, version, _ in new:
                if e.claim.token in told:
                    sqlite_entries.keep(db, e.claim.source, version, e.polled_at, told[e.claim.token])
                    sqlite_entries.drop(db, e.claim.source, version, limit)
            count(
                db,
                {
                    **tally(mine),
                    "dropped": len(entries) - len(mine),
                    **sqlite_outbox.append(db, new, limit),
                },
            )
            if settings and COST_IN in settings:
                sqlite_recording.measure_in(db, settings[COST_IN])
            db.executemany(
                "INSERT INTO settings(name, value) VALUES (?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
                (settings or {}).items(),
            )
            if settings and LEARNER in settings:
                sqlite_epochs.begin(db, settings[LEARNER], mine, price)
            if price is not None:
                db.execute(
                    f"INSERT INTO prices({PRICE}) VALUES ({', '.join('?' * len(Price.__slots__))})",
                    astuple(price),
                )
                db.execute("DELETE FROM prices WHERE at < ?", (self._retention.limit(db, price.at),))
            if mine:
                drop_old(db, now, limit, self._retention.last_old(), len(mine))
        with self._reading() as db:
            sqlite_copies.relax(db, [e.body for e, _, _ in new if e.body])
        return [True] * len(mine) if all_held else [entry.claim.token in held for entry in entries]

    def give_back(self, owner: str, claims: Sequence[Claim] | None = None) -> int:
        """End claims without an outcome: these, or all of the owner's."""
        with self._writing() as db:
            if claims is None:
                ended = db.execute("DELETE FROM leases WHERE owner = ? RETURNING source", (owner,)).fetchall()
            else:
                ended = db.executemany(
                    "DELETE FROM leases WHERE source = ? AND token = ? AND owner = ? RETURNING source",
                    ((claim.source, claim.token, owner) for claim in claims),
                ).fetchall()
            count(db, {"given_back": len(ended)})
        return len(ended)

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, with `was` only where they still are that."""
        check_due(sources, due, was)
        before = [None] * len(due) if was is None else [float(time) for time in was]
        moved = [(int(s), float(time), old) for s, time, old in zip(sources, due, before, strict=True)]
        with self._writing() as db:
            sqlite_states.move(db, moved)

    def distrust(self, copies: Sequence[tuple[int, int]]) -> None:
        """What is held of these sources and versions is damaged: it is asked for anew."""
        with self._writing() as db:
            sqlite_copies.distrust(db, copies)

    def relearn(self, sources: Sequence[int]) -> None:
        """What polls of these have taught up to now counts no more."""
        with self._writing() as db:
            forget(db, sources)
            count(db, {"edited": bool(sources)})

    def note_edit(self, at: float, who: str, what: str) -> None:
        """Keep in the log of edits who changed what."""
        with self._writing() as db:
            sqlite_edits.keep(db, at, who, what)

    def enlist(self, members: Sequence[CollectionMember]) -> None:
        """Take up whom collections tell of, or what they say now."""
        with self._writing() as db:
            sqlite_members.enlist(db, members)

    def subscribe(self, names: Sequence[str], *, others: bool = False, setting: Setting | None = None) -> bool:
        """Those who want to be told from now on, and nobody else unless `others` go on."""
        check_names(names)
        with self._writing() as db:
            return sqlite_outbox.subscribe(db, names, others, setting)

    def events(self, name: str, limit: int) -> list[Event]:
        """The oldest events that `name` has not been told."""
        with self._reading() as db:
            return sqlite_outbox.untold(db, name, limit)

    def told(self, name: str, number: int) -> None:
        """`name` has been told everything up to this number."""
        with self._writing() as db:
            sqlite_outbox.told(db, name, number)

    def moved(self) -> int:
        """A number that is another one once others have written; StoreLostError if the file is not ours any more."""
        self.check_file()
        return super().moved()

    def close(self) -> None:
        """Give back the file, which then holds everything by itself, as whoever copies it alone expects."""
        with self._in_use, suppress(apsw.Error):
            # Who closes last would do so too, but that may be a reader, who cannot. What others still read waits.
            if self._db is not None:
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
        super().close()

    def _connect(self) -> StoreConnection:
        return connect(self.path, create=self._create)

    def _keep(self, db: apsw.Connection, entry: Entry, body: Body) -> tuple[int, bytes | None]:
        claim = entry.claim
        return sqlite_copies.keep(
            db,
            claim.source,
            claim.version,
            body,
            entry.polled_at,
            kept_versions(claim, self._versions),
            same=entry.answer is Answer.UNCHANGED,
        )

    @contextmanager
    def _writing(self) -> Iterator[StoreConnection]:
        with self._reading() as db:
            self.check_file()
            try:
                db.execute("BEGIN IMMEDIATE")
                db.places.catch_up(db)
                yield db
                db.execute("COMMIT")
            except BaseException as error:
                db.places.forget()
                broken = isinstance(error, apsw.IOError | apsw.CorruptError)
                if broken:
                    self._db = None
                    db.close(force=True)
                elif db.in_transaction:
                    db.execute("ROLLBACK")
                raise
