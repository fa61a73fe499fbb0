"""Services whose store is a server begin before it does: they wait for it, and say so once."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

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
        beginning = _beside(begin)
        ending = asyncio.ensure_future(stop.wait())
        waited: set[asyncio.Future[Any]] = {beginning, ending}
        try:
            # A server that swallows what it is sent holds up no end of ours.
            await asyncio.wait(waited, return_when=asyncio.FIRST_COMPLETED)
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


def _beside(work: Callable[[], T]) -> asyncio.Future[T]:
    """What a thread gives that nobody waits for at the end: one of the loop's own would be waited for."""
    loop = asyncio.get_running_loop()
    given: asyncio.Future[T] = loop.create_future()

    def tell(set_one: Callable[[Any], None], one: Any) -> None:
        if not given.done():
            set_one(one)

    def run() -> None:
        found: tuple[Callable[[Any], None], Any]
        try:
            found = given.set_result, work()
        except BaseException as error:
            found = given.set_exception, error
        # Whoever was not waited for comes back to a loop that is closed.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(tell, *found)

    threading.Thread(target=run, name="reaching", daemon=True).start()
    return given
