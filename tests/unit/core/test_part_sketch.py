"""Sketches of a living fleet's parts: they add up to the price of the whole, and forget exactly what is taken out."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.learning.learner import Learner
from unstale.core.learning.part_sketch import PartSketch, price_of_parts

SOURCES, INTERVAL, NOW, LOOK, PRICE = 45_000, 10_000.0, 1e6, 200.0, 9_000.0


def taught(count: int, seed: int) -> Learner:
    """Sources that were polled within the last interval."""
    rng, learner = np.random.default_rng(seed), Learner(count, INTERVAL, weight=1.0 + np.arange(count) % 5)
    rates = np.exp(rng.normal(0.0, 1.0, count)) / INTERVAL
    for n in range(1, 7):
        learner.observe(
            np.arange(count), np.full(count, n * INTERVAL), rng.random(count) < -np.expm1(-rates * INTERVAL)
        )
    learner.columns.last[:] = NOW - rng.uniform(0.0, INTERVAL, count)
    return learner


def test_parts_have_the_price_of_the_whole_and_what_is_taken_out_leaves_nothing() -> None:
    learner, ids, never = taught(SOURCES, 1), np.arange(SOURCES), np.full(SOURCES, np.inf)
    wanted = SOURCES / INTERVAL * LOOK
    price = learner.price_for(wanted, NOW, NOW + LOOK, PRICE, ids=ids)
    for guess, near in ((PRICE, 0.03), (price, 0.01)):
        sketches = [PartSketch.nothing(guess, NOW, 4.0 * LOOK, count) for count in (30_000, 15_000)]
        for sketch, rows in zip(sketches, (ids < 30_000, ids >= 30_000), strict=True):
            part = Learner(int(rows.sum()), INTERVAL)
            part.columns = type(part.columns)(*(column[rows].copy() for column in learner.columns))
            sketch.add(part, ids[rows], never[rows])
        assert [sketch.thin for sketch in sketches] == [8, 1]
        assert price_of_parts(sketches, wanted, NOW + LOOK) == pytest.approx(price, rel=near)
    sketches[0].add(*(first := (taught(1000, 2), ids[:1000], never[:1000])))
    sketches[0].add(*first, times=-1.0)
    sketches[1].add(part, ids[rows], never[rows], -1.0)
    assert np.abs(sketches[1].spent).max() < 1e-6
    assert np.abs(sketches[1].whole).max() < 1e-6
