"""One contract for every store: the same calls, the same answers, on real files and in memory."""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Generic, Protocol

import numpy as np
import pytest
import zstandard
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from support.postgres import postgres
from unstale import ports
from unstale.adapters import (
    memory_outbox,
    memory_shelf,
    memory_store,
    postgres_edits,
    postgres_outbox,
    sqlite_edits,
    sqlite_outbox,
)
from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_replica import PostgresReplica
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_replica import SqliteReplica
from unstale.adapters.sqlite_store import SqliteStore
from unstale.adapters.store_shared import EVENT_BYTES
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CollectionMember
from unstale.ports import (
    COST_IN,
    Body,
    Claim,
    Edit,
    Edition,
    Entry,
    Epoch,
    Event,
    Head,
    Holding,
    HostCount,
    Listing,
    Price,
    crew,
    standing,
    stores,
)

STORES: dict[str, Callable[[Path, Callable[[], str]], Any]] = {
    "memory": lambda path, server: MemoryStore(),
    "sqlite": lambda path, server: SqliteStore(path / "store.db"),
    "postgres": lambda path, server: PostgresStore(server(), schema=f"s{next(SCHEMAS)}", own_time=False),
}
SCHEMAS = itertools.count()
ROW = np.arange(15.0).tobytes()
#: what the first three sources answer where all stores are read alike
ANSWERED = (Answer.CHANGED, Answer.FAILED, Answer.UNCHANGED)


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[], str]]:
    """The address of a server, which is started when somebody asks."""
    with ExitStack() as stack:
        yield lru_cache(lambda: stack.enter_context(postgres()).address())


@pytest.fixture(params=STORES)
def store(request: pytest.FixtureRequest, tmp_path: Path, server: Callable[[], str]) -> Iterator[Any]:
    store = STORES[request.param](tmp_path, server)
    yield store
    store.close()


def listed(count: int, **given: Any) -> list[Listing]:
    return [Listing(f"http://example.org/{i}", **given) for i in range(count)]


def entry(claim: Claim, at: float, answer: Answer = Answer.UNCHANGED, **given: Any) -> Entry:
    return Entry(claim, answer, at, **({"due": at + 60.0} | given))


def claim(store: Any, now: float, limit: int = 100, lease: float = 30.0, owner: str = "a") -> list[Claim]:
    return store.claim(now, limit, lease=lease, owner=owner)


def _contracts(whole: type) -> list[type]:
    """The small contracts that a whole one is made up of."""
    return [one for one in whole.__mro__ if any(not name.startswith("_") for name in vars(one))]


@pytest.mark.parametrize(
    ("kind", "whole"),
    [
        (MemoryStore, ports.Store),
        (SqliteReplica, ports.ReadStore),
        (SqliteStore, ports.Store),
        (PostgresReplica, ports.ReadStore),
        (PostgresStore, ports.Store),
        (PostgresCrew, ports.SharedStore),
    ],
)
def test_the_signatures_are_the_contract_s(kind: type, whole: type) -> None:
    contracts = _contracts(whole)
    assert len(contracts) >= 5
    for contract in contracts:
        methods = [name for name in vars(contract) if not name.startswith("_")]
        assert 2 <= len(methods) <= 8
        for name in methods:
            ours, theirs = (inspect.signature(getattr(one, name)) for one in (kind, contract))
            # A store in a file always has a number to tell by; None is for those that nobody else can write.
            told = {"int | None", "int"} if name == "moved" else {theirs.return_annotation}
            assert ours.return_annotation in told, name
            assert ours.parameters == theirs.parameters, name
            assert "Any" not in str(theirs), name


def test_every_store_and_every_port_is_under_the_contract() -> None:
    folder = Path(memory_store.__file__).parent
    found = {path.stem for path in folder.glob("*_store.py")}
    assert found == {f"{kind}_store" for kind in STORES}
    parts = [one for module in (stores, standing, crew) for one in vars(module).values() if isinstance(one, type)]
    every = {one for one in parts if one.__module__ in {module.__name__ for module in (stores, standing, crew)}}
    assert every == {*ports.SharedStore.__mro__, *ports.ReadStore.__mro__} - {Protocol, Generic, object}


def test_sources_come_back_as_they_were_listed(store: Any) -> None:
    given = Listing("sql://db/t", "sql", 2.5, 3.0, "db", 10.0, 1e6, {"a": [1, {"b": None}], "headers": {"A": "ü"}})
    (one,) = store.add([given], 7.0)
    (two,) = store.add([Listing("http://x/")], 8.0)
    assert one != two
    (back,) = store.listings([one])
    assert back == Listing(*(getattr(given, n) for n in Listing.__slots__[:9]), id=one, added_at=7.0)
    assert store.find("http://x/") == two
    assert store.find("http://y/") is None
    assert [s.id for s in store.listings([two, 99, one])] == [two, one]


def test_duplicates_are_refused_whole_or_replaced(store: Any) -> None:
    one, two = store.add(listed(2), 0.0)
    with pytest.raises(InputError, match=r"^address 'http://example.org/0' is listed already, and 1 others: "):
        store.add([Listing("http://new/"), *listed(2)], 1.0)
    with pytest.raises(InputError, match="is listed already: "):
        store.add([Listing("http://new/"), Listing("http://new/")], 1.0)
    assert store.find("http://new/") is None
    held = claim(store, 1.0, limit=1)
    store.record([entry(held[0], 1.0, belief=ROW)])
    again = store.add([Listing("http://new/"), *listed(2, weight=9.0)], 5.0, duplicates="replace")
    assert again[1:] == [one, two]
    assert again[0] not in (one, two)
    fleet = store.fleet(15)
    assert fleet.weight.tolist() == [9.0, 9.0, 1.0]
    assert fleet.due.tolist() == [61.0, 0.0, 5.0]
    assert fleet.beliefs[0].tobytes() == ROW
    assert store.listings([one])[0].added_at == 0.0


def test_the_same_address_twice_in_a_replacing_list_is_one_source(store: Any) -> None:
    ids = store.add([Listing("http://x/", weight=1.0), Listing("http://x/", weight=2.0)], 0.0, duplicates="replace")
    assert ids[0] == ids[1]
    assert store.listings(ids[:1])[0].weight == 2.0
    assert len(claim(store, 0.0)) == 1


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"address": "  "}, "address '  ' is empty"),
        ({"address": "http://x/\n"}, "has control characters"),
        ({"address": "http://x/" + "a" * 8192}, "of 8201 characters must have at most 8192"),
        ({"address": "http://me:s3cret@x/"}, r"'http://me:…' holds a password: .* \$NAME"),
        ({"weight": math.nan}, r"listings\[1\].weight nan must be a finite number"),
        ({"weight": -1.0}, "at least 0"),
        ({"cost": 0.0}, "cost 0.0 must be a finite number above 0"),
        ({"shortest": 5.0, "longest": 4.0}, "shortest 5.0 must not exceed longest 4.0"),
        ({"shortest": math.inf}, "shortest inf"),
        ({"options": {"x": math.nan}}, "with x must be plain JSON"),
        ({"options": {"x": object()}}, "with x must be plain JSON"),
        ({"options": {"headers": {"Authorization": "Bearer s3cret"}}}, r"headers.Authorization \(not shown\) must not"),
        ({"options": {"tokens": [{"a": "s3cret"}]}}, "must not hold a secret"),
    ],
)
def test_bad_listings_are_refused_by_their_place(store: Any, given: dict[str, Any], words: str) -> None:
    bad = Listing(**({"address": "http://bad/"} | given))
    with pytest.raises(InputError, match=words) as error:
        store.add([Listing("http://good/"), bad], 0.0)
    assert "s3cret" not in str(error.value)
    assert "listings[1]" in str(error.value)
    assert store.find("http://good/") is None


def test_references_to_the_environment_are_no_secrets(store: Any) -> None:
    ids = store.add([Listing("pg://me:$PASSWORD@db/t", options={"headers": {"Authorization": "Bearer ${TOKEN}"}})], 0.0)
    assert store.listings(ids)[0].options == {"headers": {"Authorization": "Bearer ${TOKEN}"}}


def test_what_is_due_longest_is_claimed_first_and_only_once(store: Any) -> None:
    ids = store.add(listed(5), 0.0)
    store.set_due(ids, [50.0, 10.0, 30.0, math.inf, 20.0])
    assert [c.source for c in claim(store, 30.0, limit=2)] == [ids[1], ids[4]]
    assert [c.source for c in claim(store, 30.0)] == [ids[2]]
    assert claim(store, 30.0) == []
    assert claim(store, 30.0, limit=0) == []


def test_only_those_who_are_named_are_claimed_and_who_waits_is_told(store: Any) -> None:
    ids = store.add(listed(5), 0.0)
    store.set_due(ids, [50.0, 10.0, 30.0, math.inf, 20.0])
    assert store.waiting(30.0) == [(ids[1], 10.0), (ids[4], 20.0), (ids[2], 30.0)]
    named = [ids[2], ids[0], ids[3], ids[4], ids[4], 999]
    assert [c.source for c in store.claim(30.0, 9, lease=30.0, owner="a", among=named)] == [ids[4], ids[2]]
    assert store.waiting(60.0) == [(ids[1], 10.0), (ids[0], 50.0)]
    assert store.claim(40.0, 9, lease=30.0, owner="a", among=[ids[2]]) == []
    assert store.claim(40.0, 9, lease=30.0, owner="a", among=[]) == []
    assert [c.source for c in store.claim(60.0, 1, lease=30.0, owner="b", among=ids)] == [ids[1]]
    store.give_back("b")
    store.add(listed(1, paused=True), 0.0, duplicates="replace")
    assert ids[0] not in dict(store.waiting(60.0))
    # What expired waits again.
    assert [c.source for c in store.claim(91.0, 9, lease=30.0, owner="b", among=[ids[2]])] == [ids[2]]


def test_one_record_is_everything_that_follows_from_a_poll(store: Any) -> None:
    (source,) = store.add([Listing("http://x/", options={"a": 1})], 0.0)
    (first,) = claim(store, 5.0)
    assert (first.address, first.kind, first.due, first.options) == ("http://x/", "http", 0.0, {"a": 1})
    assert (first.last, first.failures, first.latest, first.version) == (-math.inf, 0, 0, 0)
    body = Body(b"hello", "text/plain", '"1"', "Mon", b"print", "http://x/y")
    price = Price(6.0, 0.5, 100.0)
    done = entry(first, 6.0, Answer.CHANGED, due=66.0, belief=ROW, modified=4.0, received=123, body=body)
    assert store.record([done], settings={"prior": b"\x00\x01"}, price=price) == [True]
    fleet = store.fleet(15)
    assert (fleet.due[0], fleet.last[0], fleet.found[0], fleet.failures[0]) == (66.0, 6.0, 6.0, 0)
    assert fleet.beliefs[0].tobytes() == ROW
    assert fleet.settings == {"prior": b"\x00\x01"}
    assert fleet.price == price
    assert store.prices(6.0) == [price]
    assert store.prices(6.1) == []
    copy = store.copy(source)
    assert (copy.source, copy.version, copy.taken_at, copy.body) == (source, 1, 6.0, body)
    assert copy.digest == sha256(b"hello").digest()
    (seen,) = store.observations(source)
    assert (seen.token, seen.polled_at, seen.answer, seen.modified) == (first.token, 6.0, Answer.CHANGED, 4.0)
    assert (seen.received, seen.reason) == (123, "")
    assert math.isnan(seen.elapsed)
    assert claim(store, 65.0) == []
    (second,) = claim(store, 66.0)
    assert (second.etag, second.last_modified, second.fingerprint) == ('"1"', "Mon", b"print")
    assert (second.last, second.latest, second.version) == (6.0, first.token, 1)
    assert second.token > first.token


def test_a_failure_teaches_nothing_and_is_kept_with_its_reason(store: Any) -> None:
    (source,) = store.add(listed(1), 0.0)
    store.record([entry(claim(store, 1.0)[0], 1.0, Answer.CHANGED, belief=ROW)])
    for n, at in enumerate((61.0, 121.0), 1):
        store.record([entry(claim(store, at)[0], at, Answer.FAILED, reason="x" * 9999)])
        fleet = store.fleet(15)
        assert (fleet.last[0], fleet.found[0], fleet.failures[0]) == (1.0, 1.0, n)
        assert fleet.beliefs[0].tobytes() == ROW
    store.record([entry(claim(store, 181.0)[0], 181.0)])
    newest, failed, *_ = store.observations(source)
    assert (newest.elapsed, failed.elapsed, len(failed.reason)) == (180.0, 120.0, 500)
    assert [o.token for o in store.observations(source)] == [4, 3, 2, 1]
    assert [o.token for o in store.observations(source, limit=2)] == [4, 3]
    assert store.fleet(15).failures[0] == 0


def test_an_outcome_is_applied_once_and_only_while_its_claim_is_held(store: Any) -> None:
    store.add(listed(2), 0.0)
    one, two = claim(store, 0.0)
    assert store.record([entry(one, 1.0)]) == [True]
    assert store.record([entry(one, 1.0), entry(two, 1.0)]) == [False, True]
    (late,) = claim(store, 61.0, limit=1, lease=10.0)
    (again,) = claim(store, 71.0, limit=1, owner="b")
    assert again.source == late.source
    assert again.token > late.token
    assert store.record([entry(late, 72.0, Answer.CHANGED, body=Body(b"late"))]) == [False]
    assert store.copy(late.source) is None
    assert store.record([entry(again, 73.0)]) == [True]
    assert store.counters() == {
        "added": 2,
        "edited": 1,
        "claimed": 4,
        "recorded": 3,
        "dropped": 2,
        "expired": 1,
        "unchanged": 3,
        "requests": 3,
        "spent": 3_000_000,
    }


def test_a_body_that_is_no_change_renews_its_validators_and_nothing_else(store: Any) -> None:
    store.add(listed(1), 0.0)
    (one,) = claim(store, 0.0)
    store.record([entry(one, 1.0, Answer.CHANGED, body=Body(b"news 12:00", etag='"1"', fingerprint=b"n"))])
    (two,) = claim(store, 61.0)
    store.record([entry(two, 61.0, Answer.UNCHANGED, body=Body(b"news 12:01", etag='"2"', fingerprint=b"n"))])
    assert store.versions(one.source) == [1]
    kept = store.copy(one.source)
    assert (kept.body.data, kept.body.etag) == (b"news 12:00", '"2"')


def test_a_claim_recorded_twice_in_one_call_is_a_mistake(store: Any) -> None:
    store.add(listed(1), 0.0)
    (one,) = claim(store, 0.0)
    with pytest.raises(InputError, match=r"entries\[1\].claim 1 is there twice"):
        store.record([entry(one, 1.0), entry(one, 2.0)])
    assert store.record([entry(one, 1.0)]) == [True]


@pytest.mark.parametrize("wrong", [{"due": math.nan}, {"due": -math.inf}, {"modified": math.nan}, {"belief": b"123"}])
def test_a_bad_entry_records_nothing_of_the_call(store: Any, wrong: dict[str, Any]) -> None:
    store.add(listed(2), 0.0)
    one, two = claim(store, 0.0)
    with pytest.raises(InputError, match=rf"entries\[1\].{next(iter(wrong))}"):
        store.record([entry(one, 1.0), entry(two, 1.0, **wrong)], settings={"a": b"b"})
    assert store.observations(one.source) == []
    assert store.fleet(15).settings == {}
    assert store.record([entry(one, 1.0), entry(two, 1.0)]) == [True, True]


def test_claims_are_given_back_by_name_or_all_at_once(store: Any) -> None:
    ids = store.add(listed(4), 0.0)
    held = claim(store, 1.0, limit=3)
    (other,) = claim(store, 1.0, owner="b")
    assert store.give_back("a", [held[1], other]) == 1
    assert store.give_back("a", [held[1]]) == 0
    assert [c.source for c in claim(store, 1.0, owner="c")] == [ids[1]]
    assert store.give_back("a") == 2
    assert store.record([entry(held[0], 2.0)]) == [False]
    assert [c.source for c in claim(store, 1.0)] == [ids[0], ids[2]]


def test_leases_survive_clocks_that_jump(store: Any) -> None:
    store.add(listed(1), 0.0)
    year = 365 * 86400.0
    (ahead,) = claim(store, year)
    assert claim(store, year + 29.0) == []
    # The clock is put right: a lease that ends in a year cannot be meant.
    (now,) = claim(store, 100.0)
    assert now.source == ahead.source
    assert store.record([entry(ahead, year)]) == [False]
    assert store.record([entry(now, 100.0)]) == [True]


def test_after_a_clock_ran_back_time_runs_from_the_newest_answer(store: Any) -> None:
    (source,) = store.add(listed(1), 0.0)
    store.record([entry(claim(store, 1000.0)[0], 1000.0, Answer.CHANGED, due=0.0)])
    store.record([entry(claim(store, 10.0)[0], 10.0)])
    fleet = store.fleet(15)
    assert (fleet.last[0], fleet.found[0]) == (10.0, 10.0)
    assert [(o.token, o.elapsed) for o in store.observations(source)][:1] == [(2, -990.0)]


def test_pausing_ends_a_claim_and_resuming_keeps_the_due_time(store: Any) -> None:
    ids = store.add(listed(3), 0.0)
    store.set_due(ids, [5.0, 6.0, 7.0])
    (held,) = claim(store, 5.0)
    store.add(listed(2, paused=True), 8.0, duplicates="replace")
    assert store.record([entry(held, 9.0)]) == [False]
    assert [c.source for c in claim(store, 100.0)] == [ids[2]]
    assert store.fleet(15).paused.tolist() == [True, True, False]
    store.set_due([ids[0]], [50.0])
    store.add(listed(2), 101.0, duplicates="replace")
    assert [(c.source, c.due) for c in claim(store, 100.0)] == [(ids[1], 6.0), (ids[0], 50.0)]
    assert store.counters()["ended"] == 1


def test_a_due_time_moved_under_a_claim_counts_when_it_is_given_back(store: Any) -> None:
    ids = store.add(listed(2), 0.0)
    held = claim(store, 0.0)
    store.set_due(ids, [40.0, 50.0])
    store.record([entry(held[0], 1.0, due=99.0)])
    store.give_back("a")
    assert [(c.source, c.due) for c in claim(store, 1000.0)] == [(ids[1], 50.0), (ids[0], 99.0)]
    store.set_due([12345], [1.0])
    with pytest.raises(InputError, match=r"due\[1\] nan"):
        store.set_due(ids, [1.0, math.nan])
    with pytest.raises(InputError, match="due of 1 must be one for each of 2"):
        store.set_due(ids, [1.0])


def test_a_plan_does_not_undo_what_a_hint_has_moved(store: Any) -> None:
    ids = store.add(listed(4), 0.0)
    store.set_due(ids, [10.0, 10.0, math.inf, 10.0])
    (held,) = claim(store, 10.0, limit=1)
    store.set_due(ids[1:2], [5.0])
    store.set_due(np.array(ids), np.array([20.0, 30.0, 40.0, 50.0]), was=np.array([10.0, 10.0, math.inf, 10.0]))
    assert store.fleet(1).due.tolist() == [20.0, 5.0, 40.0, 50.0]
    store.set_due(ids[2:], [1.0, 1.0], was=[math.inf, 49.0])
    store.give_back("a", [held])
    assert [(c.source, c.due) for c in claim(store, 99.0)] == [
        (ids[1], 5.0),
        (ids[0], 20.0),
        (ids[2], 40.0),
        (ids[3], 50.0),
    ]
    with pytest.raises(InputError, match=r"was\[0\] nan"):
        store.set_due(ids[:1], [1.0], was=[math.nan])
    with pytest.raises(InputError, match="was of 2 must be one for each of 1"):
        store.set_due(ids[:1], [1.0], was=[1.0, 2.0])


def test_a_few_sources_stand_as_they_do_in_the_fleet(store: Any) -> None:
    ids = store.add(
        [Listing("a", host="x"), Listing("b", host="y", weight=2.0), Listing("c", host="z", paused=True)], 3.0
    )
    (held,) = claim(store, 3.0, limit=1)
    store.record([entry(held, 4.0, belief=np.ones(2).tobytes())], settings={"learner": b"shared"}, price=Price(4, 5, 6))
    whole, few = store.fleet(2), store.columns_of([ids[2], 99, ids[0], ids[2]], 2)
    assert few.source.tolist() == [ids[0], ids[2]]
    assert [few.hosts[h] for h in few.host] == ["x", "z"]
    assert (few.settings, few.price) == (whole.settings, whole.price) == ({"learner": b"shared"}, Price(4, 5, 6))
    for name in ("weight", "cost", "shortest", "longest", "paused", "due", "last", "found", "failures", "beliefs"):
        assert getattr(few, name).tolist() == getattr(whole, name)[[0, 2]].tolist(), name
    assert store.columns_of([], 2).beliefs.shape == (0, 2)


def test_calls_that_edit_the_fleet_are_counted(store: Any) -> None:
    def edited() -> int:
        return store.counters().get("edited", 0)

    ids = store.add(listed(3), 0.0)
    assert edited() == 1
    store.add(listed(2, paused=True), 1.0, duplicates="replace")
    assert edited() == 2
    store.add([], 1.0)
    store.remove([77])
    store.set_due(ids, [1.0] * 3)
    store.record([entry(c, 1.0) for c in claim(store, 1.0)])
    with pytest.raises(InputError):
        store.add(listed(1), 1.0)
    assert edited() == 2
    assert store.remove(ids) == 3
    assert edited() == 3


def test_observations_name_the_learner_s_state_they_were_made_under(store: Any) -> None:
    (source,) = store.add(listed(1), 0.0)

    def poll(at: float, **given: Any) -> None:
        store.record([entry(claim(store, at)[0], at, due=at)], **given)

    poll(1.0, settings={"other": b"x"})
    poll(2.0, settings={"learner": b"one"})
    poll(3.0)
    poll(4.0, settings={"learner": b"one"})
    store.record([], settings={"learner": b"two"})
    store.record([], settings={"learner": b"three"})
    poll(5.0, settings={"learner": b"one"})
    poll(6.0)
    # The state beside an outcome came after it; the same state again is no new epoch, an old one back is.
    assert [(o.polled_at, o.epoch) for o in store.observations(source)] == [
        (6.0, 4),
        (5.0, 3),
        (4.0, 1),
        (3.0, 1),
        (2.0, 0),
        (1.0, 0),
    ]


def test_new_versions_are_told_in_order_until_they_have_been(store: Any) -> None:
    ids = store.add(listed(2), 0.0)

    def change(at: float, *bodies: bytes) -> None:
        store.set_due(ids, [at] * 2)
        held = claim(store, at)
        bring = zip(held, bodies, strict=True)
        assert all(store.record([entry(c, at, Answer.CHANGED, body=Body(data)) for c, data in bring]))

    change(1.0, b"before", b"anyone")
    assert store.events("log", 9) == []
    store.subscribe(["log", "hook"])
    change(2.0, b"before", b"one")
    change(3.0, b"two", b"three")
    first, second, third = store.events("log", 9)
    digest = sha256(b"one").digest()
    assert first == Event(first.number, ids[1], "http://example.org/1", 2, 2.0, digest)
    assert [(e.source, e.version, e.at) for e in (second, third)] == [(ids[0], 2, 3.0), (ids[1], 3, 3.0)]
    assert first.number < second.number < third.number
    assert store.events("hook", 2) == store.events("log", 9)[:2]
    assert store.events("nobody", 9) == []
    store.told("log", second.number)
    store.told("log", first.number)
    assert store.events("log", 9) == [third]
    assert store.events("hook", 9) == [first, second, third]
    # Removing a source does not unsay what it did; what has not happened cannot be told.
    store.remove(ids[1:])
    assert store.events("log", 9) == [third]
    store.told("log", 10**6)
    ids[1:] = store.add([Listing("http://new/")], 4.0)
    change(5.0, b"four", b"five")
    assert [e.at for e in store.events("log", 9)] == [5.0, 5.0]
    # Who comes back has to be told only what is recorded from then on; who stays goes on where it was.
    store.subscribe(["hook", "new"])
    store.subscribe(["log", "hook"])
    assert store.events("log", 9) == store.events("new", 9) == []
    assert len(store.events("hook", 9)) == 5
    store.subscribe([])
    change(6.0, b"six", b"seven")
    store.subscribe(["hook"])
    assert store.events("hook", 9) == []
    change(7.0, b"eight", b"nine")
    assert [e.number for e in store.events("hook", 9)] == [third.number + 3, third.number + 4]


def test_who_joins_leaves_others_where_they_are_and_only_while_the_store_says_so(store: Any) -> None:
    store.add(listed(1), 0.0)
    assert store.subscribe(["a"])
    store.record([entry(c, 1.0, Answer.CHANGED, due=1.0, body=Body(b"1")) for c in claim(store, 0.0)])
    assert store.subscribe(["b"], others=True)
    store.record([entry(c, 2.0, Answer.CHANGED, due=2.0, body=Body(b"2")) for c in claim(store, 1.0)])
    store.record([], settings={"said": b"x"})
    assert not store.subscribe(["c"], setting=("said", b""))
    assert not store.subscribe(["c"], setting=("unsaid", b"x"))
    assert [len(store.events(name, 9)) for name in "abc"] == [2, 1, 0]
    assert store.subscribe(["b"], setting=("said", b"x"))
    assert store.subscribe(["b"], setting=("unsaid", b""))
    assert [len(store.events(name, 9)) for name in "abc"] == [0, 1, 0]


@pytest.mark.parametrize(("events", "bytes_", "left"), [(6, 10**9, 6), (10**9, 5 * (EVENT_BYTES + 20), 5)])
def test_events_that_nobody_takes_are_bounded_and_the_oldest_go_openly(
    store: Any, monkeypatch: pytest.MonkeyPatch, events: int, bytes_: int, left: int
) -> None:
    for module in (memory_outbox, sqlite_outbox, postgres_outbox):
        monkeypatch.setattr(module, "MOST_EVENTS", events)
        monkeypatch.setattr(module, "MOST_EVENT_BYTES", bytes_)
        monkeypatch.setattr(module, "WEIGHED", 4)
    ids = store.add(listed(4), 0.0)
    assert len("http://example.org/1") == 20
    store.subscribe(["deaf", "hears"])
    for at in range(1, 6):
        store.set_due(ids, [float(at)] * 4)
        held = claim(store, float(at))
        assert all(store.record([entry(c, float(at), Answer.CHANGED, body=Body(b"%d" % c.token)) for c in held]))
        if at < 5:
            store.told("hears", 4 * at)
    # The newest are there, those that are gone are counted, and their numbers are missing.
    assert [event.number for event in store.events("deaf", 99)] == list(range(21 - left, 21))
    assert [event.number for event in store.events("hears", 99)] == [17, 18, 19, 20]
    assert store.counters()["untold"] == 20 - left


def test_what_is_distrusted_is_asked_for_anew_and_becomes_a_new_version(store: Any) -> None:
    store.add(listed(2), 0.0)
    body = Body(b"same", "text/plain", '"tag"', "Sun, 06 Nov 1994 08:49:37 GMT", fingerprint=b"f" * 32)
    assert all(store.record([entry(c, 1.0, Answer.CHANGED, body=body) for c in claim(store, 0.0)]))
    assert store.damaged() == []
    store.distrust([(1, 1), (7, 1)])
    store.set_due([1, 2], [2.0, 2.0])
    first, second = claim(store, 2.0)
    assert (first.version, first.etag, first.last_modified, first.fingerprint) == (1, None, None, None)
    assert all(store.record([entry(c, 2.0, Answer.CHANGED, body=body) for c in (first, second)]))
    assert store.versions(1) == [2, 1]
    copy = store.copy(1)
    assert (copy.version, copy.body, copy.digest) == (2, body, sha256(b"same").digest())


def test_where_other_things_count_copies_are_judged_anew_and_polls_under_way_are_not_recorded(store: Any) -> None:
    """Tags say nothing of what counts; of what counts otherwise neither fingerprint nor poll is good any more."""
    store.add(listed(2), 0.0)
    body = Body(b"same", "text/plain", '"tag"', fingerprint=b"f" * 32)
    assert all(store.record([entry(c, 1.0, Answer.CHANGED, body=body) for c in claim(store, 0.0)]))
    store.set_due([1, 2], [2.0, 2.0])
    tagged, other = claim(store, 2.0)
    store.add(listed(1, options={"tags": ["a"]}), 3.0, duplicates="replace")
    store.add([Listing("http://example.org/1", options={"normalise": {"drop": [".clock"]}})], 3.0, duplicates="replace")
    assert store.record([entry(c, 3.0, due=5.0) for c in (tagged, other)]) == [True, False]
    assert store.counters()["ended"] == 1
    assert store.waiting(9.0) == [(2, 2.0), (1, 5.0)], "it waits as before, and nobody is lost"
    again, still = claim(store, 9.0)
    assert (again.source, again.version, again.etag, again.fingerprint) == (2, 1, '"tag"', None)
    assert (still.source, still.fingerprint) == (1, b"f" * 32)
    renewed = Body(b"same, but for the hour", "text/plain", '"tag"', fingerprint=b"g" * 32)
    assert store.record([entry(again, 9.0, due=10.0, body=renewed)]) == [True]
    assert (store.versions(2), store.copy(2).body.data) == ([1], b"same")
    assert claim(store, 10.0)[0].fingerprint == b"g" * 32


def test_of_a_feed_more_versions_are_kept(store: Any) -> None:
    store.add([Listing("http://example.org/feed", kind="feed"), Listing("http://example.org/page")], 0.0)
    for at in range(40):
        held = claim(store, float(at))
        store.record([entry(c, float(at), Answer.CHANGED, due=at + 1.0, body=Body(b"%d" % at)) for c in held])
    assert (store.versions(1), store.versions(2)) == (list(range(40, 10, -1)), [40, 39, 38])


def test_titles_are_told_and_costs_added_up_without_reading_sources(store: Any) -> None:
    said = ["Nine TRAINS", "50%_off", "Zürich trains", None, "trains"]
    paused = len(said) - 1
    store.add(
        [
            Listing(
                f"http://{n}.example/", cost=1.5 + n, paused=n == paused, options={} if one is None else {"title": one}
            )
            for n, one in enumerate(said)
        ],
        0.0,
    )
    assert [(source, title) for source, _, title in store.names()] == [
        (1, "Nine TRAINS"),
        (2, "50%_off"),
        (3, "Zürich trains"),
        (4, ""),
        (5, "trains"),
    ]
    store.add([Listing("http://3.example/", cost=4.5, options={"target": 0.5})], 0.0, duplicates="replace")
    assert store.search(options=["title"]) == [1, 2, 3, 5]
    assert store.search(options=["target", "title"], paused=False) == [1, 2, 3, 4]
    assert store.search(options=["itl", "target"]) == [4]
    assert store.total_cost() == 1.5 + 2.5 + 3.5 + 4.5
    store.remove([1, 2, 3, 4, 5])
    assert store.total_cost() == 0.0


def test_what_polls_were_found_to_cost_is_kept_in_its_unit_and_a_stated_cost_wins(store: Any) -> None:
    store.add([Listing(f"memory:{n}", kind="memory", cost=cost) for n, cost in enumerate((1.0, 4.0, 1.0))], 0.0)
    store.record([], settings={COST_IN: b"rows"})
    made = [entry(one, 1.0, Answer.CHANGED, due=9.0, body=Body(b"x")) for one in claim(store, 1.0)]
    found = {1: 30.0, 2: 70.0, 3: None}
    store.record([replace(one, learned=found[one.claim.source]) for one in made])
    assert store.fleet(1).cost.tolist() == [30.0, 4.0, 1.0]
    assert store.columns_of([1], 1).cost.tolist() == [30.0]
    assert store.fleet(1).listed.tolist() == [1.0, 4.0, 1.0]
    assert store.total_cost() == 35.0
    assert [one.cost for one in store.listings([1, 2, 3])] == [1.0, 4.0, 1.0]
    # What is edited keeps what is known; the same unit changes nothing, another one begins anew.
    store.add([Listing("memory:0", kind="memory", weight=2.0)], 2.0, duplicates="replace")
    store.record([], settings={COST_IN: b"rows"})
    assert store.fleet(1).cost.tolist() == [30.0, 4.0, 1.0]
    store.record([], settings={COST_IN: b"bytes"})
    assert store.fleet(1).cost.tolist() == [1.0, 4.0, 1.0]


def test_a_belief_is_begun_anew_from_where_it_is_asked_for(store: Any) -> None:
    store.add(listed(2), 0.0)
    store.record([entry(one, 1.0, Answer.CHANGED, due=9.0, belief=ROW, body=Body(b"x")) for one in claim(store, 1.0)])
    edited, width = store.counters()["edited"], len(ROW) // 8
    store.relearn([1, 7])
    fleet = store.fleet(width)
    assert (fleet.beliefs[0].tobytes(), fleet.beliefs[1].tobytes()) == (bytes(len(ROW)), ROW)
    assert (fleet.last.tolist(), fleet.due.tolist()) == ([1.0, 1.0], [9.0, 9.0])
    begun, (seen,) = store.checkpoint(1), store.observations(1)
    assert (begun.latest, begun.last, begun.belief) == (seen.token, 1.0, None)
    assert store.checkpoint(7) is None
    assert store.versions(1) == [1]
    assert store.counters()["edited"] > edited, "who holds the fleet in memory reads it anew"


def test_an_outcome_that_came_too_late_is_not_told(store: Any) -> None:
    store.add(listed(1), 0.0)
    store.subscribe(["log"])
    (late,) = claim(store, 0.0)
    store.give_back("a")
    store.record([entry(late, 1.0, Answer.CHANGED, body=Body(b"late"))])
    assert store.events("log", 9) == []


@pytest.mark.parametrize(("names", "words"), [([""], r"names\[0\] '' is empty"), (["a", "a"], "'a' is there twice")])
def test_bad_names_of_listeners_are_refused(store: Any, names: list[str], words: str) -> None:
    with pytest.raises(InputError, match=words):
        store.subscribe(names)


def test_removing_forgets_everything_and_ids_do_not_come_back(store: Any) -> None:
    ids = store.add(listed(3), 0.0)
    held = claim(store, 0.0, limit=2)
    store.record([entry(held[0], 1.0, Answer.CHANGED, body=Body(b"a"))])
    assert store.remove([ids[0], ids[1], 77]) == 2
    assert store.record([entry(held[1], 1.0)]) == [False]
    assert store.observations(ids[0]) == []
    assert store.copy(ids[0]) is None
    assert store.versions(ids[0]) == []
    assert [c.source for c in claim(store, 1e6)] == [ids[2]]
    assert store.add(listed(1), 2.0)[0] not in ids
    assert store.remove([]) == 0


def test_copies_are_versions_and_the_last_three_are_kept(store: Any) -> None:
    (source,) = store.add(listed(1), 0.0)
    bodies = [b"", b"one", b"two", b"two", b"one", b"three" * 1000]
    for n, data in enumerate(bodies):
        at = 100.0 * n
        held = claim(store, at)
        store.record([entry(held[0], at, Answer.CHANGED, due=at, body=Body(data, etag=f'"{n}"'))])
    # The second "two" is no new version, but brought a new validator.
    assert store.versions(source) == [5, 4, 3]
    assert store.copy(source).body.data == b"three" * 1000
    assert store.copy(source, 4).body.data == b"one"
    assert (store.copy(source, 3).body.data, store.copy(source, 3).body.etag) == (b"two", '"3"')
    assert store.copy(source, 3).taken_at == 200.0
    assert store.copy(source, 2) is None


def test_the_fleet_comes_in_columns(store: Any) -> None:
    assert store.fleet(3).beliefs.shape == (0, 3)
    store.add([Listing("a", host="y", cost=2.0, shortest=1.0, longest=9.0), Listing("b"), Listing("c", host="y")], 0.0)
    fleet = store.fleet(3)
    assert [fleet.hosts[h] for h in fleet.host] == ["y", "", "y"]
    assert (fleet.cost.tolist(), fleet.shortest.tolist()) == ([2.0, 1.0, 1.0], [1.0, 0.0, 0.0])
    assert fleet.longest.tolist() == [9.0, math.inf, math.inf]
    assert fleet.last.tolist() == [-math.inf] * 3
    assert fleet.price is None
    assert not fleet.beliefs.any()
    one, *_ = claim(store, 0.0)
    store.record([entry(one, 1.0, belief=np.ones(3).tobytes())])
    assert store.fleet(3).beliefs.sum() == 3.0
    # kept by a version whose rows were shorter, and by one whose rows were longer
    assert store.fleet(4).beliefs[one.source - 1].tolist() == [1.0, 1.0, 1.0, 0.0]
    assert not store.fleet(2).beliefs.any()


class All(RuleBasedStateMachine):
    """Any calls in any order: all stores answer alike, and no claim and no source is ever unaccounted for."""

    folder: Path
    address: str
    files = itertools.count()

    def __init__(self) -> None:
        super().__init__()
        self.stores = [
            MemoryStore(versions=2),
            SqliteStore(self.folder / f"{next(self.files)}.db", versions=2),
            PostgresStore(self.address, schema=f"s{next(SCHEMAS)}", versions=2, own_time=False),
        ]
        self.now, self.added = 0.0, 0
        self.held: list[Claim] = []

    def all(self, call: Callable[[Any], Any]) -> Any:
        one, two, three = (call(store) for store in self.stores)
        assert one == two == three
        return one

    @rule(count=st.integers(1, 3), paused=st.booleans(), first=st.integers(0, 9))
    def add(self, count: int, paused: bool, first: int) -> None:
        some = [Listing(f"s{n % 10}", paused=paused) for n in range(first, first + count)]
        self.all(lambda store: store.add(some, self.now, duplicates="replace"))

    @rule(step=st.sampled_from([-1000.0, 0.0, 1.0, 20.0, 1000.0]))
    def time_passes(self, step: float) -> None:
        self.now += step

    @rule(
        limit=st.integers(1, 4),
        owner=st.sampled_from("ab"),
        among=st.none() | st.lists(st.integers(1, 12), max_size=4),
    )
    def claim(self, limit: int, owner: str, among: list[int] | None) -> None:
        self.held += self.all(lambda store: store.claim(self.now, limit, lease=30.0, owner=owner, among=among))

    @rule(ahead=st.sampled_from([0.0, 30.0]))
    def waiting(self, ahead: float) -> None:
        self.all(lambda store: store.waiting(self.now + ahead))

    @rule(data=st.data(), answer=st.sampled_from(Answer), wait=st.sampled_from([0.0, 5.0, math.inf]))
    def record(self, data: st.DataObject, answer: Answer, wait: float) -> None:
        if self.held:
            some = data.draw(st.lists(st.sampled_from(self.held), unique_by=lambda c: c.token, max_size=3))
            body = Body(data.draw(st.sampled_from([b"x", b"y"]))) if answer is Answer.CHANGED else None
            entries = [Entry(c, answer, self.now, self.now + wait, body=body) for c in some]
            state = data.draw(st.sampled_from([None, {"learner": b"x"}, {"learner": b"y"}]))
            self.all(lambda store: store.record(entries, settings=state))

    @rule(names=st.lists(st.sampled_from("pq"), unique=True))
    def subscribe(self, names: list[str]) -> None:
        self.all(lambda store: store.subscribe(names))

    @rule(name=st.sampled_from("pq"), count=st.integers(0, 3))
    def tell(self, name: str, count: int) -> None:
        events = self.all(lambda store: store.events(name, count))
        if events:
            self.all(lambda store: store.told(name, events[-1].number))

    @rule(owner=st.sampled_from("ab"))
    def give_back(self, owner: str) -> None:
        self.all(lambda store: store.give_back(owner))

    @rule(sources=st.lists(st.integers(1, 12), max_size=2, unique=True), ahead=st.floats(0.0, 9.0))
    def set_due(self, sources: list[int], ahead: float) -> None:
        self.all(lambda store: store.set_due(sources, [self.now + ahead] * len(sources)))

    @rule(sources=st.lists(st.integers(1, 12), max_size=2), was=st.sampled_from([0.0, 5.0, math.inf]))
    def plan(self, sources: list[int], was: float) -> None:
        self.all(lambda store: store.set_due(sources, [self.now + 1.0] * len(sources), was=[was] * len(sources)))

    @rule(sources=st.lists(st.integers(1, 12), max_size=2, unique=True))
    def remove(self, sources: list[int]) -> None:
        self.all(lambda store: store.remove(sources))

    @invariant()
    def all_is_accounted_for(self) -> None:
        tally = self.all(lambda store: store.counters())
        leases = self.stores[1]._db.execute("SELECT count(*) FROM leases").get
        ended = sum(tally.get(name, 0) for name in ("recorded", "given_back", "expired", "ended"))
        assert tally.get("claimed", 0) == ended + leases
        places = "SELECT source FROM sched UNION ALL SELECT source FROM leases ORDER BY 1"
        awake = "SELECT id FROM sources WHERE NOT paused ORDER BY 1"
        assert self.stores[1]._db.execute(places).fetchall() == self.stores[1]._db.execute(awake).fetchall()
        stamped = "SELECT epoch, count(*) FROM observations WHERE epoch GROUP BY 1 ORDER BY 1"
        uses = "SELECT id, uses FROM epochs WHERE uses OR id < (SELECT max(id) FROM epochs) ORDER BY 1"
        assert self.stores[1]._db.execute(uses).fetchall() == self.stores[1]._db.execute(stamped).fetchall()
        for name in "pq":
            self.all(lambda store, name=name: store.events(name, 99))
        one, two, three = (store.fleet(1) for store in self.stores)
        for name in ("source", "due", "last", "found", "failures", "paused"):
            assert getattr(one, name).tolist() == getattr(two, name).tolist() == getattr(three, name).tolist(), name
        shared = self.stores[2]._db
        held = shared.execute("SELECT source FROM claims ORDER BY 1").fetchall()
        assert held == self.stores[1]._db.execute("SELECT source FROM leases ORDER BY 1").fetchall()
        odd = (
            "SELECT w.source FROM schedule w JOIN sources ON id = w.source LEFT JOIN claims c ON c.source = id "
            "WHERE awake = paused OR (paused AND c.token > 0)"
        )
        assert shared.execute(odd).fetchall() == []

    def teardown(self) -> None:
        for source in range(1, 13):
            self.all(lambda store, source=source: repr(store.observations(source)))
            self.all(lambda store, source=source: [store.copy(source, v) for v in store.versions(source)])
        assert self.stores[1].verify() == self.stores[2].verify() == []
        uses = "SELECT id, uses FROM contents ORDER BY 1"
        counted = "SELECT content, count(*) FROM copies GROUP BY 1 ORDER BY 1"
        assert self.stores[1]._db.execute(uses).fetchall() == self.stores[1]._db.execute(counted).fetchall()
        for store in self.stores:
            store.close()


def test_stores_agree_whatever_is_called(tmp_path: Path, server: Callable[[], str]) -> None:
    run_state_machine_as_test(type("Case", (All,), {"folder": tmp_path, "address": server()}))


def test_versions_of_many_sources_are_told_in_the_order_asked(store: Any) -> None:
    one, two = store.add([Listing("http://h/a"), Listing("http://h/b")], 0.0)
    for at in (10.0, 20.0, 30.0):
        store.set_due([one, two], [at] * 2)
        claims = {claim.source: claim for claim in claim(store, at)}
        polls = ((one, at), (two, at + 1.0))
        store.record([entry(claims[s], t, Answer.CHANGED, body=Body(b"%d %d" % (s, int(t)))) for s, t in polls])
    asked = [(two, 3), (one, 1), (two, 1), (one, 9), (99, 1), (one, 3), (two, 3)]
    told = store.editions(asked)
    assert [found and (found.version, found.taken_at, found.before) for found in told] == [
        (3, 31.0, 21.0),
        (1, 10.0, 0.0),
        (1, 11.0, 0.0),
        None,
        None,
        (3, 30.0, 20.0),
        (3, 31.0, 21.0),
    ]
    assert told[0].digest == sha256(b"%d 31" % two).digest()


@pytest.mark.parametrize("count", [3, 40], ids=["few", "many"])
def test_who_stands_otherwise_is_told_apart(store: Any, count: int) -> None:
    ids, rng = store.add(listed(count), 0.0), np.random.default_rng(3)
    told = {head.source: head for head in store.heads(ids)}
    assert store.heads_unlike(told) == ([], [])
    seen = 0
    for turn in range(1, 25):
        at, which = 100.0 * turn, rng.permutation(ids)[: 1 + turn % 3].tolist()
        if turn % 4 == 0:
            store.set_due(which, [at + 50.0] * len(which))
        elif turn % 4 == 1:
            claims = claim(store, 1e6, limit=2, lease=1e6)
            answers = (Answer.CHANGED, Answer.FAILED)
            bodies = (Body(b"%d" % turn), None)
            store.record([entry(c, at, a, body=b) for c, a, b in zip(claims, answers, bodies, strict=False)])
        elif turn % 4 == 2 and len(told) > 2:
            store.remove(which[:1])
        else:
            # Somebody else is asked for, or nobody any more: that changes nothing for the others.
            told = dict(list(told.items())[turn % 2 :])
            told |= {head.source: head for head in store.heads(store.add([Listing(f"http://h/{turn}")], at))}
        now = {head.source: head for head in store.heads(list(told))}
        others, gone = store.heads_unlike(told)
        assert sorted(others) == sorted(now[one] for one in told if one in now and now[one] != told[one])
        assert sorted(gone) == sorted(one for one in told if one not in now)
        # Told again of what it was told before, it says the same again.
        assert store.heads_unlike(told) == (others, gone)
        seen += len(others) + len(gone)
        told = now
    assert seen >= 9


def test_a_server_reads_the_same_of_every_store(store: Any) -> None:
    one, two, three, four = store.add(
        [
            Listing("http://h/A%1", host="h"),
            Listing("http://h/b_2", "feed", host="h", options={"tags": "news"}),
            Listing("http://i/ä", host="i", options={"tags": ["new york", "news"]}),
            Listing("http://h/rests", host="h", options={"title": "news"}, paused=True),
        ],
        0.0,
    )
    assert store.answered_at() == -math.inf
    assert store.recent(5) == []
    for at, data in ((10.0, b"old"), (20.0, b"new")):
        store.set_due([one, two, three], [at] * 3)
        claims = {claim.source: claim for claim in claim(store, at)}
        body = Body(data, "text/plain", last_modified="then", via="up")
        done = [entry(claims[one], at, Answer.CHANGED, body=body), entry(claims[two], at + 1.0, Answer.FAILED)]
        store.record([*done, entry(claims[three], at - 1.0)], settings={"name": data})
    old, new = sha256(b"old").digest(), sha256(b"new").digest()
    latest = {head.source: head.latest for head in store.heads([one, two, three])}
    assert store.heads([three, 99, one]) == [
        Head(three, latest[three], 0, 19.0, 79.0, 0),
        Head(one, latest[one], 2, 20.0, 80.0, 0),
    ]
    assert store.heads([two])[0].failures == 2
    assert store.editions([(one, 2)])[0] == Edition(2, 20.0, "text/plain", "then", new, 3, 10.0, "up")
    assert store.editions([(one, 1)])[0] == Edition(1, 10.0, "text/plain", "then", old, 3, 0.0, "up")
    assert store.editions([(one, 3)]) == [None]
    assert store.packed(one, 3) is None
    assert zstandard.ZstdDecompressor().decompress(store.packed(one, 1)) == b"old"
    assert [(row.source, row.address, row.as_of, row.digest) for row in store.announced(0.0, 0, 9)] == [
        (one, "http://h/A%1", 20.0, new)
    ]
    assert store.announced(20.5, 0, 9) == store.announced(0.0, one, 9) == store.announced(0.0, 0, 0) == []
    assert [(row.token, row.source, row.answer) for row in store.recent(1)] == [
        max((latest[source], source, answer) for source, answer in zip((one, two, three), ANSWERED, strict=True))
    ]
    assert len(store.recent(99)) == 6
    assert store.answered_at() == 20.0
    assert store.hosts() == [HostCount("h", 3, 1, 1), HostCount("i", 1, 0, 0)]
    assert store.names() == [
        (one, "http://h/A%1", ""),
        (two, "http://h/b_2", ""),
        (three, "http://i/ä", ""),
        (four, "http://h/rests", "news"),
    ]
    assert store.held(["http://h/A%1", "http://i/ä", "http://h/rests", "http://x/"]) == {
        "http://h/A%1": Holding(one, 20.0, (new, old)),
        "http://i/ä": Holding(three, 19.0, ()),
    }
    assert (store.setting("name"), store.setting("other")) == (b"new", b"")
    assert store.search("a%1") == [one]
    assert store.search("B_") == [two]
    assert store.search("Ä") == []
    assert store.search(host="h", after=one) == [two, four]
    assert store.search(kind="feed") == [two]
    assert store.search(paused=True) == [four]
    assert store.search(limit=2) == [one, two]
    assert store.search(failing=True) == [two]
    assert store.search(failing=False, host="h") == [one, four]
    assert store.search(tag="news") == store.search(options=["tags"]) == [two, three]
    assert store.search(tag="new") == store.search(options=["tag"]) == []
    assert store.verify() == []
    assert store.checkpoint(one) is None


def test_epochs_are_kept_as_long_as_observations_name_them(store: Any) -> None:
    store.add(listed(1), 0.0)
    store.record([], settings={ports.LEARNER: b"one"})
    store.record([], settings={ports.LEARNER: b"one"})
    assert store.epochs() == [Epoch(1, b"one")]
    store.record([entry(claim(store, 1.0)[0], 1.0)], settings={ports.LEARNER: b"two"})
    assert store.epochs() == [Epoch(1, b"one"), Epoch(2, b"two")]
    assert store.epochs(2) == [Epoch(2, b"two")]
    assert [seen.epoch for seen in store.observations(1)] == [1]


def test_members_are_whom_collections_tell_of(store: Any) -> None:
    whole, first, second = store.add(listed(3), 1.0)
    word = CollectionMember(whole, first, "http://example.org/1", 5.0, "a", None)
    store.enlist([word, CollectionMember(whole, second, "http://example.org/2"), CollectionMember(whole, 99, "gone")])
    assert store.members() == [word, CollectionMember(whole, second, "http://example.org/2")]
    said = CollectionMember(whole, first, "http://example.org/1", 7.0, "b", 7.0)
    store.enlist([said])
    # What is pushed stands under the source's own number, and is no member.
    pushed = CollectionMember(second, second, "hint", told=7.0)
    store.enlist([pushed])
    assert store.pushes() == store.pushes([first, second]) == [pushed]
    assert store.pushes([first]) == store.members(second) == []
    assert store.members(whole)[0] == said
    assert store.members(first) == []
    # Of one source it is asked what tells of it, and not all the others.
    also = CollectionMember(first, second, "http://example.org/2")
    store.enlist([also])
    assert store.members(source=second) == [also, CollectionMember(whole, second, "http://example.org/2")][::-1]
    assert store.members(first, second) == [also]
    assert store.members(source=whole) == store.members(second, second) == []
    store.remove([second])
    assert store.members() == [said]
    store.remove([whole])
    assert store.members() == []


def test_an_observation_keeps_the_signal_that_taught(store: Any) -> None:
    (source,) = store.add(listed(1), 1.0)
    (held,) = claim(store, 1.0)
    store.record([entry(held, 2.0, Answer.CHANGED, told=1.5)])
    assert [one.told for one in store.observations(source)] == [1.5]


def test_who_changed_what_is_kept_newest_first_and_the_oldest_go(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert store.edits() == []
    store.add([Listing("http://a.example/")], 0.0)
    edited = store.counters()["edited"]
    for n in range(1, 6):
        store.note_edit(float(n), "anna", f"did {n}")
    assert store.edits(2) == [Edit(5, 5.0, "anna", "did 5"), Edit(4, 4.0, "anna", "did 4")]
    assert [one.number for one in store.edits(2, before=4)] == [3, 2]
    assert store.counters()["edited"] == edited, "nobody reads the fleet anew for a note"
    store.remove([1])
    assert len(store.edits()) == 5
    for module in (memory_shelf, sqlite_edits, postgres_edits):
        monkeypatch.setattr(module, "MOST_EDITS", 3)
    store.note_edit(6.0, "b\0en", "<script>\0\u202e")
    assert [one.number for one in store.edits()] == [6, 5, 4]
