"""The figures of 000."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.gamma2 import p2
from unstale.core.poisson_orders import Order, order_age, order_freshness
from unstale.core.staleness import age_after, freshness_after
from unstale.core.values import PoissonAge
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, RED, Drawing, canvas
from unstale.report.papers.item import Simulate
from unstale.report.papers.items_000 import figure_7
from unstale.report.papers.items_000_budget import optimal, top
from unstale.study.two_sources import split_freshness

_ORDERS: tuple[tuple[Order, str, str], ...] = (
    ("fixed", "fixed order", BLUE),
    ("random", "random order", ORANGE),
    ("purely-random", "purely random", GREEN),
)
_EXAMPLE_4 = [1, 2, 3, 4, 5]


def _figure_3(simulate: Simulate | None) -> Any:
    figure, (left, right) = canvas(2)
    t = np.linspace(0, 1, 200)
    for axes, after, name in ((left, freshness_after, "expected freshness"), (right, age_after, "expected age")):
        for k in range(3):
            axes.plot(t + k, after(t, 1.0), color=BLUE)
            if k:
                axes.plot([k, k], [after(1.0, 1.0), after(0.0, 1.0)], color=BLUE, linewidth=0.8, linestyle=":")
        axes.set(xlabel="time", title=name, xlim=(0, 3), xticks=[0, 1, 2, 3], xticklabels=["0", "I", "2I", "3I"])
    left.set_ylim(0, 1.05)
    right.set_ylim(0, 0.5)
    return figure


def _figure_6(simulate: Simulate | None) -> Any:
    figure, (left, right) = canvas(2)
    r = np.linspace(1e-9, 5, 300)
    for order, label, color in _ORDERS:
        left.plot(r, order_freshness(r, 1.0, order), color=color, label=label)
        right.plot(r, order_age(r, 1.0, order), color=color, label=label)
    left.set(xlabel="r = λ/f", title="(a) freshness", xlim=(0, 5), ylim=(0, 1))
    right.set(xlabel="r = λ/f", title="(b) age / I", xlim=(0, 5), ylim=(0, 1))
    left.legend()
    return figure


def _figure_7(simulate: Simulate | None) -> Any:
    from matplotlib import rc_context

    with rc_context({"grid.color": "#8b949e66", "grid.linewidth": 0.5}):  # axes in space take no transparency
        figure, panels = canvas(2, height=3.6, subplot_kw={"projection": "3d"})
    r, delta = np.meshgrid(np.linspace(0.05, 5, 22), np.linspace(0, 2, 25))
    both = np.array([[figure_7(x, d * d) for x, d in zip(*row, strict=True)] for row in zip(r, delta, strict=True)])
    titles = ("(a) freshness, proportional / uniform", "(b) age, uniform / proportional")
    for axes, quotient, title in zip(panels, np.moveaxis(both, 2, 0), titles, strict=True):
        axes.plot_surface(r, delta, quotient, cmap="viridis", vmin=0, vmax=1, rstride=1, cstride=1, linewidth=0.1)
        axes.set(xlabel="r", ylabel="δ", title=title, zlim=(0, 1), xlim=(0, 5), ylim=(0, 2))
        axes.set_yticks([0, 0.5, 1, 1.5, 2])
        axes.view_init(elev=24, azim=48)
        for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
            axis.set_pane_color((0.5, 0.5, 0.5, 0.08))
    return figure


def _figure_9(simulate: Simulate | None) -> Any:
    figure, panels = canvas(3, 2, height=2.0)
    x = np.linspace(0, 1, 201)
    for axes, budget, letter in zip(panels, (1, 2, 3, 5, 10, 20), "abcdef", strict=True):
        axes.plot(x, split_freshness(x, budget), color=BLUE)
        best = optimal("F", [9.0, 1.0], budget).sync_rate[1] / budget
        axes.plot([0.1], [split_freshness(0.1, budget)], "o", color=RED, markersize=5, label="proportional")
        axes.plot(
            [best],
            [split_freshness(best, budget)],
            "*",
            color=GREEN,
            markersize=10,
            label="best",
            clip_on=False,
            zorder=4,
        )
        # As in the paper, the axes cross at uniform polling.
        axes.spines["left"].set_position(("data", 0.5))
        axes.spines["bottom"].set_position(("data", 1.0))
        axes.set(title=f"({letter}) budget {budget}", xlim=(0, 1), xticks=[0, 0.25, 0.75, 1])
        axes.set_yticks([y for y in axes.get_yticks() if abs(y - 1) > 0.01 and y > 0])
        axes.grid(False)
        axes.tick_params(labelsize=7)
    panels[0].legend(loc="lower right", fontsize=7)
    return figure


def _figure_10(simulate: Simulate | None) -> Any:
    figure, (left, right) = canvas(2)
    fresh, aged = (optimal(kind, _EXAMPLE_4, 5.0) for kind in "FA")
    _curve(left, fresh.price, BLUE, "")
    left.plot([1 / fresh.price, 5.1], [0, 0], color=BLUE)
    rate = np.linspace(1e-3, 5, 300)
    right.plot(rate, 1 / PoissonAge(rate).interval(np.full(len(rate), aged.price)), color=BLUE)
    for axes, made, title in ((left, fresh, "(a) for freshness"), (right, aged, "(b) for age")):
        axes.plot(_EXAMPLE_4, made.sync_rate, "o", color=RED, markersize=5, clip_on=False, zorder=4)
        axes.set(xlabel="change rate λ (per day)", ylabel="sync rate f (per day)", title=title, xlim=(0, 5.1))
        axes.set_ylim(0, 1.6)
    return figure


def _curve(axes: Any, price: float, color: str, label: str) -> None:
    """Sync rate by change rate at a price; beyond 1/price a source is abandoned."""
    x = np.geomspace(1e-3, 1e3, 600)  # changes per interval, from one end of the curve to the other
    axes.plot(p2(x) / price, p2(x) / x / price, color=color, label=label)


def _figure_17(simulate: Simulate | None) -> Any:
    figure, (axes,) = canvas(1, width=4.6)
    _curve(axes, 1.0, BLUE, "")
    _, rate, sync = top()
    axes.plot([rate], [sync], "o", color=RED, markersize=5)
    axes.annotate(f"({rate:.4f}, {sync:.4f})", (rate, sync), xytext=(0, 8), textcoords="offset points", ha="center")
    axes.set(xlabel="λ, in units of 1/μ", ylabel="f, in units of 1/μ", xlim=(0, 1.02), ylim=(0, 0.36))
    return figure


def _figure_18(simulate: Simulate | None) -> Any:
    figure, (axes,) = canvas(1, width=4.6)
    _curve(axes, 1.0, BLUE, "μ = 1")
    _curve(axes, 2.0, ORANGE, "μ = 2")
    axes.set(xlabel="λ", ylabel="f", xlim=(0, 1.02), ylim=(0, 0.36))
    axes.legend()
    return figure


FIGURES = {
    "000 Figure 3": Drawing(
        "After each poll",
        "Like the paper's: expected freshness and age between polls at I, 2I, … "
        "The paper names no numbers; here I = 1 and one change per interval.",
        _figure_3,
    ),
    "000 Figure 6": Drawing(
        "Orders of polls",
        "Freshness and age by changes per interval, as in the paper. At r = 1 fixed order is "
        "26 % fresher than purely random, and its age is a fourth of purely random, not of random order.",
        _figure_6,
    ),
    "000 Figure 7": Drawing(
        "Uniform against proportional",
        "The paper's two surfaces, both below 1, over ranges of ours. (a) levels off "
        "at (1−e^(−r))/r for large δ and does not reach 0; (b) is 0 from δ = 1 on, where the age of proportional "
        "polling is infinite.",
        _figure_7,
    ),
    "000 Figure 9": Drawing(
        "Two sources, any split",
        "Freshness relative to uniform polling (where the axes cross) by the share x of the "
        "slow source. Dot: proportional polling; star: best. The budgets of the paper's panels are not in its text; "
        "these are ours, with the star near 0.3 in (e) as described. The best share is 1 only up to a budget "
        "of 1.764.",
        _figure_9,
    ),
    "000 Figure 10": Drawing(
        "The optimum of Example 4", "Best sync rate by change rate, and the five sources of Table 5.", _figure_10
    ),
    "000 Figure 17": Drawing(
        "One curve for all fleets",
        "All optimal points lie on this curve, scaled by the price μ; its top is marked.",
        _figure_17,
    ),
    "000 Figure 18": Drawing("Two prices", "Twice the price halves the curve in both directions.", _figure_18),
}
