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


def test_each_is_sought_as_if_it_were_alone() -> None:
    """Others that are found earlier, or jump, change neither where it is looked for nor what is found."""
    rng = np.random.default_rng(1)
    target, power, place = np.exp(rng.normal(0, 2, 60)), rng.uniform(0.3, 4.0, 60), np.exp(rng.normal(0, 1, 60))
    step, bend = rng.choice([0.0, 3.0], 60), rng.choice([0.0, 20.0], 60)

    def asked(only: slice) -> tuple[list[list[float]], list[float]]:
        questions: list[list[float]] = [[] for _ in target[only]]

        def total(price: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            for i, p in zip(which.tolist(), price.tolist(), strict=True):
                questions[i].append(p)
            k, cheap = power[only][which], price < place[only][which]
            curve = price**-k + bend[only][which] * np.maximum(place[only][which] - price, 0.0)
            slope = -k * price ** (-k - 1.0) - np.where(cheap, bend[only][which], 0.0)
            return curve + np.where(cheap, step[only][which], 0.0), slope

        root = meet(total, target[only], np.full(len(questions), 3.0))
        return questions, [*root.at.tolist(), *root.low.tolist(), *root.high.tolist(), *root.jump.tolist()]

    questions, found = asked(slice(None))
    assert len({len(each) for each in questions}) > 5
    assert 5 < sum(found[-len(target) :]) < 30
    for i in range(len(target)):
        (alone,), one = asked(slice(i, i + 1))
        assert alone == questions[i]
        assert one == found[i :: len(target)]


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
