"""002 (Azar et al.): its algorithms, their edge cases and Figure 1."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import exp1, gammaincinv

from support.golden import Entry, golden
from unstale.core.baselines import change_directed, uniform, weight_proportional
from unstale.core.carousel import Carousel, carousel
from unstale.study.azar import algorithm_1, algorithm_2
from unstale.study.discrete import decaying_freshness, discrete_freshness

Array = np.ndarray[Any, np.dtype[np.float64]]


def optimum(weight: Array, change_rate: Array, budget: float) -> Array:
    """Best rates for eq. (6), independent of the library: bisection on the price, scipy's gamma inverse."""

    def rates(log_price: float) -> Array:
        s = np.exp(log_price) * change_rate / weight
        out = np.zeros(len(weight))
        paid = s < 1
        out[paid] = change_rate[paid] / gammaincinv(2, s[paid])
        return out

    top = np.log(np.max(weight / change_rate))
    root = brentq(lambda x: rates(x).sum() - budget, top - 30, top - 1e-13, xtol=1e-14)
    found = rates(root)
    return found * (budget / found.sum())


def even_freshness(sync_rate: Array, change_rate: Array) -> Array:
    """(1 − e^(−x))/x, x = change_rate/sync_rate, 0 where unpolled (eq. 6)."""
    out = np.zeros(len(sync_rate))
    some = sync_rate > 0
    x = change_rate[some] / sync_rate[some]
    out[some] = -np.expm1(-x) / x
    return out


def columns(entry: Entry) -> tuple[Array, Array]:
    return np.array(entry.inputs["mu"], float), np.array(entry.inputs["Delta"], float)


@golden("A.Alg1")
def test_algorithm_1(entry: Entry) -> None:
    weight, chance = columns(entry)
    p = algorithm_1(weight, chance)
    entry.check({"p": p, "F1": weight @ discrete_freshness(p, chance)})


@golden("A.Alg1.n1")
def test_algorithm_1_with_one_source(entry: Entry) -> None:
    entry.check(algorithm_1(*columns(entry)))


@golden("A.Alg1.Delta=1")
def test_algorithm_1_with_a_source_that_always_changes(entry: Entry) -> None:
    weight, chance = columns(entry)
    entry.check(
        {
            "case mu1=1.0": algorithm_1(weight, chance),
            "case mu1=1.6 (mu2=2, Delta2=0.5)": algorithm_1([1.6, weight[1]], chance),
        }
    )


@golden("A.Alg2")
def test_algorithm_2(entry: Entry) -> None:
    weight, rate = columns(entry)
    f = algorithm_2(weight, rate, entry.inputs["R"])
    entry.check({"p": f, "F2": weight @ (f / (f + rate))})


@golden("A.Alg2.tie", "A.Alg2.equal", "A.Alg2.zeroutil", "A.Delta=0")
def test_algorithm_2_at_the_edges(entry: Entry) -> None:
    entry.check(algorithm_2(*columns(entry), entry.inputs["R"]))


@golden("A.Alg2.cancel")
def test_running_subtraction_fails_where_sums_from_the_best_source_do_not(entry: Entry) -> None:
    weight, rate = columns(entry)
    order = np.argsort(weight / rate, kind="stable")
    total, rates = np.sum(np.sqrt(weight * rate)), np.sum(rate)
    printed = np.zeros(3)
    for i in order:  # Algorithm 2 as 002 writes it
        if weight[i] / rate[i] < (total / (1 + rates)) ** 2:
            total, rates = total - np.sqrt(weight[i] * rate[i]), rates - rate[i]
        else:
            printed[i] = np.sqrt(weight[i] * rate[i]) * (1 + rates) / total - rate[i]
    entry.check({"literal_float64": printed, "suffix_sums": algorithm_2(weight, rate, entry.inputs["R"])})


@golden("A.eq6.opt")
def test_optimum_of_the_same_instance(entry: Entry) -> None:
    weight, rate = columns(entry)
    best = optimum(weight, rate, entry.inputs["R"])
    near = algorithm_2(weight, rate, entry.inputs["R"])
    entry.check(
        {
            "p": best,
            "F": weight @ even_freshness(best, rate),
            "F_of_alg2_rates": weight @ even_freshness(near, rate),
        }
    )


@golden("A.eq11")
def test_rates_have_the_form_of_equation_11(entry: Entry) -> None:
    weight, rate = columns(entry)
    f = algorithm_2(weight, rate, entry.inputs["R"])
    polled = f > 0
    root = np.sqrt(weight * rate)[polled].sum() / (entry.inputs["R"] + rate[polled].sum())
    holds = np.allclose(f[polled], np.sqrt(weight * rate)[polled] / root - rate[polled], rtol=1e-14, atol=0)
    entry.check(holds and bool(np.all(weight[~polled] / rate[~polled] <= root**2)))


@golden("A.eq3")
def test_freshness_in_slots(entry: Entry) -> None:
    entry.check(discrete_freshness(entry.inputs["p"], entry.inputs["Delta"]))


@golden("A.eq5<=6")
def test_even_polls_beat_random_ones(entry: Entry) -> None:
    x = np.array([float(entry.inputs["x"])])
    entry.check([even_freshness(1 / x, np.ones(1))[0], 1 / (1 + x[0])])


@golden("A.burnin")
def test_burn_in_needs_change_probabilities_away_from_zero(entry: Entry) -> None:
    """An unpolled copy is fresh after t slots with probability (1 − c)^t: it fades unless c is near 0."""
    slots_to_fade = np.log(1e-3) / np.log1p(-np.array([1e-12, 0.5, 1 - 1e-12]))
    entry.check(bool(slots_to_fade[0] > 1e12 and slots_to_fade[2] < 1))


@golden("A.Rem4.poisson")
def test_decaying_freshness_tends_to_algorithm_2s_with_ever_shorter_slots(entry: Entry) -> None:
    slot = 1e-15
    entry.check(decaying_freshness(entry.inputs["p"] * slot, entry.inputs["Delta"] * slot))


@golden("A.Rem4.discrete")
def test_decaying_freshness_in_slots(entry: Entry) -> None:
    entry.check(decaying_freshness(entry.inputs["p"], entry.inputs["Delta"]))


@golden("A.Alg3.1/2,1/3,1/6", "A.Alg3.5,3,2 /10", "A.Alg3.4,2,1 /7")
def test_carousel(entry: Entry) -> None:
    share = [Fraction(p) for p in entry.inputs["p"]]
    got = carousel([float(p) for p in share], entry.inputs["T"])
    worst = max(
        abs(np.count_nonzero(got[:t] == k) - p * t) for k, p in enumerate(share) for t in range(1, len(got) + 1)
    )
    entry.check({"omega(0-based)": got.tolist(), "max_discrepancy": str(worst)})


def worst_discrepancy(share: Array, slots: int, rule: str) -> float:
    """Of the carousel's rule with margin 0, or of polling what lags most; plain loops over all sources."""
    polled, worst = np.zeros(len(share)), 0.0
    for t in range(1, slots + 1):
        lag = t * share - polled
        k = int(np.argmin(np.where(lag > 0, (1 - lag) / share, np.inf)) if rule == "margin 0" else np.argmax(lag))
        polled[k] += 1
        worst = max(worst, float(np.max(np.abs(t * share - polled))))
    return worst


@golden("A.Alg3.bound")
def test_carousel_keeps_the_bound_and_other_rules_do_not(entry: Entry) -> None:
    rng = np.random.default_rng(2018)
    violations = others = 0
    for n in [2, 3, 5, 8, 20, 39] * 8:
        share = rng.dirichlet(np.full(n, 0.5)) + 1e-9
        share /= share.sum()
        got = carousel(share, 2000)
        counts = np.cumsum(got[:, None] == np.arange(n), axis=0)
        worst = np.max(np.abs(counts - np.arange(1, 2001)[:, None] * share))
        bound = 1 - 1 / (2 * n - 2)
        violations += worst > bound + 1e-11
        margin_0 = worst_discrepancy(share, 300, "margin 0")
        assert margin_0 < 1 + 1e-12
        others += margin_0 > bound + 1e-11
    for parts in ([1, 1], [1, 2, 5], [1, 1, 3, 7]):
        p, n = [Fraction(x, sum(parts)) for x in parts], len(parts)
        got = carousel(parts, sum(parts))
        reached = max(abs(np.count_nonzero(got[:t] == k) - p[k] * t) for k in range(n) for t in range(sum(parts)))
        assert reached == 1 - Fraction(1, 2 * n - 2)
    # Margin 0 breaks the bound in many trials; polling what lags most exceeds 1 for three well-chosen shares.
    # How often and by how much depends on the shares tried: the entry's counts of its own trials say nothing here.
    assert others > 12
    three = np.repeat([0.014, 0.042, 0.368], [13, 11, 6])
    assert worst_discrepancy(three / three.sum(), 400, "largest lag") > 1.4
    replace(entry, value={"violations": entry.value["violations"]}).check({"violations": violations})


@golden("A.Fig1.limit.new")
def test_ninety_nine_percent(entry: Entry) -> None:
    e3 = (np.exp(-1) - (np.exp(-1) - exp1(1.0))) / 2  # E₃ from E₂ from E₁ at 1
    entry.check(np.sqrt(6) * (1 - 2 * np.e * e3))


@golden("A.Fig1.limit.random", "A.Fig1.limit.change")
def test_limits_of_other_rules(entry: Entry) -> None:
    """Many sources with rates down to 0 and a small budget come close; the limit is in closed form."""
    n, budget = 100_000, 10.0
    rng = np.random.default_rng(1)
    weight = rng.random(n)
    rate = (np.arange(n) + 0.5) / n
    best = weight @ even_freshness(optimum(weight, rate, budget), rate)
    if entry.id.endswith("random"):
        f = algorithm_2(weight, rate, budget)
        reached, limit = weight @ (f / (f + rate)) / best, np.sqrt(2 / 3)
    else:
        f = change_directed(rate, weight, 1.0, budget)
        reached, limit = weight @ even_freshness(f, rate) / best, np.sqrt(3) / 2
    assert reached == pytest.approx(limit, abs=0.01)
    entry.check(limit)


INSTANCES = 20
SLOTS = 10_000


@cache
def fleets() -> dict[tuple[str, int], list[tuple[Array, Array]]]:
    """(change_rate, weight) of every instance: those behind the golden values, drawn in the same order."""
    rng = np.random.default_rng(2018)
    ranks = np.arange(1, 10_001)
    zipf = ranks**-2.0 / np.sum(ranks**-2.0)
    laws = {
        "zipf": lambda: rng.choice(ranks, 1000, p=zipf).astype(float),
        "uniform": lambda: rng.random(1000),
    }
    return {
        (law, budget): [(rng.random(1000), weights()) for _ in range(INSTANCES)]
        for law, weights in laws.items()
        for budget in range(1, 11)
    }


def figure_1(law: str, budget: int) -> dict[str, float]:
    """Means over instances of what each rule reaches, relative to the optimum."""
    rows = []
    for rate, weight in fleets()[law, budget]:

        def worth(f: Array, rate: Array = rate, weight: Array = weight) -> float:
            return float(weight @ even_freshness(f, rate))

        best = worth(optimum(weight, rate, budget))
        f = algorithm_2(weight, rate, budget)
        rows.append(
            {
                "OPT_fraction": best / weight.sum(),
                "new_over_OPT": worth(f) / best,
                "carousel_over_OPT": carousel_worth(f, rate, weight, budget) / best,
                "random_over_OPT": float(weight @ (f / (f + rate))) / best,
                "change_directed": worth(change_directed(rate, weight, 1.0, budget)) / best,
                "utility_prop": worth(weight_proportional(rate, weight, 1.0, budget)) / best,
                "uniform": worth(uniform(rate, weight, 1.0, budget)) / best,
            }
        )
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def carousel_worth(f: Array, rate: Array, weight: Array, budget: float) -> float:
    """Weighted freshness over the gaps of a carousel whose slots are 1/budget long."""
    slots = Carousel(f).take(SLOTS)
    order = np.argsort(slots, kind="stable")
    same = np.diff(slots[order]) == 0
    source, gap = slots[order][:-1][same], np.diff(order)[same] / budget
    sums = np.bincount(source, -np.expm1(-rate[source] * gap) / rate[source], len(f))
    total = np.bincount(source, gap, len(f))
    seen = total > 0
    return float(weight[seen] @ (sums[seen] / total[seen]))


@pytest.mark.slow
@golden(
    "A.Fig1.zipf.R1",
    "A.Fig1.zipf.R5",
    "A.Fig1.zipf.R10",
    "A.Fig1.uniform.R1",
    "A.Fig1.uniform.R5",
    "A.Fig1.uniform.R10",
)
def test_figure_1(entry: Entry) -> None:
    _, _, law, budget = entry.id.split(".")
    got = figure_1(law, int(budget[1:]))
    entry.check(got)
    # The entry's tolerance is 3 standard errors, for other instances; these are the same ones. The carousel's
    # mean depends on how many slots are laid out, the change-directed one on who gets the last of the budget.
    same = {key: value for key, value in entry.value.items() if key not in ("carousel_over_OPT", "change_directed")}
    assert {key: got[key] for key in same} == pytest.approx(same, rel=1e-8)
    assert got["change_directed"] == pytest.approx(entry.value["change_directed"], rel=2e-5)
