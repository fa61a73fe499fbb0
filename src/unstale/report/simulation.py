"""Predicted against simulated freshness, source by source: where the dots leave the line, the model is wrong."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from unstale.core.checks import Floats
from unstale.errors import InputError, MissingExtraError, sentence

#: more dots than this are neither seen nor drawn quickly
MOST = 5000


def checked(path: str) -> str:
    """A path a figure can be written to, before hours are spent on what it will show."""
    try:
        import matplotlib.figure  # noqa: F401
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    if Path(path).suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(sentence("plot", repr(path), "has an unknown ending", "use .png, .svg or .pdf"))
    return path


def draw(series: Mapping[str, tuple[Floats, Floats, Floats]], path: str) -> None:
    """For each name (predicted, simulated, standard error) per source, as PNG, SVG or PDF."""
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
    figure.savefig(path, dpi=150)
