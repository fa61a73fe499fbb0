"""Workers and their planner in virtual time, on a store in memory that they share."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.postgres_shards import _wanted
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.planner import Planner
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.errors import StoreError
from unstale.keeper.collected import Collected
from unstale.keeper.followed import added
from unstale.keeper.outcomes import Answer
from unstale.keeper.shares import Account, granted, settled, spare_in, wanted_shares
from unstale.listings.records import CollectionMember
from unstale.ports import (
    Census,
    Claim,
    CrewMember,
    Fetched,
    FleetColumns,
    Grant,
    HeldShards,
    HostWord,
    Lesson,
    Price,
    Trust,
)
from unstale.sim.virtual import START, VirtualClock, VirtualWorld, in_virtual_time

GONE, SHARDS = 5.0, 1024


class SharedMemory(MemoryStore):
    """Keeps the contract `SharedStore` in memory, for workers of one process; who is killed says nothing any more."""

    clock: VirtualClock

    def __init__(self) -> None:
        super().__init__()
        self.workers: dict[str, dict[str, Any]] = {}
        self.owners: dict[int, str] = {}
        self.epochs_of: dict[int, int] = {}
        self.kept_trust: dict[int, Trust] = {}
        self._purse, self._divided_at = 0.0, -1.0
        self._lessons: list[Lesson] = []

    def shard(self, source: int) -> int:
        host = self._sources[source].listing.host
        return int.from_bytes(hashlib.md5(host.encode(), usedforsecurity=False).digest()[:2]) % SHARDS

    def server_time(self) -> float:
        return self.clock.now()

    def beat(
        self, owner: str, held: float, level: float, burst: float, facts: Mapping[str, float], lesson: bytes | None
    ) -> Grant:
        total = level + facts.get("spent", 0.0) - facts.get("credited", 0.0)
        one = self.workers.setdefault(owner, {"share": 0.0, "held": 0.0, "credit": 0.0, "settled": total})
        held = max(min(held, max(one["share"], one["held"])), one["share"])
        one |= {"at": self.clock.now(), "held": held, "level": level, "burst": burst, "facts": dict(facts)}
        if lesson is not None:
            self._lessons.append(Lesson(len(self._lessons), lesson))
        return Grant(one["share"], one["credit"])

    def leave(self, owner: str) -> None:
        self.workers.pop(owner, None)
        self.owners = {shard: by for shard, by in self.owners.items() if by != owner}

    def hold(self, owner: str, let_go: Sequence[int] = ()) -> HeldShards:
        for shard in let_go:
            if self.owners.get(shard) == owner:
                del self.owners[shard]
        now = self.clock.now()
        for gone in [name for name, one in self.workers.items() if one["at"] < now - GONE]:
            super().give_back(gone)
            self.leave(gone)
        wanted = set(_wanted(tuple(sorted(self.workers))).get(owner, ()))
        for shard in wanted - self.owners.keys():
            self.owners[shard] = owner
            self.epochs_of[shard] = self.epochs_of.get(shard, 0) + 1
        held = {shard: self.epochs_of[shard] for shard, by in self.owners.items() if by == owner}
        return HeldShards(held, GONE, tuple(sorted(held.keys() - wanted)))

    def take(self, sources: Sequence[int], *, lease: float, owner: str) -> list[Claim]:
        assert all(self.owners.get(self.shard(source)) == owner for source in sources)
        return self.claim(self.clock.now() + 1.0, len(sources), lease=lease, owner=owner, among=sources)

    def held_fleet(self, owner: str, width: int) -> FleetColumns:
        return self.columns_of([s for s in self._sources if self.owners.get(self.shard(s)) == owner], width)

    def sources_of(self, shards: Sequence[int]) -> list[int]:
        return [source for source in self._sources if self.shard(source) in shards]

    def hastened(self) -> list[int] | None:
        return []

    def host_words(self) -> list[HostWord]:
        return []

    def keep_words(self, words: Sequence[HostWord]) -> None:
        pass

    def elect(self) -> int:
        return 1

    def divide(self, rate: float, first: float = 0.0) -> tuple[list[CrewMember], float]:
        now, rows = self.clock.now(), [self.workers[owner] for owner in sorted(self.workers)]
        wanted = wanted_shares(rate + first, [(one["share"], one["facts"].get("demand", 0.0)) for one in rows])
        shares = granted(rate + first, wanted, [(one["share"], one["held"]) for one in rows])
        accounts = [
            Account(
                max(one["share"], one["held"]),
                now - one["at"],
                one["level"] + one["facts"].get("spent", 0.0) - one["facts"].get("credited", 0.0),
                one["settled"],
                one["level"],
                one["burst"],
                one["facts"].get("waiting", 0.0),
                one["credit"] - one["facts"].get("credited", 0.0),
            )
            for one in rows
        ]
        came = rate * (now - self._divided_at) if self._divided_at > 0.0 else 0.0
        self._purse, credits = settled(self._purse, came, accounts)
        self._divided_at = now
        for one, share, more, account in zip(rows, shares, credits, accounts, strict=True):
            one |= {"share": share, "credit": one["credit"] + more, "settled": account.total}
        crew = [
            CrewMember(owner, share, one["level"] + account.credit + more, one["burst"], one["facts"])
            for owner, one, share, account, more in zip(
                sorted(self.workers), rows, shares, accounts, credits, strict=True
            )
        ]
        return crew, spare_in(self._purse, accounts)

    def claimed(self) -> list[int]:
        return [source for source, kept in self._sources.items() if kept.lease]

    def lessons(self) -> list[Lesson]:
        return list(self._lessons)

    def publish(self, settings: Mapping[str, bytes], price: Price | None, taken_up: Sequence[int]) -> None:
        self.record([], settings=settings, price=price)
        self._lessons = [one for one in self._lessons if one.number not in set(taken_up)]

    def census(self) -> Census:
        costs = [kept.cost for kept in self._sources.values()]
        return Census(len(costs), sum(costs), max(costs, default=1.0))

    def part(self, width: int, after: int, upto: int | None, most: int) -> FleetColumns:
        raise NotImplementedError

    def tally(self, value: bytes) -> None:
        pass

    def tallies(self) -> list[bytes]:
        return []

    def members_together(self, owner: str | None = None) -> list[CollectionMember]:
        return [
            one
            for one in self.members()
            if (shard := self.shard(one.source)) == self.shard(one.collection)
            and owner in (None, self.owners.get(shard))
        ]

    def trust(self, collections: Sequence[int] | None = None) -> list[Trust]:
        return [one for n, one in sorted(self.kept_trust.items()) if collections is None or n in collections]

    def keep_trust(
        self, owner: str, learned: Sequence[Trust], before: Sequence[float], now: Sequence[float]
    ) -> list[float]:
        for one in learned:
            if one.collection > 0 and self.owners.get(self.shard(one.collection)) != owner:
                continue
            known = self.kept_trust.get(one.collection, one)
            self.kept_trust[one.collection] = one if one.counts else one._replace(counts=known.counts)
        known = json.loads(self.kept_trust.setdefault(0, Trust(0, json.dumps(list(before)))).state)
        whole = added(known, before, now)
        self.kept_trust[0] = Trust(0, json.dumps(whole))
        return whole


class Mortal:
    """A way to a store that can be cut for ever: for the store its worker is gone, without a word."""

    def __init__(self, store: SharedMemory) -> None:
        self._store, self.cut = store, False

    def __getattr__(self, name: str) -> Any:
        if self.cut:
            raise StoreError("the store is away")
        return getattr(self._store, name)


class Crew:
    """Workers on one store; what their sources are is `answer`'s, or the world's."""

    def __init__(self, world: VirtualWorld, budget: float, store: SharedMemory, workers: int) -> None:
        self.world, self.store, self.workers = world, store, list[Worker]()
        self._config, self._ways = EngineConfig(budget), [Mortal(store) for _ in range(workers)]

    def cut(self, n: int) -> None:
        """Worker n is gone."""
        self._ways[n].cut = True

    def holder(self, source: int) -> int:
        """The worker that holds a source."""
        return int(self.store.owners[self.store.shard(source)][1:])

    def collected(self, source: int) -> Collected:
        """What the holder of a source knows of collections."""
        found = self.workers[self.holder(source)]._fleet.scheduler.collected
        assert found is not None
        return found

    def run(
        self,
        seconds: float,
        answer: Callable[[Claim, float], Fetched | None],
        visits: Mapping[float, Callable[[], None]] | None = None,
    ) -> None:
        """Let so many virtual seconds pass; `visits` are done so many seconds after the start."""

        async def body(clock: VirtualClock, stop: asyncio.Event) -> None:
            self.store.clock = clock

            async def look(claim: Claim) -> Fetched:
                now = clock.now()
                special = answer(claim, now)
                if special is not None:
                    return special
                return Fetched(Answer.CHANGED, now, body=self.world.look(claim.source - 1, now), status=200)

            def executor(store: Any) -> StoreExecutor[Any]:
                return StoreExecutor(lambda: store, threads=False)

            for n, way in enumerate(self._ways):
                config = replace(self._config, owner=f"w{n}", grace=0.1)
                made = Worker(executor(way), executor(way), config, clock, look, rules=lambda host: HOME)
                self.workers.append(made)
            config = replace(self._config, owner="p")
            planner = Planner(executor(self.store), config, clock, HostLimits(lambda host: HOME))

            async def visit() -> None:
                for after, act in sorted((visits or {}).items()):
                    await clock.sleep(START + after - clock.now())
                    act()
                await stop.wait()

            try:
                await asyncio.gather(planner.run(stop), visit(), *(one.run(stop) for one in self.workers))
            finally:
                stop.set()

        in_virtual_time(body, START + seconds)
