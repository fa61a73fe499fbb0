"""Following another replica: its sources become ours, and go when they are gone there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from unstale.addresses import host_of
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.logs import Tell, logged
from unstale.ports import Clock, Listing, Peering, Store

#: seconds between two looks at what there is, and as long as nothing was seen
EVERY, SOON = 60.0, 5.0
#: portions of a list at most, and sources that are looked through at a time
PORTIONS, CHUNK = 10_000, 1000
KIND = "replica"


class Following:
    """Keeps our sources those of an upstream replica, all of them or those whose address matches `select`.

    `select` is a pattern with * and ?, or a part of the address. Sources that others have added are left alone.
    `headers` go with every poll; secrets in them are names of the environment, `$TOKEN`.
    """

    def __init__(
        self,
        upstream: str,
        peering: Peering,
        executor: StoreExecutor[Store],
        clock: Clock,
        *,
        select: str = "*",
        headers: Mapping[str, str] | None = None,
        tell: Tell = lambda name, facts: None,
    ) -> None:
        self._upstream, self._peering, self._executor, self._clock, self._tell = (
            upstream,
            peering,
            executor,
            clock,
            logged(tell),
        )
        self._options: dict[str, Any] = {"upstream": upstream, **({"headers": dict(headers)} if headers else {})}
        self._pattern = select if any(c in select for c in "*?[") else f"*{select}*"

    async def run(self, stop: asyncio.Event) -> None:
        """Look every minute until `stop` is set."""
        while not stop.is_set():
            seen = None
            try:
                seen = await self.look()
            except StoreError as error:
                self._tell("upstream_failed", {"upstream": self._upstream, "reason": str(error)})
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), EVERY if seen and seen[2] else SOON)

    async def look(self) -> tuple[int, int, int] | None:
        """Take over what is there; how many were added, removed and are there, None if it could not be seen whole."""
        wanted: set[str] = set()
        after = 0
        for _ in range(PORTIONS):
            digest = await self._peering.digest(self._upstream, 0.0, after)
            if digest.reason:
                # What could not be seen is not gone.
                self._tell("upstream_failed", {"upstream": self._upstream, "reason": digest.reason})
                return None
            wanted |= {address for address, _, _ in digest.rows if fnmatchcase(address, self._pattern)}
            if digest.further is None:
                break
            after = digest.further
        else:
            return None
        now = self._clock.now()
        added, gone = await self._executor.do(lambda store: self._take_over(store, wanted, now))
        if added or gone:
            self._tell("followed", {"upstream": self._upstream, "added": added, "removed": gone})
        return added, gone, len(wanted)

    def _take_over(self, store: Store, wanted: set[str], now: float) -> tuple[int, int]:
        ours: dict[str, int] = {}
        after = 0
        while some := store.search(kind=KIND, after=after, limit=CHUNK):
            ours |= {
                one.address: one.id for one in store.listings(some) if one.options.get("upstream") == self._upstream
            }
            after = some[-1]
        new = [address for address in sorted(wanted - ours.keys()) if store.find(address) is None]
        if new:
            host = host_of(self._upstream)
            store.add([Listing(address, KIND, host=host, options=self._options) for address in new], now)
        gone = [ours[address] for address in ours.keys() - wanted]
        return len(new), store.remove(gone) if gone else 0
