"""A web server on loopback that says exactly what a test wants it to say, well-formed or not."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Self

Speech = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def answer(body: bytes = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A well-formed answer; `content_type="text/html"` becomes `content-type: text/html`."""
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def redirect(to: str, status: str = "302 Found") -> bytes:
    return answer(status=status, location=to)


class Loopback:
    """Serves `speeches` by path: bytes are sent as they are, a coroutine function takes the connection over."""

    def __init__(self, speeches: dict[str, Speech], host: str = "127.0.0.1", tls: ssl.SSLContext | None = None) -> None:
        self.speeches, self._host, self._tls = speeches, host, tls
        self.connections = 0
        #: the head of every request: its lines, names in lower case
        self.asked: list[dict[str, str]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, self._host, 0, ssl=self._tls)
        self.port = self._server.sockets[0].getsockname()[1]
        self.origin = f"{'https' if self._tls else 'http'}://{self._host}:{self.port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
                lines = dict(line.split(": ", 1) for line in head[1:] if ": " in line)
                self.asked.append({"": head[0]} | {name.lower(): value for name, value in lines.items()})
                speech = self.speeches.get(head[0].split(" ")[1], answer(status="404 Not Found"))
                if not isinstance(speech, bytes):
                    await speech(reader, writer)
                    return
                writer.write(speech)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, ssl.SSLError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()
