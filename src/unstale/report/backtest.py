"""A backtest in one figure: freshness (or age) against polls, a line for each policy, ours in front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unstale.report.papers.figure import BLUE, RED
from unstale.report.picture import checked, save

#: polls per change, the measured mean and its standard error, in this order
Point = tuple[float, float, float]
_GREYED = ("#db7b2b", "#2da44e", "#986ee2", "#bf8700", "#0e8a8a", "#a0522d", "#c2549c", "#6e7781")


def draw(
    lines: Mapping[str, Sequence[Point]], path: str, *, ours: str, oracle: str, label: str, log: bool = False
) -> None:
    """Points of each policy by name; `ours` is drawn in front, `oracle` as a dashed line."""
    path = checked(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.4, 5.4), layout="constrained")
    axes = figure.subplots()
    colors = iter(_GREYED * (1 + len(lines) // len(_GREYED)))
    for name, points in lines.items():
        x, y, error = zip(*points, strict=True)
        style: dict[str, Any]
        if name == ours:
            style = {"color": BLUE, "linewidth": 3.0, "markersize": 7, "zorder": 5}
        elif name == oracle:
            style = {"color": RED, "linewidth": 1.4, "markersize": 4, "linestyle": "--", "zorder": 4}
        else:
            style = {"color": next(colors), "linewidth": 1.2, "markersize": 4, "alpha": 0.85}
        axes.errorbar(
            x, y, yerr=error, fmt="-o" if name != oracle else "o", elinewidth=1, capsize=2, label=name, **style
        )
    axes.set_xscale("log")
    ticks = sorted({point[0] for points in lines.values() for point in points})
    axes.set_xticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axes.minorticks_off()
    if log:
        axes.set_yscale("log")
    axes.set_xlabel("polls per change")
    axes.set_ylabel(label)
    axes.grid(alpha=0.3)
    axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)
    save(figure, path, "Backtest: every policy at the same polls")
