"""States are appended, and whoever opens the file, whenever, knows the newest of each source; what a poll writes."""

from __future__ import annotations

import itertools
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from unstale.adapters import sqlite_schema, sqlite_states
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Listing

#: floats of a belief, as learners have it
WIDTH = 19
PAGE = 4096


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """What takes a large fleet happens in a small one: old states go, and places are kept in many chunks."""
    for name, value in {"CHUNK": 4, "RATE": 1 / 3, "SPARE": 3}.items():
        monkeypatch.setattr(sqlite_states, name, value)


def poll(store: SqliteStore, among: list[int], now: float, due: float) -> None:
    claims = store.claim(now, len(among), lease=60.0, owner="a", among=among)
    belief = np.full(WIDTH, due).tobytes()
    assert all(store.record([Entry(one, Answer.UNCHANGED, now, due, belief) for one in claims]))
    assert len(claims) == len(among)


def states(store: SqliteStore) -> int:
    assert store._db is not None
    return int(store._db.execute("SELECT count(*) FROM states").get)


def places(store: Any) -> dict[int, int]:
    """The newest state of each source, as a connection knows it and as the states themselves tell it."""
    with store._at_once() as db:
        told = dict(
            db.execute("SELECT source, max(id) FROM states WHERE source IN (SELECT id FROM sources) GROUP BY 1")
        )
        assert {source: db.places.of(source) for source in told} == told
        assert db.places.sources == len(told)
    return told


def test_every_connection_knows_how_sources_stand_whoever_wrote(tmp_path: Path, small: None) -> None:
    rng, path = np.random.default_rng(5), tmp_path / "store.db"
    due: dict[int, float] = {}
    with ExitStack() as stack:
        first = stack.enter_context(closing(SqliteStore(path)))
        stores = [first, stack.enter_context(closing(SqliteStore(path)))]
        reader = stack.enter_context(closing(SqliteReplica(path)))
        for step in range(300):
            store, now = stores[rng.integers(2)], float(step)
            known = np.array(sorted(due), dtype=np.int64)
            some = rng.choice(known, min(len(known), 3), replace=False).tolist()
            match rng.integers(6):
                case 0 if step < 200:
                    listed = [Listing(f"{step} {i}") for i in range(rng.integers(1, 6))]
                    due.update(dict.fromkeys(store.add(listed, now), now))
                case 1:
                    assert store.remove(some[:1]) == len(some[:1])
                    due = {source: at for source, at in due.items() if source not in some[:1]}
                case 2:
                    store.set_due(some, [now + 0.5] * len(some))
                    due.update(dict.fromkeys(some, now + 0.5))
                case 3:
                    store.relearn(some)
                case _:
                    ripe = [source for source in some if due[source] <= now]
                    poll(store, ripe, now, now + 1.0)
                    due.update(dict.fromkeys(ripe, now + 1.0))
            seen: Any = reader if step % 3 else SqliteReplica(path)
            # Places are kept of all or of nobody.
            assert first._db is not None
            pieces = [chunk for (chunk,) in first._db.execute("SELECT chunk FROM places ORDER BY chunk")]
            assert pieces == list(range(len(pieces)))
            assert max(due, default=-1) < 4 * len(pieces)
            assert {head.source: head.due for head in seen.heads(list(range(1, 400)))} == due
            fleet = seen.fleet(WIDTH)
            assert dict(zip(fleet.source.tolist(), fleet.due.tolist(), strict=True)) == due
            places(seen)
            if seen is not reader:
                seen.close()
        assert first.verify() == []
        assert len(due) > 20
        # Old states went, and the places that are kept are behind by as little as they should be.
        assert states(first) < 1.8 * len(due) + 40
        assert first._db is not None
        behind = first._db.execute("SELECT (SELECT max(id) FROM states) - min(upto) FROM places").get
        assert behind < 3 * 2 * len(due)


def test_who_opens_the_file_for_one_poll_does_not_keep_all_places_anew(tmp_path: Path, small: None) -> None:
    path = tmp_path / "store.db"
    with closing(SqliteStore(path)) as store:
        ids = store.add([Listing(str(n)) for n in range(40)], 0.0)
    kept: list[set[int]] = [set()]
    for turn in range(40):
        with closing(SqliteStore(path)) as store:
            poll(store, ids[turn : turn + 1], 1.0, 2.0)
            assert store._db is not None
            kept.append({upto for (upto,) in store._db.execute("SELECT DISTINCT upto FROM places")})
            places(store)
    new = [len(after - before) for before, after in itertools.pairwise(kept)]
    # A chunk for every three states, of which there is one for each poll, and some that were written again.
    assert max(new) == 1
    assert 10 <= sum(new[1:]) <= 30


def test_what_is_asked_of_a_source_reads_no_table_from_its_beginning_to_its_end(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        ids = store.add([Listing(f"https://a.example/{n}") for n in range(20)], 0.0)
        poll(store, ids[:3], 1.0, 2.0)
        asked: list[tuple[str, Any]] = []
        assert store._db is not None
        store._db.set_exec_trace(lambda cursor, sql, bindings: asked.append((sql, bindings)) is None)
        poll(store, ids[:1], 3.0, 4.0)
        assert len(store.observations(ids[0])) == 2
        store.heads(ids[:2])
        store.columns_of(ids[:2], WIDTH)
        store.set_due(ids[:2], [9.0, 9.0])
        store.relearn(ids[:1])
        store.held(["https://a.example/0"])
        store._db.set_exec_trace(None)
        orders = [one for one in asked if one[0].split()[0] in ("SELECT", "WITH", "INSERT", "UPDATE", "DELETE")]
        assert len(orders) > 30
        scanned: set[str] = set()
        for sql, bindings in orders:
            steps: Any = store._db.execute(f"EXPLAIN QUERY PLAN {sql}", bindings).fetchall()
            if "ORDER BY token LIMIT" not in sql:  # the oldest few
                scanned |= {detail.split()[1] for *_, detail in steps if detail.startswith("SCAN")}
    # What is given, a chain that was begun, rows that were just found, and tables that stay small.
    assert scanned <= {"w", "carray", "chain", "beliefs", "CONSTANT", "settings", "prices", "leases", "epochs"}


def test_what_was_rolled_back_stands_nowhere(tmp_path: Path, small: None) -> None:
    path = tmp_path / "store.db"
    with closing(SqliteStore(path)) as store, closing(SqliteStore(path)) as other:
        ids = store.add([Listing(name) for name in "abcdef"], 0.0)
        claims = store.claim(1.0, 6, lease=60.0, owner="a")
        assert store._db is not None

        def refuse() -> bool:
            raise apsw.FullError("database or disk is full")

        store._db.set_commit_hook(refuse)
        with pytest.raises(StoreError, match="has no room left"):
            store.record([Entry(one, Answer.UNCHANGED, 1.0, 7.0) for one in claims])
        store._db.set_commit_hook(None)
        assert {head.due for head in store.heads(ids)} == {0.0}
        # The numbers that were taken back are another's now.
        other.set_due(ids[::-1], [float(source) for source in ids[::-1]])
        for one in (store, other):
            assert [head.due for head in one.heads(ids)] == [float(source) for source in ids]
            places(one)


def test_a_file_of_the_eighth_version_has_the_same_states(tmp_path: Path) -> None:
    path, belief = tmp_path / "store.db", np.arange(3.0).tobytes()
    with closing(apsw.Connection(str(path))) as db:
        for step in sqlite_schema.MIGRATIONS[:8]:
            db.execute(step)
        db.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION}; PRAGMA user_version = 8")
        db.execute("""
            INSERT INTO hosts VALUES (1, 'h');
            INSERT INTO sources
            SELECT value, 'http://x/' || value, 'http', 1, 1, 1, 0, 9e999, NULL, value = 7, 7.0, NULL
            FROM json_each('[2, 3, 7]');
            INSERT INTO beliefs SELECT id, 90.5 - id, 50.0 + id, 40.0 + id, id = 3, 10 + id, 0, NULL FROM sources;
            INSERT INTO leases VALUES (2, 20, 900.0, 'gone');
            INSERT INTO counters VALUES ('added', 7), ('claimed', 20), ('recorded', 19);
        """)
        db.execute("UPDATE beliefs SET belief = ? WHERE source = 3", (belief,))
    with closing(SqliteStore(path)) as store:
        assert [tuple(head) for head in store.heads([3, 2, 7, 4])] == [
            (3, 13, 0, 53.0, 87.5, 1),
            (2, 12, 0, 52.0, 88.5, 0),
            (7, 17, 0, 57.0, 83.5, 0),
        ]
        fleet = store.fleet(3)
        assert (fleet.source.tolist(), fleet.found.tolist()) == ([2, 3, 7], [42.0, 43.0, 47.0])
        assert fleet.beliefs.tolist() == [[0.0] * 3, [0.0, 1.0, 2.0], [0.0] * 3]
        assert store.waiting(100.0) == [(3, 87.5)]
        assert store.give_back("gone") == 1
        assert [claim.source for claim in store.claim(100.0, 9, lease=9.0, owner="a")] == [3, 2]
        assert store.verify() == []
        assert places(store) == {2: 1, 3: 2, 7: 3}


def test_what_a_poll_writes_does_not_depend_on_where_its_source_lies(tmp_path: Path) -> None:
    """Every poll of a fleet in any order wrote a page for its source's row, and again when the log was written back."""
    sources, batch = 5_000, 250
    rng = np.random.default_rng(1)
    with closing(SqliteStore(tmp_path / "store.db")) as store:
        ids = np.array(store.add([Listing(f"https://a.example/{i}") for i in range(sources)], 0.0))
        assert store._db is not None
        written: list[int] = []
        for turn in range(50):
            store._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            some = rng.choice(ids, batch, replace=False).tolist()
            poll(store, some, 100.0 * (turn + 1), 100.0 * (turn + 1) + 1.0)
            written.append(store.path.with_name("store.db-wal").stat().st_size)
        # By then as many states go as come.
        frames = sum(written[25:]) / (PAGE * 25 * batch)
        assert states(store) < 1.9 * sources + 1_000
    # Each page is written once to the log, and once at most from there to its place.
    assert 2 * PAGE * frames < 1_500
