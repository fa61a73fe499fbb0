"""Golden values of collections and signals: nine digits, computed independently of this code."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.signals.beliefs import belief_listing_value, best_silence, silence_worth
from unstale.core.signals.bits import bit_freshness
from unstale.core.signals.exact import listing_interval, listing_limit, listing_value, window
from unstale.core.signals.noisy import bit_doubts, doubt, doubt_for, value
from unstale.core.signals.partial import delayed_cycle, shown_share

RATE, WEIGHT = np.array([0.2, 0.5, 1.0, 2.0, 8.0]), np.array([1.0, 1.0, 2.0, 1.0, 1.0])


def nine(x: float) -> object:
    return pytest.approx(x, rel=5e-9)


def test_an_exact_listing() -> None:
    assert float(listing_value(1.0, RATE, WEIGHT, 0.2)) == nine(0.900310338)
    assert listing_limit(RATE, WEIGHT, 0.2) == nine(8.7)
    interval = listing_interval(0.2, RATE, WEIGHT, 0.2)
    assert interval == nine(0.384262784)
    brought = window(interval, RATE, WEIGHT, 0.2)
    assert not brought.blind.any()
    assert (brought.value.sum() - 0.2) / interval == nine(3.13559610)


@pytest.mark.parametrize(
    ("rate", "due", "interval", "value", "blind", "spacing"),
    [
        (1.0, 0.1, 3.0, 1.82416261, 5, 0.517560086),
        (1.0, 0.3, 3.0, 1.12007512, 2, 1.11889165),
        (0.5, 0.2, 10.0, 5.99652463, 9, 1.02107210),
        (2.0, 0.05, 1.0, 0.618473730, 3, 0.263170064),
    ],
)
def test_blind_polls(rate: float, due: float, interval: float, value: float, blind: int, spacing: float) -> None:
    got = window(interval, rate, 1.0, due)
    assert (float(got.value), float(got.spacing)) == (nine(value), nine(spacing))
    assert int(got.blind) == blind


def test_beliefs() -> None:
    assert belief_listing_value(2.0, [3.0], [2.0], 1.0, 0.2)[0] == nine(0.3625)
    assert float(best_silence(2.0, 1.0, 2.0)) == 3.0
    assert float(silence_worth(3.0, 2.0, 1.0, 2.0)) == nine(0.125)


@pytest.mark.parametrize(
    ("rate", "recall", "precision", "level", "worth"),
    [
        (1.0, 0.8, 0.7, 1.0, 0.422944476),
        (1.0, 0.8, 0.7, 2.5, 0.791253554),
        (2.0, 0.5, 0.5, 1.5, 0.247465771),
        (0.5, 0.9, 0.95, 3.2, 1.82835758),
        (1.0, 1.0, 0.5, math.log(2.0), 0.25),
        (1.0, 0.0, 1.0, 1.0, 0.264241118),
    ],
)
def test_noise(rate: float, recall: float, precision: float, level: float, worth: float) -> None:
    assert float(value(level, rate, recall, precision)) == nine(worth)


def test_the_doubt_at_which_a_poll_pays() -> None:
    level = float(doubt_for(0.3, 1.0, 0.8, 0.7))
    assert level == nine(0.673691634)
    assert math.exp(-level) == nine(0.509823019)


def test_one_bit_and_the_last_signal() -> None:
    unchanged, changed = bit_doubts(1.0, 0.8, 0.7, 0.5)
    assert math.exp(-changed) == nine(0.219518839)
    assert math.exp(-unchanged) == nine(0.904837418)
    # the last signal of a window .5 was .2 before its end: any change may lie before it, silent ones alone after it
    last = float(doubt(1.0, 0.8, 0.7, covered=0.2, uncovered=0.3, signals=1))
    assert math.exp(-last) == nine(0.213531097)


@pytest.mark.parametrize(
    ("window", "brought"), [(0.05, 0.502657265), (0.2, 0.481520922), (0.5, 0.441129853), (1.0, 0.380301675)]
)
def test_listings_of_bits(window: float, brought: float) -> None:
    assert bit_freshness(window, 0.3, 1.0, 0.8, 0.7) == nine(brought)


def test_late_and_partial_listings() -> None:
    assert delayed_cycle(0.5, 0.7, 1.0) == nine(1.94139256)
    assert delayed_cycle(0.5, 0.0, 1.0) == nine(1.27074704)
    assert shown_share([20, 20, 1], [10.0, 30.0, 1.0]).tolist() == [
        nine(0.999722179),
        nine(0.665017056),
        nine(0.632120559),
    ]
