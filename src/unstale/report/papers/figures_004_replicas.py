"""The figures of 004 about many replicas: cascades and cooperation."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.processes import Pareto
from unstale.core.replication.cascade import cascade_levels
from unstale.core.replication.cooperation import cooperation_limit, cooperative_freshness
from unstale.core.replication.design import best_cooperation, cooperation_for
from unstale.core.replication.redundancy import service_for
from unstale.report.papers.figure import BLUE, GREEN, ORANGE, PURPLE, Drawing, canvas, points
from unstale.report.papers.item import Simulate
from unstale.report.papers.items_004_replicas import CHANGES, CONTACTS, POLLS, drawn, followed

_DEPTH = 8
#: changes drawn for each point: the bars stay small
_RUNS = 4000


def _figure_9(simulate: Simulate | None) -> Any:
    figure, panels = canvas(2)
    depths = range(1, _DEPTH + 1)
    for axes, (name, changes), title in zip(panels, CHANGES.items(), ("(a) exponential", "(b) Pareto"), strict=True):
        axes.semilogy(depths, cascade_levels(changes, [POLLS] * _DEPTH), color=BLUE, label="model")
        if simulate is not None:
            points(axes, depths, [followed(changes, POLLS, i, i, 8) for i in depths])
        axes.set(title=f"{title} changes, {name}", xlabel="depth", ylim=(2e-3, 1))
        axes.legend()
    panels[0].set_ylabel("freshness, p")
    return figure


def _figure_11(simulate: Simulate | None) -> Any:
    figure, panels = canvas(2, 2)
    rng = np.random.default_rng(11)
    for axes, total, letter in zip(panels[:3], (2, 5, 10), "abc", strict=True):
        exact = [cooperative_freshness(1.0, 1.0, total / k if k else 0.0, 10, k) for k in range(10)]
        axes.plot(range(10), exact, color=BLUE, label="random peers")
        recent = [drawn(POLLS.with_rate(total / k), k, rng, "recent", _RUNS) for k in range(1, 10)]
        points(axes, range(1, 10), recent, ORANGE, "recent peers")
        axes.set(title=f"({letter}) kν = {total}", xlabel="peers per contact, k", ylabel="freshness, p")
        axes.legend()
    last = panels[3]
    rates = np.linspace(0.0, 10.0, 41)
    last.plot(rates, [cooperative_freshness(1.0, 1.0, rate, 10) for rate in rates], color=ORANGE, label="exponential")
    some = np.array([1.0, 2.0, 4.0, 6.0, 8.0, 10.0])
    for contacts, color in ((CONTACTS[0], BLUE), (CONTACTS[2], GREEN)):
        name = "Pareto" if isinstance(contacts, Pareto) else "constant"
        points(last, some, [drawn(contacts.with_rate(rate), 1, rng, runs=_RUNS) for rate in some], color, name)
    last.axhline(
        cooperation_limit(1.0, POLLS.with_rate(1.0), 10),
        color="#8b949e",
        linewidth=0.8,
        linestyle=":",
        label="limit, ν → ∞",
    )
    last.set(title="(d) one random peer", xlabel="contact rate, ν", ylim=(0.48, 0.94))
    last.legend()
    return figure


def _figure_12(simulate: Simulate | None) -> Any:
    figure, (left, right) = canvas(2)
    counts = np.unique(np.geomspace(10, 700, 60).astype(int))
    served = np.array([cooperation_for(1.0, 0.5, 10.0, int(m)).requests for m in counts])
    alone = service_for(1.0, 0.5, capacity=10.0, polls="purely-random").requests
    best = best_cooperation(1.0, 0.5, 10.0)
    left.plot(counts, served, color=BLUE)
    left.plot(best.replicas, best.requests, "o", color=PURPLE, label=f"best: m = {best.replicas}")
    right.plot(counts, served / alone, color=BLUE)
    right.axhline(6.0, color="#8b949e", linewidth=0.8, linestyle=":", label="printed: 6 by m = 200")
    left.set(title="(a) service rate", xlabel="replicas, m", ylabel="R", ylim=(0, 600))
    right.set(title="(b) against no cooperation", xlabel="replicas, m", ylabel="ratio", ylim=(0, 6.6))
    left.legend(loc="lower center")
    right.legend(loc="lower center")
    return figure


FIGURES = {
    "004 Figure 9": Drawing(
        "Freshness by depth in a cascade",
        "Exponential polls, λ = μ = 2. Exponential changes lose half at each hop, "
        "Pareto changes less and less. Bars are 5 standard errors.",
        _figure_9,
        True,
    ),
    "004 Figure 11": Drawing(
        "Ten replicas that ask each other",
        "λ = μ = 1. Random peers are computed exactly; recent peers and irregular "
        "contacts are drawn, with bars of 5 standard errors.",
        _figure_11,
    ),
    "004 Figure 12": Drawing(
        "Service rate by number of replicas",
        "Freshness 0.5, B = 10, μ = 1, all exponential, computed exactly: the "
        "peak is at 262 replicas instead of 240, and the ratio stays below 6.",
        _figure_12,
    ),
}
