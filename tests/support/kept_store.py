"""A store file that a real engine kept for some virtual hours, for those who read it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from support import virtual
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing

HOUR = 3600.0
REASON = "GET of site2 answered 500"


class Unshared:
    """A store that nobody else writes to: virtual time need not look every moment whether somebody did."""

    def __init__(self, store: SqliteStore) -> None:
        self._store = store

    def moved(self) -> int | None:
        return None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)


def broken_second(claim: Claim, now: float) -> Fetched | None:
    """The second source never answers, the third fails now and then and says when it changed."""
    if claim.source == 2:
        return Fetched(Answer.FAILED, now, reason=REASON, status=500)
    if claim.source == 3:
        if int(now) % 3 == 0:
            return Fetched(Answer.FAILED, now, reason="it hangs")
        return Fetched(Answer.CHANGED, now, body=str(now).encode(), status=200, changed_at=(now - 60.0,))
    return None


def listed(i: int) -> Listing:
    """Source i + 1."""
    return Listing(f"https://site{i + 1}.example/", host=f"site{i + 1}.example", weight=1.0 + i % 3)


def keep(path: Path, hours: float, *, sources: int = 12, budget: float = 12 / HOUR, **options: float) -> float:
    """Let an engine keep Poisson sources for so long, going on with what the file holds; when it ended."""
    store = SqliteStore(path, **options)  # type: ignore[arg-type]
    last = store.fleet(1).last
    start = float(last[np.isfinite(last)].max(initial=virtual.START))
    end = start + hours * HOUR
    try:
        world = virtual.World(np.geomspace(0.1, 4.0, sources) / HOUR, end, start=start)
        unshared: Any = Unshared(store)
        virtual.run_virtually(
            world, budget, hours * HOUR, store=unshared, listing=listed, answer=broken_second, start=start
        )
    finally:
        store.close()
    return end
