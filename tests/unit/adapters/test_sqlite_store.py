"""What only the SQLite store promises: its file, its versions, its limits, and what it does when the disk does not."""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest
import zstandard

from support.patience import SOON
from unstale.adapters import sqlite_claims, sqlite_schema
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.errors import InputError, StoreError
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CollectionMember
from unstale.ports import Body, Checkpoint, Copy, Entry, Epoch, Listing, Observation, Price

DAY = 86400.0
KNOWN = len(sqlite_schema.MIGRATIONS)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "store.db", horizon=10 * DAY)
    yield store
    store.close()


def sql(store: SqliteStore, query: str) -> list[Any]:
    assert store._db is not None
    return store._db.execute(query).fetchall()


def poll(store: SqliteStore, at: float, due: float, body: bytes | None = None, belief: bytes | None = None) -> bool:
    (claim,) = store.claim(at, 1, lease=60.0, owner="a")
    kept = Body(body) if body is not None else None
    answer = Answer.CHANGED if kept else Answer.UNCHANGED
    return store.record([Entry(claim, answer, at, due, belief=belief, body=kept)])[0]


def test_every_commit_is_synced_through_a_log(store: SqliteStore) -> None:
    assert sql(store, "PRAGMA journal_mode") == [("wal",)]
    assert sql(store, "PRAGMA synchronous") == [(2,)]
    assert sql(store, "PRAGMA user_version") == [(KNOWN,)]


@pytest.mark.parametrize("version", ["3.40.1", "3.44.5", "3.45.0", "3.50.6", "3.51.2", "3.52.0"])
def test_a_library_that_can_lose_commits_is_refused(tmp_path: Path, monkeypatch: Any, version: str) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    with pytest.raises(StoreError, match=f"SQLite {version} can lose what it has committed .*: install apsw"):
        SqliteStore(tmp_path / "store.db")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("version", ["3.44.6", "3.50.7", "3.51.3", "3.52.1", "3.54.1", "4.0.0"])
def test_a_mended_library_is_taken(tmp_path: Path, monkeypatch: Any, version: str) -> None:
    monkeypatch.setattr(apsw, "sqlite_lib_version", lambda: version)
    SqliteStore(tmp_path / "store.db").close()


def test_a_file_of_a_newer_program_is_refused_untouched(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteStore(path).close()
    with apsw.Connection(str(path)) as db:
        db.pragma("user_version", KNOWN + 1)
    with pytest.raises(
        StoreError, match=f"has version {KNOWN + 1}, this program knows {KNOWN}: install a newer unstale"
    ):
        SqliteStore(path)


def test_other_files_are_refused_untouched(tmp_path: Path) -> None:
    other, text, folder = tmp_path / "other.db", tmp_path / "text", tmp_path / "none" / "store.db"
    made = sqlite3.connect(other)
    made.execute("CREATE TABLE theirs(a)")
    made.close()
    text.write_text("no database, but long enough to have a header of a hundred bytes " * 5)
    before = other.read_bytes(), text.read_bytes()
    with pytest.raises(StoreError, match="is another program's database: choose another file"):
        SqliteStore(other)
    with pytest.raises(StoreError, match="is damaged or no database: "):
        SqliteStore(text)
    with pytest.raises(StoreError, match="cannot be opened: check that its folder exists"):
        SqliteStore(folder)
    assert (other.read_bytes(), text.read_bytes()) == before


def test_memory_is_no_place_for_a_store() -> None:
    with pytest.raises(StoreError, match="has no write-ahead log here but memory: put it on a local disk"):
        SqliteStore(":memory:")


def test_migrations_go_forward_whole_or_not_at_all(tmp_path: Path, monkeypatch: Any) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    store.add([Listing("a")], 1.0)
    store.close()
    first = sqlite_schema.MIGRATIONS
    broken = "ALTER TABLE sources ADD COLUMN note TEXT; CREATE TABLE hosts(a);"
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*first, broken))
    with pytest.raises(StoreError, match="table hosts already exists"):
        SqliteStore(path)
    monkeypatch.setattr(sqlite_schema, "MIGRATIONS", (*first, "ALTER TABLE sources ADD COLUMN note TEXT"))
    store = SqliteStore(path)
    assert sql(store, "SELECT address, note FROM sources") == [("a", None)]
    assert sql(store, "PRAGMA user_version") == [(KNOWN + 1,)]
    store.close()


def test_a_file_of_the_first_version_is_brought_up_and_keeps_everything(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    digest, packed = sha256(b"hello").digest(), zstandard.ZstdCompressor().compress(b"hello")
    with apsw.Connection(str(path)) as db:
        db.execute(sqlite_schema.MIGRATIONS[0])
        db.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION}; PRAGMA user_version = 1")
        db.execute("""
            INSERT INTO hosts VALUES (1, 'h');
            INSERT INTO sources VALUES (4, 'http://x/', 'http', 2.0, 3.0, 1, 5.0, 6e4, '{"a":1}', 0, 7.0);
            INSERT INTO sources VALUES (5, 'http://y/', 'feed', 1.0, 1.0, 1, 0.0, 9e999, NULL, 1, 8.0);
            INSERT INTO leases VALUES (4, 12, 99.0, 'me');
            INSERT INTO beliefs VALUES (4, 60.0, 50.0, 40.0, 1, 11, 1, x'000000000000f03f');
            INSERT INTO beliefs VALUES (5, 70.0, -9e999, -9e999, 0, 0, 0, NULL);
            INSERT INTO checkpoints VALUES (4, 10, 40.0, 40.0, x'0000000000000040');
            INSERT INTO observations VALUES (10, 4, 40.0, 1, NULL, 39.0, 5, NULL, 0);
            INSERT INTO observations VALUES (11, 4, 50.0, 2, 10.0, NULL, 0, 'hung', 10);
            INSERT INTO prices VALUES (1, 41.0, 0.5, 2.0);
            INSERT INTO counters VALUES ('added', 5), ('claimed', 12), ('recorded', 11);
            INSERT INTO settings VALUES ('learner', x'aa'), ('other', x'bb');
        """)
        db.execute("INSERT INTO contents VALUES (1, ?, 5, 0, ?)", (digest, packed))
        db.execute("INSERT INTO copies VALUES (4, 1, 1, 40.0, 'text/plain', '\"e\"', NULL, x'cc', 'http://x/y')")
    before = path.read_bytes()
    with pytest.raises(StoreError, match=f"has version 1, this program reads {KNOWN}: open it for writing once"):
        SqliteReplica(path)
    assert path.read_bytes() == before
    store = SqliteStore(path)
    assert store.listings([4, 5]) == [
        Listing("http://x/", "http", 2.0, 3.0, "h", 5.0, 6e4, {"a": 1}, False, 4, 7.0),
        Listing("http://y/", "feed", 1.0, 1.0, "h", 0.0, math.inf, {}, True, 5, 8.0),
    ]
    fleet = store.fleet(1)
    assert (fleet.due.tolist(), fleet.last.tolist(), fleet.failures.tolist()) == ([60, 70], [50, -math.inf], [1, 0])
    assert fleet.beliefs.tolist() == [[1.0], [0.0]]
    assert (fleet.settings, fleet.price) == ({"learner": b"\xaa", "other": b"\xbb"}, Price(41.0, 0.5, 2.0))
    assert store.checkpoint(4) == Checkpoint(10, 40.0, 40.0, np.array([2.0]).tobytes())
    assert store.checkpoint(5) is None
    newest, first = store.observations(4)
    assert newest == Observation(11, 4, 50.0, Answer.FAILED, 10.0, None, 0, "hung", 0)
    assert (first.answer, first.modified, first.received, first.epoch) == (Answer.CHANGED, 39.0, 5, 0)
    assert store.copy(4) == Copy(4, 1, 40.0, digest, Body(b"hello", "text/plain", '"e"', None, b"\xcc", "http://x/y"))
    assert store.counters() == {"added": 5, "claimed": 12, "recorded": 11}
    assert store.verify() == []
    # What comes next is made under the state that was in force, and is told.
    assert store.epochs() == [Epoch(1, b"\xaa")]
    store.subscribe(["log"])
    assert store.give_back("me") == 1
    assert poll(store, 60.0, 99.0, b"world")
    assert (store.observations(4)[0].token, store.observations(4)[0].epoch) == (13, 1)
    assert [event.version for event in store.events("log", 9)] == [2]
    store.close()


def test_a_reader_changes_nothing_and_makes_nothing(store: SqliteStore, tmp_path: Path) -> None:
    for missing in (SqliteReplica, lambda path: SqliteStore(path, create=False)):
        with pytest.raises(StoreError, match="does not exist: check its name, or add a source to make it"):
            missing(tmp_path / "none.db")
        with pytest.raises(StoreError, match="is a folder: name a file in it"):
            missing(tmp_path)
    assert not (tmp_path / "none.db").exists()
    (source,) = store.add([Listing("a")], 0.0)
    reader = SqliteReplica(store.path)
    poll(store, 1.0, 2.0, b"hello")
    copy = reader.copy(source)
    assert copy is not None
    assert copy.body.data == b"hello"
    assert reader._db is not None
    with pytest.raises(apsw.ReadOnlyError):
        reader._db.execute("DELETE FROM sources")
    # A reader that stays in the middle of reading does not hold the writer up, and sees one instant.
    with reader._at_once() as db:
        assert db.execute("SELECT count(*) FROM observations").get == 1
        assert poll(store, 2.0, 3.0)
        assert db.execute("SELECT count(*) FROM observations").get == 1
    assert len(reader.observations(source)) == 2
    assert reader.verify() == []
    reader.backup(tmp_path / "copy.db")
    kept = SqliteReplica(tmp_path / "copy.db")
    assert len(kept.observations(source)) == 2
    kept.close()
    reader.close()
    SqliteStore(store.path, create=False).close()


def test_a_reader_finds_what_a_killed_writer_left_in_the_log(store: SqliteStore, tmp_path: Path) -> None:
    store.add([Listing("a")], 0.0)
    for suffix in ("", "-wal"):
        (tmp_path / f"left.db{suffix}").write_bytes(Path(f"{store.path}{suffix}").read_bytes())
    reader = SqliteReplica(tmp_path / "left.db")
    assert reader.find("a") == 1
    reader.close()


def test_a_reader_notices_at_once_that_another_has_written(store: SqliteStore) -> None:
    reader, other = SqliteReplica(store.path), SqliteStore(store.path)
    seen, own = reader.moved(), store.moved()
    assert (reader.moved(), store.moved()) == (seen, own)
    (source,) = store.add([Listing("a")], 0.0)
    assert reader.moved() != seen
    # What a writer writes itself is no news to it.
    assert store.moved() == own
    other.set_due([source], [5.0])
    assert store.moved() != own
    begin = time.process_time()
    for _ in range(1000):
        store.moved()
    assert time.process_time() - begin < 5.0, "it is asked before every answer"
    # A thread that uses the store is not waited for, and is not disturbed.
    seen = store.moved()
    other.set_due([source], [6.0])
    with ThreadPoolExecutor(1) as thread, store._reading():
        assert thread.submit(store.moved).result(timeout=SOON) == seen
    assert store.moved() != seen
    other.close()
    reader.close()


def test_sources_are_found_by_what_is_known_of_them(store: SqliteStore) -> None:
    store.add(
        [
            Listing("http://Example.org/a%b", host="x"),
            Listing("http://example.org/a_b", "feed", host="y"),
            Listing("file:/a\\b", "file", paused=True),
            Listing("http://bücher.example/", host="y"),
        ],
        0.0,
    )
    assert store.search() == [1, 2, 3, 4]
    assert store.search("EXAMPLE.org") == [1, 2]
    # The signs of a pattern are letters like any other.
    assert (store.search("a%b"), store.search("a_b"), store.search("a\\b"), store.search("a'b")) == ([1], [2], [3], [])
    assert (store.search("BüCHER"), store.search("BÜCHER")) == ([4], [])
    assert (store.search(host="y"), store.search("org", host="y"), store.search(host="z")) == ([2, 4], [2], [])
    assert (store.search(kind="feed"), store.search(paused=True), store.search(paused=False)) == ([2], [3], [1, 2, 4])
    assert (store.search(limit=2), store.search(after=2), store.search("example", after=1, limit=1)) == (
        [1, 2],
        [3, 4],
        [2],
    )


def test_epochs_go_with_the_last_observation_made_under_them(store: SqliteStore) -> None:
    (source, other) = store.add([Listing("a"), Listing("b")], 0.0)
    store.set_due([other], [1.5 * DAY])
    for day in range(1, 31):
        poll(store, day * DAY, (day + 1.0) * DAY if day != 2 else math.inf)
        store.set_due([source], [(day + 1.0) * DAY])
        store.record([], settings={"learner": bytes([day])})
    named = {o.epoch for o in store.observations(source)}
    assert min(named) > 15
    # Those that observations name, and the one in force; any of them can be asked for.
    assert store.epochs() == [Epoch(n, bytes([n])) for n in sorted(named | {30})]
    assert store.epochs(29) == [Epoch(29, b"\x1d"), Epoch(30, b"\x1e")]
    store.remove([source, other])
    assert store.epochs() == [Epoch(30, b"\x1e")]


def test_events_beyond_the_horizon_go_even_if_nobody_fetched_them(store: SqliteStore) -> None:
    store.add([Listing("a")], 0.0)
    store.subscribe(["never asks"])
    for day in range(40):
        poll(store, day * DAY, (day + 1.0) * DAY, b"%d" % day)
    assert [event.at / DAY for event in store.events("never asks", 99)] == list(range(29, 40))


def test_what_was_recorded_is_there_when_opened_again(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    store = SqliteStore(path)
    (source,) = store.add([Listing("a")], 1.0)
    poll(store, 2.0, 9.0, b"hello", np.arange(3.0).tobytes())
    (held,) = store.claim(9.0, 1, lease=60.0, owner="a")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed: open it again"):
        store.claim(9.0, 1, lease=60.0, owner="a")
    again = SqliteStore(path)
    assert again.fleet(3).beliefs.tolist() == [[0.0, 1.0, 2.0]]
    copy = again.copy(source)
    assert copy is not None
    assert copy.body.data == b"hello"
    # Tokens go on where they were: an outcome from before the restart is still told apart.
    assert again.give_back("a") == 1
    assert again.claim(9.0, 1, lease=60.0, owner="a")[0].token > held.token
    again.close()


def test_a_flipped_bit_in_a_copy_is_found_and_never_served(store: SqliteStore) -> None:
    ids = store.add([Listing(name) for name in "abc"], 0.0)
    for n in range(3):
        poll(store, 1.0, math.inf, bytes([65 + n]) * 100)
    assert store.verify() == []
    assert store._db is not None
    (packed,) = sql(store, "SELECT body FROM contents WHERE id = 2")[0]
    found = 0
    for place in range(8 * len(packed)):
        flipped = bytearray(packed)
        flipped[place // 8] ^= 1 << place % 8
        store._db.execute("UPDATE contents SET body = ? WHERE id = 2", (bytes(flipped),))
        try:
            copy = store.copy(ids[1])
        except StoreError:
            found += 1
        else:
            # A few bits of a frame mean nothing; without harm there is nothing to find.
            assert copy is not None
            assert copy.body.data == b"B" * 100
    assert found > 0.9 * 8 * len(packed)
    store._db.execute("UPDATE contents SET body = ? WHERE id = 2", (packed[:-1],))
    with pytest.raises(StoreError, match=f"copy 1 of source {ids[1]} is damaged on the disk: poll"):
        store.copy(ids[1])
    assert store.verify() == [f"copy 1 of source {ids[1]} is damaged"]
    assert store.copy(ids[0]) is not None
    store._db.execute("DELETE FROM contents WHERE id = 3")
    with pytest.raises(StoreError, match="is damaged"):
        store.copy(ids[2])
    assert len(store.verify()) == 2


def test_equal_bodies_are_kept_once_and_collected_with_their_last_copy(store: SqliteStore) -> None:
    ids = store.add([Listing(name) for name in "ab"], 0.0)
    for _ in ids:
        poll(store, 1.0, math.inf, b"same" * 1000)
    ((count, packed),) = sql(store, "SELECT count(*), sum(length(body)) FROM contents")
    assert count == 1
    assert packed < 100
    store.remove(ids[:1])
    assert store.copy(ids[1]) is not None
    store.remove(ids[1:])
    assert sql(store, "SELECT count(*) FROM contents") == [(0,)]
    for table in ("sources", "sched", "leases", "beliefs", "checkpoints", "observations", "copies"):
        assert sql(store, f"SELECT count(*) FROM {table}") == [(0,)], table


def test_old_observations_go_and_beliefs_can_still_be_rebuilt(store: SqliteStore) -> None:
    """The belief counts polls: what the checkpoint counted, and the observations after it, is what there were.

    One source is polled daily and moves time on; one once; one twice within a stretch that the horizon then cuts.
    """
    polled = {"daily": [float(n) for n in range(1, 41)], "once": [3.2], "paired": [1.5, 5.1, 7.4]}
    ids = dict(zip(polled, store.add([Listing(name) for name in polled], 0.0), strict=True))
    store.set_due(list(ids.values()), [math.inf] * 3)
    done: dict[str, list[float]] = {name: [] for name in polled}
    for day, name in sorted((day, name) for name, days in polled.items() for day in days):
        store.set_due([ids[name]], [0.0])
        done[name].append(day)
        poll(store, day * DAY, math.inf, belief=np.array([float(len(done[name]))]).tobytes())
        for other, days in done.items():
            kept = store.observations(ids[other])
            row = sql(store, f"SELECT latest, belief FROM checkpoints WHERE source = {ids[other]}")
            latest, counted = (row[0][0], np.frombuffer(row[0][1])[0]) if row else (0, 0.0)
            assert counted + sum(o.token > latest for o in kept) == len(days), (day, other)
            ages = [day - o.polled_at / DAY for o in kept]
            assert all(age <= 13.5 for age in ages)
            assert sum(age <= 10.0 for age in ages) == sum(day - d <= 10.0 for d in days)
    assert store.fleet(1).beliefs.ravel().tolist() == [40.0, 1.0, 3.0]
    assert store.observations(ids["once"]) == store.observations(ids["paired"]) == []


def test_retention_survives_clocks_that_jump(store: SqliteStore) -> None:
    store.add([Listing("a")], 0.0)
    for day in (100, 101, 0, 0, 102, 900, *range(103, 117)):
        poll(store, day * DAY, 0.0)
    # What a clock that stood at 0 has dated is gone, as is what one ahead has, since later polls are old by now.
    assert [o.polled_at / DAY for o in store.observations(1)] == list(range(116, 105, -1))
    assert sql(store, "SELECT count(*) FROM observations") == [(11,)]


def test_a_full_disk_records_nothing_and_heals(store: SqliteStore) -> None:
    (source,) = store.add([Listing("a")], 0.0)
    poll(store, 1.0, 2.0, b"first")
    assert store._db is not None
    store._db.pragma("max_page_count", store._db.pragma("page_count") + 2)
    noise = np.random.default_rng(1).bytes(100_000)
    for _ in range(3):
        (claim,) = store.claim(2.0, 1, lease=60.0, owner="a")
        with pytest.raises(StoreError, match="has no room left, nothing was recorded: free some disk space"):
            store.record([Entry(claim, Answer.CHANGED, 2.0, 9.0, body=Body(noise))], settings={"a": b"b"})
        assert len(store.observations(source)) == 1
        assert store.fleet(1).settings == {}
        assert store.give_back("a") == 1
    store._db.pragma("max_page_count", 10**6)
    (claim,) = store.claim(2.0, 1, lease=60.0, owner="a")
    assert store.record([Entry(claim, Answer.CHANGED, 2.0, 9.0, body=Body(noise))]) == [True]
    copy = store.copy(source)
    assert copy is not None
    assert copy.body.data == noise
    assert store.verify() == []


def test_after_an_error_of_the_disk_the_store_must_be_opened_anew(store: SqliteStore) -> None:
    store.add([Listing("a")], 0.0)
    (claim,) = store.claim(1.0, 1, lease=60.0, owner="a")
    assert store._db is not None

    def fail() -> bool:
        raise apsw.IOError("disk I/O error")

    store._db.set_commit_hook(fail)
    with pytest.raises(StoreError, match=r"failed \(disk I/O error\): check the disk, then open it again"):
        store.record([Entry(claim, Answer.UNCHANGED, 1.0, 9.0)])
    with pytest.raises(StoreError, match="is closed: open it again"):
        store.counters()
    again = SqliteStore(store.path)
    assert again.observations(claim.source) == []
    assert again.record([Entry(claim, Answer.UNCHANGED, 1.0, 9.0)]) == [True]
    again.close()


def test_a_file_held_by_another_process_is_waited_for_and_then_named(store: SqliteStore, monkeypatch: Any) -> None:
    monkeypatch.setattr(sqlite_schema, "PATIENCE", 10)
    other = SqliteStore(store.path)
    assert store._db is not None
    store._db.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="is held by another process: end what holds it, or try again"):
        other.add([Listing("a")], 0.0)
    assert other.find("a") is None
    store._db.execute("ROLLBACK")
    assert other.add([Listing("a")], 0.0) == [1]
    other.close()


def test_a_backup_is_a_whole_store_taken_while_another_writes(store: SqliteStore, tmp_path: Path) -> None:
    ids = store.add([Listing(str(n)) for n in range(100)], 0.0)
    poll(store, 1.0, 99.0, b"hello")
    other = SqliteStore(store.path)
    assert other._db is not None
    other._db.execute("BEGIN IMMEDIATE")
    other._db.execute("DELETE FROM states")
    target = tmp_path / "backup.db"
    store.backup(target)
    other._db.execute("COMMIT")
    other.close()
    with pytest.raises(StoreError, match="exists already: choose another name"):
        store.backup(target)
    with pytest.raises(StoreError, match="cannot be opened"):
        store.backup(tmp_path / "none" / "backup.db")
    copied = SqliteStore(target)
    assert copied.verify() == []
    assert len(copied.claim(50.0, 1000, lease=9.0, owner="a")) == 99
    assert [s.id for s in copied.listings(ids)] == ids
    copied.close()
    assert sorted(p.name for p in tmp_path.iterdir() if "draft" in p.name) == []


def test_a_hundred_thousand_sources_take_as_long_each_as_a_few(store: SqliteStore, tmp_path: Path) -> None:
    many = [Listing(f"https://example.org/{n * 7919 % 100_003:x}/item") for n in range(100_000)]
    small = SqliteStore(tmp_path / "small.db")
    # The work of this process alone, whatever else the machine does.
    begin = time.process_time()
    small.add(many[:10_000], 0.0)
    few = time.process_time() - begin
    small.close()
    begin = time.process_time()
    ids = store.add(many, 0.0)
    assert time.process_time() - begin < 40.0 * few, "ten times as many, and not a hundred times the work"
    assert len(set(ids)) == 100_000
    with pytest.raises(InputError, match="is listed already, and 99999 others"):
        store.add(many, 1.0)
    assert store.fleet(15).due.shape == (100_000,)


@pytest.mark.parametrize("wrong", [{"versions": 0}, {"horizon": 0.0}, {"horizon": math.nan}])
def test_bad_limits_are_refused(tmp_path: Path, wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        SqliteStore(tmp_path / "store.db", **wrong)


def test_two_processes_never_claim_the_same_source(store: SqliteStore) -> None:
    ids = store.add([Listing(str(n)) for n in range(50)], 0.0)
    other = SqliteStore(store.path)
    claims = [
        (owner, claim)
        for _ in range(5)
        for owner, each in (("a", store), ("b", other))
        for claim in each.claim(1.0, 7, lease=60.0, owner=owner)
    ]
    assert sorted(claim.source for _, claim in claims) == ids
    assert [claim.token for _, claim in claims] == list(range(1, 51))
    assert store.give_back("b") == sum(owner == "b" for owner, _ in claims)
    other.close()


def test_an_emptied_file_is_refused_and_not_taken_for_a_new_store(tmp_path: Path) -> None:
    file = tmp_path / "unstale.db"
    file.touch()
    for opening in (SqliteStore, SqliteReplica):
        with pytest.raises(StoreError, match=r"is empty, it holds no store any more: restore a backup, or remove"):
            opening(file)
    assert file.stat().st_size == 0


def test_a_store_gets_its_name_when_it_is_whole(tmp_path: Path, monkeypatch: Any) -> None:
    file = tmp_path / "unstale.db"
    monkeypatch.setattr(sqlite_schema, "_migrate", _killed)
    with pytest.raises(KeyboardInterrupt):
        SqliteStore(file)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    with ThreadPoolExecutor(8) as threads:
        for store in threads.map(SqliteStore, [file] * 8):
            store.close()
    assert [one.name for one in tmp_path.iterdir()] == [file.name]


def _killed(*_: object) -> None:
    raise KeyboardInterrupt


def _file_of_version(version: int, path: Path) -> apsw.Connection:
    """An empty store as an earlier version made it."""
    db = apsw.Connection(str(path))
    for step in sqlite_schema.MIGRATIONS[:version]:
        db.execute(step)
    db.execute(f"PRAGMA application_id = {sqlite_schema.APPLICATION}; PRAGMA user_version = {version}")
    return db


def test_a_file_of_the_third_version_learns_of_collections(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with _file_of_version(3, path) as db:
        db.execute("""
            INSERT INTO hosts VALUES (1, 'h');
            INSERT INTO sources VALUES (4, 'http://x/', 'http', 2.0, 3.0, 1, 5.0, 6e4, NULL, 0, 7.0);
            INSERT INTO beliefs VALUES (4, 60.0, 50.0, 40.0, 0, 11, 0, NULL);
            INSERT INTO sched VALUES (60.0, 4);
            INSERT INTO observations VALUES (11, 4, 50.0, 1, NULL, 39.0, 5, NULL, 0, 0);
            INSERT INTO counters VALUES ('added', 4), ('claimed', 11), ('recorded', 11);
        """)
    store = SqliteStore(path)
    (seen,) = store.observations(4)
    assert (seen.polled_at, seen.modified, seen.told) == (50.0, 39.0, None)
    assert store.members() == []
    (new,) = store.add([Listing("http://y/")], 8.0)
    store.enlist([CollectionMember(4, new, "http://y/", 1.0)])
    assert store.members(4) == [CollectionMember(4, new, "http://y/", 1.0)]
    store.close()


def test_a_file_of_the_fifth_version_has_the_same_who_wait(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    with _file_of_version(5, path) as db:
        # One that waits, one that is claimed, one that is paused, one that waits for ever.
        db.execute("""
            INSERT INTO hosts VALUES (1, 'h');
            INSERT INTO sources SELECT value, 'http://x/' || value, 'http', 1, 1, 1, 0, 9e999, NULL, value = 3, 7.0
            FROM json_each('[1, 2, 3, 4, 5]');
            INSERT INTO beliefs SELECT id, CASE id WHEN 4 THEN 9e999 ELSE 90.0 - id END, 50.0, 40.0, 0, 0, 0, NULL
            FROM sources;
            INSERT INTO leases VALUES (2, 6, 200.0, 'gone');
            INSERT INTO sched SELECT due, source FROM beliefs WHERE source NOT IN (2, 3);
            INSERT INTO counters VALUES ('added', 5), ('claimed', 6), ('recorded', 5);
        """)
        waited = db.execute("SELECT due, source FROM sched ORDER BY due, source").fetchall()
    store = SqliteStore(path)
    assert sql(store, "SELECT due, source FROM sched ORDER BY due, source") == waited
    assert store.waiting(100.0) == [(5, 85.0), (1, 89.0)]
    assert store.verify() == []
    # Tokens go on, the claim that was held ends as it would have, and who is paused is nobody's.
    claims = store.claim(150.0, 9, lease=60.0, owner="me")
    assert [(claim.source, claim.token, claim.due) for claim in claims] == [(5, 7, 85.0), (1, 8, 89.0)]
    assert store.give_back("gone") == 1
    assert store.waiting(150.0) == [(2, 88.0)]
    store.close()


def test_a_store_that_is_asked_for_a_few_does_not_read_the_others(store: SqliteStore) -> None:
    """A claim among some sources touches no table from its beginning to its end, however many there are."""
    assert store._db is not None
    for order, limit in (("", ()), (sqlite_claims._FOREMOST, (9,))):
        asked = sqlite_claims.column([1]), 1.0, *limit
        plan: Any = store._db.execute(f"EXPLAIN QUERY PLAN {sqlite_claims._DETAILS}{order}", asked).fetchall()
        steps = [detail for *_, detail in plan]
        assert [step for step in steps if step.startswith("SCAN")] == ["SCAN w VIRTUAL TABLE INDEX 1:"], steps
