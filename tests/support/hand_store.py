"""A store file filled by hand: beliefs, answers and copies that a test can compute with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.learner import Learner
from unstale.core.learning.mixture import parts
from unstale.core.learning.state import WIDTH, kept
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing, Price

NOW = 1_700_000_000.0
HOUR = 3600.0
#: the prior of every source in these stores
SHAPE, EXPOSURE = 1.0, HOUR


def belief(shape: float, exposure: float) -> bytes:
    """A row under which a source is believed to be Gamma(shape, exposure), whatever the half-life."""
    row = np.zeros(WIDTH)
    shapes, exposures, _ = parts(row)
    shapes[:], exposures[:] = shape - SHAPE, exposure - EXPOSURE
    return row.tobytes()


def survival(t: float, shape: float, exposure: float) -> float:
    """The probability of no change within t under such a belief."""
    return math.exp(-shape * math.log1p(t / exposure))


def make(path: Path, listings: Sequence[Listing], *, price: float = 600.0, budget: float = 10 / HOUR) -> SqliteStore:
    """A store with these sources, none of which was polled, and a shared state that is all prior."""
    store = SqliteStore(path)
    store.add(listings, NOW - 100 * HOUR)
    state = {"learner": kept(Learner(1, EXPOSURE))}
    store.record([], settings=state, price=Price(NOW - 60.0, price, budget, spent=7.0, polls=7))
    return store


def poll(
    store: SqliteStore,
    source: int,
    at: float,
    answer: Answer,
    *,
    due: float = NOW + HOUR,
    row: bytes | None = None,
    body: bytes | None = None,
    media_type: str = "text/plain",
    reason: str = "",
) -> None:
    """Record one poll of a source at a time."""
    store.set_due([source], [at])
    claim = next(c for c in store.claim(at, 1000, lease=60.0, owner="hand") if c.source == source)
    kept_body = None if body is None else Body(body, media_type, '"tag"', None, body[:8])
    store.record([Entry(claim, answer, at, due, row, None, len(body or b""), reason, kept_body)])
    store.give_back("hand")
