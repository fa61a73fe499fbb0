"""A PostgreSQL store as many workers share it: who is alive, what each may spend, who plans, what was learned.

Rules of this file:
1. Shares and the purse are kept by the rules of `keeper.shares`, in one transaction.
2. The planner is who holds an advisory lock on the connection that publishes: without that connection it is none.
3. Time is the server's own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from unstale.adapters import postgres_claims, postgres_hosts, postgres_members, postgres_parts, postgres_shards
from unstale.adapters.postgres_asked import AskedMemory
from unstale.adapters.postgres_columns import columns_of
from unstale.adapters.postgres_link import server_time
from unstale.adapters.postgres_schema import PLANNING, Connection
from unstale.adapters.postgres_shelf import GONE, NOW
from unstale.adapters.postgres_store import PostgresStore
from unstale.keeper.shares import Account, granted, settled, spare_in, wanted_shares
from unstale.listings.records import CollectionMember
from unstale.ports import (
    Census,
    Claim,
    CrewMember,
    Entry,
    FleetColumns,
    Grant,
    HeldShards,
    HostWord,
    Lesson,
    Price,
    Trust,
)

#: seconds that the clocks of a worker and its server may be apart when one says that a source is due
APART = 1.0


class PostgresCrew(PostgresStore):
    """The store as workers and their planner use it; keeps the contract `SharedStore`."""

    _hints = False

    def beat(
        self, owner: str, held: float, level: float, burst: float, facts: Mapping[str, float], lesson: bytes | None
    ) -> Grant:
        """A sign of life, with the share the worker goes by; what it may spend from now on."""
        told = {
            "owner": owner,
            "held": held,
            "level": level,
            "burst": burst,
            "facts": json.dumps(facts),
            "credited": facts.get("credited", 0.0),
            "total": _total(level, facts),
        }

        def work(db: Connection, again: bool) -> Grant:
            row: Any = db.execute(
                f"INSERT INTO workers VALUES (%(owner)s, {NOW}, 0, 0, %(level)s, %(burst)s, %(facts)s, %(credited)s, "
                "%(total)s) "
                # It may have heard of the share that it is told now, or go on with the one before: the larger one
                # counts until it says so. Who was away too long has lost what it held, whatever it says.
                "ON CONFLICT (owner) DO UPDATE SET at = excluded.at, level = excluded.level, "
                "held = greatest(least(%(held)s, greatest(workers.share, workers.held)), workers.share), "
                "burst = excluded.burst, facts = excluded.facts RETURNING share, credit".encode(),
                told,
            ).fetchone()
            if lesson is not None and not again:
                db.execute("INSERT INTO lessons(value) VALUES (%s)", (lesson,))
            return Grant(*row)

        return self._write(work)

    def leave(self, owner: str) -> None:
        """A worker ends: its share and its shards are free."""

        def work(db: Connection, again: bool) -> None:
            db.execute("UPDATE shards SET owner = NULL WHERE owner = %s", (owner,))
            db.execute("DELETE FROM workers WHERE owner = %s", (owner,))

        self._write(work)

    def hold(self, owner: str, let_go: Sequence[int] = ()) -> HeldShards:
        """Let go of shards, and take those that a worker which is alive should hold and nobody does; all it holds."""

        def work(db: Connection, again: bool) -> HeldShards:
            held, ended = postgres_shards.hold(db, owner, let_go)
            at = server_time(db)
            self._count(db, {"expired": ended + postgres_claims.expire(db, at)})
            return held

        return self._write(work)

    def take(self, sources: Sequence[int], *, lease: float, owner: str) -> list[Claim]:
        """Claims on those of these sources that are due; nothing if the owner counts as gone."""
        tried: list[float] = []

        def work(db: Connection, again: bool) -> list[Claim]:
            if (at := postgres_shards.may_claim(db, owner)) is None:
                return []
            lost = sum(postgres_claims.end(db, owner, claimed_at=one) for one in sorted(set(tried))) if again else 0
            tried.append(at)
            claims = postgres_claims.take(db, at, lease, owner, sources, at + APART, self._asked)
            self._count(db, {"given_back": lost})
            return claims

        return self._write(work)

    def record(
        self, entries: Sequence[Entry], *, settings: Mapping[str, bytes] | None = None, price: Price | None = None
    ) -> list[bool]:
        """Observations, copies, beliefs, due times, settings and a price, in one transaction."""
        held = super().record(entries, settings=settings, price=price)
        self._asked.recorded(entries, held)
        return held

    def give_back(self, owner: str, claims: Sequence[Claim] | None = None) -> int:
        """End claims without an outcome: these, or all of the owner's."""
        self._asked.ended([claim.token for claim in claims or ()])
        return super().give_back(owner, claims)

    def _connect(self) -> Connection:
        self._asked = AskedMemory()
        return super()._connect()

    def held_fleet(self, owner: str, width: int) -> FleetColumns:
        """The sources of the shards that a worker holds, in columns."""
        return self._aware(self.at_once(lambda db: columns_of(db, width, held_by=owner)))

    def sources_of(self, shards: Sequence[int]) -> list[int]:
        """The sources that belong to these shards."""
        return self.at_once(lambda db: postgres_shards.sources_of(db, shards))

    def host_words(self) -> list[HostWord]:
        """What hosts have asked for, those that have."""
        return self.at_once(postgres_hosts.words)

    def keep_words(self, words: Sequence[HostWord]) -> None:
        """What hosts ask for, for whoever holds their shards next."""
        self._write(lambda db, again: postgres_hosts.keep(db, words))

    def census(self) -> Census:
        """How many sources there are, and what their polls cost."""
        return self.at_once(postgres_parts.census)

    def part(self, width: int, after: int, upto: int | None, most: int) -> FleetColumns:
        """Sources with ids above one and up to another, if one is named, at most so many, ids rising."""
        return self._aware(self.at_once(lambda db: postgres_parts.part_of(db, width, after, upto, most)))

    def tally(self, value: bytes) -> None:
        """How sources stood before and after polls, for whoever has made sketches of them."""
        self._write(lambda db, again: postgres_parts.tell(db, value))

    def tallies(self) -> list[bytes]:
        """What was told so since the last time, which is forgotten."""
        return self._write(lambda db, again: postgres_parts.taken(db))

    def elect(self) -> int:
        """The number of the session that plans, if it is this one or becomes it; 0 if another one does."""

        def work(db: Connection, again: bool) -> int:
            key = "hashtext('unstale ' || current_setting('search_path'))"
            # A session's lock can be taken many times over and would have to be given back as often.
            row: Any = db.execute(
                f"SELECT CASE WHEN EXISTS (SELECT 1 FROM pg_locks WHERE locktype = 'advisory' "
                f"AND pid = pg_backend_pid() AND granted AND classid = ({key}::bigint & 4294967295)::oid "
                f"AND objid = %s::bigint::oid) OR pg_try_advisory_lock({key}, %s) "
                "THEN pg_backend_pid() ELSE 0 END".encode(),
                (PLANNING, PLANNING),
            ).fetchone()
            return int(row[0])

        return self._again(work)

    def divide(self, rate: float, first: float = 0.0) -> tuple[list[CrewMember], float]:
        """Give every worker that is alive a share by its demand, and credit from the purse where others need less."""

        def work(db: Connection, again: bool) -> tuple[list[CrewMember], float]:
            db.execute(f"DELETE FROM workers WHERE at < {NOW} - %s".encode(), (GONE,))
            purse: Any = db.execute("SELECT at, kept FROM purse FOR UPDATE").fetchone()
            rows: Any = db.execute(
                "SELECT owner, at, share, held, level, burst, facts, credit, settled FROM workers ORDER BY owner "
                "FOR UPDATE"
            ).fetchall()
            now, told = server_time(db), [json.loads(row[6]) for row in rows]
            whole = rate + first
            demands = [(row[2], one.get("demand", 0.0)) for row, one in zip(rows, told, strict=True)]
            wanted = wanted_shares(whole, demands)
            shares = granted(whole, wanted, [(row[2], row[3]) for row in rows])
            accounts = [_account(row, one, now) for row, one in zip(rows, told, strict=True)]
            left, credits = settled(purse[1], rate * max(now - purse[0], 0.0), accounts)
            if first or not rows:
                # Of an allowance for first polls nothing is kept; without workers there is nobody to keep it for.
                left, credits = sum(one.under_way for one in accounts), [0.0] * len(rows)
            db.execute("UPDATE purse SET at = %s, kept = %s", (now, left))
            db.execute(
                "UPDATE workers w SET share = n.share, credit = w.credit + n.credit, settled = n.settled "
                "FROM unnest(%s::text[], %s::float8[], %s::float8[], %s::float8[]) n(owner, share, credit, settled) "
                "WHERE w.owner = n.owner",
                ([row[0] for row in rows], shares, credits, [one.total for one in accounts]),
            )
            return [
                CrewMember(row[0], share, row[4] + one.credit + more, row[5], facts)
                for row, share, one, more, facts in zip(rows, shares, accounts, credits, told, strict=True)
            ], spare_in(left, accounts)

        return self._write(work)

    def members_together(self, owner: str | None = None) -> list[CollectionMember]:
        """Members in the shards of their collections, by collection and source; of all, or of the shards one holds."""
        return self.at_once(lambda db: postgres_members.in_own_shard(db, owner))

    def trust(self, collections: Sequence[int] | None = None) -> list[Trust]:
        """What was kept last of these collections, or of all; number 0 is what was learned of all together."""
        return self.at_once(lambda db: postgres_members.trust(db, collections))

    def keep_trust(
        self, owner: str, learned: Sequence[Trust], before: Sequence[float], now: Sequence[float]
    ) -> list[float]:
        """Keep what was learned of collections that one holds; add what was of all since it was `before`: the sum."""
        return self._write(
            lambda db, again: postgres_members.keep_trust(db, owner, learned, now if again else before, now)
        )

    def claimed(self) -> list[int]:
        """The sources that somebody is polling now."""
        rows = self._read(lambda db: db.execute("SELECT source FROM claims").fetchall())
        return [source for (source,) in rows]

    def lessons(self) -> list[Lesson]:
        """What workers' polls have taught of the fleet as a whole and no plan has taken up yet."""
        rows = self._read(lambda db: db.execute("SELECT id, value FROM lessons ORDER BY id").fetchall())
        return [Lesson(*row) for row in rows]

    def publish(self, settings: Mapping[str, bytes], price: Price | None, taken_up: Sequence[int]) -> None:
        """A plan's outcome; lessons that it has taken up go in the same transaction."""

        def work(db: Connection, again: bool) -> None:
            self._publish(db, [], settings, price)
            if taken_up:
                db.execute("DELETE FROM lessons WHERE id = ANY(%s)", (list(taken_up),))

        self._write(work)


def _total(level: float, facts: Mapping[str, float]) -> float:
    """What has come into a worker's bucket by its share."""
    return level + facts.get("spent", 0.0) - facts.get("credited", 0.0)


def _account(row: Sequence[Any], facts: Mapping[str, float], now: float) -> Account:
    _, at, share, held, level, burst, _, credit, before = row
    return Account(
        max(share, held),
        now - at,
        _total(level, facts),
        before,
        level,
        burst,
        facts.get("waiting", 0.0),
        credit - facts.get("credited", 0.0),
    )
