"""What all figures share: a canvas whose ink follows the reader's light or dark theme, and its SVG."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import Any

from unstale.errors import MissingExtraError
from unstale.frozen import dataclass
from unstale.report.papers.item import Simulate, SimulatedMean

BLUE, ORANGE, GREEN, RED, PURPLE = "#2f81f7", "#db7b2b", "#2da44e", "#e5534b", "#986ee2"
#: stands for the colour of the surrounding text, which a browser knows and matplotlib does not
INK = "#010203"
_STYLE = {
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.titlesize": 10,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": INK,
    "grid.alpha": 0.12,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "lines.linewidth": 1.8,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """A figure of a paper: what it shows, what in it is ours, and how to draw it."""

    title: str
    caption: str
    draw: Callable[[Simulate | None], Any]
    #: points of a simulation can be drawn over the curves
    overlaid: bool = False


def need_matplotlib() -> Any:
    """The package matplotlib, or the sentence that says how to get it."""
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("matplotlib", "plot") from None
    return matplotlib


def canvas(columns: int, rows: int = 1, height: float = 2.9, width: float = 8.2, **options: Any) -> tuple[Any, Any]:
    """A matplotlib figure and the list of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **options)
    return figure, list(axes.flat)


def svg(name: str, drawing: Drawing, simulate: Simulate | None) -> str:
    """A figure as an SVG element for a page of HTML: no foreign names, ids of its own."""
    rc_context = need_matplotlib().rc_context
    slug = re.sub(r"\W+", "-", name).lower()
    text = io.StringIO()
    with rc_context({**_STYLE, "svg.hashsalt": slug}):
        drawing.draw(simulate).savefig(text, format="svg", transparent=True)
    drawn = text.getvalue()
    drawn = drawn[drawn.index("<svg") :]
    drawn = re.sub(r"<metadata>.*?</metadata>", "", drawn, flags=re.DOTALL)
    drawn = re.sub(r' xmlns(:\w+)?="[^"]*"', "", drawn)
    drawn = re.sub(r'(\bid="|url\(#|href="#)', lambda m: f"{m[1]}{slug}-", drawn)
    # As wide as drawn and no wider, but narrower on a narrow screen: the sizes become a limit.
    width = re.search(r'<svg [^>]*?width="([\d.]+)pt"', drawn)
    drawn = re.sub(r' (width|height)="[\d.]+pt"', "", drawn, count=2)
    size = f"max-width:{1.45 * float(width[1]):.0f}px" if width else ""
    drawn = drawn.replace("<svg ", f'<svg role="img" aria-label="{name}: {drawing.title}" style="{size}" ', 1)
    return drawn.replace(INK, "currentColor").strip()


def points(axes: Any, x: Any, found: list[SimulatedMean], color: str = RED, label: str = "simulation") -> None:
    """Simulated points with bars of 5 standard errors; hollow where the variance is infinite and there are none."""
    sure = [e.error < float("inf") for e in found]
    bars = [5 * e.error if ok else 0.0 for e, ok in zip(found, sure, strict=True)]
    axes.errorbar(
        x,
        [e.value for e in found],
        yerr=bars,
        fmt="o",
        color=color,
        markersize=4.5,
        capsize=2.5,
        linewidth=1.2,
        markerfacecolor=color if all(sure) else "none",
        label=label,
        zorder=3,
    )
