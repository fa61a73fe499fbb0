"""003: staleness of one copy under any change and poll process, and what the paper says of Wikipedia."""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import spence

from support.golden import Entry, golden
from unstale.core.inverse import sync_rate_for
from unstale.core.lags import trails
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear, Reciprocal
from unstale.core.phase import phase_locked
from unstale.core.processes import Constant, Empirical, Pareto, Poisson, Process
from unstale.core.quadrature import integrate
from unstale.core.staleness import (
    age,
    consistency,
    freshness,
    lag_cdf,
    missed_changes,
    staleness,
    update_staleness,
)

STALE = Indicator()


def case(name: str, rate: float, sync: float) -> tuple[Process, Process]:
    """The two examples of the paper: (a) Pareto changes, even polls; (b) even changes, Pareto polls."""
    if name == "a":
        return Pareto.from_rate(3.0, rate), Constant(1 / sync)
    return Constant(1 / rate), Pareto.from_rate(3.0, sync)


def rates(entry: Entry) -> tuple[float, float]:
    return entry.inputs["mu"], entry.inputs["lambda"]


@golden("L3.36.selfcheck.const")
def test_stale_share_of_poisson_changes_and_even_polls(entry: Entry) -> None:
    entry.check(staleness(*rates(entry), STALE))


@golden("L3.36.selfcheck.exp")
def test_stale_share_of_poisson_changes_and_polls(entry: Entry) -> None:
    rate, sync = rates(entry)
    entry.check(staleness(rate, Poisson(sync), STALE))


@golden("L3.36.a.lam2", "L3.36.a.lam3", "L3.36.b.lam2", "L3.36.b.lam3")
def test_stale_share_of_the_two_examples(entry: Entry) -> None:
    changes, polls = case(entry.id.split(".")[2], *rates(entry))
    entry.check(staleness(changes, polls, STALE))
    assert math.isclose(freshness(changes, polls), 1 - entry.value, rel_tol=1e-10)


@golden("L3.36.bw")
def test_example_b_needs_four_times_the_polls(entry: Entry) -> None:
    for level in (0.2, 0.5, 0.9):
        a = sync_rate_for(Pareto.from_rate(3.0, 2.0), freshness=level)
        b = sync_rate_for(Constant(0.5), freshness=level, polls=Pareto.from_rate(3.0, 1.0))
        assert math.isclose(b / a, entry.value, rel_tol=1e-10)
    entry.check(round(b / a, 9))


@golden("L3.41.a", "L3.41.b")
def test_consistency(entry: Entry) -> None:
    entry.check(consistency(entry.inputs["tau"], *case(entry.id[-1], *rates(entry))))


@golden("L3.38")
def test_law_of_the_lag(entry: Entry) -> None:
    entry.check(lag_cdf(entry.inputs["x"], *case(entry.inputs["case"], *rates(entry))))


@golden("L3.40")
def test_the_lag_law_has_no_further_factor(entry: Entry) -> None:
    """With the factor 1/T of the printed proof the law could not end at 1 for every unit of time."""
    for unit in (1.0, 24.0):
        changes, polls = Pareto.from_rate(3.0, 2.0 / unit), Constant(unit / 2)
        law = lag_cdf([0.1 * unit, 0.5 * unit], changes, polls)
        assert np.allclose(law, [0.3142857142857143, 1.0], rtol=1e-12)
    entry.check("1/p·ΣP(...)")


@golden("L3.42x.a", "L3.42x.b")
def test_age_of_the_two_examples(entry: Entry) -> None:
    entry.check(age(*case(entry.id[-1], *rates(entry))))


@golden("L3.47")
def test_age_of_poisson_changes_and_even_polls(entry: Entry) -> None:
    entry.check(age(*rates(entry)))


@golden("L3.48")
def test_age_of_poisson_changes_and_polls(entry: Entry) -> None:
    rate, sync = rates(entry)
    entry.check(age(rate, Poisson(sync)))


@golden("L3.49")
def test_source_penalty_in_its_three_forms(entry: Entry) -> None:
    changes, polls = case(entry.inputs["case"], *rates(entry))
    entry.check(staleness(changes, polls, Linear()))
    # λ·E[w2(D − A_U)] and E[w(A_D − A_U)], by quadrature of what the formulas say
    d = polls.mean
    density = lambda y: np.asarray(changes.age_density(y))  # noqa: E731
    entry.check(integrate(lambda y: polls.rate * density(y) * np.asarray(Linear().w2(d - y)), [0.0, d])[0])
    entry.check(integrate(lambda x: np.asarray(trails(changes, polls, x)), [0.0, d])[0])


@golden("L3.50.1.const", "L3.50.x.const", "L3.50.1.exp", "L3.50.x.exp")
def test_update_penalty(entry: Entry) -> None:
    rate, sync = rates(entry)
    polls = Constant(1 / sync) if entry.id.endswith("const") else Poisson(sync)
    penalty = Linear() if ".x." in entry.id else STALE
    for changes in (Poisson(rate), Pareto.from_rate(3.0, rate), Constant(1 / rate)):
        entry.check(update_staleness(changes, polls, penalty))


@golden("L3.50.factors")
def test_exponential_polls_double_and_sextuple_the_penalty(entry: Entry) -> None:
    got = [update_staleness(2.0, Poisson(3.0), w) / update_staleness(2.0, 3.0, w) for w in (STALE, Linear())]
    entry.check([round(x, 12) for x in got])


@golden("L3.Thm8-10.matrix")
def test_even_polls_are_best_and_pareto_changes_easiest(entry: Entry) -> None:
    rate, sync = rates(entry)
    all_changes = {
        "U=exp": Poisson(rate),
        "U=Pareto3": Pareto.from_rate(3.0, rate),
        "U=const": Constant(1 / rate),
    }
    all_polls = [Constant(1 / sync), Poisson(sync), Pareto.from_rate(3.0, sync)]
    got = {k: [staleness(u, d, STALE) for d in all_polls] for k, u in all_changes.items()}
    entry.check(got)
    for row in got.values():
        assert row[0] == min(row)
    for column in zip(*got.values(), strict=True):
        assert column[1] == min(column)


@golden("L3.54")
def test_missed_changes(entry: Entry) -> None:
    rate, sync = rates(entry)
    entry.check(missed_changes(rate, sync))
    entry.check(missed_changes(Pareto.from_rate(3.0, rate), Constant(1 / sync)))


@golden("L3.55")
def test_missed_changes_under_pareto_polls(entry: Entry) -> None:
    rate, sync = rates(entry)
    pareto = missed_changes(rate, Pareto.from_rate(entry.inputs["alpha"], sync))
    even, exponential = missed_changes(rate, sync), missed_changes(rate, Poisson(sync))
    entry.check([pareto, pareto / even, pareto / exponential])


@golden("L3.text")
def test_missed_changes_are_an_update_penalty(entry: Entry) -> None:
    """The source penalty of w = 1 never exceeds 1 and so cannot add up missed changes."""
    rate, sync = 50.0, 1.0
    assert staleness(rate, sync, STALE) < 1 < missed_changes(rate, sync)
    assert math.isclose(update_staleness(rate, sync, STALE), missed_changes(rate, sync), rel_tol=1e-15)
    entry.check("update penalty")


@golden(prefix="L3.56-57.")
def test_fading_penalty(entry: Entry) -> None:
    rate, sync = rates(entry)
    (_, even), (_, pareto) = case("a", rate, sync), case("b", rate, sync)
    a, b = (update_staleness(rate, polls, Reciprocal()) for polls in (even, pareto))
    entry.check([a, b, 1 - a / b])


@golden("L3.57.sing")
def test_fading_penalty_where_the_formula_divides_by_zero(entry: Entry) -> None:
    rate, sync = rates(entry)
    entry.check(update_staleness(rate, Pareto.from_rate(3.0, sync), Reciprocal()))
    for e in (1e-4, -1e-4):
        near = update_staleness(rate, Pareto.from_rate(3.0, 2 * (1 + e)), Reciprocal())
        assert abs(near - (0.5 - e / 3 + e * e / 4)) < 1e-12


@golden("L3.23")
def test_a_process_whose_age_has_no_law(entry: Entry) -> None:
    """Counter-example (23): gaps tend to 1 in law, their mean to 2; half of all time is in long gaps."""
    n = entry.inputs["n"]
    rng = np.random.default_rng(23)
    root = np.sqrt(np.arange(1, n + 1))
    long = rng.random(n) < 1 / root
    gaps = np.where(long, root, 1.0)
    entry.check([gaps.mean(), gaps[long].sum() / gaps.sum()])


@golden("L3.28")
def test_a_process_whose_mean_age_never_settles(entry: Entry) -> None:
    """Counter-example (28): (1/n)·Σ w2(X_i) tends in law to 1/2 + 24.5·Y, Y Dickman."""
    jump = Linear().w2(7.0)
    assert jump == 24.5
    low = Linear().w2(1.0)
    c = math.exp(-np.euler_gamma)

    def cdf(y: float) -> float:
        # P(Y ≤ y): the density e^(−γ)·ρ(y) has ρ = 1, then 1 − log y, then one more integral
        if y <= 1:
            return c * y
        if y <= 2:
            return c * (2 * y - y * math.log(y) - 1)
        # ∫₂ᵘ log(t−1)/t dt = log(u)·log(u−1) + Li₂(1−u) + π²/12, spence(z) = Li₂(1−z)
        rho = lambda u: 1 - np.log(u) + np.log(u) * np.log(u - 1) + spence(u) + np.pi**2 / 12  # noqa: E731
        return cdf(2.0) + c * integrate(rho, [2.0, y])[0]

    def quantile(p: float) -> float:
        return low + jump * brentq(lambda y: cdf(y) - p, 0.0, 3.0)

    entry.check(
        {
            "mean": low + jump * 1.0,
            "sd": jump * math.sqrt(0.5),
            "P[25<=S<=30]": cdf((30 - low) / jump) - cdf((25 - low) / jump),
            "q05": quantile(0.05),
            "median": quantile(0.5),
            "q95": quantile(0.95),
        }
    )
    # the law itself, from the sums: 400 of them, n = 2^14
    rng = np.random.default_rng(28)
    i = np.arange(1, 2**14 + 1)
    sums = np.array([np.where(rng.random(i.size) < 1 / i, jump * i, low).mean() for _ in range(400)])
    assert abs(sums.mean() - entry.value["mean"]) < 5 * entry.value["sd"] / 20
    assert abs(np.median(sums) - entry.value["median"]) < 5 * 1.25 * entry.value["sd"] / 20


@golden("L3.Thm8")
def test_theorem_8_holds_in_one_direction_only(entry: Entry) -> None:
    """Polls 1 do not dominate polls 2, yet are less stale by every measure, for these Poisson changes."""
    one = Empirical([0.2] * 1 + [0.998 / 0.99] * 99)
    two = Empirical([0.5, 1.5])
    changes = Poisson(1.0)
    x = np.array([0.2, 0.5, 0.998 / 0.99, 1.5])
    # H2(x) = ∫₀ˣ (F₂ − F₁) = mean·(G₁ − G₂), piecewise linear: its least value is at a corner
    dominance = np.asarray(one.age_cdf(x)) - np.asarray(two.age_cdf(x))
    grid = np.linspace(0.0, 1.5, 301)
    excess = np.asarray(trails(changes, two, grid)) - np.asarray(trails(changes, one, grid))
    entry.check(
        {
            "min H2 (must be >=0 for D1>=D2)": float(dominance.min()),
            "min over x>=0 of P(AD2-AU>x)-P(AD1-AU>x)": float(excess.min()),
        }
    )


@golden("L3.Gbps")
def test_bandwidth_in_bits(entry: Entry) -> None:
    bits = 8 * 25_000 / entry.inputs["omega"]
    entry.check([99e3 * bits / 1e9, 4.6e6 * bits / 1e9])


@golden("L3.wiki.inconsistent")
def test_the_printed_quantiles_exclude_the_printed_mean(entry: Entry) -> None:
    """Each class at its upper end: half at 8 a year, 40 % at 1 a week, 8 % at 1 a day, 2 % at the top."""
    top = entry.inputs["max mu/day"]
    share = np.array([0.5, 0.4, 0.08, 0.02])
    most = np.array([8 / 365.25, 1 / 7, 1.0, top])
    entry.check(
        {
            "max possible E[mu]/day": float(share @ most),
            "max possible E[sqrt mu]^2": float(share @ np.sqrt(most)) ** 2,
        }
    )


@golden("L3.GWB.mean")
def test_the_printed_fit_has_another_mean(entry: Entry) -> None:
    entry.check(
        {
            "10y/44296 h": 10 * 365.25 * 24 / 44296,
            "Pareto(1.4,.93) mean h": Pareto(1.4, 0.93).mean,
            "Pareto(1.5,.93) mean h": Pareto(1.5, 0.93).mean,
        }
    )


@golden("L3.GWB.pareto")
def test_polls_a_day_for_the_printed_fit(entry: Entry) -> None:
    scale, level = entry.inputs["beta_h"], 1 - entry.inputs["p"]
    fits = {alpha: Pareto(alpha, scale) for alpha in (1.4, 1.5)}
    entry.check(
        {f"alpha={alpha}": 24 * sync_rate_for(u, freshness=level) for alpha, u in fits.items()}
        | {f"staleness at 8/day, alpha={alpha}": staleness(u, 8 / 24, STALE) for alpha, u in fits.items()}
    )


@golden("L3.GWB.poisson")
def test_polls_a_day_if_the_changes_were_poisson(entry: Entry) -> None:
    level, mean = 1 - entry.inputs["p"], entry.inputs["mean_h"]
    entry.check(
        {
            "mu=1/1.86h": 24 * sync_rate_for(1 / mean, freshness=level),
            "mu=1.86 per HOUR": 24 * sync_rate_for(mean, freshness=level),
        }
    )


@golden("L3.Hurst")
def test_hurst_exponent(entry: Entry) -> None:
    """Counts whose correlation falls like h^(−γ) have a variance that grows like t^(2−γ): H = 1 − γ/2."""
    power = entry.inputs["gamma"]
    # Var of a sum of n such terms, 2·Σ (n−h)·h^(−γ), on two scales
    variance = [2 * float(np.sum((n - h) * h**-power)) for n in (2**20, 2**21) for h in [np.arange(1.0, n)]]
    assert abs(math.log2(variance[1] / variance[0]) / 2 - entry.value) < 1e-4
    entry.check(1 - power / 2)


@golden("L3.equidist")
def test_incommensurable_intervals_see_the_average(entry: Entry) -> None:
    changes, polls = Constant(entry.inputs["U"]), Constant(math.pi)
    assert not phase_locked(changes, polls)
    entry.check(staleness(changes, polls, STALE))
    # the deterministic sequence of polls itself
    phase = np.arange(1, 2_000_001) * math.pi % 5
    stale = np.maximum(math.pi - (5 - phase), 0.0).mean() / math.pi
    # π is close to 355/113, so the phases fill the gap in passes of 170 000 polls
    assert abs(stale - entry.value) < 2e-4


@golden("L3.Thm11")
def test_independent_gaps_that_are_no_lattice_do_not_lock(entry: Entry) -> None:
    changes, polls = Constant(1.0), Empirical([1.0, math.pi])
    assert not phase_locked(changes, polls)
    entry.check(staleness(changes, polls, STALE))
    rng = np.random.default_rng(11)
    gaps = np.where(rng.random(1_000_000) < 0.5, 1.0, math.pi)
    wait = 1.0 - np.cumsum(gaps) % 1.0
    stale = np.maximum(np.append(gaps[1:], 0) - wait, 0.0).sum() / gaps.sum()
    assert abs(stale - entry.value) < 5e-4
