"""What a poll teaches, by hand: how much of what was known stays, and how well each half-life foretold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.core.learning.learner import HALF_LIVES, Learner

K, MEAN = len(HALF_LIVES), 3600.0


def unchanged(learner: Learner, polls: int) -> None:
    for k in range(1, polls + 1):
        learner.observe([0], [MEAN * k], [False])


def test_old_evidence_fades_by_half_in_each_half_life() -> None:
    """Unchanged polls add their time. After n of them, one interval each, 1 + 2^(−1/h) + … + 2^(−(n−1)/h) are left."""
    learner = Learner(1, MEAN)
    unchanged(learner, 40)
    kept = 2.0 ** (-1.0 / np.array(HALF_LIVES))
    np.testing.assert_allclose(learner.columns.rows[0, K : 2 * K], MEAN * (1 - kept**40) / (1 - kept), rtol=1e-12)
    np.testing.assert_array_equal(learner.columns.rows[0, :K], 0.0)


def test_the_standing_of_a_half_life_fades_by_a_fiftieth_at_each_poll() -> None:
    """The log likelihood that each belief gave, what was before counting 0.98 of itself; prior Gamma(1, mean)."""
    learner = Learner(1, MEAN)
    unchanged(learner, 30)
    for k, half_life in enumerate(HALF_LIVES):
        standing = exposure = 0.0
        for _ in range(30):
            standing = 0.98 * standing - math.log1p(1.0 / (1.0 + exposure))
            exposure = 2.0 ** (-1.0 / half_life) * exposure + 1.0
        assert learner.columns.rows[0, 2 * K + k] == pytest.approx(standing, rel=1e-12)


def test_a_dated_change_adds_one_to_the_shape_and_its_silence_to_the_exposure() -> None:
    learner = Learner(1, MEAN)
    unchanged(learner, 1)
    learner.observe([0], [2 * MEAN], [True], [1.25 * MEAN])
    kept = 2.0 ** (-1.0 / np.array(HALF_LIVES))
    np.testing.assert_allclose(learner.columns.rows[0, :K], 1.0)
    np.testing.assert_allclose(learner.columns.rows[0, K : 2 * K], MEAN * (kept + 0.75), rtol=1e-12)
