"""Causes of failure on our own side, once they are gone: sources that failed for one are tried at once.

Settings and the environment are read when a process starts, so at every start those are due that failed for them.
Who may read a file may change at any time, so that is looked at now and then.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from unstale.adapters.file_places import spot
from unstale.errors import InputError, StoreError

if TYPE_CHECKING:
    from unstale.cli.fetchers import Fetchers
    from unstale.engine.store_executor import StoreExecutor
    from unstale.ports import Listing, Store

#: what reasons say of causes on our side
_OURS = re.compile(r"the settings|environment variable|may not be read|is not installed|^kind |^option ")
_UNREADABLE = "may not be read"
#: failing sources that are looked at, and seconds between two looks
MOST, PAUSE = 10_000, 30.0
_ALL = 2**62


def retry_mended(store: Store, fetchers: Fetchers, now: float) -> list[int]:
    """Make those failing sources due whose last failure was for a cause on our side that is gone; their ids."""
    return _retry(store, now, lambda one, reason: bool(_OURS.search(reason)) and fetchers.ready(one))


def retry_readable(store: Store, now: float) -> list[int]:
    """Make those failing sources due that are files which could not be read, and can be now; their ids."""
    return _retry(store, now, lambda one, reason: reason.endswith(_UNREADABLE) and _readable(one))


async def watch(
    opened: Callable[[], StoreExecutor[Store]], now: Callable[[], float], stop: asyncio.Event, pause: float = PAUSE
) -> None:
    """Look now and then until `stop` is set, through an executor of its own: the engine notices what others write."""
    executor = opened()
    try:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), pause)
                break
            with contextlib.suppress(StoreError):
                await executor.do(lambda store: retry_readable(store, now()))
    finally:
        executor.close()


def _retry(store: Store, now: float, gone: Callable[[Listing, str], bool]) -> list[int]:
    if not (known := store.search(failing=True, paused=False, limit=_ALL)):
        return []
    standing = store.columns_of(known, 1)
    failing = standing.source[(standing.failures > 0) & ~standing.paused & (standing.due > now)][:MOST]
    found = []
    for one in store.listings([int(source) for source in failing]):
        newest = store.observations(one.id, 1)
        if newest and gone(one, newest[0].reason):
            found.append(one.id)
    if found:
        store.set_due(found, list(np.full(len(found), now)))
    return found


def _readable(one: Listing) -> bool:
    try:
        where = spot(one.address)
    except InputError:
        return False
    return where.scheme == "file" and os.access(where.path, os.R_OK)
