"""002 (Azar et al.): its three algorithms, their edges, and Figure 1."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from scipy.special import exp1

from unstale.core.baselines import change_directed, uniform, weight_proportional
from unstale.core.carousel import Carousel, carousel
from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.poisson_orders import order_freshness
from unstale.core.price import plan
from unstale.core.values import PoissonFreshness
from unstale.report.papers.item import NOT_REPEATED, Catalog, Item, Simulate, SimulatedMean
from unstale.study.azar import algorithm_1, algorithm_2
from unstale.study.discrete import decaying_freshness, discrete_freshness

AZAR = Catalog()
INSTANCES = 20
SLOTS = 10_000
SLOTS_SIMULATED = 2_000_000


def _columns(item: Item) -> tuple[Floats, Floats]:
    return np.array(item.inputs["mu"], float), np.array(item.inputs["Delta"], float)


def optimum(weight: Floats, change_rate: Floats, budget: float) -> Floats:
    """The best rates for even polls, eq. (6)."""
    return plan(Fleet.of(PoissonFreshness(change_rate), weight=weight), budget).sync_rate


def worth(sync_rate: Floats, change_rate: Floats, weight: Floats) -> float:
    """Weighted freshness under even polls, eq. (6); a copy that is never polled counts nothing."""
    return float(weight @ np.where(sync_rate > 0, order_freshness(change_rate, sync_rate), 0.0))


@AZAR.computes("A.Alg1")
def _algorithm_1(item: Item) -> Any:
    weight, chance = _columns(item)
    p = algorithm_1(weight, chance)
    return {"p": p.tolist(), "F1": weight @ discrete_freshness(p, chance)}


@AZAR.computes("A.Alg1.n1")
def _algorithm_1_of_one(item: Item) -> Any:
    return algorithm_1(*_columns(item)).tolist()


@AZAR.computes("A.Alg1.Delta=1")
def _algorithm_1_always_changing(item: Item) -> Any:
    weight, chance = _columns(item)
    return {
        "case mu1=1.0": algorithm_1(weight, chance).tolist(),
        "case mu1=1.6 (mu2=2, Delta2=0.5)": algorithm_1([1.6, weight[1]], chance).tolist(),
    }


@AZAR.computes("A.Alg2")
def _algorithm_2(item: Item) -> Any:
    weight, rate = _columns(item)
    f = algorithm_2(weight, rate, item.inputs["R"])
    return {"p": f.tolist(), "F2": float(weight @ (f / (f + rate)))}


@AZAR.computes("A.Alg2.tie", "A.Alg2.equal", "A.Alg2.zeroutil", "A.Delta=0")
def _algorithm_2_at_the_edges(item: Item) -> Any:
    return algorithm_2(*_columns(item), item.inputs["R"]).tolist()


@AZAR.computes("A.Alg2.cancel")
def _running_subtraction(item: Item) -> Any:
    weight, rate = _columns(item)
    total, rates = np.sum(np.sqrt(weight * rate)), np.sum(rate)
    printed = np.zeros(len(rate))
    for i in np.argsort(weight / rate, kind="stable"):  # Algorithm 2 as 002 writes it
        if weight[i] / rate[i] < (total / (1 + rates)) ** 2:
            total, rates = total - np.sqrt(weight[i] * rate[i]), rates - rate[i]
        else:
            printed[i] = np.sqrt(weight[i] * rate[i]) * (1 + rates) / total - rate[i]
    return {
        "literal_float64": printed.tolist(),
        "suffix_sums": algorithm_2(weight, rate, item.inputs["R"]).tolist(),
    }


@AZAR.computes("A.eq6.opt")
def _optimum(item: Item) -> Any:
    weight, rate = _columns(item)
    best, near = optimum(weight, rate, item.inputs["R"]), algorithm_2(weight, rate, item.inputs["R"])
    return {
        "p": best.tolist(),
        "F": worth(best, rate, weight),
        "F_of_alg2_rates": worth(near, rate, weight),
    }


@AZAR.computes("A.eq11")
def _equation_11(item: Item) -> Any:
    weight, rate = _columns(item)
    f = algorithm_2(weight, rate, item.inputs["R"])
    polled = f > 0
    root = np.sqrt(weight * rate)[polled].sum() / (item.inputs["R"] + rate[polled].sum())
    same = np.allclose(f[polled], np.sqrt(weight * rate)[polled] / root - rate[polled], rtol=1e-14, atol=0)
    return bool(same and np.all(weight[~polled] / rate[~polled] <= root**2))


@AZAR.computes("A.eq3")
def _in_slots(item: Item) -> Any:
    return discrete_freshness(item.inputs["p"], item.inputs["Delta"])


@AZAR.simulates("A.eq3")
def _simulated_in_slots(item: Item, simulate: Simulate) -> Any:
    """A change, then a poll, in each slot with their probabilities; fresh if the last event was a poll."""
    rng = np.random.default_rng(item.number)
    polled = rng.random(SLOTS_SIMULATED) < item.inputs["p"]
    changed = rng.random(SLOTS_SIMULATED) < item.inputs["Delta"]
    slot = np.arange(SLOTS_SIMULATED)
    last_poll = np.maximum.accumulate(np.where(polled, slot, -1))
    last_change = np.maximum.accumulate(np.where(changed, slot, -1))
    return _batches(last_poll >= last_change)


@AZAR.computes("A.eq5<=6")
def _even_and_random(item: Item) -> Any:
    return [order_freshness(item.inputs["x"], 1.0), order_freshness(item.inputs["x"], 1.0, "purely-random")]


@AZAR.computes("A.burnin")
def _burn_in(item: Item) -> Any:
    """An unpolled copy is fresh after t slots with probability (1 − c)^t: it fades unless c is near 0."""
    slots = np.log(1e-3) / np.log1p(-np.array([1e-12, 1 - 1e-12]))
    return bool(slots[0] > 1e12 and slots[1] < 1)


@AZAR.computes("A.Rem4.poisson")
def _decaying_poisson(item: Item) -> Any:
    slot = 1e-15  # polls at Poisson times are polls in ever shorter slots
    return decaying_freshness(item.inputs["p"] * slot, item.inputs["Delta"] * slot)


@AZAR.computes("A.Rem4.discrete")
def _decaying_in_slots(item: Item) -> Any:
    return decaying_freshness(item.inputs["p"], item.inputs["Delta"])


@AZAR.simulates("A.Rem4.discrete")
def _simulated_decaying(item: Item, simulate: Simulate) -> Any:
    rng = np.random.default_rng(item.number)
    polled = rng.random(SLOTS_SIMULATED) < item.inputs["p"]
    polled[0] = True
    slot = np.arange(SLOTS_SIMULATED)
    since = slot - np.maximum.accumulate(np.where(polled, slot, 0))
    return _batches(np.exp(-item.inputs["Delta"] * since))


@AZAR.computes("A.Alg3.1/2,1/3,1/6", "A.Alg3.5,3,2 /10", "A.Alg3.4,2,1 /7")
def _carousel(item: Item) -> Any:
    share = [Fraction(p) for p in item.inputs["p"]]
    slots = carousel([float(p) for p in share], item.inputs["T"])
    return {"omega(0-based)": slots.tolist(), "max_discrepancy": str(_worst(slots, share))}


def _worst(slots: Any, share: list[Fraction]) -> Fraction:
    """The largest distance of a source's polls from its share, over all beginnings of a sequence."""
    return max(
        (
            abs(int(np.count_nonzero(slots[:t] == k)) - p * t)
            for k, p in enumerate(share)
            for t in range(len(slots) + 1)
        ),
        default=Fraction(0),
    )


@AZAR.computes("A.Alg3.bound")
def _carousel_bound(item: Item) -> Any:
    rng = np.random.default_rng(2018)
    violations = 0
    for n in [2, 3, 5, 8, 20, 39] * 8:
        share = rng.dirichlet(np.full(n, 0.5)) + 1e-9
        share /= share.sum()
        counts = np.cumsum(carousel(share, 2000)[:, None] == np.arange(n), axis=0)
        worst = np.max(np.abs(counts - np.arange(1, 2001)[:, None] * share))
        violations += int(worst > 1 - 1 / (2 * n - 2) + 1e-11)
    reached = [
        _worst(carousel(parts, sum(parts)), [Fraction(x, sum(parts)) for x in parts])
        == 1 - Fraction(1, 2 * len(parts) - 2)
        for parts in ([1, 1], [1, 2, 5], [1, 1, 3, 7])
    ]
    return {
        "bound": True,
        "violations": violations,
        "tight": all(reached),
        "EDF_margin0_violations_of_bound": NOT_REPEATED,
        "EDF_margin0_max": NOT_REPEATED,
        "max_lag_rule_max": NOT_REPEATED,
    }


@AZAR.computes("A.Fig1.limit.new")
def _ninety_nine(item: Item) -> Any:
    e3 = (np.exp(-1) - (np.exp(-1) - exp1(1.0))) / 2  # E₃ from E₂ from E₁, at 1
    return float(np.sqrt(6) * (1 - 2 * np.e * e3))


@AZAR.computes("A.Fig1.limit.random")
def _limit_random(item: Item) -> Any:
    return float(np.sqrt(2 / 3))


@AZAR.computes("A.Fig1.limit.change")
def _limit_change(item: Item) -> Any:
    return float(np.sqrt(3) / 2)


@AZAR.computes("A.Fig1.zipf.*", "A.Fig1.uniform.*")
def _figure_1(item: Item) -> Any:
    _, _, law, budget = item.id.split(".")
    return figure_1(law, int(budget[1:]))


@cache
def fleets() -> dict[tuple[str, int], list[tuple[Floats, Floats]]]:
    """(change_rate, weight) of every instance: those behind the stored values, drawn in the same order."""
    rng = np.random.default_rng(2018)
    ranks = np.arange(1, 10_001)
    zipf = ranks**-2.0 / np.sum(ranks**-2.0)
    laws: dict[str, Callable[[], Floats]] = {
        "zipf": lambda: rng.choice(ranks, 1000, p=zipf).astype(float),
        "uniform": lambda: rng.random(1000),
    }
    return {
        (law, budget): [(rng.random(1000), weights()) for _ in range(INSTANCES)]
        for law, weights in laws.items()
        for budget in range(1, 11)
    }


@cache
def figure_1(law: str, budget: int) -> dict[str, float]:
    """Means over instances of what each rule reaches, relative to the optimum."""
    rows = []
    for rate, weight in fleets()[law, budget]:
        best = worth(optimum(weight, rate, budget), rate, weight)
        f = algorithm_2(weight, rate, budget)
        rows.append(
            {
                "OPT_fraction": best / weight.sum(),
                "new_over_OPT": worth(f, rate, weight) / best,
                "carousel_over_OPT": _carousel_worth(f, rate, weight, budget) / best,
                "random_over_OPT": float(weight @ (f / (f + rate))) / best,
                "change_directed": worth(change_directed(rate, weight, 1.0, budget), rate, weight) / best,
                "utility_prop": worth(weight_proportional(rate, weight, 1.0, budget), rate, weight) / best,
                "uniform": worth(uniform(rate, weight, 1.0, budget), rate, weight) / best,
            }
        )
    return {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}


def _carousel_worth(f: Floats, rate: Floats, weight: Floats, budget: float) -> float:
    """Weighted freshness over the gaps of a carousel whose slots are 1/budget long."""
    slots = Carousel(f).take(SLOTS)
    order = np.argsort(slots, kind="stable")
    same = np.diff(slots[order]) == 0
    source, gap = slots[order][:-1][same], np.diff(order)[same] / budget
    sums = np.bincount(source, -np.expm1(-rate[source] * gap) / rate[source], len(f))
    total = np.bincount(source, gap, len(f))
    seen = total > 0
    return float(weight[seen] @ (sums[seen] / total[seen]))


def _batches(seen: Any) -> SimulatedMean:
    """Mean of a dependent sequence, its error from the means of 200 batches."""
    means = np.asarray(seen, float).reshape(200, -1).mean(axis=1)
    return SimulatedMean(float(means.mean()), float(means.std(ddof=1)) / 200**0.5)
