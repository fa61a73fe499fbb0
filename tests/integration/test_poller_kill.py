"""kill -9 of the processes that poll for an engine, and of the engine itself: every claim is accounted for."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import numpy as np

from support.engine_victim import Life, engines, settings_file, until
from support.patience import SOON
from unstale.adapters.poller_fetcher import shard_of
from unstale.adapters.sqlite_store import SqliteStore
from unstale.core.learning.state import WIDTH
from unstale.keeper.outcomes import Answer
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

SOURCES, KILLS = 40, 12
HOSTS = "127.0.0.2", "127.0.0.4"
DIED = "the process that polled it has ended before the answer came"


def test_processes_that_poll_may_die_and_every_claim_has_its_end(tmp_path: Path) -> None:
    # They are polled by one process, and by the other.
    assert {shard_of(host, 2) for host in HOSTS} == {0, 1}
    config = settings_file(tmp_path, 'budget = "200/s"', http="pollers = 2")
    store = SqliteStore(tmp_path / "unstale.db")
    site = Site.of(SOURCES, change_rate=0.5)
    with (
        Origin(site, host=HOSTS[0]).in_thread() as one,
        Origin(site, host=HOSTS[1]).in_thread() as other,
        engines(tmp_path) as parent,
    ):
        addresses = [origin.address + path for origin in (one, other) for path in site.paths]
        # Some answer late, so that kills fall while polls are under way.
        addresses += [f"{one.address}/hostile/hang", f"{other.address}/hostile/hang"]
        ids = store.add([Listing(address, longest=2.0) for address in addresses], time.time())
        life = parent.begin(config)
        until(lambda: all(store.observations(source) for source in ids[:-2]), 30.0, "all are polled")
        rng = np.random.default_rng(3)
        for _ in range(KILLS):
            until(lambda: len(_pollers(life)) == 2, SOON, "both processes poll")
            os.kill(int(rng.choice(_pollers(life))), signal.SIGKILL)
            time.sleep(float(rng.uniform(0.0, 0.3)))
        mark = time.time()
        until(lambda: np.all(store.fleet(WIDTH).last[:-2] > mark), 30.0, "all are polled again")
        left = _pollers(life)
        assert life.end() == 0
        assert not life.events("fault")
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in left), SOON, "they have ended with it")
        failed = [seen for source in ids for seen in store.observations(source) if seen.answer is Answer.FAILED]
        # Kills fell in the middle of polls, or the promise was not put to the test.
        assert any(seen.reason.endswith(DIED) for seen in failed)
        tally = store.counters()
        assert tally["claimed"] == sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        assert tally["recorded"] == tally["changed"] + tally["unchanged"] + tally["failed"]
        assert store.verify() == []
        _end_with_their_engine(parent.begin(config))
    store.close()


def _end_with_their_engine(life: Life) -> None:
    """An engine that is killed takes its processes along, though it cannot tell them."""
    until(lambda: len(_pollers(life)) == 2, SOON, "both processes poll")
    left = _pollers(life)
    assert life.end(signal.SIGKILL) == -signal.SIGKILL
    until(lambda: not any(_polls(pid) for pid in left), SOON, "they have ended")


def _pollers(life: Life) -> list[int]:
    told = Path(f"/proc/{life.pid}/task/{life.pid}/children").read_text().split()
    return [int(pid) for pid in told if _polls(int(pid))]


def _polls(pid: int) -> bool:
    """Whether this is a process that polls, and has not ended."""
    try:
        return b"poller_child" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
