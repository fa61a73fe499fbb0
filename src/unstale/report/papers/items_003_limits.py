"""003 (Li, Cline, Loguinov): gaps without a law, sums that never settle, dominance, polls in step with changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.special import spence

from unstale.core.lags import trails
from unstale.core.penalties import Linear
from unstale.core.processes import Constant, Empirical, Poisson
from unstale.core.quadrature import integrate
from unstale.core.roots.between import between
from unstale.core.staleness import staleness
from unstale.report.papers.item import Catalog, Item, Simulate, SimulatedMean
from unstale.report.papers.items_003 import STALE, stale

LIMITS = Catalog()


@LIMITS.computes("L3.23")
def _no_law(item: Item) -> Any:
    """Gaps that tend to 1 in law while their mean tends to 2: half of all time is in long gaps."""
    root = np.sqrt(np.arange(1, item.inputs["n"] + 1))
    long = np.random.default_rng(23).random(len(root)) < 1 / root
    gaps = np.where(long, root, 1.0)
    return [float(gaps.mean()), float(gaps[long].sum() / gaps.sum())]


@LIMITS.computes("L3.28")
def _never_settles(item: Item) -> Any:
    """(1/n)·Σ w₂(X_i) tends in law to 1/2 + 24.5·Y, Y of Dickman's law."""
    low, jump = float(Linear().w2(1.0)), float(Linear().w2(7.0))

    def quantile(p: float) -> float:
        return low + jump * between(lambda y: _dickman(y) - p, 0.0, 3.0)

    return {
        "mean": low + jump,
        "sd": jump * math.sqrt(0.5),
        "P[25<=S<=30]": _dickman((30 - low) / jump) - _dickman((25 - low) / jump),
        "q05": quantile(0.05),
        "median": quantile(0.5),
        "q95": quantile(0.95),
    }


def _dickman(y: float) -> float:
    """P(Y ≤ y) for y ≤ 3: the density e^(−γ)·ρ(y) has ρ = 1, then 1 − log y, then one more integral."""
    c = math.exp(-np.euler_gamma)
    if y <= 1:
        return c * y
    if y <= 2:
        return c * (2 * y - y * math.log(y) - 1)

    def rho(u: Any) -> Any:
        # ∫₂ᵘ log(t−1)/t dt = log(u)·log(u−1) + Li₂(1−u) + π²/12, and spence(z) = Li₂(1−z)
        return 1 - np.log(u) + np.log(u) * np.log(u - 1) + spence(u) + np.pi**2 / 12

    return _dickman(2.0) + c * float(integrate(rho, [2.0, y])[0])


@LIMITS.simulates("L3.28")
def _simulated_never_settles(item: Item, simulate: Simulate) -> Any:
    rng, count, n = np.random.default_rng(item.number), 400, np.arange(1, 2**14 + 1)
    sums = [np.where(rng.random(n.size) < 1 / n, 24.5 * n, 0.5).mean() for _ in range(count)]
    return {"mean": SimulatedMean(float(np.mean(sums)), float(np.std(sums)) / count**0.5)}


@LIMITS.computes("L3.Thm8")
def _one_direction(item: Item) -> Any:
    """Polls 1 do not dominate polls 2, yet are less stale by every measure, for these Poisson changes."""
    one, two = Empirical([0.2, 0.998 / 0.99], [1, 99]), Empirical([0.5, 1.5])
    corners = np.array([0.2, 0.5, 0.998 / 0.99, 1.5])
    # Linear between corners, so the least value is at one of them.
    dominance = np.asarray(one.age_cdf(corners)) - np.asarray(two.age_cdf(corners))
    grid = np.linspace(0.0, 1.5, 301)
    excess = np.asarray(trails(Poisson(1.0), two, grid)) - np.asarray(trails(Poisson(1.0), one, grid))
    return {
        "min H2 (must be >=0 for D1>=D2)": float(dominance.min()),
        "min over x>=0 of P(AD2-AU>x)-P(AD1-AU>x)": float(excess.min()),
    }


@LIMITS.computes("L3.equidist")
def _incommensurable(item: Item) -> Any:
    return staleness(Constant(item.inputs["U"]), Constant(math.pi), STALE)


@LIMITS.computes("L3.Thm11")
def _no_lattice(item: Item) -> Any:
    return staleness(Constant(1.0), Empirical([1.0, math.pi]), STALE)


@LIMITS.simulates("L3.Thm11")
def _simulated_no_lattice(item: Item, simulate: Simulate) -> Any:
    return stale(simulate(Constant(1.0), Empirical([1.0, math.pi]), seed=item.number)["freshness"])
