"""When the live scheduler makes sources due: within five percent of their interval, doubled for failures, as asked."""

from __future__ import annotations

import numpy as np

from unstale.core.learning.learner import Learner
from unstale.core.phase import SPREAD
from unstale.keeper.scheduler import Scheduler

COUNT, NOW, HOUR = 2000, 1_700_000_000.0, 3600.0
ROWS = np.arange(COUNT)


def scheduler() -> Scheduler:
    """Many equal sources, all of which answered an hour ago."""
    learner, before = Learner(COUNT, HOUR), np.full(COUNT, NOW - HOUR)
    learner.columns.longest[:] = 1e12
    return Scheduler.of(
        learner,
        ROWS + 1,
        due=np.full(COUNT, NOW),
        answered=before,
        failures=np.zeros(COUNT, np.int64),
        paused=np.zeros(COUNT, np.bool_),
    )


def polled(fleet: Scheduler, *, answered: bool = True, not_before: float | None = None) -> np.ndarray:
    """Waits until the next polls after all of them were polled now, as shares of the intervals at today's price."""
    fleet.hold(ROWS)
    asked = None if not_before is None else np.full(COUNT, not_before)
    due = fleet.decide(ROWS, np.full(COUNT, answered), np.full(COUNT, NOW), np.zeros(COUNT, np.bool_), None, asked)
    return (due - NOW) / fleet.learner.waits_of(ROWS, fleet.price)


def test_the_jitter_is_five_percent_either_way_and_all_of_it_is_used() -> None:
    shares = polled(scheduler())
    assert SPREAD == 0.05
    assert shares.min() >= 0.95 - 1e-6
    assert shares.max() <= 1.05 + 1e-6
    # Uniform: its extremes are near the bounds, its mean is 1 within five standard errors.
    assert shares.min() < 0.951
    assert shares.max() > 1.049
    assert abs(shares.mean() - 1.0) < 5 * 0.05 / np.sqrt(3 * COUNT)


def test_what_is_planned_anew_keeps_its_jitter() -> None:
    fleet = scheduler()
    shares = polled(fleet)
    # The price has not moved, so no due time moves: what `moves` computes is what `decide` told the store.
    assert len(fleet.moves(NOW, NOW + 1e9)[0]) == 0
    assert np.ptp(shares) > 0.09


def test_each_failure_after_two_in_a_row_doubles_the_interval() -> None:
    fleet = scheduler()
    for _ in range(2):
        shares = polled(fleet, answered=False)
        assert 0.95 * (1 - 1e-6) <= shares.min() < shares.max() <= 1.05 * (1 + 1e-6)
    for failures in range(1, 8):
        shares = polled(fleet, answered=False)
        factor = 2.0 ** min(failures, 6)
        assert 0.5 * factor * (1 - 1e-6) <= shares.min() < 0.51 * factor
        assert 1.49 * factor < shares.max() <= 1.5 * factor * (1 + 1e-6)


def test_what_a_source_asked_for_is_kept_to_the_second() -> None:
    fleet = scheduler()
    asked = NOW + 1e12
    polled(fleet, not_before=asked)
    assert (fleet.due_at == asked).all()
