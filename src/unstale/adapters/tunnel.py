"""Plain connections for a proxy's tunnels: only to addresses that the gate permits."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

from unstale.adapters.addresses import Gate

#: seconds to reach the other end
REACH = 10.0


def dialler(gate: Gate) -> Callable[[str, int], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]:
    """What connects to a host and a port; ConnectionError or TimeoutError say in one sentence why not."""

    async def dial(host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise ConnectionError(f"{host}: its name could not be resolved") from None
        permitted = [str(place[0]) for *_, place in found if gate.permits(str(place[0]))]
        if not permitted:
            raise ConnectionError(f"{host}: its address is not public, add it to allow_networks if it may be asked")
        try:
            # The address that was judged, not the name, which may have another one by now.
            return await asyncio.wait_for(asyncio.open_connection(permitted[0], port), REACH)
        except (OSError, TimeoutError):
            raise ConnectionError(f"{host}: it cannot be reached") from None

    return dial
