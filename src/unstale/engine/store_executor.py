"""The store's executor: all calls go through it, one after the other, and it opens the store anew after a failure.

A store in a file of this machine answers faster than a thread can be handed the interpreter: a thread of its own would
cost more than it saves, so only what is long goes there. A store across a network has a thread for everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, ParamSpec, TypeVar

from unstale.errors import StoreError, StoreLostError
from unstale.ports import Opened

#: seconds until a store that failed is tried again, at first and at most
AGAIN, AGAIN_AT_MOST = 0.5, 30.0

T = TypeVar("T")
P = ParamSpec("P")
#: what is asked of the store: whoever needs less of it takes an executor of a store that does more
S_co = TypeVar("S_co", bound=Opened, covariant=True)


class StoreExecutor(Generic[S_co]):
    """Takes a function of the store to the store. `opened` opens the store, at first and after a failure.

    A `quick` store is asked where the caller is, but for what takes long. With `threads=False` everything runs where it
    is called: for virtual time.
    """

    def __init__(self, opened: Callable[[], S_co], *, threads: bool = True, quick: bool = False) -> None:
        self._open, self._store = opened, opened()
        self._thread = ThreadPoolExecutor(1, "store") if threads else None
        self._quick = quick or not threads
        self._turn = asyncio.Lock()

    @property
    def store(self) -> S_co:
        """The store as it is open now."""
        return self._store

    @property
    def shared(self) -> bool:
        """Whether others may write to the store behind our back."""
        return self._store.moved() is not None

    def moved(self) -> int:
        """A number that changes when another process has written."""
        return self._store.moved() or 0

    async def do(self, work: Callable[[S_co], T], *, long: bool = False) -> T:
        """The answer of the store; `long` if it may take a while."""
        async with self._turn:
            if self._thread is None or (self._quick and not long):
                return work(self._store)
            return await asyncio.get_running_loop().run_in_executor(self._thread, lambda: work(self._store))

    async def aside(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """Numbers that take a while, without holding up the polls."""
        return work(*args, **more) if self._thread is None else await asyncio.to_thread(work, *args, **more)

    async def insist(self, work: Callable[[S_co], T], stop: asyncio.Event) -> T | None:
        """The answer of the store, asked again until it gives one or `stop` is set."""
        while not stop.is_set():
            try:
                return await self.do(work)
            except StoreError:
                await asyncio.sleep(patience(1))
                await self.reopen()
        return None

    async def reopen(self) -> None:
        """Open the store anew; the old one stays if that fails. StoreLostError if its file is not there any more."""

        def anew(store: Opened) -> S_co:
            try:
                store.moved()
            except StoreLostError:
                # Opening it anew would make another one.
                raise
            except StoreError:
                pass
            opened = self._open()
            store.close()
            return opened

        try:
            self._store = await self.do(anew)
        except StoreLostError:
            raise
        except StoreError:
            return

    def close(self) -> None:
        """Give back store and thread."""
        if self._thread is not None:
            self._thread.shutdown()
        self._store.close()


def patience(failures: int) -> float:
    """Seconds to wait before a store that failed so many times in a row is tried again: doubled each time.

    >>> [patience(1), patience(3), patience(99)]
    [0.5, 2.0, 30.0]
    """
    return min(AGAIN * 2.0 ** min(failures - 1, 60), AGAIN_AT_MOST)
