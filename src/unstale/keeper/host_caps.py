"""Hosts whose caps bind: more falls due there at today's price than they may be asked, so their polls cost more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unstale.core.checks import Floats

if TYPE_CHECKING:
    from unstale.keeper.rows import FleetRows


def binding(fleet: FleetRows, now: float, until: float) -> list[tuple[int, float]]:
    """The hosts whose caps bind until then, and for how many polls of sources that are awake each has room."""
    if not np.isfinite(fleet.cap).any():
        return []
    awake, hosts = fleet.awake(), len(fleet.cap)
    asleep = np.bincount(fleet.host[~awake & ~fleet.paused & (fleet.due_at < until)], minlength=hosts)
    load = np.zeros(hosts, np.int64)
    for part in fleet.parts():
        load += np.bincount(fleet.host[part][awake[part] & (fleet.planned(now, part) < until)], minlength=hosts)
    # One to spare: due times are not as even as slots are, and a slot that nobody waits for is lost.
    room = fleet.cap * (until - now) + 1.0
    crowded = np.flatnonzero(load + asleep > room)
    return list(zip(crowded.tolist(), (room - asleep)[crowded].tolist(), strict=True))


def held_prices(fleet: FleetRows, now: float, until: float) -> Floats:
    """For each host whose cap binds at today's price, the price at which its polls just keep it; 0 for others."""
    held, awake = np.zeros(len(fleet.cap)), fleet.awake()
    for host, room in binding(fleet, now, until):
        rows = np.flatnonzero(awake & (fleet.host == host))
        if len(rows):
            wanted = max(room, 0.1) * fleet.learner.columns.cost[rows].mean()
            guess = fleet.price * fleet.surcharge[host]
            # A host with a poll or two until then is better counted with those that jitter has put off.
            held[host] = fleet.learner.price_for(wanted, now, until, guess, rows)
    return held
