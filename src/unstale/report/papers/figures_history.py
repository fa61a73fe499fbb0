"""The figures that need a history of changes: 000 Figures 11 and 12, 003 Figure 9; of any trace, or of a stand-in.

Rules of this file:
1. The papers' histories were not published. Without a trace a drawn one with the law that the paper prints stands in,
   and the caption says so; with one, everything is of that trace.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.processes import Pareto
from unstale.core.trace import Trace
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, RED, Drawing, canvas
from unstale.report.papers.item import items
from unstale.study.correlation import autocorrelation, power_law
from unstale.study.fitting.profile import profile
from unstale.study.replayed import stale_by_gaps, stale_share

_HOUR, _DAY = 3600.0, 86400.0
_LAGS = 200
#: pages whose mean gap is within this share of ten days count as changing every ten days
_NEAR = 0.2
#: upper ends of the classes of Figure 12, in days, and what they are called
_CLASSES = ((1.0, "≤ 1 day"), (7.0, "≤ 1 week"), (30.0, "≤ 1 month"), (120.0, "≤ 4 months"), (np.inf, "longer"))


def figures(trace: Trace | None, source: str | None = None) -> dict[str, Drawing]:
    """The three figures of a trace, the last one of this source or the one that changes most; or of stand-ins."""
    pages = pooled_gaps(trace)
    row = 0
    if trace is not None:
        row = trace.names.index(source) if source is not None else int(trace.counts().argmax())
    times = stand_in() if trace is None else trace.changes(row)
    ours = (
        "The paper's history was not published: drawn gaps with the law it prints stand in."
        if trace is None
        else f"Of {trace.names[row]}, {len(times):,} changes."
    )
    ten = "Drawn Poisson changes stand for the pages of 1999." if trace is None else "Of the trace given."
    return {
        "000 Figure 11": Drawing(
            "Gaps of sources that change every ten days",
            f"Share of gaps by length, and the line of a Poisson process. {ten}",
            lambda simulate: _figure_11(pages),
        ),
        "000 Figure 12": Drawing(
            "How often sources change",
            "Share of sources by mean gap. "
            + (
                "23 % and 15 % are quoted, the rest is assumed as for Table 6."
                if trace is None
                else f"{len(trace):,} sources of the trace given; those that changed once at most are the last class."
            ),
            lambda simulate: _figure_12(trace),
        ),
        "003 Figure 9": Drawing(
            "One source that changes in bursts",
            f"{ours} (a) tail of the gaps and the paper's Pareto fit, gaps in means; (b) correlation of the numbers of "
            "changes in successive windows of a mean gap, and a power law through it; (c) changes by hour of the day, "
            "UTC; (d) share of time stale under even polls: replayed, by equation 42 with these gaps, and by the "
            "Poisson formula.",
            lambda simulate: _figure_9(times),
        ),
    }


def stand_in() -> Floats:
    """Change times with the gaps that 003 fits to its article: Pareto, α = 1.4, β = 0.93 hours; fixed seed."""
    rng = np.random.default_rng(9)
    return np.asarray(np.cumsum(Pareto(1.4, 0.93).sample(rng, 20_000)) * _HOUR)


def pooled_gaps(trace: Trace | None) -> Floats:
    """Days between changes of sources whose mean gap is about ten days."""
    if trace is None:
        return np.random.default_rng(11).exponential(10.0, 4_000)
    gaps = [np.diff(trace.changes(i)) / _DAY for i in np.flatnonzero(trace.counts() > 2).tolist()]
    near = [one for one in gaps if abs(one.mean() / 10.0 - 1.0) < _NEAR]
    return np.concatenate(near) if near else np.empty(0)


def class_shares(trace: Trace | None) -> list[float]:
    """The share of sources in each class of Figure 12."""
    if trace is None:
        return [float(share) for share in items()["C.T6.F_opt"].inputs["weights"]]
    spans = np.array([np.ptp(trace.changes(i)) if n > 1 else np.inf for i, n in enumerate(trace.counts())])
    mean = spans / np.maximum(trace.counts() - 1, 1) / _DAY
    ends = np.array([end for end, _ in _CLASSES])
    inside = np.bincount(np.searchsorted(ends, mean), minlength=len(ends))
    return [float(count) / len(mean) for count in inside]


def _figure_11(gaps: Floats) -> Any:
    figure, (axes,) = canvas(1, width=4.6)
    edges = np.arange(0.0, 81.0, 4.0)
    share = np.histogram(gaps, edges)[0] / max(len(gaps), 1)
    middle = 0.5 * (edges[1:] + edges[:-1])
    axes.semilogy(middle[share > 0], share[share > 0], "o", color=BLUE, markersize=4, label=f"{len(gaps):,} gaps")
    axes.semilogy(middle, np.exp(-edges[:-1] / 10.0) - np.exp(-edges[1:] / 10.0), color=ORANGE, label="Poisson")
    axes.set(xlabel="days between changes", ylabel="share of gaps", xlim=(0, 80))
    axes.legend()
    return figure


def _figure_12(trace: Trace | None) -> Any:
    figure, (axes,) = canvas(1, width=4.6)
    share = class_shares(trace)
    axes.bar(range(len(share)), share, color=BLUE, alpha=0.6, width=0.7)
    for place, value in enumerate(share):
        axes.annotate(f"{value:.0%}", (place, value), ha="center", va="bottom", fontsize=8)
    axes.set(ylabel="share of sources", xticks=range(len(share)), xticklabels=[name for _, name in _CLASSES])
    axes.set_ylim(0, 1.15 * max(share))
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(False, axis="x")
    return figure


def _figure_9(times: Floats) -> Any:
    figure, (tail, correlation, hours, stale) = canvas(2, 2, height=2.7)
    gaps = np.diff(times)
    mean = float(gaps.mean())
    ordered = np.sort(gaps) / mean
    some = np.unique(np.geomspace(1, len(ordered), 300).astype(int)) - 1
    tail.loglog(ordered[some], 1.0 - some / len(ordered), color=BLUE, label="gaps")
    x = np.geomspace(max(ordered[0], 1e-4), ordered[-1], 200)
    tail.loglog(x, (1 + 2.0 * x) ** -1.4, color=ORANGE, linestyle="--", label="(1 + 2x)^−1.4, as printed")
    tail.set(xlabel="gap / mean gap", ylabel="share longer", title="(a) tail", ylim=(0.5 / len(ordered), 1.5))
    found = autocorrelation(times, mean, _LAGS)
    lags = np.arange(1, len(found) + 1)
    seen = found > 0
    correlation.loglog(lags[seen], found[seen], ".", color=BLUE, markersize=3, label="ρ(h)")
    power, level = power_law(found)
    correlation.loglog(lags, level * lags**-power, color=ORANGE, label=f"h^−{power:.2f}")
    correlation.set(xlabel="lag h, in mean gaps", title="(b) correlation of counts")
    rate = profile(Trace(("",), np.array([0, len(times)]), times)).hours
    rate = rate / np.nanmean(rate)
    hours.step(np.arange(25), np.append(rate, rate[-1]), where="post", color=BLUE)
    hours.set(xlabel="hour of the day", title="(c) changes by hour, mean 1", xlim=(0, 24), xticks=[0, 6, 12, 18, 24])
    hours.set_ylim(bottom=0)
    sync = np.geomspace(0.1, 20, 12)
    stale.plot(sync, [stale_share(times, mean / s) for s in sync], "o", color=RED, markersize=4, label="replayed")
    stale.plot(sync, [stale_by_gaps(gaps, mean / s) for s in sync], color=BLUE, label="equation 42")
    stale.plot(sync, 1 - sync * -np.expm1(-1 / sync), color=GREEN, linestyle="--", label="Poisson")
    stale.set(xlabel="polls per mean gap", ylabel="share of time stale", title="(d) model accuracy", xscale="log")
    stale.set_ylim(0, 1)
    for axes in (tail, correlation, stale):
        axes.legend()
    return figure
