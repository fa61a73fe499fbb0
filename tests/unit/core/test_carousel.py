"""Algorithm 3 of 002: exact arithmetic, the bound, resuming, and compiled against plain."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstale.core import carousel as module
from unstale.core.carousel import Carousel, carousel
from unstale.errors import InputError


def exact(parts: list[int], slots: int) -> list[int]:
    """The rule as stated, in fractions, over all sources in every slot."""
    share, polled = [Fraction(x, sum(parts)) for x in parts], [0] * len(parts)
    margin = Fraction(1, 2 * len(parts) - 2)
    out = []
    for t in range(1, slots + 1):
        lag = [t * p - c for p, c in zip(share, polled, strict=True)]
        free = [k for k, x in enumerate(lag) if x >= margin]
        out.append(min(free, key=lambda k: (1 - margin - lag[k]) / share[k]))
        polled[out[-1]] += 1
    return out


def discrepancy(slots: np.ndarray, share: np.ndarray) -> float:
    counts = np.cumsum(slots[:, None] == np.arange(len(share)), axis=0)
    return float(np.max(np.abs(counts - np.arange(1, len(slots) + 1)[:, None] * share)))


@given(st.lists(st.integers(1, 60), min_size=2, max_size=8))
@settings(max_examples=60, deadline=None)
def test_whole_and_floating_shares_run_as_in_fractions(parts: list[int]) -> None:
    want = exact(parts, 120)
    assert carousel(parts, 120).tolist() == want
    assert carousel(np.array(parts) / sum(parts), 120).tolist() == want


@given(st.lists(st.floats(1e-6, 1.0), min_size=2, max_size=30))
@settings(max_examples=60, deadline=None)
def test_counts_stay_within_the_bound(share: list[float]) -> None:
    p = np.array(share) / sum(share)
    assert discrepancy(carousel(share, 1000), p) <= 1 - 1 / (2 * len(p) - 2) + 1e-11


@pytest.mark.slow
def test_counts_stay_within_the_bound_after_many_slots() -> None:
    share = np.random.default_rng(5).lognormal(0, 2, 300)
    slots = 1_200_000
    counts = np.bincount(carousel(share, slots), minlength=300)
    assert np.max(np.abs(counts - slots * share / share.sum())) <= 1 - 1 / 598 + 1e-9


def test_compiled_and_plain_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    share = np.random.default_rng(1).lognormal(0, 2, 500)
    monkeypatch.setattr(module, "WORTH_LOADING", 1)
    assert module._compiled() is not None
    found = carousel(share, 50_000)
    monkeypatch.setattr(module, "_compiled", lambda: None)
    assert np.array_equal(found, carousel(share, 50_000))


def test_slots_do_not_depend_on_how_they_are_taken() -> None:
    share = [0.0, 3, 1, 0.5, 0.0, 2.2]
    whole = carousel(share, 10_000)
    pieces = Carousel(share)
    taken = [pieces.take(n) for n in (0, 1, 7, 4096, 4000, 1896)]
    assert np.array_equal(np.concatenate(taken), whole)
    assert np.array_equal(carousel(share, 100, start=9_900), whole[-100:])


def test_abandoned_sources_never_appear_and_one_source_always_does() -> None:
    assert carousel([0, 0.3, 0], 4).tolist() == [1, 1, 1, 1]
    assert set(carousel([0, 1, 0, 1e-3], 5000).tolist()) == {1, 3}


def test_extreme_shares() -> None:
    assert carousel([1e300, 1e-300, 1e300], 4).tolist() == [0, 2, 0, 2]
    assert carousel([1e-320, 1e-320], 4).tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("share", [[], [0.0, 0.0], [[1.0], [2.0]]])
def test_shares_must_have_something_to_poll(share: list[float]) -> None:
    with pytest.raises(InputError, match=r"share of shape .* must be a list with a number above 0"):
        Carousel(share)


def test_negative_counts_are_refused() -> None:
    with pytest.raises(InputError, match="slots -1 must be at least 0"):
        carousel([1], -1)
    with pytest.raises(InputError, match="share"):
        carousel([1, -1], 3)
