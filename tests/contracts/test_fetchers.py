"""What every fetcher promises; members are discovered, so a new one without an example fails."""

from __future__ import annotations

import asyncio
import inspect
import os
import pkgutil
import sqlite3
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path

import apsw
import pytest

import unstale.adapters
from support.ftp_server import FtpServer
from support.loopback import Loopback, answer
from support.patience import SOON
from unstale.adapters.addresses import Gate
from unstale.adapters.admission import Admission
from unstale.adapters.api_auth import ApiAuth
from unstale.adapters.api_fetcher import ApiFetcher
from unstale.adapters.feed_fetcher import FeedFetcher
from unstale.adapters.file_fetcher import FileFetcher
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.introduced_fetcher import IntroducedFetcher
from unstale.adapters.listing_fetcher import ListingFetcher
from unstale.adapters.memory_fetcher import MemoryFetcher
from unstale.adapters.polite_fetcher import PoliteFetcher
from unstale.adapters.poller_fetcher import PollerFetcher
from unstale.adapters.replica_fetcher import ReplicaFetcher
from unstale.adapters.robots import Robots
from unstale.adapters.sql_fetcher import SqlFetcher
from unstale.adapters.transfer import TransferReply
from unstale.adapters.ways import WAYS, granted
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.kinds import KINDS
from unstale.ports import Fetched, Fetcher, QuickFetcher, Request

NOW = 1.8e9
LOOPBACK = ["127.0.0.1/32"]
#: of every kind in the table: addresses that are granted by some settings, with options and those settings
GRANTED: dict[str, list[tuple[str, dict[str, str], dict[str, list[str]]]]] = {
    "http": [
        ("http://127.0.0.1:9/a", {}, {"allow_networks": LOOPBACK}),
        ("http://0x7f.1:9/a", {}, {"allow_networks": LOOPBACK}),
        ("http://localhost:9/a", {}, {"allow_networks": [*LOOPBACK, "::1/128"]}),
        ("http://[::1]:9/a", {}, {"allow_networks": ["::1/128"]}),
    ],
    "feed": [("http://127.0.0.1:9/feed", {}, {"allow_networks": LOOPBACK})],
    "file": [
        ("file:///srv/data/a.csv", {}, {"roots": ["/srv/data"]}),
        ("file:///srv/data/../data/a.csv", {}, {"roots": ["/srv/data"]}),
        ("ftp://127.0.0.1:9/a", {}, {"schemes": ["ftp"], "allow_networks": LOOPBACK}),
    ],
    "sql": [
        ("sqlite:////srv/data/shop.db#orders", {}, {"roots": ["/srv/data"]}),
        ("postgresql://reader:$NOBODY@127.0.0.1:9/shop", {"table": "orders"}, {"allow_networks": LOOPBACK}),
    ],
    "api": [("http://127.0.0.1:9/v1/orders", {"key": "id"}, {"allow_networks": LOOPBACK})],
    "browser": [("http://127.0.0.1:9/a", {}, {"allow_networks": LOOPBACK})],
    "replica": [
        ("http://127.0.0.1:9/copy/1", {}, {"allow_networks": LOOPBACK}),
        ("custom:anything", {"upstream": "http://127.0.0.1:9/"}, {"allow_networks": LOOPBACK}),
    ],
}
_CASES = [(kind, *case) for kind, cases in GRANTED.items() for case in cases]


@dataclass
class World:
    """A fetcher with a source at `address`; `put` gives it a body, `fail` breaks it, `stall` lets it answer never."""

    fetcher: Fetcher
    address: str
    put: Callable[[bytes], None]
    fail: Callable[[], None]
    stall: Callable[[], None]


@asynccontextmanager
async def http(**headers: str) -> AsyncIterator[World]:
    async def stalled(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async with Loopback({}) as server:

        def put(body: bytes) -> None:
            tag = f'"{hash(body)}"'

            async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                same = server.asked[-1].get("if-none-match") == tag
                said = answer(status="304 Not Modified", **headers) if same else answer(body, etag=tag, **headers)
                writer.write(said)
                await writer.drain()

            server.speeches["/"] = speak

        fetcher = HttpFetcher(Gate(["127.0.0.1/32"]), now=lambda: NOW)
        yield World(
            fetcher,
            f"{server.origin}/",
            put,
            fail=lambda: server.speeches.__setitem__("/", answer(status="500 Oops")),
            stall=lambda: server.speeches.__setitem__("/", stalled),
        )
        await fetcher.close()


@asynccontextmanager
async def memory() -> AsyncIterator[World]:
    fetcher = MemoryFetcher(now=lambda: NOW)
    yield World(
        fetcher,
        "memory:a",
        lambda body: fetcher.put("memory:a", body),
        fail=lambda: fetcher.fail("memory:a", "it is broken"),
        stall=lambda: fetcher.put("memory:a", b"", seconds=60.0),
    )
    await fetcher.close()


class Rows:
    """A SQL fetcher as the contract sees it: its body is the one value of the local table, its limit that of rows."""

    def __init__(self, fetcher: SqlFetcher, target: Path) -> None:
        self._fetcher, self._target, self.close = fetcher, target, fetcher.close

    async def fetch(self, request: Request) -> Fetched:
        asked = replace(request, options={"max_bytes": request.limit}, limit=2**20)
        got = await self._fetcher.fetch(asked)
        if got.body is None:
            return got
        with apsw.Connection(str(self._target), flags=apsw.SQLITE_OPEN_READONLY) as db:
            db.set_busy_timeout(10_000)
            return replace(got, body=db.execute("SELECT content FROM things").get)


@asynccontextmanager
async def sql() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        file, target = Path(folder, "shop.db"), Path(folder, "copies.db")
        db = sqlite3.connect(file, isolation_level=None)

        def put(body: bytes) -> None:
            db.execute("CREATE TABLE IF NOT EXISTS things(content)")
            db.execute("DELETE FROM things")
            db.execute("INSERT INTO things VALUES(?)", (body,))

        put(b"")
        fetcher = SqlFetcher(target, roots=[Path(folder)], now=lambda: NOW)
        yield World(
            Rows(fetcher, target),
            f"sqlite:///{file}#things",
            put,
            fail=lambda: db.execute("DROP TABLE things"),
            stall=lambda: db.execute("BEGIN EXCLUSIVE"),
        )
        await fetcher.close()
        db.close()


class Entry:
    """A feed fetcher as the contract sees it: its body is the title of the one entry, its limit that of the title."""

    HEAD, TAIL = b"<rss><channel><item><title>", b"</title></item></channel></rss>"

    def __init__(self, inner: Fetcher) -> None:
        self._fetcher = FeedFetcher(inner)
        self.close = self._fetcher.close

    async def fetch(self, request: Request) -> Fetched:
        more = len(self.HEAD) + len(self.TAIL)
        got = await self._fetcher.fetch(replace(request, limit=request.limit + more))
        reason = got.reason.replace(str(request.limit + more), str(request.limit))
        body = got.body and got.body.removeprefix(self.HEAD).removesuffix(self.TAIL)
        return replace(got, body=body, reason=reason)


@asynccontextmanager
async def feed() -> AsyncIterator[World]:
    async with http() as world:
        put = world.put
        yield replace(world, fetcher=Entry(world.fetcher), put=lambda body: put(Entry.HEAD + body + Entry.TAIL))


class Records:
    """An API fetcher as the contract sees it: its body is the one field of its one record, and so is its limit."""

    HEAD, TAIL = b'[{"content": "', b'"}]'

    def __init__(self, web: HttpFetcher, target: Path) -> None:
        self._fetcher = ApiFetcher(web, ApiAuth(Gate()), target, now=lambda: NOW)
        self._target, self.close = target, self._fetcher.close

    async def fetch(self, request: Request) -> Fetched:
        limit = 2 * request.limit + len(self.HEAD) + len(self.TAIL)
        got = await self._fetcher.fetch(replace(request, limit=limit))
        got = replace(got, reason=got.reason.replace(str(limit), str(request.limit)))
        if got.body is None:
            return got
        with apsw.Connection(str(self._target), flags=apsw.SQLITE_OPEN_READONLY) as db:
            return replace(got, body=bytes.fromhex(db.execute("SELECT content FROM api").get))


@asynccontextmanager
async def api() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        async with http() as world:
            assert isinstance(world.fetcher, HttpFetcher)
            put = world.put
            fetcher = Records(world.fetcher, Path(folder, "copies.db"))
            yield replace(
                world, fetcher=fetcher, put=lambda body: put(Records.HEAD + body.hex().encode() + Records.TAIL)
            )


@asynccontextmanager
async def files() -> AsyncIterator[World]:
    with tempfile.TemporaryDirectory() as folder, FtpServer(Path(folder)) as server:
        file = Path(folder) / "a"

        def put(body: bytes) -> None:
            file.write_bytes(body)
            # An FTP server tells whole seconds: two bodies of one size look the same.
            os.utime(file, (NOW, NOW))

        fetcher = FileFetcher(Gate(["127.0.0.1/32"]), schemes=["ftp"], now=lambda: NOW)
        yield World(
            fetcher,
            f"{server.origin}/a",
            put,
            fail=lambda: file.unlink(missing_ok=True),
            stall=lambda: setattr(server, "silent", True),
        )
        await fetcher.close()


@asynccontextmanager
async def polite() -> AsyncIterator[World]:
    async def look(request: Request) -> TransferReply:
        return TransferReply(status=404)

    async with http() as world:
        fetcher = PoliteFetcher(world.fetcher, Robots(look, now=lambda: NOW), now=lambda: NOW)
        yield replace(world, fetcher=fetcher)


@asynccontextmanager
async def introduced() -> AsyncIterator[World]:
    async with http(replica_recent='"http://127.0.0.1:9"') as world:
        told: list[tuple[str, Sequence[str]]] = []
        fetcher = IntroducedFetcher(
            Gate(["127.0.0.1/32"]), here="http://127.0.0.1:1", heard=lambda *heard: told.append(heard), now=lambda: NOW
        )
        yield replace(world, fetcher=fetcher)
        await fetcher.close()


@asynccontextmanager
async def replica() -> AsyncIterator[World]:
    async with http(replica_status=f"as-of=@{NOW:.0f}, version=1, hops=1") as world:
        assert isinstance(world.fetcher, HttpFetcher)
        yield replace(world, fetcher=ReplicaFetcher(world.fetcher, now=lambda: NOW))


@asynccontextmanager
async def listing() -> AsyncIterator[World]:
    async with http() as world:
        yield replace(world, fetcher=ListingFetcher(world.fetcher, now=lambda: NOW))


@asynccontextmanager
async def poller() -> AsyncIterator[World]:
    async with http() as world:
        fetcher = PollerFetcher(2, Gate(["127.0.0.1/32"]), now=lambda: NOW)
        # A process that is started on a busy machine takes longer than some of these looks may.
        await fetcher.look(Request(world.address, seconds=30.0))
        yield replace(world, fetcher=fetcher)
        await fetcher.close()


EXAMPLES: dict[str, Callable[[], AbstractAsyncContextManager[World]]] = {
    "ApiFetcher": api,
    "FeedFetcher": feed,
    "FileFetcher": files,
    "HttpFetcher": http,
    "IntroducedFetcher": introduced,
    "ListingFetcher": listing,
    "MemoryFetcher": memory,
    "PoliteFetcher": polite,
    "PollerFetcher": poller,
    "ReplicaFetcher": replica,
    "SqlFetcher": sql,
}


def test_every_member_has_an_example() -> None:
    found = set()
    for module in pkgutil.walk_packages(unstale.adapters.__path__, "unstale.adapters."):
        for name, member in inspect.getmembers(import_module(module.name), inspect.isclass):
            if member.__module__ == module.name and hasattr(member, "fetch") and hasattr(member, "close"):
                found.add(name)
    # What needs a browser has a contract of its own, in tests/integration/test_browser_fetcher.py;
    # what is handed out to other crawlers is answered by them.
    assert found == {*EXAMPLES, "BrowserFetcher", "HandOut"}


def test_every_kind_in_the_table_has_a_way_and_an_example() -> None:
    assert set(WAYS) == set(KINDS) == set(GRANTED)


@pytest.mark.parametrize(("kind", "address", "options", "grants"), _CASES)
def test_the_gate_refuses_when_listed_what_every_poll_would_refuse(
    kind: str,
    address: str,
    options: dict[str, str],
    grants: dict[str, list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NOBODY", "x")
    spelled = Admission(granted(**grants))(address, kind, options)
    for taken in grants:
        fewer = {name: value for name, value in grants.items() if name != taken}
        with pytest.raises(InputError, match="the settings"):
            Admission(granted(**fewer))(address, kind, options)
        polled = asyncio.run(_polled(kind, spelled, options, fewer, tmp_path))
        assert polled.answer is Answer.FAILED
        assert "the settings" in polled.reason
    # Granted, it fails for another reason: nobody is there.
    polled = asyncio.run(_polled(kind, spelled, options, grants, tmp_path))
    assert polled.answer is Answer.FAILED
    assert "the settings" not in polled.reason


async def _polled(
    kind: str, address: str, options: dict[str, str], grants: dict[str, list[str]], folder: Path
) -> Fetched:
    means = replace(granted(**grants), target=folder / "tables.db", now=lambda: NOW)
    made: dict[str, Fetcher] = {}

    def fetcher(name: str) -> Fetcher:
        if name not in made:
            made[name] = WAYS[name].make(means, fetcher)
        return made[name]

    try:
        return await fetcher(kind).fetch(Request(address, options=options, seconds=5.0))
    finally:
        for one in reversed(made.values()):
            await one.close()


class NotAwaited:
    """A quick fetcher as an engine uses it: begun wherever it can be, awaited where it has to be."""

    def __init__(self, inner: QuickFetcher) -> None:
        self._inner = inner
        self.begun = 0

    async def fetch(self, request: Request) -> Fetched:
        future: asyncio.Future[Fetched | Exception] = asyncio.get_running_loop().create_future()
        call_off = self._inner.begin(request, future.set_result)
        if call_off is None:
            return await self._inner.fetch(request)
        assert not future.done()
        self.begun += 1
        try:
            found = await future
        finally:
            call_off()
        assert isinstance(found, Fetched)
        return found

    async def close(self) -> None:
        await self._inner.close()


def quickly(
    example: Callable[[], AbstractAsyncContextManager[World]],
) -> Callable[[], AbstractAsyncContextManager[World]]:
    @asynccontextmanager
    async def world() -> AsyncIterator[World]:
        async with example() as held:
            assert isinstance(held.fetcher, QuickFetcher)
            yield replace(held, fetcher=NotAwaited(held.fetcher))

    return world


#: those that need not be awaited, once more without it
QUICK = {
    f"{name}, not awaited": quickly(EXAMPLES[name])
    for name in ("HttpFetcher", "IntroducedFetcher", "PoliteFetcher", "PollerFetcher")
}


def test_every_fetcher_that_need_not_be_awaited_has_an_example() -> None:
    async def look() -> None:
        for name, example in EXAMPLES.items():
            async with example() as world:
                assert isinstance(world.fetcher, QuickFetcher) == (f"{name}, not awaited" in QUICK)

    asyncio.run(look())


@pytest.mark.parametrize("name", QUICK)
def test_a_look_that_need_not_be_awaited_is_begun_and_one_that_was_called_off_is_never_heard_of(name: str) -> None:
    async def scene() -> None:
        async with QUICK[name]() as world:
            assert isinstance(world.fetcher, NotAwaited)
            world.put(b"one")
            # The first look may have to ask whether it is allowed.
            await world.fetcher.fetch(Request(world.address))
            before = world.fetcher.begun
            await world.fetcher.fetch(Request(world.address))
            assert world.fetcher.begun == before + 1
            world.stall()
            heard: list[Fetched | Exception] = []
            call_off = world.fetcher._inner.begin(Request(world.address), heard.append)
            assert call_off is not None
            await asyncio.sleep(0.05)
            call_off()
            call_off()
            await world.fetcher.close()
            await asyncio.sleep(0.05)
            assert heard == []

    asyncio.run(scene())


@pytest.fixture(params=[*EXAMPLES, *QUICK])
def play(request: pytest.FixtureRequest) -> Callable[[Callable[[World], Awaitable[None]]], None]:
    """Runs a scene in the world of each fetcher."""

    async def run(scene: Callable[[World], Awaitable[None]]) -> None:
        async with (EXAMPLES | QUICK)[request.param]() as world:
            await scene(world)

    return lambda scene: asyncio.run(run(scene))


Play = Callable[[Callable[[World], Awaitable[None]]], None]


def test_a_body_then_its_validator_then_another_body(play: Play) -> None:
    async def scene(world: World) -> None:
        world.put(b"one")
        first = await world.fetcher.fetch(Request(world.address))
        assert (first.answer, first.body, first.polled_at, first.reason) == (Answer.CHANGED, b"one", NOW, "")
        assert first.address == world.address
        assert first.received >= 3
        known = Request(world.address, etag=first.etag, last_modified=first.last_modified)
        same = await world.fetcher.fetch(known)
        assert (same.answer, same.body, same.etag) == (Answer.UNCHANGED, None, first.etag)
        world.put(b"two")
        other = await world.fetcher.fetch(known)
        assert (other.answer, other.body) == (Answer.CHANGED, b"two")
        assert other.etag != first.etag

    play(scene)


def test_a_failure_is_an_answer_with_a_reason(play: Play) -> None:
    async def scene(world: World) -> None:
        world.fail()
        got = await world.fetcher.fetch(Request(world.address))
        assert (got.answer, got.body) == (Answer.FAILED, None)
        assert got.reason
        assert "\n" not in got.reason
        world.put(b"well again")
        assert (await world.fetcher.fetch(Request(world.address))).body == b"well again"

    play(scene)


@pytest.mark.parametrize("address", ["", "nonsense", "file:///etc/passwd", "http://", "\x00", "http://a b/"])
def test_an_address_that_is_none_is_a_failure_too(play: Play, address: str) -> None:
    async def scene(world: World) -> None:
        got = await world.fetcher.fetch(Request(address))
        assert (got.answer, got.body) == (Answer.FAILED, None)
        assert got.reason

    play(scene)


def test_the_limit_holds(play: Play) -> None:
    async def scene(world: World) -> None:
        world.put(b"a" * 1000)
        assert (await world.fetcher.fetch(Request(world.address, limit=1000))).body == b"a" * 1000
        got = await world.fetcher.fetch(Request(world.address, limit=999))
        assert (got.answer, got.body) == (Answer.FAILED, None)
        assert "more than 999 bytes" in got.reason

    play(scene)


def test_the_deadline_holds(play: Play) -> None:
    async def scene(world: World) -> None:
        world.stall()
        begin = time.monotonic()
        got = await world.fetcher.fetch(Request(world.address, seconds=0.2))
        assert 0.15 < time.monotonic() - begin < SOON
        assert got.answer is Answer.FAILED
        assert "within 0.2 s" in got.reason

    play(scene)


def test_many_at_a_time(play: Play) -> None:
    async def scene(world: World) -> None:
        world.put(b"one")
        got = await asyncio.gather(*(world.fetcher.fetch(Request(world.address)) for _ in range(50)))
        assert {fetched.body for fetched in got} == {b"one"}

    play(scene)


def test_closing_fails_what_is_in_flight_and_what_comes_after(play: Play) -> None:
    async def scene(world: World) -> None:
        world.stall()
        flight = asyncio.create_task(world.fetcher.fetch(Request(world.address)))
        await asyncio.sleep(0.05)
        await world.fetcher.close()
        assert "closed" in (await asyncio.wait_for(flight, SOON)).reason
        assert "closed" in (await world.fetcher.fetch(Request(world.address))).reason
        await world.fetcher.close()

    play(scene)


def test_a_cancelled_look_is_cancelled(play: Play) -> None:
    async def scene(world: World) -> None:
        world.stall()
        flight = asyncio.create_task(world.fetcher.fetch(Request(world.address)))
        await asyncio.sleep(0.05)
        flight.cancel()
        with pytest.raises(asyncio.CancelledError):
            await flight

    play(scene)
