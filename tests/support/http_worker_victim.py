"""`unstale worker` to be killed and stopped: begotten by a parent that has imported everything, one for each line."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from unstale.cli import compose, fetchers
from unstale.cli.settings import load
from unstale.cli.worker import _work
from unstale.core.learning.learner import Learner
from unstale.engine import planner, worker

#: they are what a worker imports when it begins
IMPORTED = (compose, fetchers, planner, worker)


def nothing(*_: object) -> None:
    """Neither tells, nor says, nor sees to an end."""


def main(config: str) -> None:
    """Beget a worker for each line and tell its process id."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    learner = Learner(2, 60.0)
    learner.observe([0, 1], [60.0, 60.0], [True, False])
    learner.price_for(1.0, 60.0, 120.0, 1.0)
    settings = load(config)
    for _ in sys.stdin:
        child = os.fork()
        if child == 0:
            asyncio.run(_work(settings, settings.store, settings.budget, None, nothing, nothing, nothing))
            os._exit(0)
        os.write(1, f"{child}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
