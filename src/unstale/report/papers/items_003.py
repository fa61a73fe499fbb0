"""003 (Li, Cline, Loguinov): staleness under any change and poll process."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unstale.core.inverse import sync_rate_for
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear, Penalty, Reciprocal
from unstale.core.processes import Constant, Pareto, Poisson, Process
from unstale.core.quadrature import integrate
from unstale.core.roots.between import between
from unstale.core.staleness import age, consistency, lag_cdf, missed_changes, staleness, update_staleness
from unstale.report.papers.item import Catalog, Item, Simulate, SimulatedMean
from unstale.report.papers.items_004 import case

LI = Catalog()
STALE = Indicator()


def _rates(item: Item) -> tuple[float, float]:
    return item.inputs["mu"], item.inputs["lambda"]


def stale(found: SimulatedMean) -> SimulatedMean:
    """Staleness of what is as fresh as this."""
    return SimulatedMean(1.0 - found.value, found.error)


@LI.computes("L3.36.selfcheck.const")
def _poisson_and_even(item: Item) -> Any:
    return staleness(*_rates(item), STALE)


@LI.computes("L3.36.selfcheck.exp")
def _poisson_and_poisson(item: Item) -> Any:
    rate, sync = _rates(item)
    return staleness(rate, Poisson(sync), STALE)


@LI.simulates("L3.36.selfcheck.const", "L3.36.selfcheck.exp", "L3.47", "L3.48")
def _simulated_poisson(item: Item, simulate: Simulate) -> Any:
    rate, sync = _rates(item)
    polls: Process = Constant(1 / sync) if item.id in ("L3.36.selfcheck.const", "L3.47") else Poisson(sync)
    got = simulate(Poisson(rate), polls, seed=item.number)
    return stale(got["freshness"]) if "36" in item.id else got["age"]


@LI.computes("L3.36.a.*", "L3.36.b.lam*")
def _two_examples(item: Item) -> Any:
    return staleness(*case(item.id.split(".")[2], *_rates(item)), STALE)


@LI.simulates("L3.36.a.*", "L3.36.b.lam*")
def _simulated_two_examples(item: Item, simulate: Simulate) -> Any:
    return stale(simulate(*case(item.id.split(".")[2], *_rates(item)), seed=item.number)["freshness"])


@LI.computes("L3.36.bw")
def _four_times(item: Item) -> Any:
    a = sync_rate_for(Pareto.from_rate(3.0, 2.0), freshness=0.5)
    return round(sync_rate_for(Constant(0.5), freshness=0.5, polls=Pareto.from_rate(3.0, 1.0)) / a, 9)


@LI.computes("L3.41.a", "L3.41.b")
def _consistency(item: Item) -> Any:
    return consistency(item.inputs["tau"], *case(item.id[-1], *_rates(item)))


@LI.simulates("L3.41.a", "L3.41.b")
def _simulated_consistency(item: Item, simulate: Simulate) -> Any:
    return simulate(*case(item.id[-1], *_rates(item)), seed=item.number, tau=item.inputs["tau"])["consistency"]


@LI.computes("L3.38")
def _lag_law(item: Item) -> Any:
    return lag_cdf(item.inputs["x"], *case(item.inputs["case"], *_rates(item)))


@LI.computes("L3.40")
def _no_further_factor(item: Item) -> Any:
    """With another factor 1/T the law could not end at 1 in every unit of time."""
    laws = [
        lag_cdf([0.1 * unit, 0.5 * unit], Pareto.from_rate(3.0, 2.0 / unit), Constant(unit / 2)) for unit in (1, 24)
    ]
    return bool(np.allclose(np.array(laws), [[0.3142857142857143, 1.0]] * 2, rtol=1e-12))


@LI.computes("L3.42x.a", "L3.42x.b")
def _age(item: Item) -> Any:
    return age(*case(item.id[-1], *_rates(item)))


@LI.simulates("L3.42x.a", "L3.42x.b")
def _simulated_age(item: Item, simulate: Simulate) -> Any:
    return simulate(*case(item.id[-1], *_rates(item)), seed=item.number)["age"]


@LI.computes("L3.47")
def _age_even(item: Item) -> Any:
    return age(*_rates(item))


@LI.computes("L3.48")
def _age_poisson(item: Item) -> Any:
    rate, sync = _rates(item)
    return age(rate, Poisson(sync))


@LI.computes("L3.49")
def _three_forms(item: Item) -> Any:
    """λ·E[w₂(D − A_U)], by quadrature of what the formula says."""
    changes, polls = case(item.inputs["case"], *_rates(item))
    interval = polls.mean
    collected, _ = integrate(
        lambda y: polls.rate * np.asarray(changes.age_density(y)) * np.asarray(Linear().w2(interval - y)),
        [0.0, interval],
    )
    return collected


def _summed_case(item: Item) -> tuple[Process, Penalty]:
    _, sync = _rates(item)
    polls: Process = Constant(1 / sync) if item.id.endswith("const") else Poisson(sync)
    return polls, Linear() if ".x." in item.id else STALE


@LI.computes("L3.50.1.*", "L3.50.x.*")
def _summed_penalty(item: Item) -> Any:
    polls, penalty = _summed_case(item)
    return update_staleness(Pareto.from_rate(3.0, item.inputs["mu"]), polls, penalty)


@LI.simulates("L3.50.1.*", "L3.50.x.*")
def _simulated_summed_penalty(item: Item, simulate: Simulate) -> Any:
    polls, penalty = _summed_case(item)
    return simulate(Poisson(item.inputs["mu"]), polls, seed=item.number, penalty=penalty)["update_staleness"]


@LI.computes("L3.50.factors")
def _factors(item: Item) -> Any:
    return [
        round(float(update_staleness(2.0, Poisson(3.0), w) / update_staleness(2.0, 3.0, w)), 12)
        for w in (STALE, Linear())
    ]


@LI.computes("L3.VI-D.bw")
def _polls_for_the_same(item: Item) -> Any:
    found = []
    penalties: tuple[Penalty, ...] = (STALE, Linear())
    for penalty in penalties:
        goal = update_staleness(1.0, 1.0, penalty)

        def excess(sync: float, penalty: Penalty = penalty, goal: Any = goal) -> float:
            return float(update_staleness(1.0, Poisson(sync), penalty) - goal)

        found.append(between(excess, 1.0, 9.0))
    return found


def _matrix(item: Item) -> tuple[dict[str, Process], list[Process]]:
    rate, sync = _rates(item)
    changes = {"U=exp": Poisson(rate), "U=Pareto3": Pareto.from_rate(3.0, rate), "U=const": Constant(1 / rate)}
    return changes, [Constant(1 / sync), Poisson(sync), Pareto.from_rate(3.0, sync)]


@LI.computes("L3.Thm8-10.matrix")
def _staleness_matrix(item: Item) -> Any:
    changes, polls = _matrix(item)
    return {name: [staleness(u, d, STALE) for d in polls] for name, u in changes.items()}


@LI.simulates("L3.Thm8-10.matrix")
def _simulated_matrix(item: Item, simulate: Simulate) -> Any:
    changes, polls = _matrix(item)
    # Even polls of even changes at the same rate keep their phase, so no single run shows the mean over phases.
    return {
        name: [
            None
            if isinstance(u, Constant) and isinstance(d, Constant)
            else stale(simulate(u, d, seed=item.number + 3 * i + k)["freshness"])
            for k, d in enumerate(polls)
        ]
        for i, (name, u) in enumerate(changes.items())
    }


@LI.computes("L3.54")
def _missed(item: Item) -> Any:
    return missed_changes(*_rates(item))


@LI.simulates("L3.54")
def _simulated_missed(item: Item, simulate: Simulate) -> Any:
    rate, sync = _rates(item)
    return simulate(Poisson(rate), Constant(1 / sync), seed=item.number)["missed"]


@LI.computes("L3.55")
def _missed_pareto(item: Item) -> Any:
    rate, sync = _rates(item)
    pareto = missed_changes(rate, Pareto.from_rate(item.inputs["alpha"], sync))
    return [pareto, pareto / missed_changes(rate, sync), pareto / missed_changes(rate, Poisson(sync))]


@LI.simulates("L3.55")
def _simulated_missed_pareto(item: Item, simulate: Simulate) -> Any:
    rate, sync = _rates(item)
    polls = Pareto.from_rate(item.inputs["alpha"], sync)
    return [simulate(Poisson(rate), polls, seed=item.number)["missed"], None, None]


@LI.computes("L3.text")
def _summed_not_source(item: Item) -> Any:
    """The source penalty of w = 1 never exceeds 1 and so cannot add up missed changes."""
    missed = missed_changes(50.0, 1.0)
    same = math.isclose(update_staleness(50.0, 1.0, STALE), missed, rel_tol=1e-15)
    return bool(same and staleness(50.0, 1.0, STALE) < 1 < missed)


@LI.computes("L3.56-57.*")
def _fading(item: Item) -> Any:
    rate, sync = _rates(item)
    even, pareto = (
        update_staleness(rate, polls, Reciprocal()) for polls in (Constant(1 / sync), Pareto.from_rate(3.0, sync))
    )
    return [even, pareto, 1 - even / pareto]


@LI.simulates("L3.56-57.*")
def _simulated_fading(item: Item, simulate: Simulate) -> Any:
    runs = [simulate(*case(name, *_rates(item)), seed=item.number, penalty=Reciprocal()) for name in "ab"]
    return [*(run["update_staleness"] for run in runs), None]


@LI.computes("L3.57.sing")
def _fading_hole(item: Item) -> Any:
    rate, sync = _rates(item)
    return update_staleness(rate, Pareto.from_rate(3.0, sync), Reciprocal())
