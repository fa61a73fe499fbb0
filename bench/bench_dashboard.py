"""What a person does in the dashboard, with 100,000 sources: processor time of each request beside an empty one.

The application is asked without a server in between. What is measured is the whole process, threads included, but not
the database; a request is measured for the first time, after what a server asks itself at its start, again, and once
more after the fleet was edited, when everything that is kept of it is read anew. `--postgres` does so on PostgreSQL.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from harness import Table
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import kept
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing, Price, Store
from unstale.server.app import replica
from unstale.server.dashboard.views import views
from unstale.server.warming import asked_from_inside, warm

SOURCES, HOSTS, DAY = 100_000, 5_000, 86_400.0
TOKEN = "0123456789abcdef" * 2
#: seconds of processor time that an interaction may take, and the request that asks for nearly nothing
BAR, EMPTY = 0.1, "/api/v1/searches"
#: who asks what, as the pages of the dashboard do
READS = {
    "front page: status": "/api/v1/status",
    "front page: prices": "/api/v1/prices?since=1d",
    "list: first 50": "/dashboard/table?limit=50",
    "list: by freshness": "/dashboard/table?limit=50&sort=fresh",
    "search: a rare word": "/dashboard/table?limit=50&search=page-77777",
    "search: a common word": "/dashboard/table?limit=50&search=page-7&sort=due",
    "search: a word that nobody has": "/dashboard/table?limit=50&search=zebra",
    "search: two common words": "/dashboard/table?limit=50&search=page-7%20h1&sort=age&down=true",
    "search: tag": "/dashboard/table?limit=50&search=tag:news",
    "search: tag, failing, stale": "/dashboard/table?limit=50&search=tag:news%20failing%20fresh%3C0.5",
    "search: not a tag": "/dashboard/table?limit=50&search=-tag:news",
    "search: title": "/dashboard/table?limit=50&search=title:number%2077",
    "search: kind": "/dashboard/table?limit=50&search=kind:feed",
    "search: host": "/dashboard/table?limit=50&search=host:h17.example",
    "source": "/api/v1/sources/777",
    "source: why": "/api/v1/sources/777/explain",
    "source: polls": "/api/v1/sources/777/observations?limit=100",
    "source: versions": "/api/v1/sources/777/versions",
    "source: entries": "/api/v1/sources/777/entries",
    "source: belief": "/dashboard/sources/777/belief",
    "events": "/dashboard/log?limit=200",
    "hosts": "/dashboard/hosts",
    "replication": "/dashboard/replicas",
    "budget": "/api/v1/budget",
    "budget: preview": "/api/v1/plan?budget_per_day=50000",
    "saved views": "/api/v1/searches",
}


def fleet(store: Store, sources: int) -> None:
    """A fleet that was polled: beliefs, copies of some, failures of some, tags, titles, a published price."""
    rng, now = np.random.default_rng(1), time.time()
    learner = Learner(sources, DAY)
    every = np.arange(sources)
    for k in range(4):
        learner.observe(every, now - DAY * (4 - k) + rng.uniform(0.0, 1000.0, sources), rng.random(sources) < 0.3)
    listings = [
        Listing(
            f"https://h{i % HOSTS}.example/page-{i}",
            "feed" if i % 10 == 0 else "http",
            host=f"h{i % HOSTS}.example",
            weight=float(1 + i % 3),
            options={"title": f"Number {i}", "tags": ["news", f"t{i % 100}"] if i % 4 == 0 else [f"t{i % 100}"]},
        )
        for i in range(sources)
    ]
    store.add(listings, now - DAY)
    done = 0
    while claims := store.claim(now, 10_000, lease=60.0, owner="bench"):
        entries = []
        for claim in claims:
            at = now - float(rng.uniform(0.0, DAY / 2))
            belief = learner.columns.rows[claim.source - 1].tobytes()
            answer = Answer.FAILED if claim.source % 50 == 0 else Answer.CHANGED
            body = None if answer is Answer.FAILED else Body(b"copy %d" % claim.source, "text/plain")
            due, reason = now + float(rng.exponential(DAY)), "it hangs up" if body is None else ""
            entries.append(Entry(claim, answer, at, due, belief, body=body, reason=reason))
        store.record(entries)
        done += len(claims)
    # What an engine publishes beside the price.
    said = json.dumps({"at": now, "price": 1e-4, "surcharges": {}}).encode()
    price = Price(now, 1e-4, sources / DAY, 0.8, 0.7, done, done, 0, 1.0)
    store.record([], settings={"learner": kept(learner), "engine": said}, price=price)
    store.close()


async def ask(app: Any, path: str, method: str = "GET", body: bytes = b"") -> tuple[int, bytes]:
    """One request."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await app(asked_from_inside(path, TOKEN, method), receive, send)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


async def timed(app: Any, path: str, method: str = "GET", body: bytes = b"") -> tuple[float, float]:
    """Processor time and time of a request; an answer that is no answer ends the measurement."""
    cpu, wall = time.process_time(), time.perf_counter()
    status, answer = await ask(app, path, method, body)
    took = time.process_time() - cpu, time.perf_counter() - wall
    if status >= 400:
        raise SystemExit(f"{path}: {status} {answer[:200]!r}")
    return took


async def measure(app: Any, rounds: int, table: Table, ready: Callable[[], None]) -> None:
    """Every request for the first time and again, and then each first one after an edit."""
    cpu = time.process_time()
    await warm(app, TOKEN, asyncio.Event(), ready)
    table.fact("what a server asks itself at its start, s of processor time", round(time.process_time() - cpu, 2))
    empty = statistics.median([(await timed(app, EMPTY))[0] for _ in range(20)])
    table.fact("an empty request, ms of processor time", round(1e3 * empty, 2))
    for name, path in READS.items():
        first, wall = await timed(app, path)
        again = statistics.median([(await timed(app, path))[0] for _ in range(rounds)])
        table.row(name, "first", wall, first, first / BAR, 1)
        table.row(name, "again", again, again, again / BAR, rounds)
        print(f"{name:34} first {1e3 * first:8.1f} ms, again {1e3 * again:7.2f} ms", flush=True)
    edits = []
    for place, (name, path) in enumerate(READS.items()):
        change = json.dumps({"weight": float(2 + place)}).encode()
        edits.append((await timed(app, "/api/v1/sources/778", "PATCH", change))[0])
        after, wall = await timed(app, path)
        table.row(name, "after an edit", wall, after, after / BAR, 1)
        print(f"{name:34} after an edit {1e3 * after:8.1f} ms", flush=True)
    for name, options in {"tags": {"tags": ["news", "late"]}, "a contract": {"fresh_within": "2h"}}.items():
        await timed(app, "/api/v1/sources/779", "PATCH", json.dumps({"options": options}).encode())
        after, wall = await timed(app, READS["budget: preview"])
        table.row("budget: preview", f"after an edit of {name}", wall, after, after / BAR, 1)
        print(f"budget: preview after an edit of {name} {1e3 * after:8.1f} ms", flush=True)
    edit = statistics.median(edits[1:])
    table.row("edit of a source", "again", edit, edit, edit / BAR, len(edits) - 1)
    print(f"edits: first {1e3 * edits[0]:.1f} ms, then {1e3 * edit:.1f} ms", flush=True)


@contextmanager
def stored(given: argparse.Namespace) -> Iterator[str]:
    """Where the fleet is kept, made if it is not there."""
    with tempfile.TemporaryDirectory() as folder:
        if given.postgres:
            sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
            from support.postgres import postgres  # type: ignore[import-not-found]
            from unstale.adapters.postgres_store import PostgresStore

            with postgres() as server:
                place = server.address()
                fleet(PostgresStore(place), given.sources)
                yield place
            return
        path = given.store or Path(folder) / "store.db"
        if not path.exists():
            fleet(SqliteStore(path), given.sources)
        yield str(path)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--sources", type=int, default=SOURCES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--store", type=Path)
    parser.add_argument("--postgres", action="store_true", help="on a PostgreSQL of its own")
    given = parser.parse_args()
    begun, name = time.perf_counter(), "dashboard_postgres" if given.postgres else "dashboard"
    with stored(given) as place:
        print(f"made in {time.perf_counter() - begun:.1f} s", flush=True)
        service = service_of(Settings(store=place))
        app = replica(service.store, token=TOKEN, service=service, more=views(service))
        table = Table(name, f"Interactions with {given.sources:,} sources; ratio: to 100 ms of processor time")
        asyncio.run(measure(app, given.rounds, table, service.ready))
        service.close()
        table.write()


if __name__ == "__main__":
    main()
