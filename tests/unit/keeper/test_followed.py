"""Who holds collections goes by a price that others found, as they do, and nobody is judged by what was before."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH
from unstale.engine.budget import spare_of
from unstale.engine.collecting import COUNTS, SIGNALS, go_on, with_trust
from unstale.engine.published_plan import PublishedPlan
from unstale.keeper.collected import Collected, Group
from unstale.keeper.listing_pace import ListingPace
from unstale.keeper.scheduler import Scheduler
from unstale.listings.records import CollectionMember
from unstale.ports import CrewMember, Trust

SITES, PAGES, SCALE, NOW = 3, 30, 1000.0, 100_000.0
SOURCES = SITES * (PAGES + 1)


def sources(site: int) -> np.ndarray:
    """A site's collection, which comes first, and its pages."""
    return np.arange(site * (PAGES + 1), (site + 1) * (PAGES + 1))


def part(numbers: np.ndarray, groups: list[int]) -> tuple[Learner, Collected]:
    """What somebody knows who has these sources; beliefs differ from source to source."""
    learner = Learner(len(numbers), SCALE)
    rng = np.random.default_rng(5)
    beliefs = rng.uniform(0.5, 3.0, (SOURCES, WIDTH)), rng.uniform(0.0, 300.0, SOURCES)
    learner.columns.rows[:, :5] = beliefs[0][numbers, :5]
    learner.columns.rows[:, 5:10] = SCALE * beliefs[0][numbers, 5:10]
    learner.columns.last[:] = NOW - beliefs[1][numbers]
    learner.columns.found[:] = 1.0
    collected = Collected(
        learner, numbers.astype(np.int64), [Group(int(sources(g)[0]), sources(g)[1:]) for g in groups], NOW - 500.0
    )
    listed = np.array(groups)
    count = len(groups)
    # The third one has shown nothing yet.
    collected.collections.credit[:count] = np.where(listed == 2, 0.0, 30.0)
    collected.collections.lessons[:count] = np.where(listed == 2, 3.0, 100.0)
    collected.fleet[:] = 90.0, 90.0, 1.0, 50.0, 5.0
    collected.go_on({})
    return learner, collected


def test_who_holds_a_part_sees_in_it_what_whoever_plans_the_whole_does() -> None:
    _, whole = part(np.arange(SOURCES), [0, 1, 2])
    nobody = np.zeros(SOURCES, np.bool_)
    price = whole.price_for(SOURCES / SCALE * 50.0, NOW, NOW + 50.0, SCALE, nobody)
    assert whole.collections.used[:3].tolist() == [True, True, False]
    pace, spent = whole.pace(), 0.0
    assert pace.trial > pace.new > 0.0
    for site in range(SITES):
        _, mine = part(sources(site), [site])
        spent += mine.follow(price, nobody[sources(site)], pace)
        assert mine.intervals()[0] == whole.intervals()[site]
        for name in ("rate", "level", "spacing"):
            # They are found step by step, from where they were.
            assert getattr(mine.members, name)[1:] == pytest.approx(
                getattr(whole.members, name)[sources(site)[1:]], rel=1e-5
            )
    assert spent == pytest.approx(whole.follow(price, nobody, pace))
    # By its own pace a part of the fleet would try other intervals.
    _, alone = part(sources(0), [0])
    assert alone.pace() != pace


def test_a_listing_that_fails_is_left_aside_by_its_holder() -> None:
    _, mine = part(sources(0), [0])
    failing = np.zeros(PAGES + 1, np.bool_)
    assert mine.follow(100.0, failing, mine.pace()) > 0.0
    assert mine.collections.used[0]
    failing[0] = True
    assert mine.follow(100.0, failing, mine.pace()) == 0.0
    assert not mine.collections.used[0]
    assert mine.collections.trusted[0]


def test_who_is_on_trial_is_listed_as_often_as_whoever_plans_says() -> None:
    _, mine = part(sources(0), [0])
    mine.collections.credit[0] = -5.0
    spent = mine.follow(100.0, np.zeros(PAGES + 1, np.bool_), mine.pace()._replace(trial=5000.0))
    assert (mine.collections.trusted[0], mine.intervals()[0], spent) == (False, 5000.0, 1.0 / 5000.0)


def test_nobody_is_judged_by_what_changed_before_he_was_asked() -> None:
    def credit(since: float) -> float:
        learner, mine = part(sources(0), [0])
        mine.collections.credit[0] = 0.0
        mine.go_on({0: since})
        last = learner.columns.last.copy()
        every = np.ones(PAGES, np.bool_)
        # It was heard a moment ago, and has said nothing of anybody.
        mine.hear(0, NOW, np.empty(0, np.int64), np.empty(0), 0.0, SCALE)
        mine.learn(np.arange(1, PAGES + 1), np.full(PAGES, NOW + 1.0), every, np.full(PAGES, np.nan))
        assert (last < NOW).all()
        return float(mine.collections.credit[0])

    assert credit(NOW) == pytest.approx(0.0, abs=0.3)
    assert credit(NOW - 1000.0) < -4.0


def test_who_is_told_of_what_is_known_already_is_due_now_if_a_poll_of_it_pays() -> None:
    learner, mine = part(sources(0), [0])
    last = learner.columns.last.copy()
    scheduler = Scheduler.of(learner, sources(0), due=np.full(PAGES + 1, NOW + 500.0), answered=last)
    scheduler.collected, scheduler.price = mine, 10.0
    mine.follow(scheduler.price, np.zeros(PAGES + 1, np.bool_), mine.pace())
    # It was listened to only a moment ago: copies may be old by anything before.
    mine.go_on({0: NOW})
    assert scheduler.hear(0, NOW, np.array([1]), last[1:2] - 50.0).tolist() == [1]
    assert scheduler.due_at[1] == NOW


def test_what_holders_have_kept_comes_over_what_was_published() -> None:
    members = [CollectionMember(1, n, str(n), 5.0) for n in (2, 3)]
    scheduler = Scheduler.of(Learner(3, SCALE), np.array([1, 2, 3]), due=np.zeros(3))
    published = {"fleet": [1.0] * 5, "collections": {"1": {"credit": 1.0, "hits": 7.0, "since": 1.0}}}
    settings = {SIGNALS: json.dumps(published).encode(), COUNTS: b""}
    _, other = part(sources(0), [0])
    go_on(scheduler, members, [], settings, [], NOW)
    assert scheduler.collected is not None
    assert scheduler.collected.collections.since[0] == 1.0
    scheduler.collected.members.tries[1] = 4.0
    counts = scheduler.collected.counts(0)
    go_on(
        scheduler,
        members,
        [],
        settings,
        [Trust(0, "[2, 2, 2, 2, 2]"), Trust(1, '{"credit": 9, "since": 5}', counts)],
        NOW,
    )
    found = scheduler.collected
    assert found is not None
    assert found.fleet.tolist() == [2.0] * 5
    assert (found.collections.credit[0], found.collections.hits[0], found.collections.since[0]) == (9.0, 7.0, 5.0)
    assert found.members.tries.tolist() == [0.0, 4.0, 0.0]
    assert with_trust(settings, []) == settings
    # What is kept of one collection are the counts of its members alone.
    assert other.counts(0) == b""


def test_a_plan_without_signals_is_told_from_one_with_them() -> None:
    plan = {"scale": 2.0, "price": 3.0, "listings": [4.0, 0.0, 1.0, 8.0]}
    assert PublishedPlan.read(json.dumps(plan).encode()).listings == ListingPace(4.0, 0.0, 1.0, 8.0)
    for before in (b"", b'{"scale": 2.0}', b'{"listings": null}'):
        assert PublishedPlan.read(before).listings is None


def test_what_is_put_aside_for_listings_is_in_the_bucket_and_not_spare() -> None:
    plan = PublishedPlan(1.0, 1.0, 1.0)
    assert plan.burst_of(4.0, 30.0) == plan.burst_of(4.0) + 30.0
    # Whoever says what may be spent at once means it.
    assert replace(plan, burst=3.0).burst_of(4.0, 30.0) == 12.0
    usual = CrewMember("a", 4.0, 10.0, 8.0, {})
    more = CrewMember("a", 4.0, 30.0, 38.0, {"aside": 20.0, "most_aside": 30.0})
    assert spare_of([more], 1.0, 1.0) == pytest.approx(spare_of([usual], 1.0, 1.0))
