"""Collections on one real PostgreSQL: who holds them polls by their word, and what they were worth is kept for all."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

import pytest
from click.testing import CliRunner

from support.patience import BUSY
from support.postgres import Postgres
from unstale.adapters import postgres_schema
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_shards import _wanted
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.postgres_tables import MIGRATIONS
from unstale.cli.main import unstale as cli
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.polling import Look
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CollectionMember
from unstale.ports import Claim, Fetched, Listing, Trust
from unstale.service.hints import hasten

PAGES = 6
BLANK = [0.0] * 5


def test_a_collection_is_held_with_those_of_its_members_that_are_in_its_shard(store: PostgresCrew) -> None:
    first, here, there, other, away = store.add(
        [
            Listing("https://a.example/map.xml"),
            Listing("https://a.example/1"),
            Listing("https://b.example/1"),
            Listing("https://b.example/map.xml"),
            # Whoever has no host is in a shard by its own number.
            Listing("memory:1", kind="memory"),
        ],
        0.0,
    )
    store.enlist(
        [
            *(CollectionMember(first, source, str(source), 5.0, told=6.0) for source in (here, there, away)),
            CollectionMember(other, there, "1", tag="x"),
            # What was pushed belongs to no collection.
            CollectionMember(here, here, "hint", told=7.0),
        ]
    )
    mine = CollectionMember(first, here, str(here), 5.0, told=6.0)
    its = CollectionMember(other, there, "1", tag="x")
    assert store.members_together() == [mine, its]
    for owner in ("wa", "wb"):
        store.beat(owner, 0.0, 0.0, 1.0, {}, None)
    held = {owner: store.hold(owner).epochs for owner in ("wa", "wb")}
    for owner in held:
        told = {*store.members_together(owner)}
        assert told == {one for one in (mine, its) if one.collection in store.sources_of(list(held[owner]))}
    assert store.members_together("nobody") == []


def test_what_holders_learned_is_kept_by_collection_and_added_up_of_all(server: Postgres, store: PostgresCrew) -> None:
    one, two = store.add([Listing("https://a.example/map.xml"), Listing("https://b.example/map.xml")], 0.0)
    assert store.trust() == []
    for owner in ("wa", "wb"):
        store.beat(owner, 0.0, 0.0, 1.0, {}, None)
    held = {owner: store.sources_of(list(store.hold(owner).epochs)) for owner in ("wa", "wb")}
    (of_one,), (of_two,) = ([owner for owner in held if source in held[owner]] for source in (one, two))
    with closing(PostgresCrew(server.address())) as other:
        assert store.keep_trust(of_one, [Trust(one, "1", b"a")], [1.0] * 5, [3.0] * 5) == [3.0] * 5
        # The other one knew nothing yet of what the first had learned.
        whole = other.keep_trust(of_two, [Trust(-1, "h"), Trust(two, "2", b"b")], BLANK, [1.0, 0.0, 0.0, 0.0, 60.0])
        assert whole == [4.0, 3.0, 3.0, 3.0, 40.0]
        # Counts are said more seldom; and who holds a collection no more knows nothing better.
        store.keep_trust(of_one, [Trust(one, "1 later")], BLANK, BLANK)
        store.keep_trust("gone", [Trust(one, "long ago", b"x")], BLANK, BLANK)
        known = [
            Trust(-1, "h"),
            Trust(0, "[4.0, 3.0, 3.0, 3.0, 40.0]"),
            Trust(one, "1 later", b"a"),
            Trust(two, "2", b"b"),
        ]
        assert other.trust() == known
        assert other.trust([two, 0]) == [known[1], known[3]]
    store.remove([one])
    # Whoever held it may hear of that a moment later.
    store.keep_trust(of_one, [Trust(one, "again")], BLANK, BLANK)
    assert [found.collection for found in store.trust()] == [-1, 0, two]


def test_a_store_of_the_version_before_takes_up_what_is_learned(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", MIGRATIONS[:13])
    with closing(PostgresCrew(server.address(), schema="unheard")) as before:
        before.add([Listing("https://a.example/map.xml")], 0.0)
    monkeypatch.undo()
    with closing(PostgresCrew(server.address(), schema="unheard")) as store:
        assert store.trust() == []
        assert store.keep_trust("w", [Trust(-1, "x")], BLANK, BLANK) == BLANK
        assert store.remove([1]) == 1


def hosts_of(owners: tuple[str, ...]) -> dict[str, str]:
    """A host for each worker, in a shard that it should hold."""
    wanted, found = _wanted(owners), dict[str, str]()
    for n in range(100):
        name = f"h{n}.example"
        shard = int.from_bytes(hashlib.md5(name.encode(), usedforsecurity=False).digest()[:2]) % 1024
        found.setdefault(next(owner for owner, shards in wanted.items() if shard in shards), name)
    return found


def test_two_workers_poll_what_their_sitemaps_tell_of_and_one_goes_on_for_the_other(
    server: Postgres, store: PostgresCrew
) -> None:
    hosts = hosts_of(("wa", "wb"))
    pages = [f"https://{host}/{n}" for host in hosts.values() for n in range(PAGES)]
    changed = dict.fromkeys(pages, time.time() - 1000.0)
    ids = dict(zip(pages, store.add([Listing(page) for page in pages], time.time()), strict=True))
    maps = [
        Listing(f"https://{host}/map.xml", options={"collection": "sitemap"}, shortest=3600.0)
        for host in hosts.values()
    ]
    sitemaps = dict(zip(hosts, store.add(maps, time.time()), strict=True))
    # They have proved good before.
    good = {"credit": 40.0, "lessons": 200.0, "trusted": 1.0, "hits": 90.0, "tries": 90.0, "watched": 90.0}
    proved = [90.0, 90.0, 0.0, 90.0, 40.0]
    for number, state in [(0, proved), *((one, good) for one in sitemaps.values())]:
        server.run(f"INSERT INTO unstale.trust VALUES ({number}, '{json.dumps(state)}')")
    polls: list[tuple[str, str, float]] = []

    def looking(owner: str) -> Look:
        async def look(claim: Claim) -> Fetched:
            polls.append((owner, claim.address, claim.due))
            now = time.time()
            if not claim.address.endswith(".xml"):
                return Fetched(Answer.CHANGED, now, b"%f" % changed[claim.address])
            host, lines = claim.address.removesuffix("map.xml"), []
            for page in pages:
                if page.startswith(host):
                    last = datetime.fromtimestamp(changed[page], UTC).isoformat()
                    lines.append(f"<url><loc>{page}</loc><lastmod>{last}</lastmod></url>")
            body = f"<urlset>{''.join(lines)}</urlset>".encode()
            return Fetched(Answer.CHANGED, now, body, "application/xml", address=claim.address)

        return look

    async def scene() -> None:
        clock, ends, planned = SystemClock(), {owner: asyncio.Event() for owner in hosts}, asyncio.Event()
        executors = [StoreExecutor(lambda: PostgresCrew(server.address())) for _ in range(5)]
        limits = HostLimits(lambda host: Rules(0.0, 1000))
        config = EngineConfig(0.5, first_rate=100.0, grace=2.0)
        workers = {
            owner: Worker(
                executors[2 * n],
                executors[2 * n + 1],
                replace(config, owner=owner),
                clock,
                looking(owner),
                rules=lambda host: Rules(0.0, 1000),
            )
            for n, owner in enumerate(hosts)
        }
        planner = Planner(executors[4], replace(config, owner="p"), clock, limits, lambda *_: None)
        tasks = [asyncio.create_task(one.run(ends[owner])) for owner, one in workers.items()]
        planning = asyncio.create_task(planner.run(planned))

        async def until(what: Callable[[], bool], why: str, seconds: float = 60.0) -> None:
            end = time.monotonic() + BUSY * seconds
            while not what():
                assert time.monotonic() < end, (why, polls[-20:])
                await asyncio.sleep(0.05)

        def used(owner: str, whose: str) -> bool:
            collected = workers[owner]._fleet.scheduler.collected
            if collected is None or sitemaps[whose] not in collected.numbers:
                return False
            return bool(collected.collections.used[collected.numbers.index(sitemaps[whose])])

        async def told(owner: str, whose: str) -> None:
            """A page changes, its sitemap is looked at: the holder of both polls it for what it was told."""
            page = f"https://{hosts[whose]}/3"
            changed[page] = at = round(store.server_time(), 3)
            with closing(PostgresStore(server.address())) as other:
                hasten(other, [sitemaps[whose]], other.server_time())
            await until(
                lambda: any(who == owner and where == page and abs(due - at) < 1e-3 for who, where, due in polls),
                f"{owner} polls {page} because it is told of it",
            )

        try:
            for owner in hosts:
                await until(partial(used, owner, owner), "the sitemap is used")
            for owner in hosts:
                await told(owner, owner)
            assert {who for who, where, _ in polls if where.startswith(f"https://{hosts['wa']}/")} == {"wa"}
            faces(server, store, ids)
            before = len(polls)
            ends["wa"].set()
            await until(lambda: used("wb", "wa"), "the other one goes on with what was learned")
            await told("wb", "wa")
            assert {who for who, *_ in polls[before:] if who != "wa"} == {"wb"}
        finally:
            planned.set()
            for end in ends.values():
                end.set()
            await asyncio.gather(*tasks, planning)
            for executor in executors:
                executor.close()

    asyncio.run(scene())
    kept = {one.collection: json.loads(one.state) for one in store.trust() if one.collection > 0}
    # Polls have shown it to be true once more.
    assert all(kept[one]["lessons"] > 200.0 and kept[one]["credit"] > 38.0 for one in sitemaps.values())


def faces(server: Postgres, store: PostgresCrew, ids: dict[str, int]) -> None:
    """Every face says what is true: the sitemaps are used."""
    shown = CliRunner().invoke(cli, ["signals", "--json", "--store", server.address()])
    found = [(one["state"], one["members"]) for one in json.loads(shown.output) if one["address"].endswith(".xml")]
    assert found == [("used", PAGES)] * 2, shown.output
    page = next(iter(ids))
    told = CliRunner().invoke(cli, ["explain", page, "--store", server.address()])
    assert "says that it changed and a poll pays at today's price" in " ".join(told.output.split()), told.output
