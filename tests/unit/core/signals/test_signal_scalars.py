"""The compiled scalars against the columns that answer the same questions, and what members and trust keep."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.gamma2 import p2_inverse
from unstale.core.learning.learner import Learner
from unstale.core.learning.mixture import gather, learn, rate_if
from unstale.core.signals.age import age_listing_value, known_age
from unstale.core.signals.aged import aged_gaps, aged_plain, aged_window, ripe_age
from unstale.core.signals.choices import shown_share
from unstale.core.signals.columns import collection_columns, member_columns
from unstale.core.signals.exact import window
from unstale.core.signals.noisy import doubt_for, mean_cycle, value
from unstale.core.signals.partial import shown_share as columns_share
from unstale.core.signals.scalars import paying, plain_gaps, plain_table, poisson_tail, pushed, window_value
from unstale.core.signals.trust import CREDIT, judge, lesson, open_time, precision_of, silence_of, unsaid_ahead
from unstale.core.values import PoissonAge


@pytest.mark.parametrize("precision", [0.3, 0.7, 1.0])
@pytest.mark.parametrize("silence", [0.0, 0.2, 0.9])
@pytest.mark.parametrize("doubt", [0.01, 0.7, 3.0])
def test_values_are_those_of_the_columns(doubt: float, silence: float, precision: float) -> None:
    worth, cycle = pushed(2.0, silence, precision, doubt)
    assert worth == pytest.approx(float(value(doubt, 2.0, 1 - silence, precision)), rel=1e-6, abs=1e-9)
    assert cycle == pytest.approx(float(mean_cycle(doubt, 2.0, 1 - silence, precision)), rel=1e-6)


@pytest.mark.parametrize("due", [1e-9, 1e-3, 0.3, 5.0, 400.0])
def test_age_is_that_of_the_columns(due: float) -> None:
    rate = 2.0
    assert ripe_age(rate, due) == pytest.approx(float(known_age(rate, due)), rel=1e-12)
    wait = aged_gaps(due * rate**2) / rate
    assert float(PoissonAge([rate]).value([wait])[0]) == pytest.approx(due, rel=1e-9)
    # The best plain interval costs what its last moment does, and no other costs less.
    costs = [(aged_window(rate, k * wait) + due) / (k * wait) for k in (0.9, 1.0, 1.1)]
    assert aged_plain(rate, due) == pytest.approx(costs[1], rel=1e-9)
    assert min(costs) == costs[1]
    # A listing's value is T·J' − J of what its windows cost.
    step = 1e-5
    cost = [aged_window(rate, t) - due * math.expm1(-rate * t) for t in (1.0 - step, 1.0, 1.0 + step)]
    slope = (cost[2] - cost[0]) / (2.0 * step)
    assert slope - cost[1] == pytest.approx(age_listing_value(1.0, [rate], 1.0, due), rel=1e-6, abs=1e-7)


def test_what_scrolls_out_will_be_unsaid_too() -> None:
    feed, fleet = collection_columns(np.ones(1), np.full(1, 20.0), 0.0), np.zeros(5)
    silence = silence_of(0, feed, fleet)
    assert unsaid_ahead(0, feed, fleet) == pytest.approx(silence)
    feed.within[0], feed.missed[0] = 100.0, 75.0
    assert unsaid_ahead(0, feed, fleet) == pytest.approx(1.0 - 0.25 * (1.0 - silence))
    # A feed that shows a quarter of what happens is worth much less than its silence says.
    assert pushed(1.0, unsaid_ahead(0, feed, fleet), 0.9, 1.0)[0] < pushed(1.0, silence, 0.9, 1.0)[0]


def test_no_signals_at_all() -> None:
    assert pushed(2.0, 1.0, 0.5, 1.0) == pytest.approx((0.264241118 / 2, 0.5))
    assert poisson_tail(3, 1e4) == 1.0


def test_paying_doubts_and_windows_are_those_of_the_columns() -> None:
    table = plain_table()
    for due in (0.01, 0.1, 0.3, 0.45):
        for silence, precision in ((0.2, 0.7), (0.01, 0.95)):
            found = paying(2.0, silence, precision, due, 0.5)
            assert found == pytest.approx(float(doubt_for(due, 2.0, 1 - silence, precision)), rel=2e-3)
        assert plain_gaps(2.0 * due, table) == pytest.approx(float(p2_inverse(np.array(2.0 * due))), rel=1e-5)
        for span in (0.05, 1.0, 10.0):
            got = window_value(2.0, 1 - 2.0 * due, plain_gaps(2.0 * due, table), due, span)
            want = window(span, 2.0, 1.0, due)
            assert got[0] == pytest.approx(float(want.value), rel=1e-9)
            assert got[1] == int(want.blind)
    assert paying(2.0, 0.2, 0.7, 0.5, 1.0) == math.inf
    for expected in (1.0, 15.0, 30.0, 500.0):
        assert shown_share(20.0, expected) == pytest.approx(float(columns_share(20, expected)), rel=1e-6)


def test_a_member_keeps_at_most_forty_bytes_more() -> None:
    assert sum(column.nbytes for column in member_columns(1000, 0.0)) <= 40 * 1000


@pytest.mark.parametrize(("hole", "silent"), [(0.0, True), (1.0, False)])
def test_what_may_have_scrolled_out_says_nothing_of_silence(hole: float, silent: bool) -> None:
    """Half of a fleet changes at once: a feed shows the last few, and polls of the others find what it never denied."""
    members, feed, fleet = member_columns(1, 0.0), collection_columns(np.ones(1), np.full(1, 20.0), 0.0), np.zeros(5)
    members.rate[:], feed.asof[0], feed.uncovered[0] = 0.01, 100.0, hole
    before = silence_of(0, feed, fleet)
    for _ in range(20):
        lesson(0, 0, 101.0, 0.0, True, math.log(0.63), -0.02, members, feed, fleet)
    assert (silence_of(0, feed, fleet) > 2.0 * before) == silent
    assert silence_of(0, feed, fleet) >= before


def told(precision: float, recall: float, polls: int, seed: int = 1) -> tuple[float, float, float, bool]:
    """Precision, silence, credit and trust after polls of one member, half of them after a signal."""
    rng = np.random.default_rng(seed)
    members, collections = member_columns(1, 0.0), collection_columns(np.ones(1), np.zeros(1), 0.0)
    fleet = np.zeros(5)
    members.rate[:] = 1.0
    for k in range(polls):
        collections.asof[0] = 1.0
        signalled = k % 2 == 0
        members.signals[0] = int(signalled)
        silent = -math.expm1(-(1 - recall))
        changed = bool(rng.random() < (precision if signalled else silent))
        without = math.log(-math.expm1(-1.0)) if changed else -1.0
        quiet = -open_time(0, 0, 1.0, 0.0, members, collections, fleet)
        lesson(0, 0, 1.0, 0.0, changed, without, quiet, members, collections, fleet)
        judge(collections, fleet)
    return (
        precision_of(0, 0, members, collections, fleet),
        silence_of(0, collections, fleet),
        float(fleet[CREDIT]),
        bool(collections.trusted[0]),
    )


def test_honest_noise_is_learned_and_keeps_its_trust() -> None:
    precision, silence, credit, trusted = told(0.7, 0.8, 4000)
    assert precision == pytest.approx(0.7, abs=0.12)
    assert silence == pytest.approx(0.27, abs=0.1)
    assert trusted
    assert credit > 20.0


def judged(*credits: tuple[float, float]) -> list[bool]:
    """Whether a collection that was new is trusted after it and the fleet had these credits."""
    collections, fleet = collection_columns(np.ones(1), np.zeros(1), 0.0), np.zeros(5)
    seen = []
    for credit, of_all in credits:
        collections.credit[0], fleet[CREDIT] = credit, of_all
        judge(collections, fleet)
        seen.append(bool(collections.trusted[0]))
    return seen


def test_trust_is_earned_before_it_is_given() -> None:
    assert judged((0.0, 0.0), (2.9, 1.0), (3.1, -1.0), (3.1, 1.0)) == [False, False, False, True]


def test_a_new_collection_has_the_good_name_of_the_fleet() -> None:
    assert judged((0.0, 5.9), (-0.1, 6.1), (0.0, 6.1)) == [False, False, True]


def test_trust_is_lost_soon_and_won_back_late() -> None:
    credits = ((9.0, 1.0), (-2.9, 1.0), (-3.1, 1.0), (5.9, 9.0), (6.1, -1.0), (6.1, 1.0), (40.0, -6.1))
    assert judged(*credits) == [True, True, False, False, False, True, False]


@pytest.mark.parametrize("wrong", [0.5, 2.0])
def test_signals_of_chance_gain_nothing_from_beliefs_that_are_wrong(wrong: float) -> None:
    """Half of the polls come after a signal that says nothing; beliefs foretell too little, or too much."""
    rng = np.random.default_rng(2)
    members, collections = member_columns(1, 0.0), collection_columns(np.ones(1), np.zeros(1), 0.0)
    fleet, ever = np.zeros(5), False
    members.rate[:] = wrong
    for k in range(2000):
        collections.asof[0] = 1.0
        members.signals[0] = k % 2
        changed = bool(rng.random() < -math.expm1(-1.0))
        without = math.log(-math.expm1(-wrong)) if changed else -wrong
        quiet = -wrong * open_time(0, 0, 1.0, 0.0, members, collections, fleet)
        lesson(0, 0, 1.0, 0.0, changed, without, quiet, members, collections, fleet)
        judge(collections, fleet)
        ever = ever or bool(collections.trusted[0])
    assert not ever


def test_a_rate_if_something_had_changed_is_that_of_a_row_that_has_learned_it() -> None:
    learner = Learner(1, 100.0)
    polls = np.array([40.0, 300.0, 350.0])
    learner.observe(np.zeros(3, np.int64), polls, np.array([True, False, True]), np.full(3, np.nan))
    row, shared, at = learner.columns.rows[0].copy(), learner.shared, learner._room
    quiet, since = 70.0, 30.0
    told, twice = (rate_if(row, shared, at, quiet, since, often) for often in (False, True))
    silent = rate_if(row, shared, at, quiet, math.nan, True)
    assert (row == learner.columns.rows[0]).all()
    gather(row, shared, at)
    learn(row, shared, at, quiet, quiet, False, math.nan)
    assert silent == pytest.approx(gather(row, shared, at), rel=1e-12)
    learn(row, shared, at, since, since, True, since)
    assert told == pytest.approx(gather(row, shared, at), rel=1e-12)
    # The silence once more, of which nothing fades.
    learn(row, shared, at, 0.0, since, False, math.nan)
    assert twice == pytest.approx(gather(row, shared, at), rel=1e-12)
    assert silent < twice < told
