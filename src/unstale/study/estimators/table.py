"""How far off each estimator is for your sources: predicted, and simulated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import number
from unstale.errors import require
from unstale.frozen import dataclass
from unstale.study.estimators.base import Estimator, Observations, Timing, checked
from unstale.study.estimators.counts import BiasReduced, Naive
from unstale.study.estimators.last_modified import LastModified, ReducedLastModified
from unstale.study.estimators.likelihood import MaximumLikelihood, ReducedLikelihood
from unstale.study.estimators.online import LawOfLargeNumbers, Momentum, StochasticApproximation

#: one of each, in the order of the table
ESTIMATORS: tuple[Estimator, ...] = (
    Naive(),
    BiasReduced(),
    MaximumLikelihood(),
    ReducedLikelihood(),
    LastModified(),
    ReducedLastModified(),
    LawOfLargeNumbers(),
    StochasticApproximation(),
    Momentum(),
)


@dataclass(frozen=True, slots=True)
class BiasRow:
    """One estimator at one change rate, interval and number of polls; all rates in the unit given.

    `expected` is E[estimate | finite] by formula, NaN where polls are not timed as the formula assumes; `mean`, its
    standard error `error` and `rmse` are of the simulated estimates that were finite, `infinite` is the share
    of the others.
    """

    estimator: str
    timing: Timing
    expected: float
    mean: float
    error: float
    rmse: float
    infinite: float


def bias_table(
    change_rate: float,
    interval: float,
    polls: int,
    rng: np.random.Generator,
    *,
    runs: int = 10_000,
    timing: Timing | None = None,
    estimators: Sequence[Estimator] = ESTIMATORS,
) -> list[BiasRow]:
    """What each estimator makes of `polls` polls of a Poisson source, in `runs` simulated histories.

    Each gets the polls it assumes, `interval` apart: evenly, or on average for those that want Poisson times; with
    `timing` all get the same, "even" or "poisson", to see what the wrong ones do. The same histories for
    all that share a timing, so rows compare better than their errors say.

    >>> rows = bias_table(1.0, 1.0, 20, np.random.default_rng(1), runs=2000)
    >>> [(row.estimator, round(row.expected, 3), round(row.mean, 3)) for row in rows[:2]]
    [('naive', 0.632, 0.633), ('bias-reduced', 1.001, 1.002)]
    """
    rate, between, n = checked(change_rate, interval, polls)
    repeats = int(number("runs", runs, least=2, most=1e7))
    require(
        timing in (None, "even", "poisson"),
        "timing",
        repr(timing),
        "must be 'even', 'poisson' or None",
        "choose how the polls are timed",
    )
    seen: dict[Timing, Observations] = {}
    rows = []
    for estimator in estimators:
        assumed: Timing = "poisson" if estimator.timing == "poisson" else "even"
        used: Timing = timing or assumed
        if used not in seen:
            seen[used] = simulated(rate, between, n, repeats, rng, used)
        estimates = estimator.estimate(seen[used])
        finite = estimates[np.isfinite(estimates)]
        expected = estimator.mean(rate, between, n) if used == assumed else np.nan
        rows.append(_row(estimator.name, used, expected, finite, rate, 1.0 - len(finite) / repeats))
    return rows


def simulated(
    change_rate: float, interval: float, polls: int, runs: int, rng: np.random.Generator, timing: Timing
) -> Observations:
    """Observations of `runs` Poisson sources of one change rate, each with `polls` polls.

    Seen from a poll, the latest change is an exponential time ago, independent of all that was before the last poll:
    so no change needs to be drawn that no poll can see.
    """
    shape = (runs, polls)
    between = rng.exponential(interval, shape) if timing == "poisson" else np.full(shape, interval)
    since = rng.exponential(1.0, shape) / change_rate if change_rate > 0 else np.full(shape, np.inf)
    return Observations.of(between, since < between, since=since, sync_rate=1.0 / interval)


def _row(name: str, timing: Timing, expected: float, finite: np.ndarray, rate: float, infinite: float) -> BiasRow:
    if not len(finite):
        return BiasRow(name, timing, expected, np.nan, np.nan, np.nan, infinite)
    error = float(finite.std() / np.sqrt(max(len(finite) - 1, 1)))
    rmse = float(np.sqrt(np.mean((finite - rate) ** 2)))
    return BiasRow(name, timing, expected, float(finite.mean()), error, rmse, infinite)
