"""Claims that are kept by batches, and what is asked with a poll by who polled last, on a real PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from typing import Any

import pytest

from support.postgres import Postgres
from unstale.adapters import postgres_claims, postgres_schema
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_tables import MIGRATIONS
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Claim, Entry, Grant, Listing


def later() -> float:
    """When all that was just added is due, by a clock that goes right: who is far behind ends others' claims."""
    return time.time() + 10.0


@pytest.fixture
def store(server: Postgres) -> Iterator[PostgresCrew]:
    server.run("DROP SCHEMA IF EXISTS unstale CASCADE")
    with closing(PostgresCrew(server.address())) as opened:
        opened.beat("a", 0.0, 0.0, 1.0, {}, None)
        opened.hold("a")
        yield opened


def done(claim: Claim, answer: Answer = Answer.UNCHANGED, body: Body | None = None) -> Entry:
    return Entry(claim, answer, claim.due + 1.0, claim.due + 1.0, bytes(152), body=body)


def batches(store: PostgresCrew) -> int:
    rows: Any = store._read(lambda db: db.execute("SELECT count(*) FROM batches").fetchone())
    return int(rows[0])


def accounted(store: PostgresCrew) -> bool:
    found = store.counters()
    ended = sum(found.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    return found.get("claimed", 0) == ended + len(store.claimed())


@pytest.mark.parametrize("count", [1, 63, 64, 65, 150])
def test_claims_end_one_by_one_in_any_order_and_a_batch_with_its_last(store: PostgresCrew, count: int) -> None:
    ids = store.add([Listing(f"s{n}") for n in range(count)], 0.0)
    claims = store.take(ids, lease=600.0, owner="a")
    assert [claim.source for claim in claims] == store.claimed() == ids
    assert batches(store) == -(-count // 64)
    # Every other one, the last first; then all of them: those that have ended stay so.
    assert store.record([done(claim) for claim in claims[::-2]]) == [True] * len(claims[::-2])
    assert sorted(store.claimed()) == sorted({claim.source for claim in claims} - {c.source for c in claims[::-2]})
    expected = [claim not in claims[::-2] for claim in claims]
    assert store.record([done(claim) for claim in claims]) == expected
    assert (store.claimed(), batches(store)) == ([], 0)
    assert accounted(store)


def test_nobody_ends_a_claim_but_by_its_own_source_token_and_owner(store: PostgresCrew) -> None:
    ids = store.add([Listing(f"s{n}") for n in range(3)], 0.0)
    one, two, three = store.take(ids, lease=600.0, owner="a")
    wrong = [
        replace(one, token=two.token),
        replace(one, source=two.source),
        replace(one, slot=two.slot),
        replace(one, slot=one.slot + 60),
        replace(one, token=two.token, slot=0),
    ]
    for claim in wrong:
        assert store.record([done(claim)]) == [False]
    assert store.give_back("b", [one, two]) == 0
    assert store.claimed() == ids
    # Where it is kept need not be told.
    assert store.give_back("a", [replace(two, slot=0)]) == 1
    assert store.remove([one.source]) == 1
    assert store.claimed() == [three.source]
    assert store.give_back("a") == 1
    assert (accounted(store), batches(store)) == (True, 0)


def test_what_is_asked_is_remembered_while_nothing_of_it_changes(
    server: Postgres, store: PostgresCrew, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source,) = store.add([Listing("s", options={"x": 1})], 0.0)
    read: list[int] = []
    whole = postgres_claims.asked_of

    def counted(db: Any, sources: Any) -> Any:
        read.extend(sources)
        return whole(db, sources)

    monkeypatch.setattr(postgres_claims, "asked_of", counted)

    def polled(answer: Answer = Answer.UNCHANGED, body: Body | None = None) -> tuple[Claim, bool]:
        """The next claim, which is as one that is read would be, and whether it was read."""
        read.clear()
        (claim,) = store.take([source], lease=600.0, owner="a")
        again = bool(read)
        known = store._read(lambda db: whole(db, [source]))[source]
        assert (claim.address, claim.kind, claim.options, claim.last, claim.failures, claim.latest) == known[1:7]
        assert (claim.version, claim.etag, claim.last_modified, claim.fingerprint) == known[7:]
        assert store.record([done(claim, answer, body)]) == [True]
        return claim, again

    body = Body(b"new", etag="e", last_modified="l", fingerprint=b"f")
    assert polled(Answer.CHANGED, body)[1]
    # What brought a copy is read anew, once.
    assert [polled()[1] for _ in range(3)] == [True, False, False]
    assert [polled(Answer.FAILED)[1], polled()[0].failures, polled()[1]] == [False, 1, False]
    with closing(PostgresCrew(server.address())) as other:
        # Another process edits the source, polls it, or takes its copy for damaged.
        other.add([Listing("s", options={"x": 2})], 5.0, duplicates="replace")
        claim, again = polled()
        assert (claim.options, again, polled()[1]) == ({"x": 2}, True, False)
        (stray,) = other.claim(later(), 1, lease=60.0, owner="else")
        assert other.record([done(stray)]) == [True]
        claim, again = polled()
        assert (claim.latest, again, polled()[1]) == (stray.token, True, False)
        other.distrust([(source, 1)])
        claim, again = polled()
        assert (claim.etag, again, polled()[1]) == (None, True, False)
        # The same while a poll is under way: its outcome knows nothing of it.
        (claim,) = store.take([source], lease=600.0, owner="a")
        other.add([Listing("s", options={"x": 3})], 6.0, duplicates="replace")
        store.record([done(claim)])
        claim, again = polled()
        assert (claim.options, again) == ({"x": 3}, True)
    # A connection that was lost may come back to another server.
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'unstale'")
    assert polled()[1]


def test_who_claims_by_itself_and_who_holds_the_shard_never_both_have_a_source(
    server: Postgres, store: PostgresCrew
) -> None:
    ids = store.add([Listing(f"s{n}") for n in range(20)], 0.0)
    with closing(PostgresCrew(server.address())) as other, ThreadPoolExecutor(2) as pool:
        for _ in range(60):
            taking = pool.submit(store.take, ids, lease=600.0, owner="a")
            claiming = pool.submit(other.claim, later(), 10, lease=600.0, owner="else")
            one, two = taking.result(), claiming.result()
            assert {claim.source for claim in one}.isdisjoint({claim.source for claim in two})
            assert sorted(store.claimed()) == sorted(claim.source for claim in [*one, *two])
            store.give_back("a")
            other.give_back("else")
    assert accounted(store)


def test_claims_of_the_tables_before_are_over_with_their_leases_and_accounted_for(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Version 10 had a row for every claim, and no purse.
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", MIGRATIONS[:10])
    with closing(PostgresCrew(server.address(), schema="rows")) as before:
        ids = before.add([Listing(f"s{n}") for n in range(140)], 0.0)
    monkeypatch.undo()
    server.run(
        "INSERT INTO rows.claims SELECT s, nextval('rows.tokens'), 1, 5, CASE WHEN s < 135 THEN 65 ELSE 4e9 END, "
        "'w' || s % 2 FROM generate_series(1, 138) s",
        "INSERT INTO rows.counters VALUES ('claimed', 1, 138)",
    )
    with closing(PostgresCrew(server.address(), schema="rows")) as store:
        assert sorted(store.claimed()) == ids[:138]
        store.beat("a", 0.0, 0.0, 1.0, {}, None)
        assert (store.beat("a", 0.0, 0.0, 1.0, {}, None), store.divide(2.0)[0][0].share) == (Grant(0.0, 0.0), 2.0)
        # What was begun is left alone until its time is over.
        assert sorted(c.source for c in store.take(ids, lease=60.0, owner="a")) == ids[138:]
        assert store.claim(later(), 1, lease=60.0, owner="b", among=ids[134:138]) == []
        assert sorted(store.claimed()) == ids[134:]
        assert accounted(store)


def test_who_claims_looks_at_strays_and_its_own_batches_and_never_through_all(store: PostgresCrew) -> None:
    ids = store.add([Listing(f"s{n}") for n in range(40)], 0.0)

    def passes() -> int:
        def read(db: Any) -> Any:
            db.execute("SELECT pg_stat_force_next_flush()")
            return db.execute("SELECT seq_scan FROM pg_stat_user_tables WHERE relid = 'batches'::regclass").fetchone()

        store._read(read)
        return int(store._read(read)[0])

    before = passes()
    for _ in range(10):
        claims = store.take(ids, lease=600.0, owner="a")
        assert len(claims) == 40
        assert store.record([done(claim) for claim in claims]) == [True] * 40
    assert passes() == before


def test_claims_of_the_tables_before_indexes_are_held_and_recorded(
    server: Postgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_schema, "MIGRATIONS", MIGRATIONS[:12])
    with closing(PostgresCrew(server.address(), schema="unindexed")) as before:
        ids = before.add([Listing(f"s{n}") for n in range(70)], 0.0)
        before.beat("a", 0.0, 0.0, 1.0, {}, None)
        claims = before.take(ids, lease=600.0, owner="a")
    monkeypatch.undo()
    with closing(PostgresCrew(server.address(), schema="unindexed")) as store:
        assert sorted(store.claimed()) == ids
        assert store.take(ids, lease=600.0, owner="a") == []
        assert store.record([done(claim) for claim in claims]) == [True] * 70
        assert len(store.take(ids, lease=600.0, owner="a")) == 70
        assert accounted(store)
