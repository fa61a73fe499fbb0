"""Roots of falling functions: power laws, edges, jumps, nothing there."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.roots.meeting import HUGE, TINY, meet


def counted(f, df):  # type: ignore[no-untyped-def]
    calls = []

    def total(price: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        calls.append(len(which))
        return f(price, which), df(price, which)

    return total, calls


def test_power_laws_are_solved_in_one_step_over_the_whole_range() -> None:
    exponent, factor = np.array([-0.5, -1.0, -3.0]), np.array([1e50, 1.0, 1e-80])
    total, calls = counted(
        lambda p, w: factor[w] * p ** exponent[w], lambda p, w: factor[w] * exponent[w] * p ** (exponent[w] - 1)
    )
    target = np.array([3.0, 1e-9, 1e20])
    roots = meet(total, target, np.ones(3))
    assert roots.at == pytest.approx((target / factor) ** (1 / exponent), rel=1e-11)
    assert not roots.jump.any()
    assert len(calls) < 14


def test_only_open_ones_are_asked_again() -> None:
    total, calls = counted(lambda p, w: 1 / p, lambda p, w: -1 / p**2)
    meet(total, np.array([1.0, 1e60]), np.array([1.0, 1.0]))
    assert calls[0] == 2
    assert calls[-1] == 1


def test_a_jump_is_bracketed_to_neighbouring_numbers() -> None:
    edge = 0.8681466645764154
    total, calls = counted(lambda p, w: np.where(p < edge, 2.0, 0.5) / p**0.1, lambda p, w: np.zeros_like(p))
    roots = meet(total, np.array([1.0]), np.array([1.0]))
    assert roots.jump[0]
    assert roots.low[0] < edge <= roots.high[0] <= roots.low[0] * (1 + 2**-49)
    assert len(calls) < 120


@pytest.mark.parametrize(("level", "end"), [(0.5, TINY), (2.0, HUGE)])
def test_a_total_that_never_meets_its_target_ends_at_the_edge_of_numbers(level: float, end: float) -> None:
    total, _ = counted(lambda p, w: np.full_like(p, level), lambda p, w: np.zeros_like(p))
    roots = meet(total, np.array([1.0]), np.array([1.0]))
    assert roots.jump[0]
    assert (roots.high if end == TINY else roots.low)[0] == end
