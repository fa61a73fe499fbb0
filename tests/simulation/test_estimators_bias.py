"""Bias tables by simulation: histories give what the formulas of the estimators say, within 5 standard errors."""

import math

import numpy as np
import pytest

from unstale.core.processes import Gamma, LogNormal, Pareto, Poisson, Process
from unstale.study.estimators import ReducedLikelihood, SeenGaps, bias_table, seen_gaps
from unstale.study.estimators.likelihood import MaximumLikelihood

RUNS = 20_000


@pytest.mark.parametrize("polls", [4, 12, 60])
@pytest.mark.parametrize("ratio", [0.03, 0.3, 1.0, 2.5, 6.0])
def test_formulas_within_five_standard_errors(ratio: float, polls: int) -> None:
    rng = np.random.default_rng([polls, round(100 * ratio)])
    likely = MaximumLikelihood().chance_of_inf(ratio, 1.0, polls)
    for row in bias_table(ratio / 2.0, 2.0, polls, rng, runs=RUNS):
        # of a few finite estimates, all alike, the spread says nothing; the exact law is in the contract
        if row.infinite < 0.95:
            assert abs(row.mean - row.expected) <= 5 * row.error + 1e-12 * row.expected, row
        infinite = likely if row.estimator == "likelihood" else 0.0
        assert abs(row.infinite - infinite) <= 5 * math.sqrt(infinite * (1 - infinite) / RUNS) + 1e-12, row


@pytest.mark.parametrize("ratio", [0.3, 1.0, 2.0])
def test_on_irregular_polls_the_reduced_likelihood_has_the_smaller_bias(ratio: float) -> None:
    rng = np.random.default_rng(8)
    plain, reduced = bias_table(
        ratio, 1.0, 40, rng, runs=RUNS, timing="poisson", estimators=[MaximumLikelihood(), ReducedLikelihood()]
    )
    # first-order bias for exponential intervals: ½·E[w³/(e^x−1)]/(n·E[w²/(e^x−1)]²)
    grid = np.linspace(0, 60, 600_001)[1:]
    third, second = (np.sum(grid**k * np.exp(-grid) / np.expm1(ratio * grid)) * 1e-4 for k in (3, 2))
    assert plain.mean - ratio == pytest.approx(0.5 * third / second**2 / 40, rel=0.35)
    assert abs(reduced.mean - ratio) < 0.15 * (plain.mean - ratio) + 5 * reduced.error
    assert reduced.rmse < plain.rmse


CHANGES = [Poisson(1.0), Gamma.from_rate(4.0, 1.0), LogNormal.from_rate(1.2, 1.0), Pareto.from_rate(2.5, 1.0)]


@pytest.mark.parametrize("changes", CHANGES, ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("interval", [0.3, 2.0])
def test_gaps_of_simulated_histories_seen_through_polls(changes: Process, interval: float) -> None:
    rng = np.random.default_rng(21)
    theory = SeenGaps(changes, interval)
    shares, count = [], 0
    for _ in range(60):
        gaps = seen_gaps(changes.sample_path(rng, 3000.0), interval)
        count += len(gaps)
        shares.append([np.mean(gaps > (k + 0.5) * interval) for k in range(1, 5)] + [gaps.mean()])
    spread = np.std(shares, axis=0) / math.sqrt(len(shares) - 1)
    tails = np.array([theory.survival((k + 0.5) * interval) for k in range(1, 5)])
    # gaps too rare to be drawn have no spread in the sample: never less than that of independent gaps
    least = np.append(np.sqrt(tails * (1 - tails) / count), 0.0)
    off = np.abs(np.mean(shares, axis=0) - np.append(tails, theory.mean))
    assert np.all(off <= 5 * np.maximum(spread, least))


def test_a_poisson_source_fails_the_test_on_polled_gaps_only() -> None:
    rng = np.random.default_rng(5)
    path = Poisson(1.0).sample_path(rng, 4000.0)
    interval = 0.5
    true, polled = np.sort(np.diff(path)), np.sort(seen_gaps(path, interval))

    def distance(gaps: np.ndarray) -> float:
        fitted = -np.expm1(-gaps / gaps.mean())
        steps = np.arange(len(gaps) + 1) / len(gaps)
        return float(max(np.max(steps[1:] - fitted), np.max(fitted - steps[:-1])))

    # critical value of Lilliefors' test at 1 %, large samples
    assert distance(true) * math.sqrt(len(true)) < 1.25
    assert distance(polled) * math.sqrt(len(polled)) > 10
    assert distance(polled) == pytest.approx(SeenGaps(Poisson(1.0), interval).exponential_distance(), abs=0.03)
