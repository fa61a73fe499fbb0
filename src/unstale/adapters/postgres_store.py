"""The shared store: everything that any number of workers must not forget, in one PostgreSQL database.

Rules of this file:
1. One public call is one transaction, committed before it returns. Many outcomes in one call share a commit.
2. A source that is claimed has a place in a batch that is open, one that waits has none; a paused one is not awake.
3. A token is spent in the transaction that records: nothing is applied twice, and a lost commit is known by its token.
4. Rows are locked in the order of their ids, or skipped: workers do not wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, TypeVar

from unstale.adapters import (
    postgres_claims,
    postgres_copies,
    postgres_edits,
    postgres_entries,
    postgres_members,
    postgres_outbox,
    postgres_recording,
)
from unstale.adapters.feed_versions import told_by, untaken
from unstale.adapters.postgres_counting import COUNTING, counted
from unstale.adapters.postgres_failover import notice_failover
from unstale.adapters.postgres_link import EDITED, HASTENED, PATIENCE, PRICED, server_time
from unstale.adapters.postgres_listings import forgotten, listed
from unstale.adapters.postgres_observations import cover, forget
from unstale.adapters.postgres_replica import PostgresReplica
from unstale.adapters.postgres_schema import EDITING, Connection, connect, lock, migrate, worded
from unstale.adapters.store_checks import check_claim, check_due, check_entries, check_listings, check_names
from unstale.adapters.store_shared import HORIZON, VERSIONS, tally
from unstale.core.checks import number
from unstale.errors import require
from unstale.listings.records import CollectionMember
from unstale.ports import LEARNER, Claim, Entry, Event, FleetColumns, Listing, Price, Setting

T = TypeVar("T")


class PostgresStore(PostgresReplica):
    """Keeps the contract `Store` in a PostgreSQL database, for many processes at a time.

    `versions` and `horizon` (seconds) bound its growth. Missing tables are made, unless `create` is false. Claims and
    their leases go by the server's clock, whatever time claimants say it is; without `own_time` by what they say, which
    is for virtual time. A session that is idle for `idle` seconds is ended by the server.
    """

    #: whether who knows what due times were gives a hint; else it holds the sources, or plans
    _hints = True

    def __init__(
        self,
        dsn: str,
        *,
        versions: int = VERSIONS,
        horizon: float = HORIZON,
        create: bool = True,
        schema: str = "unstale",
        own_time: bool = True,
        idle: float = 0.0,
        patience: float = PATIENCE,
    ) -> None:
        require(versions >= 1, "versions", versions, "must be 1 or more", "keep at least the newest copy")
        self._versions, self._horizon = int(versions), number("horizon", horizon, above=0, infinite=True)
        self._create, self._own_time, self._idle = create, own_time, idle
        #: the learner's state that this process goes by, and the first token without a partition
        self._epoch = self._beyond = 0
        super().__init__(dsn, schema=schema, patience=patience)

    def add(
        self, listings: Sequence[Listing], now: float, *, duplicates: Literal["refuse", "replace"] = "refuse"
    ) -> list[int]:
        """Add all or none; known addresses are refused or take the new listing."""
        options = check_listings(listings, now, duplicates)

        def work(db: Connection, again: bool) -> list[int]:
            _take_time(db)
            lock(db, EDITING)
            ids, new, ended = listed(db, listings, options, now, refuse=duplicates == "refuse", again=again)
            self._count(db, {"added": new, "edited": bool(ids), "ended": ended})
            if ids:
                self._notify(db, EDITED)
            return ids

        return self._write(work)

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources with all they taught."""
        which = sorted({int(source) for source in sources})

        def work(db: Connection, again: bool) -> int:
            lock(db, EDITING)
            gone, ended = forgotten(db, which)
            self._count(db, {"edited": bool(gone), "ended": ended})
            if gone:
                self._notify(db, EDITED)
            return gone

        return self._write(work)

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""
        return self._aware(super().fleet(width))

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        return self._aware(super().columns_of(sources, width))

    def claim(
        self, now: float, limit: int, *, lease: float, owner: str, among: Sequence[int] | None = None
    ) -> list[Claim]:
        """Up to `limit` sources that are due, longest overdue first."""
        check_claim(now, limit, lease)
        tried: list[float] = []

        def work(db: Connection, again: bool) -> list[Claim]:
            # Of a lost commit nobody knows the tokens.
            lost = sum(postgres_claims.end(db, owner, claimed_at=at) for at in sorted(set(tried))) if again else 0
            at = server_time(db) if self._own_time else now
            tried.append(at)
            expired = postgres_claims.expire(db, at)
            claims = postgres_claims.claim(db, at, int(limit), lease, owner, among)
            self._count(db, {"given_back": lost, "expired": expired})
            return claims

        return self._write(work)

    def waiting(self, until: float) -> list[tuple[int, float]]:
        """Who waits and is due by then, longest overdue first."""
        return self.at_once(lambda db: postgres_claims.waiting(db, until))

    def record(
        self, entries: Sequence[Entry], *, settings: Mapping[str, bytes] | None = None, price: Price | None = None
    ) -> list[bool]:
        """Observations, copies, beliefs, due times, settings and a price, in one transaction."""
        check_entries(entries)
        self._cover(entries)
        told = told_by(entries)
        for source, earlier in untaken(self, entries, told):
            self._write(partial(postgres_entries.take_up, source=source, earlier=earlier))

        def work(db: Connection, again: bool) -> list[bool]:
            tokens = [entry.claim.token for entry in entries]
            held = postgres_claims.spend(db, entries)
            done: set[int] = set()
            if again:
                # What the lost commit has recorded is found by its tokens.
                rows: Any = db.execute(
                    "SELECT token, source FROM observations WHERE token = ANY(%s)", (tokens,)
                ).fetchall()
                done = {token for token, _ in set(rows) & {(e.claim.token, e.claim.source) for e in entries}}
            mine = [entry for entry in entries if entry.claim.token in held]
            counts = {**tally(mine), "dropped": len(entries) - len(mine) - len(done - held)}
            if mine:
                postgres_recording.record(db, mine, told, self._versions, self._horizon, self._epoch, counts)
            else:
                self._count(db, counts)
            self._publish(db, mine, settings or {}, price)
            return [token in held or token in done for token in tokens]

        return self._write(work)

    def give_back(self, owner: str, claims: Sequence[Claim] | None = None) -> int:
        """End claims without an outcome: these, or all of the owner's."""

        def work(db: Connection, again: bool) -> int:
            ended = postgres_claims.end(db, owner, claims)
            self._count(db, {"given_back": ended})
            return ended

        return self._write(work)

    def distrust(self, copies: Sequence[tuple[int, int]]) -> None:
        """What is held of these sources and versions is damaged: it is asked for anew."""
        self._write(lambda db, again: postgres_copies.distrust(db, copies))

    def relearn(self, sources: Sequence[int]) -> None:
        """What polls of these have taught up to now counts no more."""

        def work(db: Connection, again: bool) -> None:
            lock(db, EDITING)
            forget(db, sources)
            self._count(db, {"edited": bool(sources)})
            self._notify(db, EDITED)

        self._write(work)

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, with `was` only where they still are that."""
        check_due(sources, due, was)
        before = [None] * len(due) if was is None else [float(time) for time in was]
        # Of a source that is there twice the last word counts, as if said one after the other.
        moves = {int(s): (float(time), old) for s, time, old in zip(sources, due, before, strict=True)}
        if was is not None and len(moves) < len(due):
            for source, time, old in zip(sources, due, was, strict=True):
                self.set_due([source], [time], was=[old])
            return

        def work(db: Connection, again: bool) -> None:
            # Who holds them does not look for them by itself.
            if (soon := postgres_claims.set_due(db, moves)) and (was is None or self._hints):
                self._notify(db, ",".join(map(str, soon)) if len(soon) <= HASTENED else "")

        self._write(work)

    def fill(self, work: Callable[[Connection], T]) -> T:
        """Fill an empty store in one transaction; a lost connection ends it, with nothing done."""
        with self._in_use, worded(self.name):
            assert self._db is not None
            with self._db.transaction():
                _take_time(self._db)
                return work(self._db)

    def note_edit(self, at: float, who: str, what: str) -> None:
        """Keep in the log of edits who changed what."""
        self._write(lambda db, again: postgres_edits.keep(db, at, who, what))

    def enlist(self, members: Sequence[CollectionMember]) -> None:
        """Take up whom collections tell of, or what they say now."""
        self._write(lambda db, again: postgres_members.enlist(db, members))

    def subscribe(self, names: Sequence[str], *, others: bool = False, setting: Setting | None = None) -> bool:
        """Those who want to be told from now on, and nobody else unless `others` go on."""
        check_names(names)
        return self._write(lambda db, again: postgres_outbox.subscribe(db, names, others, setting))

    def events(self, name: str, limit: int) -> list[Event]:
        """The oldest events that `name` has not been told."""
        return self._read(lambda db: postgres_outbox.untold(db, name, limit))

    def told(self, name: str, number: int) -> None:
        """`name` has been told everything up to this number."""
        self._write(lambda db, again: postgres_outbox.told(db, name, number))

    def _connect(self) -> Connection:
        db = connect(self._dsn, self.name, self.schema, idle=self._idle)
        try:
            # A server may end at any of these questions.
            with worded(self.name):
                migrate(db, self.name, self.schema, create=self._create)
                row: Any = db.execute("SELECT coalesce(max(id), 0) FROM epochs").fetchone()
                # Another server may not know what was written last: neither the newest partition nor the newest epoch.
                self._epoch, self._beyond = min(self._epoch or row[0], row[0]), 0
                notice_failover(db)
        except BaseException:
            db.close()
            raise
        return db

    def _write(self, work: Callable[[Connection, bool], T]) -> T:
        def inside(db: Connection, again: bool) -> T:
            with db.transaction():
                return work(db, again)

        return self._again(inside)

    def _aware(self, standing: FleetColumns) -> FleetColumns:
        """Who has read the learner's state goes by it: what is recorded next was learned under it."""
        value = standing.settings.get(LEARNER)
        if value is not None:
            row: Any = self._read(
                lambda db: db.execute("SELECT max(id) FROM epochs WHERE value = %s", (value,)).fetchone()
            )
            self._epoch = max(self._epoch, row[0] or 0)
        return standing

    def _cover(self, entries: Sequence[Entry]) -> None:
        """Partitions for these observations; before their transaction, for others would wait for it."""
        newest = max((entry.claim.token for entry in entries), default=0)
        if newest >= self._beyond:
            now = max((entry.polled_at for entry in entries), default=0.0)
            self._beyond = self._again(lambda db, again: cover(db, newest, now, self._horizon))

    def _publish(
        self, db: Connection, mine: Sequence[Entry], settings: Mapping[str, bytes], price: Price | None
    ) -> None:
        self._epoch = postgres_recording.publish(db, mine, settings, price, self._horizon) or self._epoch
        if price is not None or LEARNER in settings:
            self._notify(db, PRICED)

    def _count(self, db: Connection, more: Mapping[str, int]) -> None:
        if any(more.values()):
            db.execute(COUNTING.encode(), counted(more))

    def _notify(self, db: Connection, word: str) -> None:
        db.execute("SELECT pg_notify(%s, %s)", (self.schema, word))


def _take_time(db: Connection) -> None:
    """This transaction may wait for us: a million rows take a while to make."""
    db.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
