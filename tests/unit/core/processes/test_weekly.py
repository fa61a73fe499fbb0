"""The weekly profile: its clock, the inverse, and counts of events by slot."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.processes import WeeklyPoisson
from unstale.core.processes.weekly import WEEK


def office() -> WeeklyPoisson:
    hours = np.array([9.0 if day < 5 and 8 <= hour < 18 else 0.5 for day in range(7) for hour in range(24)])
    return WeeklyPoisson(1 / 3600, hours)


def test_rate_is_the_average_over_the_week():
    p = office()
    assert p.week == WEEK == 7 * 24 * 3600
    assert p.cumulative(WEEK) == pytest.approx(168.0, rel=1e-14)
    assert p.cumulative(1.7e9 + WEEK) - p.cumulative(1.7e9) == pytest.approx(168.0, rel=1e-6)
    assert p.intensity(8 * 3600) / p.intensity(0) == pytest.approx(18.0, rel=1e-14)
    assert p.intensity(-3600.0) == p.intensity(WEEK - 3600.0)


def test_cumulative_is_the_integral_of_intensity_and_inverse_undoes_it():
    p = office()
    t = np.arange(0.0, 3 * WEEK, 900.0)
    steps = np.append(0.0, np.cumsum(np.asarray(p.intensity(t[:-1])) * 900.0))
    np.testing.assert_allclose(p.cumulative(t), steps, rtol=1e-11, atol=1e-9)
    moments = np.random.default_rng(2).uniform(-2 * WEEK, 5 * WEEK, 500)
    np.testing.assert_allclose(p.inverse(p.cumulative(moments)), moments, rtol=0, atol=1e-6)


def test_silent_slots_have_no_events():
    p = WeeklyPoisson(2.0, [0.0, 3.0, 0.0, 1.0, 0.0], week=10.0)
    assert p.cumulative([2.0, 4.0, 6.0, 8.0, 10.0]) == pytest.approx([0.0, 15.0, 15.0, 20.0, 20.0])
    assert p.inverse([0.0, 15.0, 20.0, 35.0]) == pytest.approx([2.0, 6.0, 12.0, 16.0])
    times = p.sample_times(np.random.default_rng(5), 0.0, 4000.0)
    assert set(np.unique((times % 10.0) // 2.0)) == {1.0, 3.0}


def test_counts_by_slot_are_poisson_with_the_profile_as_mean():
    p, weeks = WeeklyPoisson(3.0, [1.0, 0.0, 2.0, 5.0], week=4.0), 5000
    times = p.sample_times(np.random.default_rng(7), 0.0, 4.0 * weeks)
    assert np.all(np.diff(times) >= 0)
    counts = np.histogram(times, bins=np.arange(4 * weeks + 1.0))[0].reshape(weeks, 4)
    want = 3.0 * np.array([0.5, 0.0, 1.0, 2.5])
    assert np.all(np.abs(counts.mean(axis=0) - want) <= 5 * np.sqrt(want / weeks))
    # Poisson: the variance equals the mean; its estimate has variance (mean + 2·mean²)/weeks.
    assert np.all(np.abs(counts.var(axis=0) - want) <= 5 * np.sqrt((want + 2 * want**2) / weeks) + 1e-12)


def test_times_stay_within_the_window_and_seeds_reproduce():
    p = office()
    first, again = (p.sample_times(np.random.default_rng(1), 1.7e9, 1.7e9 + 90_000.0) for _ in range(2))
    np.testing.assert_array_equal(first, again)
    assert first[0] >= 1.7e9
    assert first[-1] <= 1.7e9 + 90_000.0
    assert p.sample_times(np.random.default_rng(1), 5.0, 5.0).shape == (0,)
