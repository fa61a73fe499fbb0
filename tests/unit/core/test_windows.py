"""Windows: the open clock, what uneven gaps cost, and the calendar with its lost and repeated hours."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from unstale.calendar import parse_hours, spans
from unstale.core.poisson_orders import order_age, order_freshness
from unstale.core.windows import (
    Windows,
    confined_gaps,
    freshness_at,
    gap_age,
    gap_freshness,
    gaps_of,
    pattern_times,
    read_freshness,
    window_freshness,
)
from unstale.errors import InputError

HOUR = 3600.0


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 50)), min_size=1, max_size=20),
    st.lists(st.integers(0, 1100), min_size=1, max_size=20),
)
@settings(max_examples=100, deadline=None)
def test_the_open_clock_counts_open_seconds(pairs: list[tuple[int, int]], at: list[int]) -> None:
    windows = Windows([a for a, _ in pairs], [a + b for a, b in pairs])
    open_seconds = {s for a, b in pairs for s in range(a, a + b)}
    assert windows.total == len(open_seconds)
    assert windows.is_open(at).tolist() == [t in open_seconds for t in at]
    assert np.asarray(windows.open_time(at)).tolist() == [sum(s < t for s in open_seconds) for t in at]
    whole = np.arange(len(open_seconds))
    assert np.asarray(windows.wall_time(whole)).tolist() == sorted(open_seconds)
    assert np.all(windows.stop[:-1] < windows.start[1:])


def test_confined_polls_are_as_many_inside_and_in_order() -> None:
    windows = Windows([10.0, 50.0, 90.0], [20.0, 55.0, 100.0])
    times = np.sort(np.random.default_rng(1).uniform(0, 100, 10_000))
    moved = windows.confine(times, 0.0, 100.0)
    assert len(moved) == len(times)
    assert windows.is_open(moved).all()
    assert np.all(np.diff(moved) >= 0)
    # Even before, even in open time: 10:5:10.
    counts = [np.count_nonzero((moved >= a) & (moved < b)) for a, b in zip(windows.start, windows.stop, strict=True)]
    assert np.array(counts) / 10_000 == pytest.approx([0.4, 0.2, 0.4], abs=5 * np.sqrt(0.24 / 10_000))
    assert windows.is_open(windows.confine([100.0], 0.0, 100.0)).all()


@pytest.mark.parametrize("rate", [1e-300, 1e-6, 0.3, 5.0, 1e6, 1e300])
def test_one_gap_gives_the_freshness_and_age_of_fixed_order(rate: float) -> None:
    assert gap_freshness(rate, [2.5]) == pytest.approx(order_freshness(rate, 0.4), rel=1e-14)
    assert gap_age(rate, [2.5]) == pytest.approx(order_age(rate, 0.4), rel=1e-13)


def test_uneven_gaps_by_quadrature() -> None:
    rate, gaps = 0.7, [0.2, 3.0, 1.1]
    fresh = sum(quad(lambda x: np.exp(-rate * x), 0, g)[0] for g in gaps) / sum(gaps)
    age = sum(quad(lambda x: x + np.expm1(-rate * x) / rate, 0, g)[0] for g in gaps) / sum(gaps)
    assert gap_freshness(rate, gaps) == pytest.approx(fresh, rel=1e-12)
    assert gap_age(rate, gaps) == pytest.approx(age, rel=1e-12)
    assert gap_freshness([rate, 0.0], gaps) == pytest.approx([fresh, 1.0], rel=1e-12)


def test_uneven_gaps_by_simulation() -> None:
    """2000 sources polled at 1, 2 and 10 of a day of 24 hours, changing every 8 hours on average."""
    rng = np.random.default_rng(11)
    polls, days = np.array([1.0, 2.0, 10.0]), 50
    at = (24.0 * np.arange(days)[:, None] + polls).ravel()
    fresh = []
    for _ in range(2000):
        first_change = at[:-1] + rng.exponential(8.0, len(at) - 1)
        fresh.append(np.sum(np.minimum(first_change, at[1:]) - at[:-1]) / (at[-1] - at[0]))
    want = gap_freshness(1 / 8, np.diff(at))
    assert np.mean(fresh) == pytest.approx(want, abs=5 * np.std(fresh) / np.sqrt(2000))


def test_polls_at_one_moment_count_once_and_the_hour_does_not_matter() -> None:
    once = window_freshness(2.0, 1, "even")
    assert window_freshness(2.0, 10, "together") == pytest.approx(once, rel=1e-15)
    assert gap_freshness(2.0, gaps_of([0.7], 1.0)) == pytest.approx(once, rel=1e-15)
    three = [window_freshness(2.0, 10, p) for p in ("together", "mostly-together", "even")]
    assert three == sorted(three)
    assert three[2] == pytest.approx(order_freshness(2.0, 10.0), rel=1e-14)


def test_patterns() -> None:
    assert pattern_times("together", 3).tolist() == [0, 0, 0]
    assert pattern_times("mostly-together", 2, 24.0).tolist() == [0, 12]
    assert pattern_times("mostly-together", 1).tolist() == [0]
    assert pattern_times("even", 4, 24.0).tolist() == [0, 6, 12, 18]
    for pattern in ("together", "mostly-together", "even"):
        assert gaps_of(pattern_times(pattern, 7, 24.0), 24.0).sum() == pytest.approx(24)


def test_a_fleet_polled_at_midnight_is_freshest_then_and_on_average_no_worse() -> None:
    """[000 Figure 5] for 10 sources polled once a day each, changing every 12 hours on average."""
    hours = np.linspace(0, 24, 2401)[:-1]
    fleet = {
        pattern: np.mean([freshness_at(hours, [t], 24.0, 1 / 12) for t in pattern_times(pattern, 10, 24.0)], axis=0)
        for pattern in ("together", "even")
    }
    assert fleet["together"][0] == 1
    assert fleet["together"][-1] == pytest.approx(np.exp(-2), rel=0.01)
    assert np.ptp(fleet["even"]) < 0.1
    assert fleet["together"].mean() == pytest.approx(fleet["even"].mean(), rel=1e-3)


def test_read_freshness_by_quadrature_and_by_even_reads() -> None:
    polls, rate = [1.0, 2.0, 10.0], 0.2
    reads = np.random.default_rng(2).random(24)
    parts = [quad(lambda t: freshness_at(t, polls, 24.0, rate), h, h + 1)[0] for h in range(24)]
    assert read_freshness(polls, 24.0, rate, reads) == pytest.approx(reads @ parts / reads.sum(), rel=1e-9)
    assert read_freshness(polls, 24.0, rate, np.ones(24)) == pytest.approx(
        gap_freshness(rate, gaps_of(polls, 24.0)), rel=1e-13
    )


def test_windows_cost_nothing_for_one_poll_and_up_to_the_closed_time_for_many() -> None:
    nights = Windows([0.0], [8.0])
    rate = 0.5
    assert gap_freshness(rate, confined_gaps(nights, 1, 0.0, 24.0)) == pytest.approx(order_freshness(rate, 1 / 24))
    few = gap_freshness(rate, confined_gaps(nights, 4, 0.0, 24.0))
    assert few < order_freshness(rate, 4 / 24)
    many = gap_freshness(rate, confined_gaps(nights, 100_000, 0.0, 24.0))
    assert many == pytest.approx((8 - np.expm1(-rate * 16) / rate) / 24, rel=1e-4)


def wall_clock_seconds(rule: str, zone: str, start: int, stop: int, step: int) -> list[bool]:
    """Whether the wall clock reads an allowed time, asked every `step` seconds of the standard library."""
    (hours,) = parse_hours(rule)
    out = []
    for t in range(start, stop, step):
        local = datetime.fromtimestamp(t, ZoneInfo(zone))
        into = local.hour * 3600 + local.minute * 60 + local.second
        today = (into - hours.begin) % 86_400 < hours.length and into >= hours.begin
        evening = into < hours.begin + hours.length - 86_400
        out.append((today and local.weekday() in hours.days) or (evening and (local.weekday() - 1) % 7 in hours.days))
    return out


@pytest.mark.parametrize(
    ("rule", "zone", "day"),
    [
        ("22:00-06:00 Mon-Fri Europe/Berlin", "Europe/Berlin", datetime(2024, 3, 28, tzinfo=UTC)),
        ("01:30-02:30 Europe/Berlin", "Europe/Berlin", datetime(2024, 3, 29, tzinfo=UTC)),
        ("01:30-02:30 Europe/Berlin", "Europe/Berlin", datetime(2024, 10, 25, tzinfo=UTC)),
        ("02:15-02:45 Sun Europe/Berlin", "Europe/Berlin", datetime(2024, 3, 29, tzinfo=UTC)),
        (
            "23:00-01:45 Sat,Tue-Wed Australia/Lord_Howe",
            "Australia/Lord_Howe",
            datetime(2024, 4, 4, tzinfo=UTC),
        ),
        ("00:00-24:00 Fri-Mon America/St_Johns", "America/St_Johns", datetime(2024, 11, 1, tzinfo=UTC)),
        ("09:00-17:00", "UTC", datetime(2024, 1, 1, tzinfo=UTC)),
    ],
)
def test_spans_are_the_moments_whose_wall_clock_is_allowed(rule: str, zone: str, day: datetime) -> None:
    start = int(day.timestamp())
    stop = start + 6 * 86_400
    windows = spans(parse_hours(rule), start, stop)
    asked = np.arange(start, stop, 450)
    assert windows.is_open(asked).tolist() == wall_clock_seconds(rule, zone, start, stop, 450)
    assert windows.total % 900 == 0


def test_a_year_of_nights_loses_and_repeats_one_hour() -> None:
    start = datetime(2024, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    stop = datetime(2025, 1, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")).timestamp()
    nights = np.rint((w := spans(parse_hours("22:00-06:00 Europe/Berlin"), start, stop)).stop - w.start) / HOUR
    assert len(nights) == 366
    assert sorted(set(nights.tolist())) == [7, 8, 9]
    assert nights.sum() == 366 * 8


def test_rules_join() -> None:
    rules = parse_hours("22:00-06:00 Mon-Fri; 00:00-24:00 Sat,Sun")
    start = datetime(2024, 1, 1, tzinfo=UTC).timestamp()
    week = spans(rules, start, start + 7 * 86_400)
    # Four nights, then Friday 22:00 to the end of Sunday.
    assert week.total == (4 * 8 + 2 + 48) * HOUR
    assert len(week.start) == 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "window '' must begin with hours"),
        ("10-12", "must begin with hours"),
        ("10:00-25:00", "must begin before 24:00"),
        ("10:00-11:75", "must begin before 24:00"),
        ("10:00-12:00 Mon-Foo", "has days 'mon-foo' that are not"),
        ("10:00-12:00 Mars/Base", "names the zone 'Mars/Base', which this machine does not know"),
        ("10:00-12:00 Mon UTC extra", "at most days and a zone"),
    ],
)
def test_unreadable_windows_say_why(text: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_hours(text)
    assert words in str(caught.value)
    assert "22:00-06:00 Mon-Fri Europe/Berlin" in str(caught.value)


def test_errors() -> None:
    with pytest.raises(InputError, match=r"stop\[1\] 3.0 must not be before start 4.0"):
        Windows([0.0, 4.0], [1.0, 3.0])
    with pytest.raises(InputError, match=r"open_time 1\.0 must be below 1"):
        Windows([0.0], [1.0]).wall_time(1.0)
    with pytest.raises(InputError, match="windows none must leave some time"):
        Windows([], []).confine([1.0], 0.0, 2.0)
    with pytest.raises(InputError, match="pattern 'never' is unknown"):
        pattern_times("never", 3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="gaps"):
        gap_freshness(1.0, [0.0])
    with pytest.raises(InputError, match="reads all 0"):
        read_freshness([0.0], 1.0, 1.0, [0.0, 0.0])
