"""A running engine among the faults of its machine: full or broken disks, locks, stops, edits, hints, rival engines."""

from __future__ import annotations

import asyncio
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from support.engine_victim import Life, Parent, engines, settings_file, until, warm_up
from support.patience import SOON
from support.virtual import START, World, run_virtually
from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.doctor import replay_all
from unstale.core.learning.state import WIDTH
from unstale.engine.clock import SystemClock
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import HOME, HostLimits
from unstale.engine.loop import Engine
from unstale.engine.store_executor import StoreExecutor
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Claim, Entry, Fetched, FleetColumns, Listing

#: an interval that no test lives to see
NEVER = 1e6


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Parent]:
    with engines(tmp_path_factory.mktemp("engines")) as found:
        yield found


@pytest.fixture
def origin() -> Iterator[Origin]:
    with Origin(Site.of(20, change_rate=1.0, size=20_000)).in_thread() as found:
        yield found


def listed(store: SqliteStore, origin: Origin, count: int = 20, **more: Any) -> list[int]:
    return store.add([Listing(origin.address + path, **more) for path in origin.site.paths[:count]], time.time())


def tokens(store: SqliteStore) -> set[int]:
    assert store._db is not None
    return {token for (token,) in store._db.execute("SELECT token FROM observations")}


def claims_held(store: SqliteStore) -> int:
    assert store._db is not None
    return int(store._db.execute("SELECT count(*) FROM leases").get)


def asked(origin: Origin, path: str) -> int:
    return sum(one.path == path.encode() for one in list(origin.log.asked))


def accounts(store: SqliteStore) -> None:
    """Nothing is claimed any more, every claim ended in one way, and beliefs are what observations taught."""
    tally = store.counters()
    ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    assert claims_held(store) == 0
    assert tally["claimed"] == ended
    replayed = replay_all(store, store.fleet(WIDTH), quick=False)
    assert replayed.differ == replayed.unknown == 0
    assert store.verify() == []


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """A disk of its own, or a skipped test where nobody may mount one."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk of its own: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def trouble_and_recovery(life: Life, store: SqliteStore, begin: Callable[[], Any], end: Callable[[], Any]) -> None:
    """Nothing is recorded while there is trouble, which is told; once it is over all goes on, and nothing is lost."""
    until(lambda: len(life.told(b"r")) > 30, 20.0, "outcomes before")
    begin()
    until(lambda: life.events("store_failed"), 10.0, "word of the trouble")
    acknowledged = set(life.told(b"r"))
    time.sleep(0.7)
    end()
    before = len(life.told(b"r"))
    until(lambda: len(life.told(b"r")) > before + 30, 6.0, "outcomes after")
    assert life.end() == 0
    assert acknowledged <= set(life.told(b"r")) <= tokens(store)
    accounts(store)


def test_a_full_disk_stops_recording_and_loses_nothing(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "6m") as disk:
        store = SqliteStore(disk / "unstale.db")
        listed(store, origin)
        life = parent.begin(settings_file(disk, 'budget = "60/s"'))
        ballast = disk / "ballast"

        def fill() -> None:
            with ballast.open("wb", buffering=0) as file, suppress(OSError):
                while True:
                    file.write(bytes(4096))

        trouble_and_recovery(life, store, fill, ballast.unlink)
        assert "no room" in life.events("store_failed")[0]["reason"]
        store.close()


def test_a_disk_that_refuses_to_write_loses_nothing(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    listed(store, origin)
    life = parent.begin(settings_file(tmp_path, 'budget = "60/s"'))
    limit = resource.RLIMIT_FSIZE

    def grant(most: int) -> Any:
        return resource.prlimit(life.pid, limit, (most, resource.RLIM_INFINITY))

    trouble_and_recovery(life, store, lambda: grant(4096), lambda: grant(resource.RLIM_INFINITY))
    store.close()


def test_a_store_that_another_process_holds_is_waited_for(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    listed(store, origin)
    life = parent.begin(settings_file(tmp_path, 'budget = "60/s"'))
    rival = apsw.Connection(str(tmp_path / "unstale.db"))

    def hold() -> None:
        rival.set_busy_timeout(5000)
        rival.execute("BEGIN IMMEDIATE")

    # Ten seconds are waited in silence, then it says so.
    until(lambda: len(life.told(b"r")) > 30, 20.0, "outcomes before")
    hold()
    until(lambda: life.events("store_failed"), 15.0, "word of the lock")
    assert "held by another process" in life.events("store_failed")[0]["reason"]
    before = len(life.told(b"r"))
    rival.execute("ROLLBACK")
    rival.close()
    until(lambda: len(life.told(b"r")) > before + 30, 6.0, "outcomes after")
    assert life.end() == 0
    assert set(life.told(b"r")) <= tokens(store)
    accounts(store)
    store.close()


def test_a_second_engine_is_refused_in_one_sentence(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    listed(store, origin)
    config = settings_file(tmp_path, 'budget = "60/s"')
    first = parent.begin(config)
    until(lambda: first.told(b"r"), 20.0, "the first engine polls")
    second = parent.begin(config)
    assert second.end(0) == 1
    (line,) = second.out.read_text().splitlines()
    assert line.startswith("unstale: store ")
    assert "kept fresh by another process" in line
    before = len(first.told(b"r"))
    until(lambda: len(first.told(b"r")) > before + 10, 15.0, "the first goes on")
    assert first.end() == 0
    third = parent.begin(config)
    until(lambda: third.told(b"r"), 15.0, "its place is free again")
    assert third.end() == 0
    accounts(store)
    store.close()


def test_a_stop_in_the_middle_of_polls_ends_or_returns_them(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    listed(store, origin)
    (hanging,) = store.add([Listing(origin.address + "/hostile/hang")], time.time())
    config = settings_file(tmp_path, 'budget = "100/s"')
    life = parent.begin(config, grace=1.5)
    until(lambda: asked(origin, "/hostile/hang") and len(life.told(b"r")) > 40, 20.0, "polls under way")
    begun = time.monotonic()
    assert life.end() == 0
    assert 1.4 < time.monotonic() - begun < SOON
    # Everything that was claimed is recorded, but for the poll that hung: it was given back.
    assert set(life.told(b"c")) - set(life.told(b"r")) == set(life.told(b"c")) - tokens(store)
    assert store.counters().get("given_back") == 1
    assert store.observations(hanging) == []
    accounts(store)
    store.close()


def test_edits_and_hints_of_another_process_are_noticed_within_a_second(
    parent: Parent, origin: Origin, tmp_path: Path
) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    ids = listed(store, origin, 6)
    life = parent.begin(settings_file(tmp_path, 'budget = "30/s"'))
    until(lambda: np.all(np.isfinite(store.fleet(WIDTH).last)), 20.0, "all polled")
    paused, removed, added = origin.address + "/s/0", ids[1], origin.address + "/s/10"
    store.add([Listing(paused, paused=True)], time.time(), duplicates="replace")
    store.remove([removed])
    (new,) = store.add([Listing(added)], time.time())
    until(lambda: store.observations(new), 1.0, "the added one polled")
    until(lambda: life.events("loaded")[-1]["sources"] == 6, 1.0, "the removed one forgotten")
    quiet = asked(origin, "/s/0"), asked(origin, "/s/1")
    until(lambda: len(store.observations(new)) > 5, 15.0, "the added one polled again and again")
    assert (asked(origin, "/s/0"), asked(origin, "/s/1")) == quiet
    store.add([Listing(paused)], time.time(), duplicates="replace")
    until(lambda: asked(origin, "/s/0") > quiet[0], 2.0, "the resumed one polled")
    assert life.end() == 0
    accounts(store)
    store.close()


class Slow(SqliteStore):
    """Takes its time to hand over the fleet that it has read, as one of millions would."""

    def fleet(self, width: int) -> FleetColumns:
        standing = super().fleet(width)
        time.sleep(0.03)
        return standing


def test_edits_make_no_outcome_forgotten(tmp_path: Path) -> None:
    warm_up()
    path = tmp_path / "unstale.db"
    store = SqliteStore(path)
    listings = [Listing(f"memory:{i}", kind="memory") for i in range(20)]
    store.add(listings, time.time())

    async def run() -> Engine:
        clock, stop, executor = SystemClock(), asyncio.Event(), StoreExecutor(lambda: Slow(path))

        async def look(claim: Claim) -> Fetched:
            await asyncio.sleep(0.03)
            return Fetched(Answer.CHANGED, clock.now(), body=b"%d" % (3.0 * time.monotonic() + claim.source))

        engine = Engine(executor, EngineConfig(200.0), clock, look, host_limits=HostLimits(lambda host: HOME))
        running = asyncio.create_task(engine.run(stop))
        for listing in listings[:10]:
            # Seldom enough that what one reading forgot would be recorded before the next one mends it.
            await asyncio.sleep(0.25)
            store.add([listing], time.time(), duplicates="replace")
        await asyncio.sleep(0.25)
        stop.set()
        await running
        executor.close()
        return engine

    engine = asyncio.run(run())
    # The fleet was read anew while outcomes came in, and beliefs hold every one of them.
    assert engine.counters.polls == store.counters()["recorded"] > 100
    accounts(store)
    store.close()


class Stuck(MemoryStore):
    """Refuses to record outcomes a few times."""

    left = 5

    def record(self, entries: Sequence[Entry], **more: Any) -> list[bool]:
        if entries and self.left:
            self.left -= 1
            raise StoreError("the disk is full")
        return super().record(entries, **more)

    def close(self) -> None:
        """It is opened anew."""


def test_a_failure_that_could_not_be_recorded_at_once_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unstale.engine.store_executor.AGAIN", 0.0)
    hour = 3600.0

    def polls(store: MemoryStore) -> list[list[float]]:
        engine, _ = run_virtually(
            World(np.ones(3) / hour, START + 60 * hour),
            3 / hour,
            60 * hour,
            store=store,
            answer=lambda claim, now: Fetched(Answer.FAILED, now, reason="it is broken"),
        )
        assert engine.scheduler.failures.tolist() == store.fleet(WIDTH).failures.tolist()
        return [[one.polled_at for one in store.observations(source)] for source in (1, 2, 3)]

    stuck = Stuck()
    # The back-off is that of a store without trouble: not 32 intervals, for five attempts to record one failure. Later
    # waits are spread by the moment of the poll, which the attempts have moved.
    for mine, usual in zip(polls(stuck), polls(MemoryStore()), strict=True):
        assert mine[-2:] == pytest.approx(usual[-2:], abs=60.0)
    assert stuck.left == 0


def test_a_hint_is_polled_at_once_and_many_as_the_budget_allows(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    ids = listed(store, origin, 8, shortest=NEVER, longest=NEVER)
    life = parent.begin(settings_file(tmp_path, 'budget = "4/s"\nburst = 2'))
    until(lambda: np.all(np.isfinite(store.fleet(WIDTH).last)), 20.0, "all polled once")
    # Nothing is due for days, and the bucket fills.
    time.sleep(0.6)
    store.set_due(ids[:1], [time.time()])
    until(lambda: len(store.observations(ids[0])) == 2, 1.0, "the hinted one polled")
    # More hints than the bucket holds: each is polled as soon as there is budget, none waits for its old due time.
    store.set_due(ids, [time.time()] * len(ids))
    took = until(lambda: all(len(store.observations(source)) > 1 for source in ids), 4.0, "all hinted ones polled")
    assert took > (len(ids) - 2 - 1) / 4.0 - 0.3
    assert life.end() == 0
    accounts(store)
    store.close()


def test_an_engine_that_slept_past_its_leases_does_no_harm(parent: Parent, origin: Origin, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    listed(store, origin, 12)
    (slow,) = store.add([Listing(origin.address + "/hostile/drip")], time.time())
    config = settings_file(tmp_path, 'budget = "30/s"', http='timeout = "1.5s"')
    # All who claim from one store use one length of lease: it must do for the other one too, on a busy machine.
    life = parent.begin(config, lease=5.0)
    until(lambda: asked(origin, "/hostile/drip"), 20.0, "a slow poll under way")
    _sleeps(life, tmp_path / "unstale.db")
    time.sleep(5.2)
    other = next(c for c in store.claim(time.time(), 100, lease=5.0, owner="other") if c.source == slow)
    life.send(signal.SIGCONT)
    before = len(life.told(b"r"))
    until(lambda: store.counters().get("dropped", 0) > 0, 10.0, "what came too late dropped")
    assert _claimed(store, slow) == other.token
    failed = Entry(other, Answer.FAILED, time.time(), time.time() + 0.1, reason="by another")
    assert store.record([failed]) == [True]
    store.give_back("other")
    until(lambda: len(life.told(b"r")) > before + 50, 10.0, "it goes on")
    assert life.end() == 0
    accounts(store)
    store.close()


def _sleeps(life: Life, path: Path) -> None:
    """Stop a process at a moment in which it does not hold the store: nobody could claim from it then."""
    db = apsw.Connection(str(path))
    for _ in range(50):
        life.send(signal.SIGSTOP)
        with suppress(apsw.BusyError):
            db.execute("BEGIN IMMEDIATE; ROLLBACK")
            db.close()
            return
        life.send(signal.SIGCONT)
        time.sleep(0.01)
    pytest.fail("it holds the store whenever it is stopped")


def _claimed(store: SqliteStore, source: int) -> int | None:
    assert store._db is not None
    token: int | None = store._db.execute("SELECT token FROM leases WHERE source = ?", (source,)).get
    return token
