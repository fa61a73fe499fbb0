"""Connections of a proxy: only to addresses that the gate permits, judged as they are dialled."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeVar

from unstale.adapters.addresses import Gate

T = TypeVar("T")

#: seconds to find the other end and to reach it, over all its addresses
REACH = 10.0


async def reached(gate: Gate, host: str, port: int, connect: Callable[[str, int], Awaitable[T]]) -> T:
    """What `connect` makes of the first address of a host that answers; ConnectionError says in one sentence why not.

    It is handed an address that was judged, not the name, which may have another one by now.
    """
    loop, name = asyncio.get_running_loop(), host.strip("[]")
    deadline = loop.time() + REACH
    try:
        found = await asyncio.wait_for(loop.getaddrinfo(name, port, type=socket.SOCK_STREAM), REACH)
    except (OSError, UnicodeError):
        raise ConnectionError(f"{host}: its name could not be resolved") from None
    places = dict.fromkeys(str(place[0]) for *_, place in found)
    permitted = [place for place in places if gate.permits(place)]
    if not permitted:
        raise ConnectionError(f"{host}: its address is not public, add it to allow_networks if it may be asked")
    for left, place in zip(range(len(permitted), 0, -1), permitted, strict=True):
        try:
            seconds = (deadline - loop.time()) / left
            return await asyncio.wait_for(connect(place, port), seconds)
        except ssl.SSLCertVerificationError:
            raise ConnectionError(f"{host}: its certificate is not trusted") from None
        except (OSError, TimeoutError):
            continue
    raise ConnectionError(f"{host}: it cannot be reached")


def dialler(gate: Gate) -> Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """What connects to a host and a port for a tunnel; ConnectionError says in one sentence why not."""

    async def dial(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await reached(gate, host, port, asyncio.open_connection)

    return dial
