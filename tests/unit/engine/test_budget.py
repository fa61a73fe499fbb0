"""The bucket: no stretch of time spends more than its share and one burst."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.engine.budget import Bucket
from unstale.errors import InputError

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


def test_credit_is_put_in_beside_what_comes_in_and_is_not_spent_before() -> None:
    bucket = Bucket(1.0, 5.0, 0.0)
    bucket.credit(2.0)
    assert (bucket.level(1.0), bucket.spent) == (3.0, 0.0)
    assert bucket.level(100.0) == 5.0
