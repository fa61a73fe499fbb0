"""What replicas of the lab reached beside what theory expects, with five standard errors on either side."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

import numpy as np

from unstale.report.papers.figure import BLUE, ORANGE
from unstale.report.picture import checked, save


def draw(title: str, rows: Sequence[tuple[str, float, float, float]], path: str) -> None:
    """A bar for each place: its name, what theory says, what was measured, its standard error."""
    path = checked(path)
    from matplotlib.figure import Figure

    names, model, measured, error = zip(*rows, strict=True)
    figure = Figure(figsize=(max(5.0, 1.6 + 1.7 * len(rows)), 4.5), layout="constrained")
    axes = figure.subplots()
    at = np.arange(len(rows))
    axes.bar(
        at,
        100 * np.array(measured),
        0.6,
        color=BLUE,
        alpha=0.75,
        label="measured, ± 5 standard errors",
        yerr=500 * np.array(error),
        capsize=6,
        ecolor="#24292f",
    )
    axes.hlines(100 * np.array(model), at - 0.42, at + 0.42, color=ORANGE, linewidth=2.6, label="theory")
    below = zip(names, measured, model, strict=True)
    labels = [f"{name}\n{100 * found:.1f} % (theory {100 * expected:.1f} %)" for name, found, expected in below]
    axes.set_xticks(at, labels, fontsize=9)
    axes.set_ylim(0, 115)
    axes.set_yticks(range(0, 101, 20))
    axes.set_ylabel("freshness (%)")
    axes.set_title(fill(title, 60), fontsize=10)
    axes.grid(axis="y", alpha=0.3)
    axes.legend(fontsize=9, loc="upper right")
    save(figure, path, title)
