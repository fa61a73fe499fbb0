"""A machine whose clock is set to anything beside workers on one PostgreSQL store: the server's clock decides."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from support.postgres import Postgres, postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.cli.service import serving, settled, write_store, written_at
from unstale.cli.settings import Settings, load
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, Listing

#: by how much the clock of a machine is off
OFF = [300.0, -300.0, 3900.0, -3900.0]
HOUR, OWNER = 3600.0, "w"


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def crew(server: Postgres) -> Iterator[PostgresCrew]:
    """A worker's store with six sources, of which it is polling three."""
    server.run("DROP SCHEMA IF EXISTS unstale CASCADE")
    with closing(PostgresCrew(server.address())) as store:
        store.add([Listing(f"https://{n}.example/") for n in range(6)], 0.0)
        store.beat(OWNER, 0.0, 0.0, 1.0, {}, None)
        store.hold(OWNER)
        yield store


@pytest.fixture(params=OFF)
def elsewhere(
    request: pytest.FixtureRequest, server: Postgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[Settings, float]:
    """Settings of a machine with another clock."""
    true = time.time
    monkeypatch.setattr(time, "time", lambda: true() + request.param)
    file = tmp_path / "unstale.toml"
    file.write_text(f'store = "{server.address()}"\nbudget = "60/min"\n')
    return load(str(file)), request.param


def done(claims: list[Claim], at: float) -> list[Entry]:
    return [Entry(claim, Answer.UNCHANGED, at, at + HOUR) for claim in claims]


def near(crew: PostgresCrew, moment: float) -> bool:
    """Whether something was just now, by the server's clock."""
    return -60.0 < moment - crew.server_time() <= 0.5


def test_whoever_claims_by_another_clock_ends_no_lease_and_keeps_none_longer(
    crew: PostgresCrew, elsewhere: tuple[Settings, float]
) -> None:
    settings, off = elsewhere
    mine = crew.take([1, 2, 3], lease=200.0, owner=OWNER)
    with closing(write_store(settings)) as other:
        theirs = other.claim(time.time(), 9, lease=200.0, owner="else")
        assert [claim.source for claim in theirs] == [4, 5, 6]
        until = crew._read(lambda db: db.execute("SELECT claimed_until FROM claims WHERE stray").fetchall())
        assert all(near(crew, at - 200.0) for (at,) in until)
        crew.hold(OWNER)
        assert crew.counters().get("expired", 0) == 0
        now = crew.server_time()
        assert crew.record(done(mine, now)) == [True] * 3
        assert other.record(done(theirs, now + off)) == [True] * 3


def test_what_a_command_or_a_face_makes_due_is_due_now(crew: PostgresCrew, elsewhere: tuple[Settings, float]) -> None:
    settings, _ = elsewhere
    crew.set_due([1, 2, 3, 4, 5, 6], [crew.server_time() + 24.0 * HOUR] * 6)
    mine = crew.take([1], lease=200.0, owner=OWNER)
    assert mine == []
    with serving(settings) as service:
        assert near(crew, service.clock())
        service.hasten([1])
        service.hint([2])
        (new,) = service.add([{"address": "https://new.example/"}])
        service.note("looked")
        assert [near(crew, head.due) for head in crew.heads([1, 2, new, 3])] == [True, True, True, False]
        assert near(crew, crew.pushes()[0].told or 0.0)
        assert near(crew, crew.edits(1)[0].at)
    assert sorted(claim.source for claim in crew.take([1, 2, 3, new], lease=200.0, owner=OWNER)) == [1, 2, new]


def test_the_last_word_on_the_budget_is_the_last_that_was_said(
    crew: PostgresCrew, elsewhere: tuple[Settings, float], server: Postgres, tmp_path: Path
) -> None:
    settings, off = elsewhere
    file = tmp_path / "unstale.toml"
    # A file that this machine has written a minute ago, by its own clock.
    written = time.time() - 60.0
    os.utime(file, (written, written))
    assert written_at(file, crew.server_time()) == pytest.approx(written - off, abs=5.0)
    assert settled(settings, None).rate == pytest.approx(1.0)
    with serving(settings) as service:
        service.set_budget(2.0, "command")
    assert settled(settings, None).rate == pytest.approx(2.0)
    file.write_text(f'store = "{server.address()}"\nbudget = "180/min"\n')
    os.utime(file, 2 * (time.time() + 60.0,))
    assert settled(load(str(file)), None).rate == pytest.approx(3.0)


def test_time_runs_on_while_the_server_cannot_be_asked(server: Postgres, crew: PostgresCrew) -> None:
    seen = crew.time_if_idle()
    assert seen is not None
    assert near(crew, seen)
    with crew._in_use, ThreadPoolExecutor(1) as pool:
        assert pool.submit(crew.time_if_idle).result() is None
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unstale'")
    assert crew.time_if_idle() is None
    # Whoever may wait has it again.
    assert crew.server_time() >= seen
