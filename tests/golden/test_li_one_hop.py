"""004: one hop of replication: freshness, the price of irregular polls, ON periods."""

import numpy as np

from support.golden import Entry, golden
from unstale.core.inverse import sync_rate_for
from unstale.core.lags import overlap
from unstale.core.processes import Constant, Pareto, Poisson, Uniform
from unstale.core.quadrature import integrate
from unstale.core.staleness import freshness
from unstale.study.on_periods import duration_cdf, mean_duration, residual_cdf


@golden("L4.8.lam3")
def test_freshness_of_pareto_and_of_constant_changes(entry: Entry) -> None:
    rate, sync = entry.inputs["mu"], entry.inputs["lambda"]
    one = freshness(Pareto.from_rate(3.0, rate), Constant(1 / sync))
    other = freshness(Constant(1 / rate), Pareto.from_rate(3.0, sync))
    entry.check([one, other])


@golden("L4.bw.expU", "L4.bw.parU")
def test_what_irregular_polls_cost(entry: Entry) -> None:
    rate, level = entry.inputs["mu"], entry.inputs["p"]
    changes = Poisson(rate) if entry.id.endswith("expU") else Pareto.from_rate(3.0, rate)
    even, exponential, pareto = (
        sync_rate_for(changes, freshness=level, polls=polls)
        for polls in ("fixed", "purely-random", Pareto.from_rate(3.0, 1.0))
    )
    entry.check(
        {
            "lambda_const": even,
            "lambda_exp": exponential,
            "lambda_pareto": pareto,
            "saving_vs_exp": 1 - even / exponential,
            "saving_vs_pareto": 1 - even / pareto,
        }
    )


CHANGES, POLLS = Pareto(3.0, 1.0), Poisson(2.0)


@golden("L4.19")
def test_mean_on_period(entry: Entry) -> None:
    entry.check(
        {
            "p": freshness(CHANGES, POLLS),
            "E[g_U(A_D)]": overlap(POLLS, CHANGES),
            "E[V]": mean_duration(CHANGES, POLLS),
        }
    )


@golden("L4.FV")
def test_law_of_on_periods(entry: Entry) -> None:
    entry.check(duration_cdf(entry.inputs["x"], CHANGES, POLLS))


@golden("L4.16")
def test_rest_of_an_on_period_outlasts_the_rest_of_a_gap(entry: Entry) -> None:
    x = entry.inputs["x"]
    entry.check([1.0 - residual_cdf(x, CHANGES, POLLS), CHANGES.age_survival(x)])


@golden("L4.12")
def test_second_order_dominance_of_a_constant(entry: Entry) -> None:
    """Up to the mean, the integrated difference of the two laws is ∫ F_Y, not that of its complement."""
    mean, other = 1.0, Uniform(0.2, 1.8)
    for x in (0.1, 0.5, 1.0):
        difference, _ = integrate(
            lambda y: np.asarray(other.cdf(y)) - np.asarray(Constant(mean).cdf(y)), [0.0, min(x, 0.2), x]
        )
        printed, _ = integrate(lambda y: np.asarray(other.survival(y)), [0.0, min(x, 0.2), x])
        right, _ = integrate(lambda y: np.asarray(other.cdf(y)), [0.0, min(x, 0.2), x])
        assert abs(difference - right) < 1e-12
        assert abs(difference - printed) > 1e-2
    entry.check("delta(x)=∫_0^x F_Y(y)dy")
