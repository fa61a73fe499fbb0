"""A fleet at a glance: how often sources change, how often they are polled, and how fresh their copies are."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.report.picture import checked, save
from unstale.units import DAY, format_duration

#: more dots say no more
_DOTS = 20_000
#: where people read times: a second, ten, a minute, ten, an hour, six, a day, a week, a month, a year, ten
_MARKS = (1, 10, 60, 600, 3600, 21_600, 86_400, 604_800, 2_629_800, 31_557_600, 315_576_000)
#: and between them, where the times differ by less than this factor
_BETWEEN, _NARROW = (2, 5, 20, 30, 120, 300, 1200, 1800, 7200, 10_800, 43_200, 172_800, 345_600, 1_209_600), 200.0
#: fewer dots than this are drawn larger
_FEW = 200


def draw(changes_every: Floats, polled_every: Floats, fresh: Floats, path: str) -> None:
    """A dot per source, times in seconds: the interval of its changes against that of its polls, coloured by freshness.

    Sources on the line are polled once per change.
    """
    path = checked(path)
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    step = -(-len(fresh) // _DOTS)
    figure = Figure(figsize=(7, 5), layout="constrained")
    axes = figure.subplots()
    size = 9 if len(fresh) > _FEW else 36
    dots = axes.scatter(
        changes_every[::step],
        polled_every[::step],
        c=100 * fresh[::step],
        s=size,
        vmin=0,
        vmax=100,
        cmap="viridis",
        linewidths=0,
        rasterized=True,
    )
    ends = np.array([min(changes_every.min(), polled_every.min()), max(changes_every.max(), polled_every.max())])
    axes.plot(ends, ends, color="#888888", linewidth=1, linestyle=":")
    marks = sorted(_MARKS + (_BETWEEN if ends[1] < _NARROW * ends[0] else ()))
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(FixedLocator(marks))
        axis.set_major_formatter(FuncFormatter(lambda seconds, _: format_duration(seconds / DAY)))
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("changes about every")
    axes.set_ylabel("polled every")
    axes.tick_params(axis="x", rotation=30)
    axes.grid(alpha=0.3)
    figure.colorbar(dots, label="believed fresh now (%)")
    save(figure, path, "The fleet: changes, polls and freshness")
