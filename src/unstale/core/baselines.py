"""The rules other software uses to spend a budget of polls, to be compared with and beaten.

Rules of this file:
1. Every rule is `(change_rate, weight, cost, budget) -> sync_rate` and spends it all: Σ cost·sync_rate =
   budget.
2. A rule whose key is 0 for every source has nothing to tell them apart and polls them uniformly.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.fleet import Fleet
from unstale.core.price import plan
from unstale.core.values import PoissonFreshness
from unstale.errors import require

Rule = Callable[[ArrayLike, ArrayLike, ArrayLike, float], Floats]


def uniform(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float) -> Floats:
    """Every source equally often: never worse than proportional in freshness and age [000 Theorems 3, 4].

    >>> uniform([4, 3, 2], 1, 1, budget=9)
    array([3., 3., 3.])
    """
    _, _, costs, total = _columns(change_rate, weight, cost, budget)
    return _spread(np.ones(len(costs)), costs, total)


def proportional(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float) -> Floats:
    """As often as it changes: intuitive, and the worst of the usual rules for freshness [000 section 5.1].

    >>> proportional([4, 3, 2], 1, 1, budget=9)
    array([4., 3., 2.])
    """
    rate, _, costs, total = _columns(change_rate, weight, cost, budget)
    return _spread(rate, costs, total)


def change_directed(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float) -> Floats:
    """The freshest plan if all weights were equal [000 section 5.3; "change rate directed" in 002 Figure 1].

    With weights uniform on [0, 1], a small budget and many sources it reaches E[weight]/√E[weight²] = √3/2
    of the optimum.

    >>> change_directed([1, 2, 3, 4, 5], 1, 1, budget=5).round(2)
    array([1.15, 1.36, 1.35, 1.14, 0.  ])
    """
    rate, _, costs, total = _columns(change_rate, weight, cost, budget)
    if not np.any(rate > 0):
        return _spread(rate, costs, total)
    return plan(Fleet.of(PoissonFreshness(rate), weight=1.0, cost=costs), total).sync_rate


def weight_proportional(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float) -> Floats:
    """As often as it is read ("utility proportional" in [002 Figure 1]); blind to how fast it changes.

    >>> weight_proportional([4, 3, 2], [1, 1, 2], 1, budget=8)
    array([2., 2., 4.])
    """
    _, weights, costs, total = _columns(change_rate, weight, cost, budget)
    return _spread(weights, costs, total)


def square_root(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float) -> Floats:
    """In proportion to √(weight·change_rate/cost): the optimum for missed changes, w = 1 [003 eq. 71].

    >>> square_root([1, 4, 9], 1, 1, budget=6)
    array([1., 2., 3.])
    """
    rate, weights, costs, total = _columns(change_rate, weight, cost, budget)
    return _spread(np.sqrt(rate) * np.sqrt(weights) / np.sqrt(costs), costs, total)


def cube_root(change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float) -> Floats:
    """In proportion to ∛(weight·change_rate/cost): the optimum for summed lag, w = x [003 eq. 71].

    >>> cube_root([1, 8, 27], 1, 1, budget=6).round(12)
    array([1., 2., 3.])
    """
    rate, weights, costs, total = _columns(change_rate, weight, cost, budget)
    return _spread(np.cbrt(rate) * np.cbrt(weights) / np.cbrt(costs), costs, total)


BASELINES: dict[str, Rule] = {
    "uniform": uniform,
    "proportional": proportional,
    "change-directed": change_directed,
    "weight-proportional": weight_proportional,
    "square-root": square_root,
    "cube-root": cube_root,
}


def _columns(
    change_rate: ArrayLike, weight: ArrayLike, cost: ArrayLike, budget: float
) -> tuple[Floats, Floats, Floats, float]:
    rate = np.atleast_1d(numbers("change_rate", change_rate, least=0))
    weights = numbers("weight", weight, least=0)
    costs = numbers("cost", cost, above=0)
    for name, column in (("weight", weights), ("cost", costs)):
        require(
            column.ndim == 0 or column.shape == rate.shape,
            name,
            f"of shape {column.shape}",
            f"must match change_rate of shape {rate.shape}",
            "give one per source, or one",
        )
    shape = rate.shape
    total = number("budget", budget, above=0)
    return rate, np.broadcast_to(weights, shape), np.broadcast_to(costs, shape), total


def _spread(key: Floats, cost: Floats, budget: float) -> Floats:
    """Rates in proportion to `key` that spend the budget."""
    top = key.max()
    # Relative to the largest: totals stay finite for keys and costs up to 1e300.
    share: Floats = key / top if top > 0 else np.ones(len(key))
    dear = cost / cost.max()
    rates: Floats = share * (budget / cost.max() / float(np.dot(share, dear)))
    return rates
