"""Worker processes that tests and campaigns beget and harm, and the account of every poll that they made."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from support import worker_victim
from support.patience import BUSY
from support.postgres import Postgres
from support.worker_victim import SPACED, SPACING
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.ports import Listing

SOURCES, WORKERS, LEASE, BUDGET = 200, 4, 2.0, 150.0


class Line(NamedTuple):
    """A poll as a source saw it."""

    source: int
    token: int
    due: float
    at: float
    process: int
    begin_by: float


class Crew:
    """Worker processes and the log of what they polled."""

    def __init__(self, parent: subprocess.Popen[str], log: Path) -> None:
        self._parent, self._log, self._seeds = parent, log, iter(range(10**6))
        self.processes: list[int] = []

    def beget(self) -> int:
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(f"{next(self._seeds)}\n")
        self._parent.stdin.flush()
        process = int(self._parent.stdout.readline())
        self.processes.append(process)
        return process

    def end(self, process: int, how: int) -> None:
        self.processes.remove(process)
        os.kill(process, signal.SIGCONT)
        os.kill(process, how)

    def polls(self) -> int:
        """How many polls sources have seen."""
        return self._log.read_bytes().count(b"\n")

    def lines(self) -> list[Line]:
        kinds = (int, int, float, float, int, float)
        whole = self._log.read_text().splitlines()
        return [Line(*(kind(word) for kind, word in zip(kinds, line.split(), strict=True))) for line in whole]


@contextmanager
def crew_of(
    server: Postgres,
    folder: Path,
    *,
    budget: float = BUDGET,
    took: float = 0.02,
    first: float = 0.0,
    large: float = math.inf,
    address: str = "",
) -> Iterator[Crew]:
    """A parent of workers that poll for a budget; `address` is that of the server, if they take another way to it."""
    log = folder / "polls.log"
    log.touch()
    program = [
        sys.executable,
        str(Path(worker_victim.__file__)),
        address or server.address(),
        str(log),
        str(LEASE),
        str(budget),
        str(took),
        str(first),
        str(large),
        "server" if address else "own",
    ]
    with (
        (folder / "stderr").open("w") as errors,
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as parent,
    ):
        crew = Crew(parent, log)
        try:
            yield crew
        except BaseException as failed:
            told = (folder / "stderr").read_text()[-4000:]
            alive = [process for process in crew.processes if Path(f"/proc/{process}/exe").exists()]
            failed.add_note(f"of the workers {crew.processes} still there: {alive}; they said:\n{told}")
            raise
        finally:
            for process in list(crew.processes):
                with suppress(ProcessLookupError):
                    crew.end(process, signal.SIGKILL)
            assert parent.stdin is not None
            parent.stdin.close()


def until(what: Callable[[], Any], seconds: float) -> None:
    """Wait until something holds, on a busy machine much longer than it should take."""
    begun = time.monotonic()
    while not what():
        assert time.monotonic() - begun < BUSY * seconds, "it did not happen in time"
        time.sleep(0.05)


def restart(server: Postgres) -> None:
    """Stop PostgreSQL as a crash would, and start it again."""
    server.crash()
    server.start()


def accounted(server: Postgres, polls: Callable[[], list[Line]]) -> list[Line]:
    """Every poll that a source saw is one claim; what is recorded was polled, once, and is in its source's history."""
    with server.connect() as db, db.transaction():
        db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        db.execute("SET LOCAL search_path = unstale")
        rows = db.execute("SELECT token, source, previous FROM observations ORDER BY token").fetchall()
        states = db.execute(
            "SELECT source, latest, token FROM beliefs LEFT JOIN claims USING (source) ORDER BY source"
        ).fetchall()
        tally = dict(db.execute("SELECT name, sum(value)::bigint FROM counters GROUP BY name").fetchall())
    lines = polls()
    assert len({line.token for line in lines}) == len(lines)
    recorded = {token: source for token, source, _ in rows}
    assert recorded.items() <= {line.token: line.source for line in lines}.items()
    ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired"))
    assert tally["claimed"] == ended + sum(token is not None for _, _, token in states)
    assert tally.get("recorded", 0) == len(recorded)
    newest: dict[int, int] = {}
    for token, source, previous in rows:
        assert previous == newest.get(source, 0)
        newest[source] = token
    assert [(source, latest) for source, latest, _ in states] == [(s, newest.get(s, 0)) for s in range(1, SOURCES + 1)]
    # Nobody is polled twice for one due time, unless the poll before was never recorded.
    for source in range(1, SOURCES + 1):
        seen = sorted((line for line in lines if line.source == source), key=lambda line: line.token)
        for one, two in pairwise(seen):
            assert one.token not in recorded or one.due != two.due, (one, two)
    return lines


def spaced(lines: list[Line], hosts: dict[int, str]) -> None:
    """Hosts that want it are polled with pauses between, whoever polls."""
    by_host: dict[str, list[Line]] = {}
    for line in lines:
        if hosts[line.source].startswith(SPACED):
            by_host.setdefault(hosts[line.source], []).append(line)
    assert by_host
    for polls in by_host.values():
        # A worker that is frozen between looking at the clock and polling polls when it thaws: nobody can prevent it.
        in_time = np.sort([line.at for line in polls if line.at <= line.begin_by])
        assert len(in_time) > max(5, 0.8 * len(polls))
        # Their requests may go out a twentieth of the spacing after they began.
        assert np.diff(in_time).min() >= 0.95 * SPACING


def fleet(store: PostgresCrew) -> dict[int, str]:
    """Sources of which every tenth is at one of two hosts that want pauses; their hosts."""
    listings = [Listing(f"s{n}", host=f"{SPACED}{n // 10 % 2}" if n % 10 == 0 else "") for n in range(SOURCES)]
    return dict(zip(store.add(listings, time.time()), (s.host for s in listings), strict=True))
