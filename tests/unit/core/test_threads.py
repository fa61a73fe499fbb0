"""Work shared by threads, and the extremes of long columns that it finds."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from unstale.core import checks
from unstale.core.threads import by_threads


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_answers_come_in_order(threads: int, count: int) -> None:
    assert by_threads(lambda i: i * i, count, threads) == [i * i for i in range(count)]


def test_several_work_at_a_time() -> None:
    together = threading.Barrier(3, timeout=60)
    by_threads(lambda _: together.wait(), 3, 3)


def test_an_error_of_any_thread_is_the_callers() -> None:
    together = threading.Barrier(2, timeout=60)

    def work(i: int) -> None:
        together.wait()
        if threading.current_thread() is not threading.main_thread():
            raise ValueError(i)

    with pytest.raises(ValueError, match=r"0|1"):
        by_threads(work, 2, 2)


@pytest.mark.parametrize("size", [1, 9, 10, 11, 64, 1_000])
def test_extremes_of_a_long_column_are_numpys(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    for name, value in (("LONG", 10), ("_SHARE", 60), ("_BLOCK", 7)):
        monkeypatch.setattr(checks, name, value)
    x = np.random.default_rng(size).standard_normal(size)
    assert checks.extremes(x) == (x.min(), x.max())
    assert checks.extremes(x[::-2]) == (x[::-2].min(), x[::-2].max())
    for place in (0, size // 2, size - 1):
        spoiled = x.copy()
        spoiled[place] = np.nan
        assert np.isnan(checks.extremes(spoiled)).all()
        spoiled[place] = -np.inf
        assert checks.extremes(spoiled)[0] == -np.inf
