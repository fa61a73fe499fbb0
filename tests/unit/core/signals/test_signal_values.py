"""Values of listing polls and of polls after signals: brute force, dynamic programming, limits, inverses, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import gamma

from unstale.core.gamma2 import p2, p2_inverse
from unstale.core.signals.age import age_listing_interval, age_listing_value, known_age
from unstale.core.signals.beliefs import belief_listing_value, best_silence, silence_worth
from unstale.core.signals.bits import bit_freshness, bit_value
from unstale.core.signals.exact import listing_interval, listing_limit, listing_value, stale_worth, window
from unstale.core.signals.noisy import bit_doubts, doubt_for, limit, listed_freshness, signal_doubt, value
from unstale.core.signals.partial import delayed_cycle, expected_for, shown_share
from unstale.core.signals.roots import rising_root
from unstale.core.values import PoissonAge
from unstale.errors import ConvergenceError, InputError

RATE, WEIGHT = np.array([0.2, 0.5, 1.0, 2.0, 8.0]), np.array([1.0, 1.0, 2.0, 1.0, 1.0])


def test_no_even_interval_is_better_than_that_of_the_listing() -> None:
    best = listing_interval(0.2, RATE, WEIGHT, 0.2)
    t = best * np.linspace(0.2, 3.0, 2801)
    per_time = (stale_worth(RATE, WEIGHT, 0.2) * -np.expm1(-t[:, None] * RATE)).sum(axis=1) - 0.2
    assert t[np.argmax(per_time / t)] == pytest.approx(best, rel=1e-3)
    assert float(listing_value(best, RATE, WEIGHT, 0.2)) == pytest.approx(0.2, rel=1e-12)


def test_ends_of_an_exact_listing() -> None:
    assert listing_interval(0.0, RATE, WEIGHT, 0.2) == 0.0
    assert listing_interval(8.71, RATE, WEIGHT, 0.2) == np.inf
    assert listing_interval(0.1, [0.0], 1.0, 0.2) == np.inf
    assert listing_limit([0.0, 8.0], 1.0, 0.2) == 0.0
    assert float(listing_value(np.inf, [0.0, 0.5], 1.0, 0.2)) == pytest.approx(1.8)
    small = float(listing_value(1e-6, RATE, WEIGHT, 0.2))
    assert small == pytest.approx(0.5e-12 * float((stale_worth(RATE, WEIGHT, 0.2) * RATE**2).sum()), rel=1e-5)
    with pytest.raises(InputError, match=r"^listing_due -1.0 must be a finite number at least 0: "):
        listing_interval(-1.0, RATE, WEIGHT, 0.2)


@pytest.mark.parametrize(
    ("rate", "due", "length"), [(1.0, 0.1, 3.0), (1.0, 0.3, 3.0), (2.0, 0.05, 1.0), (1.0, 0.6, 9.0)]
)
def test_blind_polls_against_dynamic_programming(rate: float, due: float, length: float) -> None:
    # the best polls on a grid of the time that is left until the listing, from a copy just taken
    steps = 800
    t = np.arange(steps + 1) * (length / steps)
    fresh = -np.expm1(-rate * t) / rate
    # a stale copy at the listing is polled, which costs `due` and brings a fresh one, as a listing always finds it
    best = fresh - due * -np.expm1(-rate * t)
    for k in range(1, steps + 1):
        best[k] = max(best[k], float((fresh[1:k] - due + best[k - 1 : 0 : -1]).max(initial=-np.inf)))
    assert float(window(length, rate, 1.0, due).value) == pytest.approx(best[-1], rel=2e-5)


@given(st.floats(0.01, 0.99), st.floats(0.01, 60.0))
def test_a_listing_never_harms_its_members(share: float, x: float) -> None:
    # rate 1: due is the share; plain polling brings e^(−y) per unit of time
    got = window(x, 1.0, 1.0, share)
    assert float(got.value) >= x * math.exp(-float(p2_inverse(share))) * (1 - 1e-12)
    by_hand = [m * ((1 - share) - math.exp(-(x - math.log1p(-share)) / m)) for m in range(1, 900)]
    assert float(got.value) == pytest.approx(max(by_hand), rel=1e-9, abs=1e-12)
    assert int(got.blind) == pytest.approx(int(np.argmax(by_hand)), abs=1)


def test_windows_of_members_at_the_edge() -> None:
    never, abandoned, light = window(2.0, [0.0, 5.0, 1.0], [3.0, 1.0, 0.0], 0.2).value
    assert (never, abandoned, light) == (6.0, 0.0, 0.0)
    assert window(0.0, 1.0, 1.0, 0.2).value == 0.0
    free = window(2.0, 1.0, 1.0, 1e-14)
    assert float(free.value) == pytest.approx(2.0, rel=1e-6)


def test_a_belief_is_the_mean_of_its_rates() -> None:
    for a, b, t in ((3.0, 2.0, 2.0), (0.7, 1.0, 5.0)):
        law = gamma(a, scale=1 / b)
        want = quad(lambda u, law=law, t=t: float(p2(law.ppf(u) * t)) * (1 / law.ppf(u) - 0.2), 0, 1)[0]
        assert belief_listing_value(t, [a], [b], 1.0, 0.2)[0] == pytest.approx(want, rel=1e-6)
    assert belief_listing_value(2.0, [3.0], [2.0], 1.0, 1.5)[0] == 0.0


def test_the_best_silence_by_a_scan() -> None:
    s = np.linspace(0, 20, 20001)
    for a, b, w in ((2.0, 1.0, 2.0), (1.5, 3.0, 4.0), (3.0, 5.0, 1.0)):
        worth = silence_worth(s, a, b, w)
        assert s[np.argmax(worth)] == pytest.approx(float(best_silence(a, b, w)), abs=1e-3)
    assert float(silence_worth(1.0, 0.9, 1.0, 1.0)) == np.inf


def test_age_by_brute_force() -> None:
    rate, due, listing = np.array([0.5, 1.0, 3.0]), np.array([0.2, 0.3, 0.1]), 0.4
    best = age_listing_interval(listing, rate, 1.0, due)
    t = best * np.linspace(0.3, 3.0, 2701)
    x = rate * t[:, None]
    per_time = (PoissonAge(rate).staleness(t[:, None]) + due * -np.expm1(-x) / t[:, None]).sum(axis=1) + listing / t
    assert t[np.argmin(per_time)] == pytest.approx(best, rel=1e-3)
    assert age_listing_value(best, rate, 1.0, due) == pytest.approx(listing, rel=1e-10)
    assert age_listing_interval(1.0, [0.0], 1.0, 0.1) == np.inf
    assert age_listing_interval(0.0, [1.0], 1.0, 0.0) == 0.0


def test_how_old_a_known_stale_copy_may_become() -> None:
    for rate, due in ((2.0, 0.6), (0.1, 3.0)):
        x = np.linspace(1e-3, 10, 100_000)
        cost = (x * x / 2 + due) / (1 / rate + x)
        best = float(known_age(rate, due))
        assert x[np.argmin(cost)] == pytest.approx(best, abs=2e-4)
        assert cost.min() == pytest.approx(best, rel=1e-6)
    assert float(known_age(1.0, 1e-12)) == pytest.approx(1e-12, rel=1e-9)


@given(st.floats(0.0, 1.0), st.floats(0.05, 1.0), st.floats(0.01, 20.0))
def test_the_value_rises_to_its_limit_whatever_the_noise(recall: float, precision: float, rate: float) -> None:
    s = np.linspace(0.01, 40.0, 60)
    worth = value(s, rate, recall, precision)
    assert np.all(np.diff(worth) >= -1e-11 / rate)
    assert float(value(np.inf, rate, recall, precision)) == pytest.approx(float(limit(rate)))
    assert worth[-1] <= float(limit(rate)) * (1 + 1e-9)


def test_limits_of_noise() -> None:
    s = np.array([0.3, 1.0, 4.0])
    # without signals, and nearly without: the value of plain polling
    np.testing.assert_allclose(value(s, 2.0, 0.0, 0.9), p2(s) / 2.0, rtol=1e-13)
    np.testing.assert_allclose(value(s, 2.0, 1e-9, 0.9), p2(s) / 2.0, rtol=1e-7)
    # so few that a number has no digits left for them
    np.testing.assert_allclose(value(s, 2.0, 2.225073858507203e-309, 0.05), p2(s) / 2.0, rtol=1e-13)
    # signals that never lie: only silence raises doubt, and n signals at recall 1 are worth Σ((1−π)^m − (1−π)^n)/γ
    pi, n = 0.6, 3
    want = sum((1 - pi) ** m - (1 - pi) ** n for m in range(n)) * pi
    assert float(value(n * signal_doubt(pi), 1.0, 1.0, pi)) == pytest.approx(want, rel=1e-12)
    assert float(value(np.inf, 1.0, 1.0, 1.0)) == 1.0
    assert float(value(1.0, 0.0, 0.5, 0.5)) == 0.0
    assert doubt_for([0.0, 1.0, 2.0], 1.0, 0.5, 0.5).tolist() == [0.0, np.inf, np.inf]
    assert bit_doubts(1.0, 0.8, 1.0, 0.5)[1] == np.inf


@given(st.floats(0.05, 0.95), st.floats(0.1, 0.99), st.floats(0.05, 0.95))
def test_the_doubt_undoes_the_value(recall: float, precision: float, due: float) -> None:
    level = float(doubt_for(due, 1.0, recall, precision))
    assert float(value(level, 1.0, recall, precision)) == pytest.approx(due, rel=1e-9)


def test_the_estimate_of_a_noisy_listing_is_a_lower_one() -> None:
    low = {0.05: 0.011, 0.2: 0.04, 0.5: 0.09, 1.0: 0.12}
    for t, share in low.items():
        exact = bit_freshness(t, 0.3, 1.0, 0.8, 0.7)
        estimate = float(listed_freshness(t, 0.3, 1.0, 0.8, 0.7))
        assert 1 - estimate / exact == pytest.approx(share, abs=0.005)
    # at 1 the estimate itself would be 15 % low, and plain polling takes its place
    assert float(listed_freshness(1.0, 0.3, 1.0, 0.8, 0.7)) == pytest.approx(0.333754625, rel=1e-8)
    # worthless signals: the listing brings no more than plain polling
    assert float(listed_freshness(0.3, 0.3, 1.0, 0.001, 0.001)) == pytest.approx(0.333754625, rel=1e-6)


def test_listings_of_bits_by_paths() -> None:
    # every path of bits, summed by hand
    rate, recall, precision, t, s = 1.0, 0.8, 0.7, 0.5, 1.0
    silent, told = bit_doubts(rate, recall, precision, t)
    chance = -math.expm1(-recall * rate / precision * t)
    total, paths = 0.0, {0.0: 1.0}
    for _ in range(400):
        total += sum(p * max(math.exp(-d) - math.exp(-s), 0.0) for d, p in paths.items())
        following: dict[float, float] = {}
        for d, p in paths.items():
            for more, q in ((silent, 1 - chance), (told, chance)):
                if d + more < s:
                    following[d + more] = following.get(d + more, 0.0) + p * q
        paths = following
    assert bit_value(s, rate, recall, precision, t) == pytest.approx(-math.expm1(-t) * total, rel=1e-12)
    assert bit_freshness(0.5, 1.0, 1.0, 0.8, 0.7) == 0.0
    # frequent bits are pushed signals; without signals, frequent bits are plain polling
    assert bit_value(1.0, 1.0, 0.8, 0.7, 1e-4) == pytest.approx(0.422944476, abs=1e-4)
    assert bit_value(1.0, 1.0, 0.0, 0.7, 1e-4) == pytest.approx(float(p2(1.0)), abs=1e-4)


def test_partial_and_late_listings() -> None:
    rng = np.random.default_rng(1)
    n, x = 5, 8.0
    # signals of a window as seen from its end, in order of age: the first five are on show
    count = rng.poisson(x, 200_000)
    shown, errors = np.minimum(count, n).sum() / count.sum(), 3 / math.sqrt(count.sum())
    assert float(shown_share(n, x)) == pytest.approx(shown, abs=5 * errors)
    assert float(shown_share(3, 0.0)) == 1.0
    assert float(shown_share(3, 1e6)) == pytest.approx(3e-6, rel=1e-4)
    for share in (0.05, 0.5, 0.99):
        assert float(shown_share(7, expected_for(7, share))) == pytest.approx(share, rel=1e-9)
    assert expected_for(7, 1.0) == 0.0
    assert delayed_cycle(0.5, 1.0, 2.0) == pytest.approx(delayed_cycle(0.5, 0.0, 2.0) + 1.0, rel=1e-12)
    with pytest.raises(InputError, match=r"^entries 0.0 must be a finite number at least 1: "):
        shown_share(0, 1.0)


def test_roots_that_are_not_there() -> None:
    with pytest.raises(ConvergenceError, match=r"^no root below "):
        rising_root(lambda x: -1.0, 1.0)
    with pytest.raises(ConvergenceError, match=r"^no root above "):
        rising_root(lambda x: 1.0, 1.0)


def test_shares_are_shares() -> None:
    with pytest.raises(InputError, match=r"^recall 1.5 must be a finite number at least 0 and at most 1: give a share"):
        value(1.0, 1.0, 1.5, 0.5)
    with pytest.raises(InputError, match=r"^precision 0.0 must be a finite number above 0 and at most 1: give a share"):
        value(1.0, 1.0, 0.5, 0.0)
