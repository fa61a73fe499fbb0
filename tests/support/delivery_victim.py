"""A process that records changes and tells of them, to be killed at any instant.

Run as a program it is the victims' parent, which has imported everything: each line of its input begets one.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from unstale.adapters.addresses import Gate
from unstale.adapters.apprise_sink import AppriseSink
from unstale.adapters.log_sink import LogSink
from unstale.adapters.sqlite_store import SqliteStore
from unstale.adapters.webhook import Webhook
from unstale.engine.deliveries import Deliveries
from unstale.engine.sink import Sink
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Event


class Wall:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()

    async def sleep(self, seconds: float) -> None:
        # A hundredth of it: a victim does not live long.
        await asyncio.sleep(seconds / 100.0)


class Numbered(AppriseSink):
    """Says which event it is in the title, for nothing else of it reaches a service."""

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        return await super().tell([replace(e, title=f"{e.number} {e.source} {e.version}") for e in events])


def main(store: str, log: str, hook: str) -> None:
    """Beget a victim for each line, say its process id, wait for its end; a victim of `drain` ends by itself.

    A hook that begins with `json:` is told through Apprise, and then nobody else is.
    """
    if hook.startswith("json:"):
        # What takes a second is done once, for all victims.
        Numbered(hook)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(live(store, log, hook, drain=line.strip() == "drain"))
            os._exit(0)
        os.write(1, b"%d\n" % child)
        os.write(1, b"%d\n" % os.waitpid(child, 0)[1])


async def live(path: str, log: str, hook: str, *, drain: bool) -> None:
    """Record changes as fast as they are told, until killed; with `drain` only tell what is left."""
    executor, stop = StoreExecutor(lambda: SqliteStore(path)), asyncio.Event()
    both: list[Sink] = [LogSink(log), Webhook(hook, Gate(["127.0.0.0/8"]))] if hook.startswith("http") else []
    sinks = both or [Numbered(hook)]
    deliveries = Deliveries(executor, sinks, Wall())
    task = asyncio.create_task(deliveries.run(stop, grace=60.0))
    if drain:
        stop.set()
        await task
        executor.close()
        return
    await executor.do(lambda store: store.give_back("victim"))
    now = float(executor.store.counters().get("claimed", 0))
    while True:
        now += 1.0
        await executor.do(partial(_change, now=now))
        deliveries.nudge()
        await asyncio.sleep(0.001)


def _change(store: SqliteStore, now: float) -> None:
    claims = store.claim(now, 3, lease=1e9, owner="victim")
    store.record([Entry(c, Answer.CHANGED, now, now + 1.0, body=Body(b"%d" % c.token)) for c in claims])


if __name__ == "__main__":
    main(*sys.argv[1:])
