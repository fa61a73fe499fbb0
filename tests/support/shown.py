"""A store with a day of history, made in virtual time, and a dashboard that shows it to a browser."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.cli.sinks import ReceiverTrials
from unstale.cli.trying import Trying
from unstale.core.learning.learner import Learner
from unstale.core.learning.outlook import WIDTH, even_freshness, outlook
from unstale.core.learning.state import kept
from unstale.keeper.outcomes import Answer
from unstale.ports import LEARNER, Body, Entry, Listing, Price
from unstale.server.app import replica
from unstale.server.asking import StoreAsker
from unstale.server.dashboard import Door, views
from unstale.server.serving import serve
from unstale.server.sessions import Role, Sessions

TOKEN = "0123456789abcdef" * 2
#: seconds between two looks at what is due
STEP = 300.0


def lived(path: Path, listings: list[Listing], *, budget: float, hours: float = 24.0, seed: int = 1) -> None:
    """Let a fleet live until now: sources change at random, polls within the budget find some of it."""
    rng = np.random.default_rng(seed)
    count, end = len(listings), time.time()
    begin = end - 3600.0 * hours
    rates = 10.0 ** rng.uniform(-6.0, -3.3, count)
    weight = np.array([one.weight for one in listings])
    store = SqliteStore(path)
    ids = store.add(listings, begin)
    place = {source: i for i, source in enumerate(ids)}
    learner = Learner(count, count / budget, start=begin, weight=weight)
    seen = np.full(count, -1)
    seen_at = np.full(count, begin)
    price, done = 1.0, np.zeros(4)
    for now in np.arange(begin, end - 1.0, STEP).tolist():
        claims = store.claim(now, count, lease=60.0, owner="past")
        rows = np.array([place[claim.source] for claim in claims], dtype=np.int64)
        changes = rng.poisson(rates[rows] * (now - seen_at[rows]))
        failed = rng.random(len(rows)) < 0.02
        first = seen[rows] < 0
        changed = (changes > 0) | first
        good = ~failed
        seen[rows[good]] = np.maximum(seen[rows[good]], 0) + changes[good]
        seen_at[rows[good]] = now
        taught = good & ~first
        if taught.any():
            learner.observe(rows[taught], np.full(int(taught.sum()), now), changed[taught])
        price = _price(learner, budget, price)
        waits = learner.waits(price)
        entries = []
        for claim, row, new, lost in zip(claims, rows.tolist(), changed.tolist(), failed.tolist(), strict=True):
            answer = Answer.FAILED if lost else Answer.CHANGED if new else Answer.UNCHANGED
            body = Body(_text(row, int(seen[row])), "text/html") if answer is Answer.CHANGED else None
            entries.append(
                Entry(
                    claim,
                    answer,
                    now,
                    now + max(STEP, float(waits[row])),
                    body=body,
                    received=900,
                    belief=learner.columns.rows[row].tobytes(),
                    reason="the source answered 503" * lost,
                )
            )
        done += [len(rows), int((changed & good & ~first).sum()), int(failed.sum()), len(rows)]
        standing = store.fleet(WIDTH)
        told = Price(
            now,
            price,
            budget,
            float(weight @ outlook(standing, now).fresh / weight.sum()),
            even_freshness(standing, weight, count / budget),
            *(int(n) for n in done[:3]),
            done[3],
        )
        store.record(entries, settings={LEARNER: kept(learner)}, price=told)
        done[:] = 0.0
    store.close()


def _price(learner: Learner, budget: float, near: float) -> float:
    low, high = near / 100.0, near * 100.0
    while high > 1.01 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if float((1.0 / learner.waits(middle)).sum()) > budget else (low, middle)
    return high


def _text(row: int, version: int) -> bytes:
    lines = [f"<h1>Timetable {row}</h1>", *(f"<p>Line {i}: every {7 + (i * row) % 9} minutes</p>" for i in range(12))]
    lines[1 + version % 12] = f"<p>Line {version % 12}: changed for the {version}. time</p>"
    return "\n".join(lines).encode()


@contextmanager
def shown(
    settings: Settings,
    *,
    token: str | None = None,
    passwords: Mapping[Role, str] | None = None,
    home: Role | None = "operator",
    replicas: Mapping[str, Any] | None = None,
    key: str = "",
    kept: str = "",
) -> Iterator[str]:
    """The dashboard of a store on a port of this machine: its address."""
    places: list[int] = []
    ready = threading.Event()
    ends: list[Any] = []

    async def run() -> None:
        stop, loop = asyncio.Event(), asyncio.get_running_loop()
        ends.append(lambda: loop.call_soon_threadsafe(stop.set))
        shelf, service = SqliteReplica(settings.store), service_of(settings)
        inner = token or TOKEN
        tries = Trying(settings)
        more = views(
            service,
            replicas=lambda: replicas or {},
            tries=tries,
            told=ReceiverTrials(settings, service.receivers),
            icons=settings.server.icons,
        )
        app = replica(
            shelf,
            token=inner,
            service=service,
            poller=StoreAsker(service, shelf, time.time),
            more=more,
            closed=home is None,
        )
        sessions = Sessions(token, passwords, clock=time.time, key=key)
        door = Door(app, sessions, inner, home=home, kept=kept, icons=settings.server.icons)

        def told(port: int) -> None:
            places.append(port)
            ready.set()

        try:
            await serve(door, "127.0.0.1", 0, token=inner, stop=stop, ready=told, ending=app.close)
        finally:
            await tries.close()
            service.close()
            shelf.close()

    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    try:
        assert ready.wait(30), "the server did not start"
        yield f"http://127.0.0.1:{places[0]}"
    finally:
        ends[0]()
        thread.join(20)
