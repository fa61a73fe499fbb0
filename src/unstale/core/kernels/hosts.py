"""What hosts' sources are polled at together, without a column of the fleet's size for each question."""

from __future__ import annotations

from typing import Any

import numpy as np

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet, Rows
from unstale.core.kernels.passes import loaded
from unstale.core.values import PoissonFreshness

_EMPTY = np.empty(0)


class HostSums:
    """Σ sync rates of hosts, where the compiled passes are loaded and the value is one they know."""

    def __init__(self, totals: Any, columns: tuple[Floats, ...], by_host: Rows, edges: Rows) -> None:
        self._totals, self._columns, self._by_host = totals, columns, by_host
        self._first, self._last = edges[:-1], edges[1:]
        self._room = np.empty((4, int((self._last - self._first).max(initial=0))))

    @staticmethod
    def of(fleet: Fleet, weight: Floats, by_host: Rows, edges: Rows) -> HostSums | None:
        """The sums of a fleet whose rows stand in `by_host`, host by host, from each of `edges` on; None without them.

        A source of weight 0 is not polled, but for its bound.
        """
        value = fleet.value
        if not (loaded() and isinstance(value, PoissonFreshness) and value.order == "fixed"):
            return None
        from unstale.core.kernels.numba_hosts import host_totals

        cost = np.broadcast_to(np.asarray(fleet.costs(), float), weight.shape)
        bounds = (_EMPTY if bound is None else bound for bound in (fleet.least_rate, fleet.most_rate))
        columns = (np.ascontiguousarray(column) for column in (value.change_rate, weight, cost, *bounds))
        return HostSums(host_totals, tuple(columns), by_host, edges)

    def at(self, price: float, extra: Floats, hosts: Rows) -> tuple[Floats, Floats] | None:
        """Σ sync rates of each of these hosts if it charges `extra` on top, and the derivatives; None if strange."""
        totals, slopes = np.empty((2, len(hosts)))
        first, last = self._first[hosts], self._last[hosts]
        strange = self._totals(price, extra, first, last, self._by_host, *self._columns, self._room, totals, slopes)
        return None if strange else (totals, slopes)
