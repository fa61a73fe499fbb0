"""Many workers on one real PostgreSQL: killed, stopped beyond their leases, cut off; every poll is accounted for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from support import worker_victim
from support.patience import BUSY
from support.postgres import Postgres, postgres
from support.worker_victim import SPACED, SPACING
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.shared_terms import TERMS, SharedTerms
from unstale.ports import Listing

ROUNDS, SOURCES, WORKERS, LEASE, BUDGET = 100, 200, 4, 2.0, 150.0


class Line(NamedTuple):
    """A poll as a source saw it."""

    source: int
    token: int
    due: float
    at: float
    process: int
    begin_by: float


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


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

    def lines(self) -> list[Line]:
        kinds = (int, int, float, float, int, float)
        whole = self._log.read_text().splitlines()
        return [Line(*(kind(word) for kind, word in zip(kinds, line.split(), strict=True))) for line in whole]


@contextmanager
def crew_of(
    server: Postgres, folder: Path, *, budget: float = BUDGET, took: float = 0.02, first: float = 0.0
) -> Iterator[Crew]:
    log = folder / "polls.log"
    log.touch()
    program = [
        sys.executable,
        str(Path(worker_victim.__file__)),
        server.address(),
        str(log),
        str(LEASE),
        str(budget),
        str(took),
        str(first),
    ]
    with (
        (folder / "stderr").open("w") as errors,
        subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True) as parent,
    ):
        crew = Crew(parent, log)
        try:
            yield crew
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
        states = db.execute("SELECT source, latest, token FROM beliefs ORDER BY source").fetchall()
        tally = dict(db.execute("SELECT name, sum(value)::bigint FROM counters GROUP BY name").fetchall())
    lines = polls()
    assert len({line.token for line in lines}) == len(lines)
    recorded = {token: source for token, source, _ in rows}
    assert recorded.items() <= {line.token: line.source for line in lines}.items()
    ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired"))
    assert tally["claimed"] == ended + sum(token is not None for _, _, token in states)
    assert tally["recorded"] == len(recorded)
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
        assert np.diff(in_time).min() >= SPACING - 1e-6


def fleet(store: PostgresCrew) -> dict[int, str]:
    """Sources of which every tenth is at one of two hosts that want pauses; their hosts."""
    listings = [Listing(f"s{n}", host=f"{SPACED}{n // 10 % 2}" if n % 10 == 0 else "") for n in range(SOURCES)]
    return dict(zip(store.add(listings, time.time()), (s.host for s in listings), strict=True))


def test_every_poll_is_accounted_for_whatever_happens_to_workers_and_server(server: Postgres, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    begun = time.time()
    with closing(PostgresCrew(server.address())) as store, crew_of(server, tmp_path) as crew:
        hosts = fleet(store)
        for _ in range(WORKERS):
            crew.beget()
        until(lambda: len(crew.lines()) > SOURCES / 4, 30.0)
        stopped: dict[int, float] = {}
        for n in range(ROUNDS):
            time.sleep(float(rng.uniform(0.02, 0.4)))
            for process in [process for process, at in stopped.items() if time.time() > at]:
                del stopped[process]
                os.kill(process, signal.SIGCONT)
            victim = crew.processes[int(rng.integers(len(crew.processes)))]
            if n % 25 == 20:
                restart(server)
            elif n % 3 == 0 and victim not in stopped:
                os.kill(victim, signal.SIGSTOP)
                stopped[victim] = time.time() + LEASE * float(rng.uniform(0.5, 2.0))
            elif n % 3 == 1:
                stopped.pop(victim, None)
                crew.end(victim, signal.SIGKILL)
                crew.beget()
            if n % 20 == 0:
                accounted(server, crew.lines)
        for process in stopped:
            os.kill(process, signal.SIGCONT)
        # None is forgotten: in peace, everybody is polled again.
        before = len(crew.lines())
        until(lambda: len({line.source for line in crew.lines()[before:]}) == SOURCES, 60.0)
        for process in list(crew.processes):
            crew.end(process, signal.SIGTERM)
        until(lambda: not any(Path(f"/proc/{process}/exe").exists() for process in crew.processes), 15.0)
        time.sleep(3.0)
        lines = accounted(server, crew.lines)
        spaced(lines, hosts)
        assert store.counters()["recorded"] > 2 * SOURCES
        # All together never spend more than the budget and what each may spend at once.
        bursts = BUDGET * WORKERS
        assert len(lines) <= BUDGET * (time.time() - begun) + bursts
        assert store.verify() == []


def test_another_worker_plans_within_seconds_and_all_share_the_budget(server: Postgres, tmp_path: Path) -> None:
    with closing(PostgresCrew(server.address())) as store:
        fleet(store)
        _another_plans(server, tmp_path, store)


def _another_plans(server: Postgres, tmp_path: Path, store: PostgresCrew) -> None:
    def planner() -> str:
        text = store.columns_of([], 1).settings.get("engine", b'""')
        return text.decode()

    def shares() -> list[float]:
        with store._in_use:
            assert store._db is not None
            return [row[0] for row in store._db.execute("SELECT greatest(share, held) FROM workers").fetchall()]

    with crew_of(server, tmp_path) as crew:
        for _ in range(3):
            crew.beget()
        until(lambda: len(shares()) == 3 and min(shares()) == pytest.approx(BUDGET / 3), 30.0)
        assert sum(shares()) <= BUDGET * (1 + 1e-9)
        until(lambda: len(crew.lines()) > SOURCES / 4, 30.0)
        for how in (signal.SIGKILL, signal.SIGSTOP):
            first = next(p for p in crew.processes if f'"owner": "w{p}"' in planner())
            polls = len(crew.lines())
            if how == signal.SIGKILL:
                crew.end(first, how)
            else:
                os.kill(first, how)
            # A process that is stopped keeps its session until the server misses it.
            until(lambda gone=first: f'"w{gone}"' not in planner(), 10.0 if how == signal.SIGKILL else 20.0)
            until(lambda before=polls: len(crew.lines()) > before, 10.0)
        until(lambda: max(shares()) == pytest.approx(BUDGET), 15.0)


def test_who_plans_changes_nothing_for_what_is_shared_is_in_the_store(server: Postgres, tmp_path: Path) -> None:
    with closing(PostgresCrew(server.address())) as store:
        fleet(store)
        # The settings of all these workers say another budget than the one that all had agreed on.
        kept = SharedTerms(BUDGET / 3, 10.0, "age", 0.0, 5.0)
        store.record([], settings={TERMS: kept.kept()})
        with crew_of(server, tmp_path) as crew:
            crew.beget()
            crew.beget()
            for how in (signal.SIGKILL, signal.SIGTERM):
                until(lambda: store.setting("plan") != b"", 30.0)
                plan = json.loads(store.setting("plan"))
                assert (plan["rate"], plan["burst"], plan["objective"]) == (BUDGET / 3, 10.0, "age")
                until(lambda: 0.0 < shared(store) <= BUDGET / 3 * (1 + 1e-9), 30.0)
                with store._in_use:
                    assert store._db is not None
                    store._db.execute("DELETE FROM settings WHERE name = 'plan'")
                owner = json.loads(store.setting("engine"))["owner"]
                if how == signal.SIGKILL:
                    crew.end(int(owner[1:]), how)


def test_first_polls_have_an_allowance_that_workers_share_and_nothing_else_gets(
    server: Postgres, tmp_path: Path
) -> None:
    # At a poll an hour the first round would take more than a week.
    with (
        closing(PostgresCrew(server.address())) as store,
        crew_of(server, tmp_path, budget=1 / 3600, first=50.0) as crew,
    ):
        fleet(store)
        crew.beget()
        crew.beget()
        until(lambda: store.counters().get("recorded", 0) >= SOURCES, 60.0)
        # A planner looks again when the allowance is over: then there is nothing left but the budget.
        until(lambda: shared(store) <= 1.01 / 3600, 30.0)
        polls = crew.lines()
        assert {line.source for line in polls} == set(range(1, SOURCES + 1))
        # Besides, each of two workers may spend what a bucket holds of the dearest poll.
        assert len(polls) <= SOURCES + 4 + 4


def shared(store: PostgresCrew) -> float:
    """What workers may spend per second, all together."""
    with store._in_use:
        assert store._db is not None
        return float(sum(row[0] for row in store._db.execute("SELECT greatest(share, held) FROM workers").fetchall()))
