"""Fits to gaps: judged by scipy's densities and fits, by Fisher's errors, and at the edges of what a clock can show."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.special import polygamma

from unstale.core.inverse import poisson_overestimate, sync_rate_for
from unstale.core.processes import Empirical, Gamma, LogNormal, Pareto, Poisson, Process, Weibull
from unstale.core.roots.falling import falls_through
from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.study.fitting.families import LIMIT, best, fit_families
from unstale.study.fitting.gaps import Gaps
from unstale.study.fitting.overspend import overspend, polls_for

LAWS = {
    "exponential": Poisson(2.0),
    "weibull": Weibull(0.6, 3.0),
    "gamma": Gamma(3.0, 0.5),
    "pareto": Pareto(2.5, 4.0),
    "lognormal": LogNormal(5.0, 1.5),
}
#: the same densities by scipy, from our parameters
SCIPY = {
    "exponential": lambda p: stats.expon(scale=1 / p["rate"]),
    "weibull": lambda p: stats.weibull_min(p["shape"], scale=p["scale"]),
    "gamma": lambda p: stats.gamma(p["shape"], scale=p["scale"]),
    "pareto": lambda p: stats.lomax(p["alpha"], scale=p["scale"]),
    "lognormal": lambda p: stats.lognorm(p["sigma"], scale=p["median"]),
}
FITTERS = {"weibull": stats.weibull_min, "gamma": stats.gamma, "pareto": stats.lomax, "lognormal": stats.lognorm}


def drawn(law: Process, n: int, seed: int = 1) -> np.ndarray:
    return law.sample(np.random.default_rng(seed), n)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [5, 40, 3000])
def test_likelihoods_are_those_of_the_densities_and_no_search_finds_more(name: str, n: int) -> None:
    gaps = drawn(LAWS[name], n)
    for family, fit in fit_families(Gaps.of(gaps)).items():
        law = SCIPY[family]({key: float(column[0]) for key, column in fit.parameters.items()})
        assert fit.log_likelihood[0] == pytest.approx(law.logpdf(gaps).sum(), rel=1e-9, abs=1e-9)
        if family in FITTERS:
            found = FITTERS[family].fit(gaps, floc=0)
            # Pareto's likelihood may rise for ever towards the exponential: ours stops at alpha = 1e4
            short = n / LIMIT if fit.parameters.get("alpha", np.zeros(1))[0] > 0.99 * LIMIT else 0.0
            assert fit.log_likelihood[0] >= FITTERS[family].logpdf(gaps, *found).sum() - short - 1e-6


def test_parameters_are_found_within_fishers_errors() -> None:
    n = 200_000
    a, alpha = 3.0, 2.5
    errors = {
        ("exponential", "rate"): 2.0 / n**0.5,
        ("weibull", "shape"): 0.6 * (6 / np.pi**2 / n) ** 0.5,
        ("gamma", "shape"): (1 / n / (float(polygamma(1, a)) - 1 / a)) ** 0.5,
        ("pareto", "alpha"): alpha * (alpha + 1) / n**0.5,
        ("lognormal", "sigma"): 1.5 / (2 * n) ** 0.5,
    }
    for (name, parameter), error in errors.items():
        fits = fit_families(Gaps.of(drawn(LAWS[name], n, seed=7)))
        assert abs(fits[name].parameters[parameter][0] - getattr(LAWS[name], parameter)) < 5 * error, name
        # by chance AIC prefers a second parameter to the exponential now and then, BIC hardly ever
        assert min(fits, key=lambda family: float(fits[family].bic[0])) == name
        assert name == "exponential" or best(fits).tolist() == [name]
        law = fits[name].process()
        assert type(law) is type(LAWS[name])
        assert law.survival(1.0) == pytest.approx(LAWS[name].survival(1.0), rel=0.02)


def test_many_sources_are_fitted_as_each_alone() -> None:
    rng = np.random.default_rng(3)
    sources = [law.sample(rng, int(n)) for law in LAWS.values() for n in rng.integers(5, 400, 4)]
    many = fit_families(Gaps.of(*sources))
    for i, gaps in enumerate(sources):
        for name, alone in fit_families(Gaps.of(gaps)).items():
            for key, column in alone.parameters.items():
                assert many[name].parameters[key][i] == pytest.approx(column[0], rel=1e-7)
            assert many[name].aic[i] == pytest.approx(alone.aic[0], rel=1e-10)
            second = len(alone.parameters) * (np.log(len(gaps)) - 2)
            assert many[name].bic[i] - many[name].aic[i] == pytest.approx(second)


def test_the_unit_of_time_does_not_matter() -> None:
    gaps = drawn(LAWS["lognormal"], 300)
    one, other = fit_families(Gaps.of(gaps)), fit_families(Gaps.of(gaps * 1e7))
    for name, fit in one.items():
        assert other[name].aic[0] - fit.aic[0] == pytest.approx(2 * 300 * np.log(1e7), rel=1e-9)
        shape = {"weibull": "shape", "gamma": "shape", "pareto": "alpha", "lognormal": "sigma"}.get(name)
        if shape:
            assert other[name].parameters[shape][0] == pytest.approx(fit.parameters[shape][0], rel=1e-8)


def test_clockwork_stops_at_a_spread_of_1e_4() -> None:
    fits = fit_families(Gaps.of([5.0] * 40))
    assert fits["weibull"].parameters["shape"][0] == pytest.approx(LIMIT)
    assert fits["lognormal"].parameters["sigma"][0] == pytest.approx(1 / LIMIT)
    assert fits["gamma"].parameters["shape"][0] == pytest.approx(LIMIT**2)
    assert fits["pareto"].parameters["alpha"][0] == pytest.approx(LIMIT, rel=1e-3)
    for fit in fits.values():
        law = fit.process()
        assert law is not None
        assert law.mean == pytest.approx(5.0, rel=1e-3)
        assert np.isfinite(fit.aic[0])


def test_gaps_over_eighteen_orders_have_finite_fits() -> None:
    for fit in fit_families(Gaps.of([1e-9, 1e9, 1.0, 2.0, 3.0])).values():
        assert np.isfinite(fit.log_likelihood[0])
        assert all(np.isfinite(column[0]) for column in fit.parameters.values())


def test_a_pareto_law_without_a_mean_is_no_process() -> None:
    gaps = np.random.default_rng(2).pareto(0.5, 2000)
    fit = fit_families(Gaps.of(gaps))["pareto"]
    assert fit.parameters["alpha"][0] == pytest.approx(0.5, rel=0.1)
    assert fit.process() is None


def test_light_tails_leave_pareto_at_the_exponential() -> None:
    gaps = drawn(LAWS["gamma"], 500)
    fits = fit_families(Gaps.of(gaps))
    assert fits["pareto"].parameters["alpha"][0] > 0.99 * LIMIT
    assert fits["pareto"].log_likelihood[0] == pytest.approx(fits["exponential"].log_likelihood[0], rel=1e-4)


def test_refusals() -> None:
    with pytest.raises(InputError, match=r"gaps\[1\] 0.0 must be a finite number above 0: merge changes"):
        Gaps.of([1.0, 0.0, 2.0])
    with pytest.raises(InputError, match="gaps of a source with 1 must be 2 at least"):
        Gaps.of([1.0, 2.0], [3.0])
    with pytest.raises(InputError, match="gaps of no source"):
        Gaps.of()


def test_gaps_of_a_trace_never_reach_from_one_source_to_the_next() -> None:
    gaps = Gaps.between(Trace.of(list("aaabbbb"), [1.0, 2.0, 5.0, 100.0, 110.0, 130.0, 131.0]))
    assert gaps.lengths.tolist() == [1.0, 3.0, 10.0, 20.0, 1.0]
    assert gaps.counts.tolist() == [2, 3]
    assert gaps.medians().tolist() == [2.0, 10.0]
    assert gaps.variation() == pytest.approx([stats.variation([1, 3]), stats.variation([10, 20, 1])])


def test_ranks_are_scipys() -> None:
    rng = np.random.default_rng(4)
    one, two = rng.integers(1, 9, 50).astype(float), rng.exponential(1, 31)
    expected = np.concatenate([stats.rankdata(one), stats.rankdata(two)]) - 1
    assert Gaps.of(one, two).ranks() == pytest.approx(expected)


def test_roots_are_found_and_flat_curves_end_at_an_end() -> None:
    target = np.array([0.5, 3.0, 1e6])

    def curve(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # x³ = 2, x³ = 27, and a curve that stays positive
        height = np.where(target > 1e5, 1.0, target**3 * 2 - u**3)
        return height, np.where(target > 1e5, 0.0, -3 * u**2)

    low, high = np.zeros(3), np.full(3, 10.0)
    found = falls_through(curve, low, high, np.full(3, 9.0))
    assert found == pytest.approx([(2 * 0.5**3) ** (1 / 3), 54 ** (1 / 3), 10.0])


# ---- what Poisson would have over-spent ----


@pytest.mark.parametrize("freshness", [0.05, 0.5, 0.8, 0.99])
def test_polls_needed_are_those_of_the_empirical_process(freshness: float) -> None:
    sources = [drawn(law, 60, seed=i) for i, law in enumerate(LAWS.values())]
    gaps = Gaps.of(*sources)
    needed, times = polls_for(gaps, freshness), overspend(gaps, freshness)
    for i, seen in enumerate(sources):
        assert needed[i] == pytest.approx(sync_rate_for(Empirical(seen), freshness=freshness), rel=1e-9)
        assert times[i] == pytest.approx(poisson_overestimate(Empirical(seen), freshness), rel=1e-9)


def test_polls_needed_keep_the_history_itself_fresh() -> None:
    # gaps that are far from independent: a quiet half, then a busy one
    rng = np.random.default_rng(5)
    changes = np.cumsum(np.concatenate([rng.exponential(10, 200), rng.exponential(0.5, 200)]))
    changes -= changes[0]
    interval = 1 / float(polls_for(Gaps.of(np.diff(changes)), 0.8)[0])
    moments = np.linspace(0, changes[-1], 40_001)[:-1] + changes[-1] / 80_000
    last = changes[np.searchsorted(changes, moments, side="right") - 1]
    phases = (np.arange(50) + 0.5) / 50 * interval
    fresh = [np.mean(phase + np.floor((moments - phase) / interval) * interval >= last) for phase in phases]
    assert np.mean(fresh) == pytest.approx(0.8, abs=2e-3)


def test_bursts_are_overspent_on_and_even_changes_underspent() -> None:
    bursty, even = overspend(Gaps.of(drawn(Weibull(0.4, 1.0), 5000), drawn(Gamma(9.0, 1.0), 5000)), 0.8)
    assert bursty > 1.3
    assert even < 0.95
    # in the long run: the law's own factor
    exact = poisson_overestimate(Weibull(0.4, 1.0), 0.8)
    assert bursty == pytest.approx(exact, rel=0.1)


def test_an_impossible_freshness_is_refused() -> None:
    with pytest.raises(InputError, match=r"freshness 1\.0 must be"):
        polls_for(Gaps.of([1.0, 2.0]), 1.0)
