"""Services whose store is a server begin before it does: they wait for it, and say so once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

from unstale.engine.store_executor import AGAIN_AT_MOST, patience
from unstale.errors import StoreUnreachableError

T = TypeVar("T")


async def reached(begin: Callable[[], T], stop: asyncio.Event, say: Callable[[str], None]) -> T | None:
    """What `begin` gives once the store's server answers; None if the process is to end before it does.

    It is tried again after half a second, then after twice as long each time, and every half minute from there. Any
    other trouble is raised: waiting does not help with a wrong password or a database that nobody made.
    """
    failures = 0
    while not stop.is_set():
        beginning = asyncio.create_task(asyncio.to_thread(begin))
        ending = asyncio.create_task(stop.wait())
        try:
            # A server that swallows what it is sent holds up no end of ours.
            await asyncio.wait({beginning, ending}, return_when=asyncio.FIRST_COMPLETED)
            if not beginning.done():
                return None
            return beginning.result()
        except StoreUnreachableError as error:
            failures += 1
            if failures == 1:
                say(f"{error}; trying again, every {AGAIN_AT_MOST:.0f} s at least")
            await asyncio.wait({ending}, timeout=patience(failures))
        finally:
            ending.cancel()
    return None
