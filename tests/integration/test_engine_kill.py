"""kill -9 of a running engine at any instant, eighty times, with exact accounting against the origin's own log.

`make chaos` kills thousands.
"""

from __future__ import annotations

import signal
import time
from pathlib import Path

import numpy as np

from support.engine_victim import Life, Parent, engines, settings_file, until
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.doctor import replay_all
from unstale.core.learning.state import WIDTH
from unstale.keeper.outcomes import Answer
from unstale.origin.log import LoggedRequest
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Listing

ROUNDS, SOURCES = 80, 24
RATE, BURST = 200.0, 10.0
#: polls of one source are so far apart that a request is told from its neighbours, however rough the clocks
APART, ROUGH = 0.12, 0.05


def test_many_kills_lose_nothing_acknowledged_and_apply_nothing_twice(tmp_path: Path) -> None:
    config = settings_file(tmp_path, f'budget = "{RATE:g}/s"\nburst = {BURST:g}\nkeep = 2')
    store = SqliteStore(tmp_path / "unstale.db", versions=2)
    with Origin(Site.of(SOURCES, change_rate=0.7)).in_thread() as origin, engines(tmp_path) as parent:
        addresses = [origin.address + path for path in origin.site.paths]
        ids = store.add([Listing(address, shortest=APART) for address in addresses], time.time())
        first = parent.begin(config)
        until(lambda: first.told(b"r"), 60.0, "the first outcome")
        first.end(signal.SIGKILL)
        interrupted = _kill_many(parent, config, store, origin, ids)
        # Kills fell in the middle of polls, or the promise was not put to the test.
        assert interrupted > ROUNDS / 10
        _all_are_polled_again(parent, config, store)
        _accounts(store, origin, ids)
    store.close()


def _kill_many(parent: Parent, config: Path, store: SqliteStore, origin: Origin, ids: list[int]) -> int:
    rng = np.random.default_rng(5)
    interrupted = 0
    seen = store.counters()["claimed"]
    for _ in range(ROUNDS):
        asked, begun = origin.log.total, time.monotonic()
        life = parent.begin(config)
        # Some are killed while they start, most once they poll.
        if rng.random() < 0.7:
            until(life.words.read_bytes, 20.0, "the first claim", pause=0.003)
        time.sleep(float(rng.uniform(0.0, 0.15)))
        assert life.end(signal.SIGKILL) == -signal.SIGKILL
        lasted = time.monotonic() - begun
        assert origin.log.total - asked <= RATE * lasted + BURST
        interrupted += _nothing_is_lost(store, life, seen, ids)
        seen = store.counters()["claimed"]
    return interrupted


def _nothing_is_lost(store: SqliteStore, life: Life, before: int, ids: list[int]) -> int:
    """After a kill: what was acknowledged is there, and nobody is forgotten; how many claims were held."""
    db = store._db
    assert db is not None
    new = {token for (token,) in db.execute("SELECT token FROM observations WHERE token > ?", (before,))}
    heard, claimed = set(life.told(b"r")), set(life.told(b"c"))
    assert heard <= new
    assert new <= claimed
    with store._at_once() as now:
        places = now.execute("SELECT source FROM sched UNION ALL SELECT source FROM leases ORDER BY 1").fetchall()
    assert [source for (source,) in places] == ids
    held = db.execute("SELECT count(*) FROM leases").get
    tally = store.counters()
    ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    assert tally["claimed"] == ended + held
    return int(held)


def _all_are_polled_again(parent: Parent, config: Path, store: SqliteStore) -> None:
    mark = time.time()
    life = parent.begin(config)
    until(lambda: np.all(store.fleet(WIDTH).last > mark), 30.0, "every source polled again")
    assert life.end() == 0
    assert store._db is not None
    assert store._db.execute("SELECT count(*) FROM leases").get == 0


def _accounts(store: SqliteStore, origin: Origin, ids: list[int]) -> None:
    """Every observation is one request, every request at most one observation; copies and beliefs follow from them."""
    requests: dict[bytes, list[LoggedRequest]] = {}
    for asked in origin.log.asked:
        requests.setdefault(asked.path, []).append(asked)
    assert requests.keys() == {path.encode() for path in origin.site.paths}
    matched = 0
    for source, path in zip(ids, origin.site.paths, strict=True):
        matched += _accounts_of(store, origin, source, requests[path.encode()])
    tally = store.counters()
    assert matched == tally["recorded"] == tally["changed"] + tally["unchanged"]
    # A request without an observation belongs to a claim that a kill ended.
    assert origin.log.total - matched <= tally["given_back"] == tally["claimed"] - tally["recorded"]
    assert store.verify() == []
    replayed = replay_all(store, store.fleet(WIDTH), quick=False)
    assert (replayed.polls, replayed.equal) == (matched, len(ids))


def _accounts_of(store: SqliteStore, origin: Origin, source: int, requests: list[LoggedRequest]) -> int:
    observations = store.observations(source, 10**6)[::-1]
    at, held, last = 0, -1, -np.inf
    newest: LoggedRequest | None = None
    for observation in observations:
        while requests[at].t < observation.polled_at - ROUGH:
            at += 1
        request = requests[at]
        at += 1
        assert abs(request.t - observation.polled_at) < 5.0
        if observation.answer is Answer.CHANGED:
            assert request.status == 200
            assert request.version > held
            held, newest = request.version, request
        else:
            assert observation.answer is Answer.UNCHANGED
            assert (request.status, request.version) == (304, held)
        # Time runs from answer to answer, so what a kill swallowed is part of the next.
        assert observation.elapsed == observation.polled_at - last or np.isinf(last)
        last = observation.polled_at
    assert newest is not None
    document, copy = origin.site.find(newest.path, newest.t), store.copy(source)
    assert document is not None
    assert copy is not None
    assert copy.body.data == document.body()
    return len(observations)
