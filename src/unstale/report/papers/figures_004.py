"""The figures of 004, section by section as its models exist."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.processes import Constant, Pareto, Poisson, Process
from unstale.core.staleness import freshness
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, Drawing, canvas, points
from unstale.report.papers.figures_003 import two_panels
from unstale.report.papers.item import Simulate, SimulatedMean
from unstale.report.papers.items_004 import CHANGES, POLLS, on_periods
from unstale.study.on_periods import residual_cdf

_SYNC = np.linspace(0.05, 10, 80)


def _figure_3(simulate: Simulate | None) -> Any:
    return two_panels(simulate, freshness, "freshness, p", 30, lambda run: run["freshness"])


def _shapes(rate: float) -> list[tuple[str, Process, str]]:
    return [
        ("constant", Constant(1 / rate), BLUE),
        ("exponential", Poisson(rate), ORANGE),
        ("Pareto", Pareto.from_rate(3.0, rate), GREEN),
    ]


def _figure_4(simulate: Simulate | None) -> Any:
    figure, (left, right) = canvas(2)
    for k, (label, _, color) in enumerate(_shapes(1.0)):
        polled = [freshness(Poisson(2.0), _shapes(sync)[k][1]) for sync in _SYNC]
        changed = [freshness(_shapes(2.0)[k][1], Poisson(sync)) for sync in _SYNC]
        left.plot(_SYNC, polled, color=color, label=f"{label} polls")
        right.plot(_SYNC, changed, color=color, label=f"{label} changes")
    left.axhline(0.5, color="#8b949e", linewidth=0.8, linestyle=":")
    left.set(title="(a) by poll process", xlabel="sync rate λ", ylabel="freshness, p", xlim=(0, 10), ylim=(0, 1))
    right.set(title="(b) by change process", xlabel="sync rate λ", xlim=(0, 10), ylim=(0, 1))
    left.legend()
    right.legend()
    return figure


def _figure_7(simulate: Simulate | None) -> Any:
    figure, (left, right) = canvas(2)
    x = np.linspace(0, 5, 150)
    left.plot(x, residual_cdf(x, CHANGES, POLLS), color=BLUE, label="model")
    if simulate is not None:
        some = np.array([0.1, 0.3, 0.6, 1.0, 1.6, 2.4, 3.4, 4.6])
        fresh = on_periods(CHANGES, POLLS, 1_000_000, 7)
        points(left, some, [_rest(fresh, t) for t in some])
    far = np.geomspace(0.05, 100, 120)
    right.loglog(far, 1 - np.asarray(residual_cdf(far, CHANGES, POLLS)), color=BLUE, label="rest of a fresh period")
    right.loglog(far, CHANGES.age_survival(far), color=ORANGE, label="rest of a gap between changes")
    left.set(title="(a) law of the rest of a fresh period", xlabel="x", ylabel="$G_V(x)$", xlim=(0, 5), ylim=(0, 1))
    right.set(title="(b) tails", xlabel="x", ylabel="1 − G(x)")
    left.legend(loc="lower right")
    right.legend(loc="lower left")
    return figure


def _rest(fresh: Any, x: float) -> SimulatedMean:
    """P(rest ≤ x) = E[min(V, x)]/E[V] as a ratio of means, with its error."""
    shorter = np.minimum(fresh, x)
    ratio = float(shorter.mean() / fresh.mean())
    spread = float(np.std(shorter - ratio * fresh)) / fresh.mean()
    return SimulatedMean(ratio, float(spread) / len(fresh) ** 0.5)


FIGURES = {
    "004 Figure 3": Drawing(
        "Freshness by sync rate",
        "The complement of 003 Figure 4: model and simulation at 2 changes per unit of time. "
        "Bars are 5 standard errors.",
        _figure_3,
        True,
    ),
    "004 Figure 4": Drawing(
        "Which polls, which changes",
        "Order as in the paper: constant polls are best, Pareto changes easiest. What "
        "the other process is in each panel is not printed; here it is exponential, with change rate 2.",
        _figure_4,
    ),
    "004 Figure 7": Drawing(
        "How long a copy will stay fresh",
        "Pareto changes (α = 3, β = 1) and exponential polls (λ = 2), as in the "
        "paper; the tail of the rest of a fresh period is the heavier one.",
        _figure_7,
        True,
    ),
}
