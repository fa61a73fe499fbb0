"""A history in four figures: the law of its gaps, its hours, its course, and what taking it for Poisson costs."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.trace import Trace
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, PURPLE, RED
from unstale.report.picture import checked, save
from unstale.study.fitting.diagnosis import Diagnosis
from unstale.study.fitting.overspend import overspend
from unstale.study.fitting.profile import DAY, Profile

_COLORS = {"exponential": RED, "weibull": BLUE, "gamma": GREEN, "pareto": PURPLE, "lognormal": ORANGE}
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_TARGETS = np.array([0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98])
#: more points of a curve than this are not seen
_POINTS = 2000


def draw(seen: Diagnosis, when: Profile, trace: Trace, hours: str, path: str) -> None:
    """Four figures of one source, or of all judged ones together; `hours` names the clock of the second."""
    path = checked(path)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 7.6), layout="constrained")
    gaps, profile, course, cost = figure.subplots(2, 2).flat
    single = len(seen.trace) == 1
    (_source_gaps if single else _fleet_gaps)(gaps, seen)
    _hours(profile, figure, when, hours)
    _course(course, trace.times)
    _cost(cost, seen, single)
    name = seen.trace.names[0] if single else f"{len(seen.trace):,} sources"
    save(figure, path, f"The history of {name}", dpi=130)


def _source_gaps(axes: Any, seen: Diagnosis) -> None:
    """The share of gaps longer than x, and the same by each family."""
    lengths, share = _survival(seen.gaps.lengths / DAY)
    axes.plot(lengths, share, "o", color="#57606a", markersize=3, alpha=0.6, label="gaps")
    x = np.geomspace(lengths[0] / 2, lengths[-1] * 2, 400)
    best = str(seen.family[0])
    for name in sorted(seen.fits, key=lambda name: float(seen.fits[name].aic[0])):
        curve = _fitted(seen, name, x)
        label = f"{name}{' (best)' if name == best else ''}"
        axes.plot(x, curve, color=_COLORS[name], linewidth=2.2 if name == best else 1.1, label=label)
    _log_axes(axes, "gap (days)", "share of gaps that are longer", float(share.min()))
    axes.set_title("the law of the gaps")


def _fleet_gaps(axes: Any, seen: Diagnosis) -> None:
    """The same of all sources, each in units of its own mean gap."""
    lengths, share = _survival(seen.gaps.lengths / seen.gaps.each(seen.gaps.means()))
    axes.plot(lengths, share, color="#57606a", linewidth=2, label="gaps of all judged sources")
    x = np.geomspace(lengths[0] / 2, lengths[-1] * 2, 400)
    axes.plot(x, np.exp(-x), color=RED, linewidth=1.4, label="exponential (Poisson)")
    _log_axes(axes, "gap, in mean gaps of its source", "share of gaps that are longer", float(share.min()))
    axes.set_title("the law of the gaps")


def _survival(lengths: Floats) -> tuple[Floats, Floats]:
    ordered = np.sort(lengths)
    share = 1.0 - np.arange(1, len(ordered) + 1) / (len(ordered) + 1.0)
    # as many points among the rare long gaps as among the many short ones
    few = np.unique(np.round(len(ordered) - np.geomspace(1, len(ordered), _POINTS)).astype(np.int64))
    return ordered[few], share[few]


def _fitted(seen: Diagnosis, name: str, x: Floats) -> Floats:
    law = seen.fits[name].process()
    if law is not None:
        return np.asarray(law.survival(x * DAY))
    # only a Pareto law without a mean is no process; its gaps still have a law
    given = seen.fits[name].parameters
    return np.asarray((1.0 + x * DAY / given["scale"][0]) ** -given["alpha"][0])


def _log_axes(axes: Any, x: str, y: str, least: float) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(least / 2, 1.3)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower left", fontsize=8.5)


def _hours(axes: Any, figure: Any, when: Profile, hours: str) -> None:
    shown = np.ma.masked_invalid(when.activity)
    drawn = axes.imshow(shown, aspect="auto", cmap="YlGnBu", vmin=0)
    axes.set_yticks(range(7), _WEEKDAYS)
    axes.set_xticks(range(0, 24, 3))
    axes.set_xlabel(f"hour of the day ({hours})")
    axes.set_title("when it changes")
    figure.colorbar(drawn, ax=axes, label="changes per day", shrink=0.85)


def _course(axes: Any, times: Floats) -> None:
    first, last = float(times.min()), float(times.max())
    bins = int(np.clip(len(times) ** 0.5 * 2, 12, 200))
    edges = np.linspace(first, last, bins + 1)
    counts = np.histogram(times, edges)[0]
    dates = edges.astype("datetime64[s]").astype(object)
    axes.stairs(counts / ((last - first) / bins / DAY), dates, fill=True, color=BLUE, alpha=0.55)
    axes.set_ylabel("changes per day")
    axes.set_title("its course")
    axes.grid(alpha=0.3)
    axes.tick_params(axis="x", labelrotation=25)


def _cost(axes: Any, seen: Diagnosis, single: bool) -> None:
    times = np.array([overspend(seen.gaps, float(target)) for target in _TARGETS])
    x = 100 * _TARGETS
    low, middle, high = np.quantile(times, [0.1, 0.5, 0.9], axis=1)
    axes.axhline(1.0, color=RED, linewidth=1.2, label="right if Poisson")
    axes.plot(x, middle, "o-", color=BLUE, markersize=4, label="this source" if single else "median source")
    if not single:
        axes.fill_between(x, low, high, color=BLUE, alpha=0.18, label="from the 10 % to the 90 % quantile")
    axes.set_xlabel("freshness wanted (%)")
    axes.set_ylabel("polls of a Poisson plan / polls needed")
    axes.set_title("what taking it for Poisson costs")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8.5)
