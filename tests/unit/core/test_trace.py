"""A trace keeps every change once, in order, with its source."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.core.trace import Trace
from unstale.errors import InputError

ROWS = st.lists(st.tuples(st.sampled_from("abcde"), st.integers(-5, 20)), max_size=40)


def sets(trace: Trace) -> dict[str, list[float]]:
    return {name: trace.changes(i).tolist() for i, name in enumerate(trace.names)}


@given(ROWS)
def test_rows_in_any_order_become_sorted_runs_without_repetition(rows: list[tuple[str, int]]) -> None:
    want = defaultdict(set)
    for name, t in rows:
        want[name].add(float(t))
    trace = Trace.of([name for name, _ in rows], [t for _, t in rows])
    assert sets(trace) == {name: sorted(want[name]) for name in sorted(want)}
    assert trace.counts().sum() == len(trace.times)
    assert len(trace) == len(want)


@given(ROWS, st.integers(-6, 20), st.integers(0, 10))
def test_between_keeps_the_start_and_not_the_end(rows: list[tuple[str, int]], start: int, length: int) -> None:
    trace = Trace.of([name for name, _ in rows], [t for _, t in rows])
    end = start + length
    kept = {name: [t for t in times if start <= t < end] for name, times in sets(trace).items()}
    assert sets(trace.between(start, end)) == kept
    # cutting at a point loses nothing and counts nothing twice
    parts = [trace.between(-np.inf, start).counts(), trace.between(start, np.inf).counts()]
    assert (parts[0] + parts[1]).tolist() == trace.counts().tolist()


@given(ROWS, st.integers(0, 4))
def test_having_keeps_the_busy_ones(rows: list[tuple[str, int]], least: int) -> None:
    trace = Trace.of([name for name, _ in rows], [t for _, t in rows])
    assert sets(trace.having(least)) == {name: times for name, times in sets(trace).items() if len(times) >= least}


def test_take_follows_the_order_asked_for() -> None:
    trace = Trace.of(["a", "b", "b", "c"], [1, 2, 3, 4])
    taken = trace.take([2, 1])
    assert taken.names == ("c", "b")
    assert [taken.changes(0).tolist(), taken.changes(1).tolist()] == [[4.0], [2.0, 3.0]]
    assert taken.starts.tolist() == [0, 1, 3]


def test_coded_rows_may_leave_a_name_without_changes() -> None:
    trace = Trace.coded(["a", "b", "c"], np.array([2, 0]), [7.0, 5.0])
    assert trace.counts().tolist() == [1, 0, 1]


@pytest.mark.parametrize("t", [np.nan, np.inf])
def test_times_are_numbers(t: float) -> None:
    with pytest.raises(InputError, match="times not finite must be numbers"):
        Trace.of(["a", "b"], [1.0, t])


def test_every_row_has_a_time() -> None:
    with pytest.raises(InputError, match="times with 1 rows must be 2"):
        Trace.of(["a", "b"], [1.0])
