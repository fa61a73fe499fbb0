"""The public scheduler: a fleet that lives, a budget that is spent, and decisions that can be checked by hand."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

import unstale
from unstale import Outcome, Scheduler
from unstale.core.learning.learner import EXPLORE
from unstale.core.learning.reach import FAILURE_SPREAD, MOST_DOUBLINGS
from unstale.errors import InputError

HOUR, DAY = 3600.0, 86_400.0
GOLDEN, PLASTIC = (math.sqrt(5.0) - 1.0) / 2.0, 0.7548776662466927


def played(
    scheduler: Scheduler, end: float, tick: float, rate: float = 1.0 / HOUR, begin: float = 0.0
) -> dict[int | str, list[float]]:
    """Poll Poisson sources whose changes depend on their name and nothing else; when each was polled."""
    polls: dict[int | str, list[float]] = {}
    for now in np.arange(begin, end, tick).tolist():
        for source in scheduler.take(now):
            mine = polls.setdefault(source, [])
            elapsed = now - (mine[-1] if mine else 0.0)
            turn = (hash((len(mine), int(source))) % 1000) / 1000.0 if isinstance(source, int) else 0.5
            mine.append(now)
            changed = turn < -math.expm1(-rate * elapsed)
            scheduler.record(Outcome(source, "changed" if changed else "unchanged", now))
    return polls


def answered_once(count: int, **options: float) -> Scheduler:
    """Sources that have answered at 0 and 1000 s, at a published price."""
    scheduler = Scheduler(price=300.0, mean_interval=1000.0)
    scheduler.add(range(count), 0.0, **options)
    for now in (0.0, 1000.0):
        scheduler.record([Outcome(i, "unchanged", now) for i in range(count)])
    return scheduler


def test_after_an_answer_a_source_is_due_one_interval_later_give_or_take_five_per_cent() -> None:
    scheduler = answered_once(400)
    wait = scheduler.learner.waits_of(np.arange(400), 300.0)
    due = np.array([scheduler.due_of(i) for i in range(400)])
    turn = 2.0 * ((np.arange(400) * GOLDEN + 1000.0 * PLASTIC) % 1.0) - 1.0
    np.testing.assert_allclose(due, 1000.0 + wait * (1.0 + 0.05 * turn), rtol=1e-7)
    stretch = (due - 1000.0) / wait
    assert 0.95 <= stretch.min() < 0.951 < 1.049 < stretch.max() <= 1.05
    # Even on [−5 %, 5 %]: a tenth of the sources in each tenth, to within two.
    assert np.abs(np.histogram(stretch, bins=10, range=(0.95, 1.05))[0] - 40).max() <= 2


def test_a_loop_with_too_little_room_polls_those_that_are_worth_most() -> None:
    # At this price ten times as many polls fall due as the loop can make; every fifth source weighs ten times as much.
    scheduler = Scheduler(price=20.0, mean_interval=1000.0)
    for i in range(50):
        scheduler.add(i, 0.0, weight=10.0 if i % 5 == 0 else 1.0, longest=1e9)
    for now in (0.0, 1000.0, 2000.0):
        scheduler.record([Outcome(i, "changed" if i % 2 else "unchanged", now) for i in range(50)])
    polls = np.zeros(50)
    for now in np.arange(2100.0, 12_000.0, 100.0).tolist():
        for source in scheduler.take(now, most=1):
            polls[int(source)] += 1
            scheduler.record(Outcome(source, "changed" if int(source) % 2 else "unchanged", now))
    assert polls.sum() == 99
    heavy = np.arange(50) % 5 == 0
    assert polls[heavy].mean() > 5.0 * polls[~heavy].mean()


def test_a_failure_teaches_nothing_and_the_next_try_comes_twice_as_late_each_time() -> None:
    scheduler = answered_once(50, longest=1e9)
    scheduler.learner.columns.longest[:] = 1e12
    before = scheduler.learner.columns.rows.copy()
    for _ in range(2):
        scheduler.record([Outcome(i, "failed", 2000.0) for i in range(50)])
    for failures in range(1, 10):
        scheduler.record([Outcome(i, "failed", 2000.0) for i in range(50)])
        wait = scheduler.learner.waits_of(np.arange(50), 300.0)
        stretch = np.array([scheduler.due_of(i) - 2000.0 for i in range(50)]) / wait
        most = 2.0 ** min(failures, MOST_DOUBLINGS)
        assert (1 - FAILURE_SPREAD) * most - 1e-9 <= stretch.min() < 0.55 * most
        assert 1.45 * most < stretch.max() <= (1 + FAILURE_SPREAD) * most + 1e-9
    assert np.array_equal(scheduler.learner.columns.rows, before)
    scheduler.record(Outcome(0, "unchanged", 3000.0))
    assert scheduler.due_of(0) - 3000.0 <= 1.05 * float(scheduler.learner.waits_of([0], 300.0)[0])


def test_bounds_hold_after_jitter_and_what_a_source_asks_for_goes_beyond_them() -> None:
    scheduler = answered_once(100, shortest=840.0, longest=860.0)
    waits = np.array([scheduler.due_of(i) for i in range(100)]) - 1000.0
    assert waits.min() >= 840.0 - 1e-9
    assert waits.max() <= 860.0 + 1e-9
    scheduler.record(Outcome(5, "changed", 2000.0, not_before=9000.0))
    assert scheduler.due_of(5) == 9000.0


@pytest.mark.parametrize("share", [0.01, 0.1, 0.4])
@pytest.mark.parametrize("every", [HOUR, 30 * HOUR])
def test_a_loop_that_only_takes_and_records_spends_its_budget_and_not_more(share: float, every: float) -> None:
    """Whether it looks a hundred times in a mean interval or twice."""
    count, span = 40, 60 * every
    scheduler = Scheduler(count / every)
    scheduler.add(range(count), 0.0)
    polls = played(scheduler, span, share * every, 2.0 / every)
    spent = sum(map(len, polls.values()))
    assert spent == scheduler.spent
    assert 0.98 <= spent / (count / every * span) <= 1.0
    assert len(polls) == count


def test_dear_polls_have_their_turn_and_count_for_what_they_cost() -> None:
    scheduler = Scheduler("90/h")
    scheduler.add(range(30), 0.0, cost=[1.0 + 2.0 * (i % 3) for i in range(30)])
    polls = played(scheduler, 60 * HOUR, 120.0)
    assert 0.98 <= scheduler.spent / (90 * 60) <= 1.0
    assert scheduler.spent == sum((1.0 + 2.0 * (int(i) % 3)) * len(times) for i, times in polls.items())
    assert min(len(times) for times in polls.values()) > 5


def test_what_weighs_more_is_polled_more() -> None:
    scheduler = Scheduler("20/h")
    scheduler.add(range(20), 0.0, weight=[1.0] * 10 + [20.0] * 10)
    polls = played(scheduler, 200 * HOUR, 300.0)
    light, heavy = (sum(len(polls[i]) for i in part) for part in (range(10), range(10, 20)))
    assert heavy > 2 * light


def test_a_capped_host_is_spared_and_the_others_get_the_rest() -> None:
    scheduler = Scheduler("40/h", host_cap={"slow": "4/h"})
    scheduler.add(range(20), 0.0, host="slow")
    scheduler.add(range(20, 40), 0.0)
    polls = played(scheduler, 100 * HOUR, 120.0)
    slow = sum(sum(t > 20 * HOUR for t in polls[i]) for i in range(20))
    assert slow / (80 * 4) < 1.15
    assert scheduler.spent > 0.98 * 40 * 100


def test_sources_come_and_go_while_it_lives() -> None:
    scheduler = Scheduler("60/h")
    assert scheduler.take(0.0) == []
    scheduler.add(["a", "b"], 0.0)
    assert scheduler.take(60.0) == ["a"]
    scheduler.add("c", 60.0)
    scheduler.remove("a")
    scheduler.record(Outcome("a", "changed", 60.0))
    assert scheduler.take(120.0) == ["b"]
    scheduler.record(Outcome("b", "changed", 120.0))
    learned = scheduler.learner.columns.rows.copy()
    scheduler.pause("c")
    assert scheduler.due_of("c") == math.inf
    assert "c" not in scheduler.take(180.0)
    scheduler.resume("c", 200.0)
    assert "c" in scheduler.take(240.0)
    scheduler.give_back("c", 500.0)
    assert scheduler.due_of("c") == 500.0
    scheduler.edit("b", weight=3.0, longest="2min", shortest=30.0)
    scheduler.record(Outcome("b", "changed", 300.0))
    assert 330.0 <= scheduler.due_of("b") <= 420.0
    assert np.array_equal(learned[0], np.zeros_like(learned[0]))
    assert len(scheduler) == 2


def test_what_is_learned_outlives_a_source_that_joins() -> None:
    scheduler = Scheduler("60/h")
    scheduler.add(range(10), 0.0)
    played(scheduler, 5 * HOUR, 60.0)
    rate = scheduler.learner.change_rate()
    scheduler.add("new", 5 * HOUR)
    assert scheduler.due_of("new") == 5 * HOUR
    np.testing.assert_array_equal(scheduler.learner.change_rate()[:10], rate)
    # One more source of the same cost: the mean interval grows by a tenth, and with it the longest wait.
    assert scheduler.learner.scale == pytest.approx(11 * 60.0)
    assert scheduler.learner.columns.longest[0] == pytest.approx(EXPLORE * 11 * 60.0)


def test_a_poll_that_is_under_way_is_not_taken_again() -> None:
    scheduler = Scheduler("60/h")
    scheduler.add(["a"], 0.0)
    assert scheduler.take(60.0) == ["a"]
    scheduler.add("b", 60.0)
    assert scheduler.take(1e5) == ["b"]
    assert scheduler.take(2e5) == []
    assert scheduler.wait(2e5) == math.inf
    scheduler.record(Outcome("a", "unchanged", 2e5))
    assert scheduler.wait(2e5) > 0.0
    assert scheduler.due(1e6) == ["a"] == scheduler.due(1e6, most=1)


def test_saved_and_loaded_it_decides_the_same_to_the_last_bit() -> None:
    scheduler = Scheduler("120/h", host_cap={"h": "30/h"})
    scheduler.add(range(20), 0.0, host="h")
    scheduler.add([f"x{i}" for i in range(20)], 0.0, weight=2.0)
    played(scheduler, 4 * HOUR, 60.0)
    scheduler.remove(3)
    scheduler.record([Outcome(source, "unchanged", 4 * HOUR) for source in scheduler.take(4 * HOUR)])
    loaded = Scheduler.load(scheduler.save())
    assert loaded.save() == scheduler.save()
    for now in np.arange(4 * HOUR, 9 * HOUR, 60.0).tolist():
        taken = scheduler.take(now)
        assert loaded.take(now) == taken
        told = [Outcome(source, "changed" if k % 3 else "failed", now) for k, source in enumerate(taken)]
        scheduler.record(told)
        loaded.record(told)
        assert np.array_equal(loaded.due_at, scheduler.due_at)
        assert loaded.price == scheduler.price
    assert len(scheduler) == 39


def test_an_explanation_is_one_sentence_in_every_state() -> None:
    scheduler = answered_once(3)
    assert scheduler.explain(0).startswith("0 is polled every ")
    assert scheduler.explain(0).endswith("and at today's price a poll pays after 27.6 min.")
    scheduler.record(Outcome(1, "failed", 2000.0))
    assert scheduler.explain(1) == "1 has failed 1 time in a row: it is tried again."
    scheduler.pause(2)
    assert scheduler.explain(2) == "2 is paused."
    scheduler.publish(1e9)
    assert "its longest wait" in scheduler.explain(0)
    scheduler.publish(1e-9)
    assert "its shortest wait" in scheduler.explain(0)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Scheduler("100"), "budget '100' has no unit: write 100/day, or a number per second"),
        (lambda: Scheduler("1/day", price=2.0), "price 2.0 cannot be given with a budget"),
        (lambda: Scheduler(0.0), "budget 0.0 must be a finite number above 0"),
        (lambda: Scheduler(1.0, objective="joy"), "objective 'joy'"),
        (lambda: Scheduler(1.0).add([1.5], 0.0), "source 1.5 must be text or a whole number"),
        (lambda: Scheduler(1.0).add(["a", "a"], 0.0), "source 'a' is in the fleet already: edit it instead"),
        (lambda: Scheduler(1.0).add("a", 0.0, cost=0.0), "cost 0.0 must be"),
        (lambda: Scheduler(1.0).add("a", 0.0, shortest="2h", longest="1h"), "shortest 7200.0 must not exceed longest"),
        (lambda: Scheduler(1.0).add("a", 0.0, longest="90"), "longest '90' has no unit: write 90s"),
        (lambda: Scheduler(1.0).add(["a", "b"], 0.0, weight=[1.0]), "weight of shape"),
        (lambda: Scheduler(1.0).explain("a"), "source 'a' is not in the fleet: add it first"),
        (lambda: Scheduler.load(b"unstale"), "data of 7 bytes is no saved scheduler"),
        (lambda: Scheduler.load(Scheduler(1.0).save()[:-1]), "is no saved scheduler"),
        (lambda: answered_once(1).record(Outcome(0, "gone", 1.0)), "answer 'gone' is not known: use one of changed"),
        (lambda: answered_once(1).edit(0, colour=1.0), "edit 'colour' is not known: use weight, cost"),
        (lambda: answered_once(1).edit(0, longest=1.0, shortest=9.0), "would make shortest exceed longest"),
    ],
)
def test_what_is_refused(build: Callable[[], object], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        build()


def test_it_is_public() -> None:
    assert unstale.Scheduler is Scheduler
    assert {"Scheduler", "Outcome"} <= set(unstale.__all__)
