"""Drivers of libcurl: many exchanges at a time, every end told once, nothing left behind."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pycurl
import pytest

from unstale.adapters.curl_driver import CurlDriver, PlainDriver, driver

Driver = CurlDriver | PlainDriver
MAKERS: list[Callable[[int], Driver]] = [CurlDriver, PlainDriver]
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Site:
    """A server that answers at once, keeps silent at /silent and closes the connection after /last."""

    def __init__(self) -> None:
        self.requests, self.connections = 0, 0
        self.port = 0
        self.closed = asyncio.Event()

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.requests += 1
                if b"/silent" in head:
                    await asyncio.Event().wait()
                writer.write(OK)
                await writer.drain()
                if b"/last" in head:
                    break
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()
            self.closed.set()


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    held = Site()
    server = await asyncio.start_server(held.talk, "127.0.0.1", 0)
    held.port = server.sockets[0].getsockname()[1]
    try:
        yield held
    finally:
        server.close()


class Socket(socket.socket):
    """libcurl goes on with a duplicate of it."""

    def __del__(self) -> None:
        self.close()


def opens(purpose: int, dialled: Any) -> socket.socket:
    return Socket(dialled.family, dialled.socktype, dialled.protocol)


def handle(drive: Driver, there: Site, path: str, seconds: float = 20.0) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.OPENSOCKETFUNCTION, drive.watching(opens))
    curl.setopt(pycurl.URL, f"http://127.0.0.1:{there.port}{path}")
    curl.setopt(pycurl.PROXY, "")
    curl.setopt(pycurl.TIMEOUT_MS, int(1000 * seconds))
    curl.setopt(pycurl.WRITEFUNCTION, lambda data: None)
    return curl


@pytest.mark.parametrize("made", MAKERS)
def test_many_exchanges_share_few_connections(made: Callable[[int], Driver]) -> None:
    async def play() -> None:
        async with site() as there:
            drive = made(4)
            handles = [handle(drive, there, f"/{i}") for i in range(40)]
            assert await asyncio.gather(*(drive.exchange(curl) for curl in handles)) == [0] * 40
            assert {curl.getinfo(pycurl.RESPONSE_CODE) for curl in handles} == {200}
            assert there.requests == 40
            assert there.connections <= 4
            await drive.close()

    asyncio.run(play())


@pytest.mark.parametrize("made", MAKERS)
def test_what_goes_wrong_has_libcurls_number(made: Callable[[int], Driver]) -> None:
    async def play() -> None:
        async with site() as there:
            drive = made(4)
            late = handle(drive, there, "/silent", seconds=0.05)
            nobody = handle(drive, there, "/")
            nobody.setopt(pycurl.URL, "http://127.0.0.1:1/")
            codes = await asyncio.gather(
                drive.exchange(late), drive.exchange(nobody), drive.exchange(handle(drive, there, "/"))
            )
            assert codes == [pycurl.E_OPERATION_TIMEDOUT, pycurl.E_COULDNT_CONNECT, 0]
            await drive.close()

    asyncio.run(play())


@pytest.mark.parametrize("made", MAKERS)
def test_a_connection_that_its_server_closed_while_it_rested_is_replaced(made: Callable[[int], Driver]) -> None:
    async def play() -> None:
        async with site() as there:
            drive = made(4)
            assert await drive.exchange(handle(drive, there, "/last")) == 0
            await there.closed.wait()
            assert await drive.exchange(handle(drive, there, "/")) == 0
            assert there.connections == 2
            await drive.close()

    asyncio.run(play())


@pytest.mark.parametrize("made", MAKERS)
def test_closing_cancels_those_who_wait_and_a_cancelled_one_leaves_the_others_alone(
    made: Callable[[int], Driver],
) -> None:
    async def play() -> None:
        async with site() as there:
            drive = made(4)
            first, second = (asyncio.create_task(drive.exchange(handle(drive, there, "/silent"))) for _ in range(2))
            while there.requests < 2:
                await asyncio.sleep(0)
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert await drive.exchange(handle(drive, there, "/")) == 0
            assert not second.done()
            await drive.close()
            with pytest.raises(asyncio.CancelledError):
                await second
            assert drive.closed

    asyncio.run(play())


def test_an_end_is_told_in_a_later_turn_and_not_after_calling_off() -> None:
    async def play() -> None:
        async with site() as there:
            drive = CurlDriver(4)
            told: list[int] = []
            kept, dropped = handle(drive, there, "/"), handle(drive, there, "/silent")
            drive.start(kept, told.append)
            drive.start(dropped, told.append)
            assert told == []
            while not told:
                await asyncio.sleep(0)
            drive.call_off(dropped)
            await drive.close()
            assert told == [0]

    asyncio.run(play())


BODY = 8 << 20


async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """A body that no socket's buffer holds, in pieces of every size."""
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % BODY)
    left, piece = BODY, 1
    while left:
        writer.write(bytes(min(piece, left)))
        left -= min(piece, left)
        piece = 3 * piece % 1_000_003
        await writer.drain()
    writer.close()


def test_what_no_buffer_holds_is_read_to_its_end_whoever_hangs_meanwhile() -> None:
    async def play() -> None:
        server = await asyncio.start_server(pour, "127.0.0.1", 0)
        async with site() as there:
            drive = CurlDriver(200)
            told: list[int] = []
            silent = [handle(drive, there, "/silent") for _ in range(60)]
            for curl in silent:
                drive.start(curl, told.append)
            large = [handle(drive, there, "/") for _ in range(3)]
            for curl in large:
                curl.setopt(pycurl.URL, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/")
            assert await asyncio.gather(*(drive.exchange(curl) for curl in large)) == [0] * 3
            assert [int(curl.getinfo(pycurl.SIZE_DOWNLOAD_T)) for curl in large] == [BODY] * 3
            assert told == []
            await drive.close()
        server.close()

    asyncio.run(play())


def test_linux_has_the_quick_driver() -> None:
    made = driver(1)
    import select

    assert isinstance(made, CurlDriver) == hasattr(select, "epoll")
    asyncio.run(made.close())
