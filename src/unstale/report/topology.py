"""Clients served against freshness, a line for each shape: what a fresher answer would cost, and where shapes cross."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unstale.core.checks import Floats
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, PURPLE, RED
from unstale.report.picture import checked, save
from unstale.units import DAY, UNITS

_COLORS = {
    "single": "#8c959f",
    "independent": BLUE,
    "turns": PURPLE,
    "redundancy": ORANGE,
    "tree": GREEN,
    "cooperation": RED,
    "combined": "#24292f",
}


def unit_of(rate: float) -> tuple[str, int]:
    """The unit, and its seconds, in which a rate per day is a number of 1 or more.

    >>> unit_of(30.0)
    ('h', 3600)
    """
    units = [(names[0], seconds) for names, seconds in UNITS.items()]
    return next((unit for unit in units if rate * unit[1] / DAY >= 1), units[-1])


def draw(curves: Mapping[str, tuple[Floats, Floats]], marks: Mapping[str, float], target: float, path: str) -> None:
    """For each shape freshness and clients per day; `marks` are the clients at the target, the winner's first."""
    path = checked(path)
    from matplotlib.figure import Figure

    most = max(*(float(clients.max()) for _, clients in curves.values()), *marks.values())
    unit, seconds = unit_of(most)
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.axvline(100 * target, color="#57606a", linewidth=1, linestyle="--")
    within_reach = {shape: curve for shape, curve in curves.items() if np.any(curve[1] > 0)}
    for shape, (fresh, clients) in within_reach.items():
        winner = shape == next(iter(marks), None)
        # what is out of reach is no point of a line
        shown = np.where(clients > 0, clients, np.nan) * seconds / DAY
        label = f"{shape} (best at the target)" if winner else shape
        axes.plot(100 * fresh, shown, color=_COLORS[shape], linewidth=2.6 if winner else 1.6, label=label)
        if shape in marks:
            axes.plot(
                [100 * target], [marks[shape] * seconds / DAY], "o", color=_COLORS[shape], markersize=9 if winner else 6
            )
    axes.annotate(
        f"target {100 * target:g} %",
        (100 * target, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(-4, 0),
        textcoords="offset points",
        ha="right",
        color="#57606a",
    )
    axes.set_yscale("log")
    # how steeply a line ends tells nothing
    axes.set_ylim(bottom=min(marks.values()) * seconds / DAY / 5)
    axes.set_xlim(0, 100)
    axes.set_xlabel("freshness that clients see (%)")
    axes.set_ylabel(f"clients served per {unit}")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
    save(figure, path, "Clients served against freshness")
