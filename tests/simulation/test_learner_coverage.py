"""The learner's intervals for change rates after long even series of late polls: how often they hold the true rate.

Worlds are Poisson and rates are drawn from the prior, so nine of ten intervals should hold theirs. `ratio` is the
fleet's mean change rate × the interval; the half-lives' weights are learned as an engine learns them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from support.depth import combined
from unstale.core.checks import Floats
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.outlook import outlook, rates_within
from unstale.core.learning.said import said
from unstale.core.learning.state import kept

SOURCES = 1_500
#: of a share near 0.9
ERROR = np.sqrt(0.9 * 0.1 / SOURCES)


class Standing:
    """A learner's fleet as a store would hold it."""

    def __init__(self, learner: Learner) -> None:
        self.beliefs, self.last, self.found = learner.columns.rows, learner.columns.last, learner.columns.found
        self.settings = {"learner": kept(learner)}


@cache
def polled(ratio: float, polls: int, shape: float, known: bool = True) -> tuple[Learner, Floats]:
    """A fleet polled at an even interval, and its rates; its prior known, or learned."""
    rng = np.random.default_rng([polls, round(10 * ratio)])
    rate = rng.gamma(shape, 1.0 / shape, SOURCES)
    learner, rows = Learner(SOURCES, ratio), np.arange(SOURCES)
    learner.shared.prior[:] = (shape, shape) if known else (1.0, ratio)
    for j in range(1, polls + 1):
        learner.observe(rows, np.full(SOURCES, ratio * j), rng.random(SOURCES) < -np.expm1(-rate * ratio))
        if j % 10 == 0 and (j <= 50 or j % 50 == 0):
            prior = learner.shared.prior.copy()
            learner.review()
            if known:
                learner.shared.prior[:] = prior
    return learner, rate


def covered(learner: Learner, rate: Floats) -> float:
    held = Standing(learner)
    low, high = rates_within(held, outlook(held, float(learner.columns.last.max())).change_rate)
    return float(np.mean((low < rate) & (rate < high)))


@pytest.mark.parametrize(("polls", "shape", "ratio"), combined([150, 400], [0.5, 1.0, 2.0], [3.0, 10.0, 30.0, 100.0]))
def test_nine_of_ten_after_long_even_series_of_late_polls(polls: int, shape: float, ratio: float) -> None:
    assert 0.88 - 2 * ERROR < covered(*polled(ratio, polls, shape)) < 0.92 + 2 * ERROR


@pytest.mark.parametrize(("ratio", "shape"), [(3.0, 1.0), (10.0, 1.0), (30.0, 0.5), (30.0, 1.0), (100.0, 0.5)])
def test_a_fleet_s_prior_is_learned_from_late_polls_without_drift(ratio: float, shape: float) -> None:
    # it begins with a rate of one change per interval, which is wrong by `ratio`
    learner, rate = polled(ratio, 400, shape, known=False)
    assert learner.shared.prior[0] == pytest.approx(shape, rel=0.25)
    assert learner.shared.prior[0] / learner.shared.prior[1] == pytest.approx(1.0, rel=0.25)
    assert 0.88 - 2 * ERROR < covered(learner, rate) < 0.92 + 2 * ERROR
    # changes follow each other by chance alone: that the first prior was wrong must not be taken for bursts
    assert not learner.timing.bursts.trusted


def test_rows_kept_by_an_older_version_are_read_as_what_their_slowest_half_life_knew() -> None:
    learner = Learner(1, 1.0)
    count = len(HALF_LIVES)
    learner.columns.rows[0, :count], learner.columns.rows[0, count : 2 * count] = 3.0, 5.0
    seen = said(learner.columns.rows, count)
    assert (seen.shape[0], seen.exposure[0], seen.late[0]) == (3.0, 5.0, 0.0)
    learner.observe([0], [1.0], [False])
    learner.observe([0], [3.0], [True])
    seen = said(learner.columns.rows, count)
    # half of it is forgotten in ten slowest half-lives: after a few intervals it is nearly all there
    assert (seen.shape[0], seen.exposure[0]) == pytest.approx((3.0, 6.0), rel=2e-3)
    assert (seen.late[0], seen.span[0]) == (1.0, 2.0)
