"""Times of polls: counts, gap laws, evenness from the start, and the freshness they give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import kstest

from unstale.core.orders import even_times, fixed_order, phases, poll_times, purely_random, random_order
from unstale.errors import InputError

RNG = np.random.default_rng


def gap_freshness(times: np.ndarray, source: np.ndarray, rate: float, n: int) -> np.ndarray:
    """Mean of (1 − e^(−rate·gap)) over mean of rate·gap, per source."""
    out = []
    for k in range(n):
        gap = np.diff(times[source == k])
        out.append(np.mean(-np.expm1(-rate * gap)) / (rate * np.mean(gap)))
    return np.array(out)


def test_fixed_order_repeats_one_cycle() -> None:
    times, source = fixed_order(3, 6.0, start=100.0, cycles=2)
    assert times.tolist() == [100, 102, 104, 106, 108, 110]
    assert source.tolist() == [0, 1, 2, 0, 1, 2]


def test_random_order_polls_each_source_once_per_cycle_with_lattice_triangular_gaps() -> None:
    n, cycles = 5, 40_000
    times, source = random_order(RNG(1), n, float(n), cycles=cycles)
    assert np.array_equal(np.sort(source.reshape(cycles, n), axis=1), np.tile(np.arange(n), (cycles, 1)))
    gap = np.rint(np.diff(times[source == 2])).astype(int)
    share = np.bincount(gap, minlength=2 * n) / len(gap)
    want = (n - np.abs(np.arange(2 * n) - n)) / n**2
    assert np.abs(share - want).max() < 5 * np.sqrt(0.2 * 0.8 / len(gap))


def test_purely_random_gaps_are_geometric() -> None:
    n, cycles = 5, 40_000
    times, source = purely_random(RNG(2), n, float(n), cycles=cycles)
    gap = np.rint(np.diff(times[source == 0])).astype(int)
    want = 0.2 * 0.8 ** np.arange(9)
    got = np.bincount(gap, minlength=10)[1:10] / len(gap)
    assert np.abs(got - want).max() < 5 * np.sqrt(0.2 * 0.8 / len(gap))


@pytest.mark.parametrize(
    ("order", "want"),
    [("fixed", 1 - np.exp(-1)), ("random", 1 - (1 - np.exp(-1)) ** 2), ("purely-random", 0.5)],
)
def test_poll_times_reaches_the_freshness_of_its_order(order: str, want: float) -> None:
    """[000 Table 2] at r = 1, from the gaps of sources with different intervals and rates to match."""
    interval = np.array([1.0, 2.5, 7.0])
    times, source = poll_times(interval, 0.0, 400_000.0, order, rng=RNG(3))
    for k in range(3):
        got = gap_freshness(times[source == k], np.zeros(np.count_nonzero(source == k)), 1 / interval[k], 1)[0]
        assert got == pytest.approx(want, abs=5 / np.sqrt(400_000 / interval[k]))


def test_random_order_gaps_are_triangular() -> None:
    times, _ = poll_times([2.0], 0.0, 40_000.0, "random", rng=RNG(4))
    gap = np.diff(times)[::2] / 2.0  # every other one: neighbours depend on each other
    assert kstest(gap, lambda x: np.where(x < 1, x**2 / 2, 1 - (2 - x) ** 2 / 2)).pvalue > 1e-4


def test_even_times_do_not_drift() -> None:
    times = even_times(0.1, start=0.0, stop=1e5, phase=0.5)
    assert len(times) == 1_000_000
    assert times[-1] == pytest.approx(1e5 - 0.05, rel=1e-15)
    assert even_times(np.inf, 0.0, 10.0).size == 0
    assert even_times(10.0, 5.0, 5.0).size == 0
    assert even_times(10.0, 0.0, 10.0).tolist() == [0.0]


def test_poll_times_is_sorted_inside_and_complete() -> None:
    interval = np.array([3.0, np.inf, 50.0, 1e6, 0.7])
    for order in ("fixed", "random", "purely-random"):
        times, source = poll_times(interval, 1e9, 1e9 + 1000, order, rng=RNG(5))
        assert np.all(np.diff(times) >= 0)
        assert times[0] >= 1e9
        assert times[-1] < 1e9 + 1000
        counts = np.bincount(source, minlength=5)
        expected = 1000 / interval
        slack = 1 if order != "purely-random" else 5 * np.sqrt(expected) + 1
        assert np.all(np.abs(counts - expected) <= slack)
        assert counts[1] == 0


def test_polls_are_even_from_the_first_second() -> None:
    interval = RNG(6).lognormal(8, 1.5, 20_000)
    times, _ = poll_times(interval, 0.0, 2_000.0)
    counts = np.histogram(times, bins=200, range=(0, 2_000))[0]
    expected = 10.0 * np.sum(1 / interval)
    # Random phases scatter counts by √expected in each bin, and sums of them by half √(polls so far).
    assert np.std(counts) < 0.75 * np.sqrt(expected)
    ahead = np.cumsum(counts) - expected * np.arange(1, 201)
    assert np.abs(ahead).max() < 0.15 * np.sqrt(len(times))


def test_phases_of_equal_intervals_leave_no_hole() -> None:
    for n in (1, 2, 10, 1000):
        phase = np.sort(phases(np.full(n, 60.0)))
        assert np.all((phase >= 0) & (phase < 1))
        assert np.diff(np.append(phase, phase[0] + 1)).max() <= 1.9 / n + (n == 1)


def test_drawn_gaps_have_the_law_they_were_drawn_from() -> None:
    def gap(rng: np.random.Generator, interval: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
        return interval * rng.uniform(0.5, 1.5, size)

    interval = np.array([1.0, 4.0, 1000.0, 90.0])
    times, source = poll_times(interval, 0.0, 30_000.0, rng=RNG(7), gap=gap)
    assert np.all(np.diff(times) >= 0)
    assert times[-1] < 30_000
    for k in (0, 1, 3):
        own = times[source == k]
        assert kstest(np.diff(own) / interval[k], "uniform", args=(0.5, 1.0)).pvalue > 1e-4
        assert own[-1] > 30_000 - 1.5 * interval[k]


def test_gaps_shorter_than_promised_are_drawn_until_the_end() -> None:
    times, _ = poll_times(
        [10.0], 0.0, 1000.0, rng=RNG(8), phase=[0.0], gap=lambda rng, interval, size: np.full(size, 1.0)
    )
    assert times.tolist() == list(range(1000))


def test_errors() -> None:
    with pytest.raises(InputError, match="rng None must be a generator"):
        poll_times([1.0], 0.0, 1.0, "random")
    with pytest.raises(InputError, match="order 'none' is unknown"):
        poll_times([1.0], 0.0, 1.0, "none")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"stop 1\.0 must be a finite number at least 2"):
        poll_times([1.0], 2.0, 1.0)
    with pytest.raises(InputError, match=r"interval\[1\] 0.0"):
        poll_times([1.0, 0.0], 0.0, 1.0)
    with pytest.raises(InputError, match="cycle"):
        fixed_order(3, 0.0)
