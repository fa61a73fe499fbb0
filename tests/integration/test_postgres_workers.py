"""Many workers on one real PostgreSQL: killed, stopped beyond their leases, cut off; every poll is accounted for."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from support.postgres import Postgres, postgres
from support.worker_crew import BUDGET, LEASE, SOURCES, WORKERS, accounted, crew_of, fleet, restart, spaced, until
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.engine.shared_terms import TERMS, SharedTerms

ROUNDS = 60


@pytest.fixture
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


def test_every_poll_is_accounted_for_whatever_happens_to_workers_and_server(server: Postgres, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    begun = time.time()
    # Its fleet is planned in parts, those of the other tests are planned whole.
    with closing(PostgresCrew(server.address())) as store, crew_of(server, tmp_path, large=100) as crew:
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
        assert json.loads(store.setting("plan"))["in_parts"]


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
        most = [0.0]

        def all_shared() -> bool:
            now = shares()
            most[0] = max(most[0], sum(now))
            return len(now) == 3 and min(now) > 0.0 and sum(now) == pytest.approx(BUDGET)

        until(all_shared, 30.0)
        # At no moment on the way there were they more than there is.
        assert most[0] <= BUDGET * (1 + 1e-9)
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
