"""Collections in simulation: members change at random, listings tell of it, and the formulas foretell what is kept."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.signals.exact import listing_interval, stale_worth, window
from unstale.core.signals.noisy import doubt_for, signal_doubt, value
from unstale.core.signals.partial import delayed_cycle

RATE, WEIGHT = np.array([0.2, 0.5, 1.0, 2.0, 8.0]), np.array([1.0, 1.0, 2.0, 1.0, 1.0])


def within(samples: np.ndarray, want: float) -> bool:
    error = float(samples.std(ddof=1) / math.sqrt(len(samples)))
    return abs(float(samples.mean()) - want) < 5 * error


def test_an_exact_listing_brings_what_it_promises() -> None:
    rng = np.random.default_rng(3)
    interval = listing_interval(0.2, RATE, WEIGHT, 0.2)
    polled = stale_worth(RATE, WEIGHT, 0.2) > 0
    first = rng.exponential(1 / RATE, (200_000, 5))
    brought = WEIGHT * np.minimum(first, interval) - 0.2 * (first < interval)
    assert within((brought * polled).sum(axis=1), float(window(interval, RATE, WEIGHT, 0.2).value.sum()))


def test_blind_polls_bring_what_they_promise() -> None:
    rng = np.random.default_rng(4)
    got = window(3.0, 1.0, 1.0, 0.3)
    n, s = int(got.blind), float(got.spacing)
    ends = np.append(np.full(n, s), 3.0 - n * s)
    first = rng.exponential(1.0, (400_000, n + 1))
    paid = 0.3 * n + 0.3 * (first[:, -1] < ends[-1])
    assert within(np.minimum(first, ends).sum(axis=1) - paid, float(got.value))


def _belief_area(rng: np.random.Generator, level: float, rate: float, recall: float, precision: float) -> float:
    """The area of one path of the belief above e^(−level): doubt grows with time and by each signal."""
    silent, signals = (1 - recall) * rate, recall * rate / precision
    each, doubt, area = float(signal_doubt(precision)), 0.0, 0.0
    while doubt < level:
        gap = rng.exponential(1 / signals)
        time = min(gap, (level - doubt) / silent)
        area += math.exp(-doubt) * -math.expm1(-silent * time) / silent - math.exp(-level) * time
        doubt += silent * gap + each
    return area


@pytest.mark.parametrize(
    ("rate", "recall", "precision", "level"), [(1.0, 0.8, 0.7, 1.0), (1.0, 0.8, 0.7, 2.5), (2.0, 0.5, 0.5, 1.5)]
)
def test_the_value_is_the_area_under_paths(rate: float, recall: float, precision: float, level: float) -> None:
    rng = np.random.default_rng(5)
    areas = np.array([_belief_area(rng, level, rate, recall, precision) for _ in range(20_000)])
    assert within(areas, float(value(level, rate, recall, precision)))


def _kept(rng: np.random.Generator, level: float, due: float) -> np.ndarray:
    """Batches of what a member brings per unit of time when polled at a doubt: real changes, noisy pushed signals."""
    rate, recall, precision = 1.0, 0.8, 0.7
    silent, false = (1 - recall) * rate, recall * rate / precision * (1 - precision)
    each, batches = float(signal_doubt(precision)), []
    for _ in range(100):
        brought = time = 0.0
        for _ in range(400):
            doubt = age = 0.0
            first = math.inf
            while doubt < level:
                gap = rng.exponential(1 / (rate + false))
                at = (level - doubt) / silent
                if gap > at:
                    age += at
                    break
                age += gap
                doubt += silent * gap
                real = rng.random() < rate / (rate + false)
                if real:
                    first = min(first, age)
                if not real or rng.random() < recall:
                    doubt += each
            brought += min(first, age) - due
            time += age
        batches.append(brought / time)
    return np.array(batches)


def test_polling_at_the_right_doubt_brings_what_is_foretold_and_more_than_elsewhere() -> None:
    best = float(doubt_for(0.3, 1.0, 0.8, 0.7))
    kept = {scale: _kept(np.random.default_rng(6), scale * best, 0.3) for scale in (0.5, 1.0, 2.0)}
    assert within(kept[1.0], math.exp(-best))
    assert kept[0.5].mean() < kept[1.0].mean() > kept[2.0].mean()


@pytest.mark.parametrize("delay", [0.0, 0.2, 0.7])
def test_cycles_under_delay(delay: float) -> None:
    rng = np.random.default_rng(7)
    interval, cycles = 0.5, []
    # the copy is taken at a listing; the next change shows at the first listing `delay` after it
    for _ in range(40_000):
        change = rng.exponential(1.0)
        cycles.append(math.ceil((change + delay) / interval) * interval)
    assert within(np.array(cycles), delayed_cycle(interval, delay, 1.0))
