"""Laws of beliefs that hold for all numbers, however small or large."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.core.belief import Belief


def between(low: float, high: float) -> st.SearchStrategy[float]:
    """Numbers spread evenly over their logarithms."""
    return st.floats(low, high).map(lambda e: 10.0**e)


beliefs = st.builds(Belief, between(-6, 8), between(-12, 12))
spans = between(-12, 12)
probabilities = st.floats(0, 1)

#: rounding
EPS = 1e-13


def same(one: Belief, other: Belief) -> bool:
    return (one.shape, one.exposure) == pytest.approx((other.shape, other.exposure), rel=1e-12)


@given(beliefs, spans, st.floats(0, 1))
def test_splitting_an_unchanged_interval_changes_nothing(belief: Belief, elapsed: float, part: float) -> None:
    assert same(belief.unchanged(elapsed), belief.unchanged(part * elapsed).unchanged((1 - part) * elapsed))


@given(beliefs, spans, spans, st.integers(0, 50))
def test_the_order_of_exact_observations_does_not_matter(belief: Belief, one: float, other: float, n: int) -> None:
    there = belief.unchanged(one).changed_at(other).counted(n, one).unhinted(other, 0.5)
    assert same(there, belief.unhinted(other, 0.5).counted(n, one).changed_at(other).unchanged(one))


@given(beliefs, spans)
def test_counts_are_what_bits_with_times_add_up_to(belief: Belief, elapsed: float) -> None:
    assert same(belief.counted(0, elapsed), belief.unchanged(elapsed))
    assert same(belief.counted(1, elapsed), belief.changed_at(elapsed))
    assert same(belief.counted(1, elapsed), belief.changed(0.0).unchanged(elapsed))
    assert same(belief.hinted(1.0), belief.changed(0.0))


@given(beliefs, spans)
def test_a_change_raises_the_mean_and_silence_lowers_it(belief: Belief, elapsed: float) -> None:
    changed, unchanged = belief.changed(elapsed), belief.unchanged(elapsed)
    assert unchanged.mean <= belief.mean <= changed.mean * (1 + EPS)
    # what either may say averages to what was believed before
    still = belief.freshness(elapsed)
    assert still * unchanged.mean + (1 - still) * changed.mean == pytest.approx(belief.mean, rel=1e-9)


@given(beliefs, spans)
def test_a_change_adds_at_most_one_change_and_the_time(belief: Belief, elapsed: float) -> None:
    after = belief.changed(elapsed)
    assert belief.shape * (1 - EPS) <= after.shape <= (belief.shape + 1) * (1 + EPS)
    assert belief.exposure * (1 - EPS) <= after.exposure <= (belief.exposure + elapsed) * (1 + EPS)


@given(beliefs, spans, st.floats(1, 1e3))
def test_a_change_found_sooner_says_more(belief: Belief, elapsed: float, factor: float) -> None:
    assert belief.changed(elapsed).mean >= belief.changed(elapsed * factor).mean * (1 - EPS)
    assert belief.changed_at(elapsed).mean >= belief.changed_at(elapsed * factor).mean * (1 - EPS)


@given(beliefs, spans, st.floats(1e-6, 1e6))
def test_the_unit_of_time_does_not_matter(belief: Belief, elapsed: float, unit: float) -> None:
    scaled = Belief(belief.shape, belief.exposure * unit)
    there, here = scaled.changed(elapsed * unit), belief.changed(elapsed)
    assert there.shape == pytest.approx(here.shape, rel=1e-12)
    assert there.exposure == pytest.approx(here.exposure * unit, rel=1e-12)
    assert scaled.freshness(elapsed * unit) == pytest.approx(belief.freshness(elapsed), rel=1e-6, abs=1e-300)


@given(beliefs, probabilities, probabilities)
def test_a_surer_hint_says_more(belief: Belief, one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert belief.mean * (1 - EPS) <= belief.hinted(low).mean <= belief.hinted(high).mean * (1 + EPS)
    assert belief.hinted(high).shape >= belief.shape * (1 - EPS)


@given(beliefs, beliefs, spans, spans, st.floats(0, 1))
def test_fading_goes_to_the_prior_and_may_be_split(
    prior: Belief, belief: Belief, elapsed: float, half_life: float, part: float
) -> None:
    once = belief.faded(prior, elapsed, half_life)
    twice = belief.faded(prior, part * elapsed, half_life).faded(prior, (1 - part) * elapsed, half_life)
    assert (once.shape, once.exposure) == pytest.approx((twice.shape, twice.exposure), rel=1e-8)
    low, high = sorted((prior.mean, belief.mean))
    assert low * (1 - EPS) <= once.mean <= high * (1 + EPS)


@given(st.builds(Belief, between(-1, 4), between(-6, 6)), st.floats(0.05, 0.99), st.floats(0.05, 0.99))
def test_a_higher_level_is_a_wider_interval(belief: Belief, one: float, other: float) -> None:
    narrow, wide = (belief.credible(level) for level in sorted((one, other)))
    assert wide[0] <= narrow[0] <= narrow[1] <= wide[1]
