"""True freshness against a grid, against formulas, and in cases one can do by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.core import staleness
from unstale.core.processes import Poisson
from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.origin.changes import Changing
from unstale.origin.measure import measured_freshness, steady_freshness

EPOCH = 1.7e9


def trace(columns: list[list[float]]) -> Trace:
    which = np.repeat(np.arange(len(columns)), [len(times) for times in columns])
    return Trace.coded([f"s{i}" for i in range(len(columns))], which, np.concatenate([np.empty(0), *columns]))


def by_grid(changes: np.ndarray, polls: np.ndarray, start: float, end: float, steps: int) -> tuple[float, float]:
    """Freshness and mean age in the middle of many small steps, each looked at on its own."""
    fresh, aged = 0, 0.0
    width = (end - start) / steps
    for k in range(steps):
        t = start + (k + 0.5) * width
        before = polls[polls <= t]
        missed = start if not len(before) else min(changes[changes > before[-1]], default=np.inf)
        fresh += missed > t
        aged += max(t - missed, 0.0)
    return fresh / steps, aged / steps


#: on whole numbers, so that the middles of the grid below never meet an event
moments = st.lists(st.integers(-5, 25).map(float), max_size=12, unique=True)


@given(st.lists(st.tuples(moments, moments), min_size=1, max_size=4))
def test_it_is_what_looking_again_and_again_finds(columns: list[tuple[list[float], list[float]]]) -> None:
    changes, polls = trace([c for c, _ in columns]), trace([p for _, p in columns])
    got = measured_freshness(changes, polls, 0.0, 20.0)
    for i in range(len(columns)):
        fresh, aged = by_grid(changes.changes(i), polls.changes(i), 0.0, 20.0, 40)
        assert got.freshness[i] == pytest.approx(fresh, abs=1e-12)
        # the age is a straight line within each step, so its middle is its mean
        assert got.age[i] == pytest.approx(aged, abs=1e-12)


@pytest.mark.parametrize("ratio", [0.1, 1.0, 5.0])
def test_poisson_changes_and_even_polls_give_the_formulas(ratio: float) -> None:
    sources, interval, rounds = 1500, 50.0, 20
    drawn = Changing([Poisson(1.0)], np.full(sources, ratio / interval), seed=11, start=EPOCH)
    names = [str(i) for i in range(sources)]
    start, end = EPOCH + interval, EPOCH + (rounds + 1) * interval
    even = EPOCH + interval * (np.random.default_rng(2).random((sources, 1)) + np.arange(rounds + 1))
    polls = Trace(tuple(names), np.arange(sources + 1) * (rounds + 1), even.ravel())
    got = measured_freshness(drawn.trace(names, end), polls, start, end)
    for measured, expected in (
        (got.freshness, staleness.freshness(ratio / interval, 1 / interval)),
        (got.age, staleness.age(ratio / interval, 1 / interval)),
    ):
        assert abs(measured.mean() - expected) < 5 * measured.std() / np.sqrt(sources)
    assert got.fleet_freshness == pytest.approx(got.freshness.mean())
    assert staleness.freshness(ratio / interval, 1 / interval) == pytest.approx(-np.expm1(-ratio) / ratio)


def test_a_change_at_the_time_of_a_poll_is_in_the_copy() -> None:
    got = measured_freshness(trace([[5.0]]), trace([[5.0]]), 5.0, 9.0)
    assert got.freshness.tolist() == [1.0]
    assert got.age.tolist() == [0.0]


def test_without_a_copy_nothing_is_fresh_and_the_age_is_that_of_the_wish() -> None:
    got = measured_freshness(trace([[], [3.0]]), Trace.of([], []), 2.0, 6.0)
    assert got.freshness.tolist() == [0.0, 0.0]
    assert got.age.tolist() == [2.0, 2.0]


def test_what_was_polled_before_counts_for_what_it_brought() -> None:
    # polled at 1, changed at 4: fresh until 4 of 2..6; ages run from 0 to 2 in the other half
    got = measured_freshness(trace([[0.5, 4.0]]), trace([[1.0]]), 2.0, 6.0)
    assert got.freshness.tolist() == [0.5]
    assert got.age.tolist() == [0.5]
    # changed at 1.5, before it counts: stale throughout, of ages from 0.5 to 4.5
    got = measured_freshness(trace([[0.5, 1.5]]), trace([[1.0]]), 2.0, 6.0)
    assert (got.freshness.tolist(), got.age.tolist()) == ([0.0], [2.5])


def test_weights_and_names() -> None:
    changes = Trace.of(["a", "b", "c"], [9.0, 9.0, 9.0])
    polls = Trace.of(["c", "a"], [5.0, 0.0])
    got = measured_freshness(changes, polls, 0.0, 10.0, weight=[1.0, 0.0, 3.0])
    assert got.freshness.round(12).tolist() == [0.9, 0.0, 0.4]
    assert got.fleet_freshness == pytest.approx((0.9 + 3 * 0.4) / 4)
    assert got.fleet_age == pytest.approx((0.05 + 3 * (1.25 + 0.05)) / 4)


@pytest.mark.parametrize(
    ("polls", "start", "end", "weight", "words"),
    [
        (Trace.of(["x"], [1.0]), 0.0, 1.0, None, "polls of 'x' is not a source"),
        (Trace.of(["a"], [1.0]), 1.0, 1.0, None, "start 1.0 must be before the end"),
        (Trace.of(["a"], [1.0]), float("nan"), 1.0, None, "start nan"),
        (Trace.of(["a"], [1.0]), 0.0, 1.0, [1.0, 2.0], "weight of shape"),
        (Trace.of(["a"], [1.0]), 0.0, 1.0, [0.0], "one above 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    polls: Trace, start: float, end: float, weight: list[float] | None, words: str
) -> None:
    with pytest.raises(InputError, match=words):
        measured_freshness(Trace.of(["a"], [1.0]), polls, start, end, weight)


def test_steady_polls_are_the_mean_over_all_ways_to_begin() -> None:
    rng = np.random.default_rng(3)
    changes = trace([np.sort(rng.uniform(0.0, 100.0, n)).tolist() for n in (0, 3, 40, 200)])
    interval, ways = np.array([5.0, 7.0, 2.5, 11.0]), 400
    found = np.zeros(4)
    for k in range(ways):
        # From before the start on, so that there is a copy when it begins.
        begin = -interval * (k + 0.5) / ways
        polls = trace([np.arange(first, 100.0, every).tolist() for first, every in zip(begin, interval, strict=True)])
        found += measured_freshness(changes, polls, 20.0, 90.0).freshness / ways
    assert steady_freshness(changes, interval, 20.0, 90.0) == pytest.approx(found, abs=2e-4)


def test_steady_polls_keep_what_the_formula_says() -> None:
    """[000 Table 2]: (1 − e^(−r))/r, r changes in an interval."""
    rate, start = 0.5, EPOCH
    changing = Changing([Poisson(1.0)], np.full(400, rate), seed=4, start=start)
    changes = changing.trace([f"s{i}" for i in range(400)], start + 300.0)
    got = steady_freshness(changes, np.full(400, 3.0), start + 50.0, start + 300.0)
    error = got.std(ddof=1) / 20.0
    assert got.mean() == pytest.approx(staleness.freshness(rate, 1 / 3.0), abs=4.0 * error)
