"""Looking at loopback sources: our HTTP fetcher, the same libcurl loop with nothing around it, and aiohttp."""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

import pycurl

from harness import Table
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.ports import Request

POLLS, FLIGHTS = 6_000, 64
ETAG = '"7"'
SAME = b'HTTP/1.1 304 Not Modified\r\nETag: "7"\r\n\r\n'
BODY = b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: "8"\r\nContent-Length: 2048\r\n\r\n' + b"a" * 2048


class Server(asyncio.Protocol):
    """The least that can be called a web server: 304 to whoever holds the validator, a body to others."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        for head in data.split(b"\r\n\r\n")[:-1]:
            self.transport.write(SAME if b"If-None-Match" in head else BODY)


def serve(ready: Connection) -> None:
    async def play() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0)
        ready.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(play())


@contextmanager
def serving() -> Iterator[str]:
    """A server in a process of its own, so that its work is not counted as the client's."""
    spawn = multiprocessing.get_context("spawn")
    ours, theirs = spawn.Pipe()
    process = spawn.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/"
    finally:
        process.terminate()
        process.join()


async def flights(one: Callable[[int], Awaitable[object]]) -> None:
    """So many polls, so many at a time."""
    numbers = iter(range(POLLS))

    async def fly() -> None:
        for number in numbers:
            await one(number)

    await asyncio.gather(*(fly() for _ in range(FLIGHTS)))


async def ours(origin: str, etag: str | None) -> None:
    fetcher = HttpFetcher(Gate(["127.0.0.0/8"]), connections=FLIGHTS)
    wanted = Answer.UNCHANGED if etag else Answer.CHANGED

    async def one(number: int) -> None:
        got = await fetcher.fetch(Request(f"{origin}{number}", etag=etag))
        assert got.answer is wanted, got.reason

    await flights(one)
    await fetcher.close()


async def bare(origin: str, etag: str | None) -> None:
    lines = [f"If-None-Match: {etag}"] if etag else []
    async with pycurl.AsyncCurlMulti() as multi:
        multi.setopt(pycurl.M_MAXCONNECTS, FLIGHTS)
        idle: list[pycurl.Curl] = []

        async def one(number: int) -> None:
            curl = idle.pop() if idle else pycurl.Curl()
            received: list[bytes] = []
            curl.setopt(pycurl.URL, f"{origin}{number}")
            curl.setopt(pycurl.PROXY, "")
            curl.setopt(pycurl.HTTPHEADER, lines)
            curl.setopt(pycurl.WRITEFUNCTION, received.append)
            await multi.add_handle(curl)
            assert curl.getinfo(pycurl.RESPONSE_CODE) == (304 if etag else 200)
            idle.append(curl)

        await flights(one)


async def with_aiohttp(origin: str, etag: str | None) -> None:
    import aiohttp

    headers = {"If-None-Match": etag} if etag else {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=FLIGHTS)) as session:

        async def one(number: int) -> None:
            async with session.get(f"{origin}{number}", headers=headers) as reply:
                await reply.read()
                assert reply.status == (304 if etag else 200)

        await flights(one)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    candidates = {"bare libcurl loop": bare, "HttpFetcher": ours}
    try:
        import aiohttp  # noqa: F401

        candidates["aiohttp"] = with_aiohttp
    except ImportError:
        pass
    table = Table("fetch", f"{POLLS:,} polls over loopback, {FLIGHTS} at a time, kept-alive connections")
    with serving() as origin:
        for case, etag in (("not modified", ETAG), ("2 kB body", None)):
            runs = {name: lambda f=f, etag=etag: asyncio.run(f(origin, etag)) for name, f in candidates.items()}
            seconds = table.measure(case, runs, reference="bare libcurl loop", rounds=options.rounds)
            mine = seconds["HttpFetcher"]
            cpu = next(r["cpu_seconds"] for r in table.rows if r["case"] == case and r["candidate"] == "HttpFetcher")
            table.fact(f"polls per second, {case}", f"{POLLS / mine:,.0f}", "-")
            table.fact(f"CPU per poll, {case}", f"{cpu / POLLS * 1e6:.0f} µs", "-")
            table.fact(
                f"rate against the bare loop, {case}", f"{seconds['bare libcurl loop'] / mine:.2f}", "0.5 or more"
            )
            if "aiohttp" in seconds:
                table.fact(f"times aiohttp, {case}", f"{seconds['aiohttp'] / mine:.2f}", "-")
    table.write()


if __name__ == "__main__":
    main()
