"""Predicted against simulated freshness, source by source: where the dots leave the line, the model is wrong."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from unstale.core.checks import Floats
from unstale.report.picture import checked, save

#: more dots than this are neither seen nor drawn quickly
MOST = 5000


def draw(series: Mapping[str, tuple[Floats, Floats, Floats]], path: str) -> None:
    """For each name (predicted, simulated, standard error) per source."""
    path = checked(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 5.6), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 100], [0, 100], color="#8c959f", linewidth=1, zorder=1)
    for name, columns in series.items():
        thin = slice(None, None, max(1, -(-len(columns[0]) // MOST)))
        want, got, error = (100 * np.asarray(column)[thin] for column in columns)
        axes.errorbar(want, got, yerr=error, fmt="o", markersize=4, alpha=0.7, elinewidth=1, label=name)
    axes.set_xlabel("predicted freshness (%)")
    axes.set_ylabel("simulated freshness (%), with standard error")
    axes.set_xlim(-2, 102)
    axes.set_ylim(-2, 102)
    axes.grid(alpha=0.3)
    axes.legend()
    save(figure, path, "Predicted and simulated freshness")
