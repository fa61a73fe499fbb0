"""Workers that are killed, stopped and cut off: what they do at sources is written to one log, a line each.

Run as a program it is the workers' parent, which has imported everything: each line of its input begets one, and its
process id is told.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable

import numpy as np

from unstale.adapters.postgres_crew import PostgresCrew
from unstale.cli.worker import _keep_time, _read_clock
from unstale.core.learning.learner import Learner
from unstale.engine.clock import SharedClock, SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HostLimits, Rules
from unstale.engine.planner import Planner
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.worker import Worker
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched

#: hosts whose names begin so are spaced by so many seconds
SPACED, SPACING = "spaced", 0.3


def rules(host: str) -> Rules:
    """What is granted a host: those that are spaced get one poll at a time."""
    return Rules(SPACING, 1) if host.startswith(SPACED) else Rules(0.0, 1000)


def main(dsn: str, log: str, lease: str, budget: str, took: str, first: str, large: str, times: str) -> None:
    """Beget a worker for each line and tell its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    learner = Learner(2, 60.0)
    learner.observe([0, 1], [60.0, 60.0], [True, False])
    learner.price_for(1.0, 60.0, 120.0, 1.0)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            numbers = (float(word) for word in (lease, budget, took, first, large))
            asyncio.run(live(dsn, log, *numbers, seed=int(line), shared=times == "server"))
            os._exit(0)
        os.write(1, f"{child}\n".encode())


async def live(
    dsn: str, log: str, lease: float, budget: float, took: float, first: float, large: float, *, seed: int, shared: bool
) -> None:
    """Poll until ended; with `shared` time by the server's clock, as `unstale worker` does.

    A poll is a line in the log when it begins: source, token, due, time, process, begin by.
    """
    rng = np.random.default_rng(seed)
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    # The clock of the machine is set by five minutes when it is told so: whoever reads it, reads that.
    set_by, told = [0.0], time.time

    def set_time() -> float:
        return told() + set_by[0]

    time.time = set_time
    for number, seconds in ((signal.SIGUSR1, 300.0), (signal.SIGUSR2, -300.0)):
        loop.add_signal_handler(number, lambda by=seconds: set_by.__setitem__(0, set_by[0] + by))
    clock: SystemClock | SharedClock = SharedClock() if shared else SystemClock()
    out = os.open(log, os.O_WRONLY | os.O_APPEND)

    async def look(claim: Claim) -> Fetched:
        begun = clock.now()
        os.write(
            out, f"{claim.source} {claim.token} {claim.due!r} {begun!r} {os.getpid()} {claim.begin_by!r}\n".encode()
        )
        await asyncio.sleep(took * float(rng.uniform(0.5, 1.5)))
        if rng.random() < 0.3:
            return Fetched(Answer.CHANGED, begun, b"%d" % claim.token, received=10)
        return Fetched(Answer.UNCHANGED, begun)

    def opened() -> PostgresCrew:
        return PostgresCrew(dsn, idle=5.0, patience=3.0, own_time=shared)

    def tell(name: str, facts: object) -> None:
        if name in ("fault", "store_failed", "elected"):
            os.write(2, f"{os.getpid()} {name} {facts}\n".encode())

    executor = await reached(opened)
    if isinstance(clock, SharedClock):
        _read_clock(executor.store, clock)
        keeping = asyncio.create_task(_keep_time(executor, clock, stop))
    config = EngineConfig(budget, owner=f"w{os.getpid()}", lease=lease, polls=64, grace=2.0, first_rate=first)
    worker = Worker(executor, await reached(opened), config, clock, look, rules=rules, tell=tell)
    planner = Planner(await reached(opened), config, clock, HostLimits(rules), tell, large)
    planning = asyncio.create_task(planner.run(stop))
    await worker.run(stop)
    await planning
    if shared:
        await keeping


async def reached(opened: Callable[[], PostgresCrew]) -> StoreExecutor[PostgresCrew]:
    """Begin with a server that answers: whoever looks after workers would begin one again that found none."""
    while True:
        try:
            return StoreExecutor(opened)
        except StoreError:
            await asyncio.sleep(0.1)


if __name__ == "__main__":
    main(*sys.argv[1:])
