"""Bytes of a tunnel to and fro: nothing is read, nothing kept, and neither side is read faster than the other takes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable


async def tunnel(
    pieces: asyncio.Queue[bytes],
    write: Callable[[bytes], Awaitable[None]],
    client: asyncio.Transport,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """Until either side ends; `pieces` are what the client sends, an empty one its end, `write` sends to it."""

    async def up() -> None:
        while piece := await pieces.get():
            writer.write(piece)
            client.pause_reading()
            await writer.drain()
            client.resume_reading()

    async def down() -> None:
        while piece := await reader.read(65536):
            await write(piece)

    ways = [asyncio.create_task(up()), asyncio.create_task(down())]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        writer.close()
