"""The figures of 000 that explain its models: a copy's path, a fleet's rates, polls within a day, a fixed order."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import gammainc

from unstale.core.checks import Floats
from unstale.core.poisson_orders import order_freshness
from unstale.core.staleness import freshness_after
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, RED, Drawing, canvas
from unstale.report.papers.item import Simulate

_CHANGES, _POLLS, _END = (0.6, 1.0, 2.9, 3.4, 4.4), (1.8, 2.5, 3.9, 4.9), 5.5
#: the hours at which ten sources are polled each day
DAYS = {
    "(a) all at midnight": np.zeros(10),
    "(b) most at midnight": np.array([0.0] * 6 + [5.0, 10.0, 14.0, 19.0]),
    "(c) evenly": 2.4 * np.arange(10),
}


def copy_path(at: Floats) -> tuple[Floats, Floats]:
    """Freshness and age of the copy of Figure 2 at these times: stale from the first unseen change to the next poll."""
    changes, polls = np.array(_CHANGES), np.array([0.0, *_POLLS])
    polled = polls[np.searchsorted(polls, at, side="right") - 1]
    first = np.append(changes, np.inf)[np.searchsorted(changes, polled, side="right")]
    return (first > at).astype(float), np.maximum(at - first, 0.0)


def day_freshness(polled: Floats, at: Floats) -> Floats:
    """Mean expected freshness by hour of the day of sources polled daily at these hours; one change a day each."""
    since = (at[:, None] - polled) % 24.0
    return np.asarray(np.mean(freshness_after(since / 24.0, 1.0), axis=1))


def _figure_2(simulate: Simulate | None) -> Any:
    figure, (above, below) = canvas(1, 2, height=1.6, sharex=True)
    at = np.linspace(0, _END, 2201)
    for axes, values, name in zip((above, below), copy_path(at), ("freshness", "age"), strict=True):
        axes.plot(at, values, color=BLUE)
        for k, when in enumerate(_CHANGES):
            axes.axvline(when, color=RED, linewidth=1, linestyle=":", label="" if k else "the source changes")
        for k, when in enumerate(_POLLS):
            axes.axvline(when, color=GREEN, linewidth=1, linestyle="--", label="" if k else "it is polled")
        axes.set(ylabel=name, xlim=(0, _END), ylim=(0, 1.1 if name == "freshness" else None))
        axes.grid(False)
    above.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncols=2)
    below.set_xlabel("time")
    return figure


def _figure_4(simulate: Simulate | None) -> Any:
    figure, (axes,) = canvas(1, width=4.6)
    edges, shape = np.linspace(0, 4, 21), 2.0
    share = np.diff(gammainc(shape, shape * edges))
    axes.bar(edges[:-1], share, np.diff(edges), align="edge", color=BLUE, alpha=0.35, label="share of sources")
    rate = np.linspace(0, 4, 200)
    axes.plot(rate, edges[1] * shape**2 * rate * np.exp(-shape * rate), color=ORANGE, label="g(λ)")
    axes.set(xlabel="change rate λ", ylabel="share of sources", xlim=(0, 4))
    axes.legend()
    return figure


def _figure_5(simulate: Simulate | None) -> Any:
    figure, panels = canvas(3, height=2.4, sharey=True)
    at = np.linspace(0, 24, 481)
    for axes, (name, polled) in zip(panels, DAYS.items(), strict=True):
        axes.plot(at, day_freshness(polled, at), color=BLUE)
        hours, count = np.unique(polled, return_counts=True)
        for hour, many in zip(hours, count, strict=True):
            axes.plot(np.full(many, hour), 0.08 + 0.045 * np.arange(many), ".", color=RED, clip_on=False)
        axes.set(title=name, xlabel="hour of the day", xlim=(0, 24), xticks=[0, 6, 12, 18, 24], ylim=(0, 1.02))
    panels[0].set_ylabel("mean expected freshness")
    return figure


def _figure_14(simulate: Simulate | None) -> Any:
    figure, (axes,) = canvas(1, width=4.6)
    t = np.linspace(0, 1, 200)
    for k in range(3):
        axes.plot(t + k, freshness_after(t, 1.0), color=BLUE, label="" if k else "E[F(e; t)]")
        axes.plot([k + 1, k + 1], [freshness_after(1.0, 1.0), 1.0], color=BLUE, linewidth=0.8, linestyle=":")
    mean = float(np.asarray(order_freshness(1.0, 1.0, "fixed")))
    axes.axhline(mean, color=ORANGE, label=f"mean over time, {mean:.3f}")
    axes.set(xlabel="time", xlim=(0, 3), ylim=(0, 1.05), xticks=[0, 1, 2, 3], xticklabels=["0", "I", "2I", "3I"])
    axes.legend(loc="lower left")
    return figure


FIGURES = {
    "000 Figure 2": Drawing(
        "One copy", "Freshness and age of a copy as its source changes and is polled. The times are ours.", _figure_2
    ),
    "000 Figure 4": Drawing(
        "Sources that change at different rates",
        "A histogram of change rates and the density it comes from; the paper names none, here a gamma law of shape 2.",
        _figure_4,
    ),
    "000 Figure 5": Drawing(
        "When to poll ten sources once a day",
        "Dots: polls. The curve, ours, is the mean expected freshness by hour with one change a day: its mean over the "
        "day is the same in all three, because every source is polled once a day.",
        _figure_5,
    ),
    "000 Figure 14": Drawing(
        "Fixed order", "Expected freshness of a source polled every I, and its mean over time, at λI = 1.", _figure_14
    ),
}
