"""The bucket: no stretch of time spends more than its share and one burst."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.engine.budget import Bucket, spare_of
from unstale.errors import InputError
from unstale.ports import CrewMember

steps = st.lists(st.tuples(st.floats(0, 50), st.floats(0, 30)), min_size=1, max_size=60)


@given(st.floats(0.01, 20), st.floats(0.5, 40), steps)
def test_no_stretch_of_time_spends_more_than_its_share_and_a_burst(rate: float, burst: float, moves: list) -> None:
    bucket, now = Bucket(rate, burst, 0.0), 0.0
    spent: list[tuple[float, float]] = []
    for pause, wish in moves:
        now += pause
        cost = min(wish, bucket.level(now))
        bucket.spend(cost)
        spent.append((now, cost))
    for i, (begin, _) in enumerate(spent):
        total = 0.0
        for end, cost in spent[i:]:
            total += cost
            assert total <= rate * (end - begin) + burst + 1e-9


def test_what_was_given_back_can_be_spent_again() -> None:
    bucket = Bucket(1.0, 5.0, 0.0)
    assert bucket.level(3.0) == 3.0
    bucket.spend(3.0)
    bucket.spend(-2.0)
    assert (bucket.level(3.0), bucket.spent) == (2.0, 1.0)


def test_a_clock_that_jumps_back_stops_nothing_and_one_that_jumps_ahead_brings_one_burst() -> None:
    bucket = Bucket(1.0, 5.0, 1000.0)
    assert bucket.level(0.0) == 0.0
    assert bucket.level(2.0) == 2.0
    assert bucket.level(1e12) == 5.0


def test_how_long_to_wait() -> None:
    bucket = Bucket(2.0, 5.0, 0.0)
    assert bucket.wait(4.0, 0.0) == 2.0
    # More than a burst never comes together: who wants more gets the burst.
    assert bucket.wait(50.0, 0.0) == 2.5
    assert Bucket(0.0, 5.0, 0.0).wait(1.0, 0.0) == float("inf")


@pytest.mark.parametrize(("rate", "burst"), [(-1.0, 1.0), (float("nan"), 1.0), (1.0, 0.0)])
def test_bad_budgets_are_refused(rate: float, burst: float) -> None:
    with pytest.raises(InputError):
        Bucket(rate, burst, 0.0)


@pytest.mark.parametrize(("workers", "least"), [(1, 0.98), (8, 0.9)])
def test_what_chance_leaves_unspent_in_one_bucket_is_asked_of_the_plan(workers: int, least: float) -> None:
    # Polls fall due by chance, as many as a plan asked for three seconds ago. With half a burst left in each bucket
    # eight of them spent 83 % and one 97 %.
    rng, rate, seconds = np.random.default_rng(1), 20.0, 200
    share, burst = rate / workers, max(rate / workers, 2.0)
    level, waiting, asked, polls = np.zeros(workers), np.zeros(workers), [rate] * 3, 0.0
    for _ in range(seconds):
        spare = spare_of([CrewMember("", share, one, burst, {}) for one in level.tolist()], 1.0) - waiting.sum()
        asked = [*asked[1:], max(3.0 * rate + spare - sum(asked[1:]), 0.0)]
        for came in rng.poisson(asked[0] / workers / 10.0, (10, workers)):
            level = np.minimum(level + share / 10.0, burst)
            paid = np.minimum(np.floor(level + 1e-9), waiting + came)
            level, waiting, polls = level - paid, waiting + came - paid, polls + paid.sum()
    assert polls >= least * rate * seconds
