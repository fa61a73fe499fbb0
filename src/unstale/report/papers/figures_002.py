"""The figures of 002."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.report.papers.figure import BLUE, GREEN, ORANGE, PURPLE, RED, Drawing, canvas
from unstale.report.papers.item import Simulate
from unstale.report.papers.items_002 import figure_1
from unstale.study.azar import algorithm_2

_RULES = (
    ("", "optimum", BLUE, "-"),
    ("new_over_OPT", "Algorithm 2, even polls", RED, "--"),
    ("carousel_over_OPT", "Algorithm 2, carousel", PURPLE, ":"),
    ("change_directed", "by change rates only", ORANGE, "-"),
    ("utility_prop", "proportional to weights", GREEN, "-"),
    ("uniform", "uniform", "#8b949e", "-"),
)


def _figure_1(simulate: Simulate | None) -> Any:
    figure, panels = canvas(2, height=3.6)
    budgets = range(1, 11)
    for axes, law, title in zip(panels, ("zipf", "uniform"), ("Zipf", "uniform"), strict=True):
        runs = [figure_1(law, budget) for budget in budgets]
        for key, label, color, style in _RULES:
            y = [run["OPT_fraction"] * (run[key] if key else 1.0) for run in runs]
            axes.plot(budgets, y, color=color, linestyle=style, marker="o", markersize=3, label=label)
        axes.set(xlabel="budget R", ylabel="weighted freshness", xlim=(1, 10), title=f"{title} weights")
        axes.set_ylim(0, None)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _figure_2(simulate: Simulate | None) -> Any:
    figure, (axes,) = canvas(1, width=5.6, height=3.6)
    rng = np.random.default_rng(2)
    rate, weight = rng.random(1000), rng.random(1000)
    budget = 50.0
    polled = algorithm_2(weight, rate, budget)
    some = polled > 0
    threshold = (np.sqrt(weight * rate)[some].sum() / (budget + rate[some].sum())) ** 2
    axes.plot(rate[~some], weight[~some], "o", color="#8b949e", markersize=2, alpha=0.6, label="never polled")
    shown = axes.scatter(rate[some], weight[some], c=polled[some], s=9, cmap="viridis")
    axes.plot([0, 1], [0, threshold], color=RED, label="μ = λΔ")
    axes.set(xlabel="change rate Δ", ylabel="weight μ", xlim=(0, 1), ylim=(0, 1))
    figure.colorbar(shown, ax=axes, label="sync rate p")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1), ncols=2)
    return figure


FIGURES = {
    "002 Figure 1": Drawing(
        "Rules by budget",
        "The rules the paper compares, on fleets drawn from the laws it names. Algorithm 2 with "
        "even polls lies 1 % below the optimum; the carousel, which is what runs, loses about 1 % more where few "
        "sources are polled.",
        _figure_1,
    ),
    "002 Figure 2": Drawing(
        "Who is polled",
        "Like the paper's: the solution for a synthetic fleet and the red line below which nothing is "
        "polled. Fleet (1000 sources, uniform laws) and budget (50) are ours.",
        _figure_2,
    ),
}
