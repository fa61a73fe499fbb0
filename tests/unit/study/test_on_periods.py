"""ON periods: conservation laws and the closed forms that exist."""

import numpy as np
import pytest
from scipy.integrate import quad

from unstale.core.lags import overlap, trails
from unstale.core.processes import Constant, Pareto, Poisson, Process, Triangular, Uniform, Weibull
from unstale.errors import InputError
from unstale.study.on_periods import duration_cdf, mean_duration, residual_cdf

PAIRS = [
    (Pareto(3.0, 1.0), Poisson(2.0)),
    (Pareto(2.2, 1.0), Constant(0.7)),
    (Uniform(0.5, 1.5), Triangular(0.4)),
    (Weibull(0.6, 1.0), Uniform(0.5, 0.9)),
    (Constant(1.0), Pareto(3.0, 1.0)),
]


@pytest.mark.parametrize("polls", [Poisson(3.0), Constant(0.4), Pareto(2.5, 1.0)], ids=repr)
def test_on_periods_of_poisson_changes_are_gaps(polls: Process) -> None:
    x = np.array([0.0, 0.1, 1.0, 4.0])
    changes = Poisson(1.3)
    assert np.allclose(residual_cdf(x, changes, polls), changes.cdf(x), rtol=1e-9, atol=1e-12)
    assert np.allclose(duration_cdf(x, changes, polls), changes.cdf(x), rtol=1e-9, atol=1e-12)
    assert mean_duration(changes, polls) == pytest.approx(1 / 1.3, rel=1e-10)


@pytest.mark.parametrize(("changes", "polls"), PAIRS, ids=repr)
def test_the_mean_is_the_integral_of_the_law(changes: Process, polls: Process) -> None:
    # the rest of an ON period has density P(V > x)/E[V]: the laws fit each other and the mean
    mean = mean_duration(changes, polls)
    x = 0.3
    rest, _ = quad(lambda y: (1 - duration_cdf(y, changes, polls)) / mean, 0, x, epsrel=1e-9)
    assert residual_cdf(x, changes, polls) == pytest.approx(rest, rel=1e-7)


@pytest.mark.parametrize(("changes", "polls"), PAIRS, ids=repr)
def test_turning_stale_is_as_frequent_as_turning_fresh(changes: Process, polls: Process) -> None:
    """The density of the lag has one value at 0: a copy turns stale as often as it turns fresh."""
    assert overlap(polls, changes) == pytest.approx(overlap(changes, polls), rel=1e-9)
    step = 1e-5
    slope = (trails(polls, changes, 0.0) - trails(polls, changes, step)) / step
    assert overlap(polls, changes) == pytest.approx(slope, rel=1e-3)


def test_rest_of_on_period_against_rest_of_gap() -> None:
    """Longer for changes that are worse when new, shorter for those that are better [004 after eq. 18]."""
    x = np.array([0.2, 0.5, 0.9])
    polls = Poisson(2.0)
    for changes, sign in (
        (Pareto(3.0, 1.0), 1),
        (Weibull(0.6, 1.0), 1),
        (Uniform(0.5, 1.5), -1),
        (Triangular(1.0), -1),
    ):
        longer = (1 - np.asarray(residual_cdf(x, changes, polls))) - np.asarray(changes.age_survival(x))
        assert np.all(sign * longer > 0)


def test_time_must_not_be_negative() -> None:
    with pytest.raises(InputError, match=r"x -1.0 must be a finite number at least 0"):
        residual_cdf(-1.0, Poisson(1.0), Poisson(1.0))
