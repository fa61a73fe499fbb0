"""The service beyond its faces: parts of a fleet like the whole, words on the budget, comparisons like with like."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from support.hand_store import HOUR, NOW, belief, make, poll
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.learning.outlook import Outlook
from unstale.core.learning.siblings import siblings_of
from unstale.core.roots.falling import falls_to
from unstale.engine.collecting import SIBLINGS, SIGNALS
from unstale.engine.config import EngineConfig
from unstale.engine.host_limits import Rules
from unstale.engine.said import BUDGET, BudgetSaid
from unstale.engine.summary import LEARNED, ComparedSources, compare
from unstale.errors import InputError, StoreError
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CollectionMember
from unstale.ports import Listing
from unstale.service import FleetService, ServiceSettings, documents
from unstale.service.budget import in_force, settle


@pytest.fixture
def service(tmp_path: Path) -> FleetService:
    listings = [Listing(f"https://s{i}.example/", host=f"h{i % 3}", weight=1.0 + i) for i in range(12)]
    store = make(tmp_path / "a.db", listings)
    for i in range(10):
        poll(store, i + 1, NOW - (1 + i) * HOUR, Answer.CHANGED, row=belief(1.0 + i, (2 + i) * HOUR), body=b"x")
    store.close()
    made = service_of(Settings(store=str(tmp_path / "a.db"), budget=5 / HOUR))
    made.clock = lambda: NOW
    return made


def test_of_a_part_the_same_is_told_as_of_the_whole(service: FleetService) -> None:
    whole = {one.listing.id: documents.source(one) for one in service.status(limit=12).worst}
    for source in (1, 5, 10, 11):
        assert [documents.source(one) for one in service.views([source])] == [whole[source]]
    assert [documents.source(one) for one in service.views([7, 2, 99])] == [whole[7], whole[2]]
    assert documents.source(service.explain(5).source) == whole[5]
    assert whole[5]["interval"] > 0.0
    service.close()


def test_who_tells_of_a_source_is_found_without_all_that_others_are_told_of(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    worth = {"members": 9, "trusted": True, "used": True, "new": False, "interval": 60.0, "precision": 1.0}
    worth |= {"silence": 0.1, "late": 0.0, "credit": 9.0, "heard_at": NOW, "saved": 0.0}
    said = {"fleet": [0.0] * 5, "collections": {"1": {"worth": worth}}}
    service.writer.enlist([CollectionMember(1, source, f"https://s{source}.example/") for source in range(2, 11)])
    service.writer.record([], settings={SIGNALS: json.dumps(said).encode()})
    read, members = list[int](), service.store.members

    def counted(_: object, *which: int, **named: int) -> list[CollectionMember]:
        found = members(*which, **named)
        read.append(len(found))
        return found

    monkeypatch.setattr(type(service.store), "members", counted)
    assert service.explain(5).sentence.startswith("polled when https://s0.example/ says that it changed")
    assert service.explain(1).sentence.startswith("tells of 9 sources")
    assert read == [1]
    service.close()


def test_of_a_large_fleet_those_that_are_shown_are_told_the_same(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in (0, 3, 12):
        small = service.status(limit=limit)
        with monkeypatch.context() as patched:
            patched.setattr("unstale.service.status.MANY", 0)
            large = service.status(limit=limit)
        assert [documents.source(one) for one in large.worst] == [documents.source(one) for one in small.worst]
        assert large.surcharges == small.surcharges
        assert large.fresh == small.fresh
    service.close()


def test_where_no_cap_binds_the_fleet_is_not_priced_to_tell_so(
    service: FleetService, monkeypatch: pytest.MonkeyPatch
) -> None:
    priced = []
    monkeypatch.setattr("unstale.core.learning.learner.Learner.price_for", lambda *args, **more: priced.append(args))
    assert service.status().surcharges == {}
    assert not priced
    service.close()


def test_where_siblings_move_polls_the_explanation_says_so(service: FleetService) -> None:
    kin = siblings_of(["https://s4.example/", "https://s4.example/b"])
    assert kin is not None
    kin.tallies[:] = np.array([[100.0], [50.0], [45.0], [95.0], [95.0], [20.0]])
    for credit, said in ((20.0, True), (5.0, False)):
        kin.credit = credit
        service.writer.record([], settings={SIBLINGS: kin.kept()})
        assert ("a sibling in its folder, which foretells 0.5 of" in service.explain(5).sentence) == said
        assert "sibling" not in service.explain(4).sentence
    service.close()


def test_who_only_reads_cannot_write(service: FleetService) -> None:
    reader = FleetService(service.store, service.terms)
    with pytest.raises(StoreError, match="is only read"):
        reader.hint([1])
    with pytest.raises(InputError, match="source 99 is not listed"):
        reader.explain(99)
    service.close()


def test_polling_what_somebody_else_polls_holds_nobody_in_its_stead(service: FleetService) -> None:
    store = service.writer
    store.set_due(range(1, 13), [NOW - 1.0] * 12)
    held = store.claim(NOW, 1, lease=600.0, owner="engine", among=[1])
    asked: list[int] = []
    service.poll([1], lambda claims: [asked.append(claim.source) for claim in claims] and [])
    assert ([claim.source for claim in held], asked) == ([1], [])
    assert len(store.claim(NOW, 12, lease=600.0, owner="engine")) == 11
    service.close()


def terms(budget: float, changed_at: float = 0.0, file: str = "folder/unstale.toml") -> ServiceSettings:
    return ServiceSettings(EngineConfig(budget), lambda name: Rules(), file=file, changed_at=lambda: changed_at)


def test_the_last_word_on_the_budget_is_in_force() -> None:
    word = {BUDGET: BudgetSaid(2.0, "api", at=100.0, settled=1.0).kept()}
    assert in_force({}, terms(1.0, file=""), {}, False, 200.0).by == "default"
    assert in_force({}, terms(1.0), {}, False, 200.0).rate == 1.0
    assert in_force(word, terms(1.0, changed_at=150.0), {}, False, 200.0).rate == 2.0
    # The file says something new since: it is the last word, once an engine is started.
    assert in_force(word, terms(3.0, changed_at=150.0), {}, False, 200.0).rate == 3.0
    running = in_force(word, terms(3.0, changed_at=150.0), {"started_at": 120.0}, True, 200.0)
    assert (running.rate, running.by) == (2.0, "api")
    assert running.waiting == "unstale.toml was changed 50 s ago: restart the engine to take it up"
    # An engine that was started with another file goes by that, and it is not ours to guess.
    assert in_force({}, terms(3.0), {"budget": 2.0, "settled": 0.5}, True, 200.0).rate == 0.5
    assert settle(word, terms(1.0, changed_at=150.0), None, 200.0) == {}
    assert settle(word, terms(3.0, changed_at=150.0), None, 200.0) == {BUDGET: b""}
    option = BudgetSaid.read(settle(word, terms(3.0), 7.0, 200.0)[BUDGET])
    assert option == BudgetSaid(7.0, "option", 200.0, 3.0)


def test_a_budget_that_version_0_1_kept_still_holds() -> None:
    found = in_force({BUDGET: b"0.25"}, terms(1.0, changed_at=150.0), {}, False, 200.0)
    assert (found.rate, found.by) == (0.25, "api")
    assert EngineConfig(1.0).amended({BUDGET: b"0.25"}).budget == 0.25
    assert EngineConfig(1.0).amended({BUDGET: b"nonsense"}).budget == 1.0


def rows(count: int) -> tuple[ComparedSources, Outlook]:
    """Sources alike, all looked at twice, an hour ago."""
    beliefs = np.tile(np.frombuffer(belief(3.0, 6 * HOUR)), (count, 1))
    last, one = np.full(count, NOW - HOUR), np.ones(count)
    held = ComparedSources(beliefs, last, last, {}, one, one, np.zeros(count, np.int64))
    return held, Outlook(one, np.full(count, 0.8), np.full(count, 60.0))


def test_what_fails_is_as_stale_under_either_way_of_polling() -> None:
    held, seen = rows(10)
    sound = compare(held, seen, 1.0)
    failures = np.array([0] * 5 + [3] * 5)
    stale = Outlook(seen.change_rate, np.where(failures > 0, 0.0, 0.8), seen.age)
    half = compare(replace(held, failures=failures), stale, 1.0)
    assert half.fresh == pytest.approx(0.5 * sound.fresh)
    # Five of ten share the budget: their interval is half as long, and the others stay stale.
    twice = compare(replace(held, cost=np.full(10, 0.5)), seen, 1.0)
    assert half.even == pytest.approx(0.5 * twice.even)


def test_before_half_was_looked_at_twice_there_is_no_comparison() -> None:
    held, seen = rows(10)
    for known in range(11):
        beliefs = held.beliefs.copy()
        beliefs[known:] = 0.0
        found = compare(replace(held, beliefs=beliefs), seen, 1.0)
        assert found.learned == pytest.approx(known / 10.0)
        assert math.isnan(found.even) == (known / 10.0 < LEARNED)
        assert found.fresh == pytest.approx(0.8)


def test_the_search_stays_within_its_bounds() -> None:
    assert falls_to(lambda x: 1.0 / x, 1e9, 1.0, 10.0) == 1.0
    assert falls_to(lambda x: 1.0 / x, 1e-9, 1.0, 10.0) == 10.0
    asked: list[float] = []

    def falling(x: float) -> float:
        asked.append(x)
        return 1.0 / x**2

    assert falls_to(falling, 0.04, 1e-6, 1e6) == pytest.approx(5.0, rel=1e-3)
    # Nothing is asked twice.
    assert len(asked) == len(set(asked)) > 2
