"""Shards on a real PostgreSQL: who holds them, how they change hands, and what then is no longer recorded."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from support.postgres import Postgres
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_shards import _wanted
from unstale.adapters.postgres_tables import OF_SOURCE
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, HostWord, Listing


def alive(store: PostgresCrew, *owners: str) -> None:
    for owner in owners:
        store.beat(owner, 0.0, 0.0, 1.0, {}, None)


def gone(store: PostgresCrew, owner: str) -> None:
    store._write(lambda db, again: db.execute("UPDATE workers SET at = at - 60 WHERE owner = %s", (owner,)))


def asked(store: PostgresCrew, query: str, *values: Any) -> Any:
    return store._read(lambda db: db.execute(query.encode(), values).fetchall())


def entry(claim: Claim) -> Entry:
    return Entry(claim, Answer.UNCHANGED, claim.due + 1.0, 4e9, bytes(152))


def accounted(store: PostgresCrew) -> bool:
    found = store.counters()
    ended = sum(found.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
    return found.get("claimed", 0) == ended + len(store.claimed())


def test_workers_hold_what_they_should_and_give_it_up_when_others_come(store: PostgresCrew) -> None:
    assert store.hold("a").epochs == {}  # Nobody has heard of it.
    alive(store, "a")
    assert len(store.hold("a").epochs) == 1024
    alive(store, "b")
    one, two = _wanted(("a", "b"))["a"], _wanted(("a", "b"))["b"]
    # What another should hold stays ours until we let go of it; nothing else moves.
    assert store.hold("b").epochs == {}
    told = store.hold("a")
    assert (len(told.epochs), told.unwanted) == (1024, two)
    assert store.hold("a", two[:5]).unwanted == two[5:]
    assert store.hold("b").epochs == dict.fromkeys(two[:5], 2)
    assert store.hold("a", two[5:]).epochs == dict.fromkeys(one, 1)
    assert set(store.hold("b").epochs) == set(two)
    store.leave("b")
    assert len(store.hold("a").epochs) == 1024


def test_sources_of_a_host_are_in_one_shard_and_those_without_one_by_themselves(store: PostgresCrew) -> None:
    store.add([Listing(f"http://h{n % 3}/{n}") for n in range(30)] + [Listing(f"s{n}") for n in range(10)], 0.0)
    shard_of = dict(asked(store, f"SELECT w.source, {OF_SOURCE} FROM schedule w JOIN hosts h ON h.id = w.site"))
    assert sorted(shard_of) == list(range(1, 41))
    assert all(len({shard_of[source] for source in range(1 + n, 31, 3)}) == 1 for n in range(3))
    assert len(set(shard_of.values())) >= 10
    alive(store, "a", "b")
    for owner in ("a", "b"):
        held = store.hold(owner).epochs
        mine = [source for source, shard in sorted(shard_of.items()) if shard in held]
        assert store.held_fleet(owner, 1).source.tolist() == sorted(store.sources_of(list(held))) == mine


def test_who_takes_a_shard_over_ends_what_was_begun_there_and_leaves_it_alone(store: PostgresCrew) -> None:
    ids = store.add([Listing(f"http://h{n}/") for n in range(6)], 0.0)
    alive(store, "a", "b")
    mine = [store.held_fleet(owner, 1).source.tolist() for owner in ("a", "b") if store.hold(owner)]
    claims = store.take(mine[0], lease=600.0, owner="a")
    assert sorted(claim.source for claim in claims) == mine[0]
    assert store.record([entry(claims[0])]) == [True]
    gone(store, "a")
    # A worker that counts as gone claims nothing, from the moment on when somebody says so.
    assert len(store.hold("b").epochs) == 1024
    assert store.take(mine[0], lease=600.0, owner="a") == []
    assert store.record([entry(claim) for claim in claims[1:]]) == [False] * (len(claims) - 1)
    assert store.counters()["expired"] == len(claims) - 1
    late = {claim.source for claim in claims[1:]}
    due = dict(zip(ids, store.fleet(1).due.tolist(), strict=True))
    assert all(due[source] > store.server_time() + 500.0 for source in late)
    # What the other one has begun itself goes on.
    assert {claim.source for claim in store.take(ids, lease=600.0, owner="b")} == set(ids) - late - {claims[0].source}
    assert accounted(store)
    # It comes back, and finds that it holds nothing, or by another number.
    alive(store, "a")
    assert store.hold("a").epochs == {}


def test_a_claim_under_way_is_waited_for_by_who_declares_its_worker_gone(server: Postgres, store: PostgresCrew) -> None:
    store.add([Listing("http://h/")], 0.0)
    alive(store, "a")
    store.hold("a")
    gone(store, "a")
    with server.connect() as db, closing(PostgresCrew(server.address())) as other:
        db.execute("SET search_path = unstale")
        db.execute("BEGIN")
        db.execute("SELECT 1 FROM workers WHERE owner = 'a' FOR KEY SHARE")
        other._write(lambda session, again: session.execute("SET lock_timeout = '100ms'"))
        alive(store, "b")
        with pytest.raises(Exception, match="held by another process"):
            other.hold("b")
        # A sign of life of its own does not wait.
        db.execute("COMMIT")
        assert len(other.hold("b").epochs) == 1024


@pytest.mark.parametrize("lost", ["claimed", "nothing"])
def test_only_what_is_due_and_awake_is_claimed_and_each_once(store: PostgresCrew, lost: str) -> None:
    ids = store.add([Listing(f"s{n}", paused=n == 3) for n in range(5)], 0.0)
    store.set_due([ids[1]], [4e9])
    alive(store, "a")
    store.hold("a")
    if lost == "claimed":
        store.claim(1.0, 1, lease=1e10, owner="else", among=[ids[0]])
    first = store.take(ids, lease=600.0, owner="a")
    assert {claim.source for claim in first} == {ids[0], ids[2], ids[4]} - ({ids[0]} if lost == "claimed" else set())
    assert all(claim.begin_by < store.server_time() + 301.0 for claim in first)
    assert store.take(ids, lease=600.0, owner="a") == []
    assert accounted(store)


def test_what_hosts_have_asked_for_is_there_for_the_next_holder(store: PostgresCrew) -> None:
    store.add([Listing("http://h/"), Listing("http://i/")], 0.0)
    assert store.host_words() == []
    later = store.server_time() + 100.0
    words = [HostWord("h", 5.0, later, 2, 1.5), HostWord("nobody", 1.0)]
    store.keep_words(words)
    assert store.host_words() == words[:1]
    store.keep_words([HostWord("h")])
    assert store.host_words() == []


def test_shards_are_even_and_a_worker_that_comes_takes_its_part_only() -> None:
    names = tuple(f"host:{n}:abc" for n in range(8))
    seven, eight = _wanted(names[:7]), _wanted(names)
    assert all(90 <= len(shards) <= 170 for shards in eight.values())
    assert all(set(eight[name]) <= set(seven[name]) for name in names[:7])
    assert _wanted(()) == {}
