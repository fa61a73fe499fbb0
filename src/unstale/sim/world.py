"""Everything outside: sources and their changes, readers, hosts, failures.

Rules of this file:
1. A world is columns, one entry per source, and says nothing about polls: any policy can live in it.
2. `World.draw` is the only place where its chance is decided. Each source draws from streams of its own, made
   from the seed and the source's key: neither the order of sources nor what others do changes what it meets.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unstale.core.checks import Floats, number, numbers
from unstale.core.processes import Process, WeeklyPoisson
from unstale.errors import InputError, require, sentence
from unstale.frozen import dataclass
from unstale.sim.changes import Changes, change_times

#: streams of one source, and that of shocks
_NATURE, _READERS, _POLLS, _SHOCKS = range(4)


@dataclass(frozen=True, slots=True)
class Host:
    """What a host allows: polls at the same time, time between the starts of two polls, and when it is down.

    Polls beyond a limit wait, first come first served; during an outage [start, stop) every poll fails.
    """

    concurrency: int | None = None
    spacing: float = 0.0
    outages: Sequence[tuple[float, float]] = ()

    def __post_init__(self) -> None:
        if self.concurrency is not None:
            number("concurrency", self.concurrency, least=1, remedy="leave it out for no limit")
        number("spacing", self.spacing, least=0, remedy="give the least time between two polls of the host")
        for start, stop in self.outages:
            require(start <= stop, "outage", (start, stop), "must not end before it starts", "swap the two times")


@dataclass(frozen=True, slots=True)
class Shock:
    """Events that change many sources at once: each of `rows` takes part with probability `chance`."""

    events: Process | Changes
    rows: ArrayLike
    chance: float = 1.0


@dataclass(frozen=True, slots=True)
class Drawn:
    """One history of a world up to a horizon: what would happen whatever anybody polls."""

    changes: list[Floats]
    requests: list[Floats]
    #: for whatever is drawn poll by poll: failures, delays, and the policy's own jitter
    rngs: list[np.random.Generator]


class World:
    """Sources as columns: how they change, how much they matter, where they live, how polls of them go.

    changes       a stream per source: a Process, a WeeklyPoisson, or one of `sim.changes`
    weight, cost  as in a plan; a scalar stands for all
    requests      requests per unit of time and weight (Poisson), or recorded times per source
    failure       probability that a poll fails, outages aside
    delay         time from a poll's start, when the source is read, until the copy is there: a number or a
                  Process whose gaps are drawn
    host, hosts   the row of each source's host, and the hosts
    shocks        events common to many sources
    key           names the random streams of each source; its row by default

    >>> from unstale.core.processes import Poisson
    >>> len(World([Poisson(1.0), Poisson(2.0)], weight=[1, 3]))
    2
    """

    def __init__(
        self,
        changes: Sequence[Changes | WeeklyPoisson],
        *,
        weight: ArrayLike = 1.0,
        cost: ArrayLike = 1.0,
        requests: float | Sequence[ArrayLike] = 0.0,
        failure: ArrayLike = 0.0,
        delay: float | Process = 0.0,
        host: ArrayLike | None = None,
        hosts: Sequence[Host] = (),
        shocks: Sequence[Shock] = (),
        key: ArrayLike | None = None,
    ) -> None:
        self.changes = list(changes)
        n = len(self.changes)
        require(n > 0, "changes", "[]", "must describe at least one source", "give a Process for each source")
        for i, each in enumerate(self.changes):
            fits = isinstance(each, WeeklyPoisson) or hasattr(each, "sample_path")
            require(fits, f"changes[{i}]", repr(each)[:60], "must draw times", "give Poisson(rate) or Recorded(times)")
        self.weight = column("weight", weight, n, least=0)
        require(self.weight.sum() > 0, "weight", "of every source 0", "must be above 0 for one", "give 1 for all")
        self.cost = column("cost", cost, n, above=0)
        self.failure = column("failure", failure, n, least=0, most=1)
        self.delay = delay if isinstance(delay, Process) else number("delay", delay, least=0)
        self.hosts = list(hosts)
        self.host = _rows("host", -1 if host is None else host, n, len(self.hosts), least=-1)
        self.shocks = [(shock, _rows("rows", shock.rows, None, n)) for shock in shocks]
        for shock in shocks:
            number("chance", shock.chance, least=0, most=1)
        self.key = _rows("key", np.arange(n) if key is None else key, n, None)
        require(
            len(np.unique(self.key)) == n, "key", "of two sources", "must differ", "give each source its own number"
        )
        if isinstance(requests, Sequence | np.ndarray):
            require(len(requests) == n, "requests", f"of {len(requests)} sources", f"must be of {n}", "give all times")
            each_source = [np.atleast_1d(numbers("requests", times, least=0)) for times in requests]
            self.requests: float | list[Floats] = [np.sort(times) for times in each_source]
        else:
            self.requests = number("requests", requests, least=0)

    def __len__(self) -> int:
        return len(self.changes)

    def draw(self, seed: int, horizon: float) -> Drawn:
        """The history that belongs to this seed: changes and requests in [0, horizon], and streams for polls."""
        changes = [
            change_times(c, _rng(seed, k, _NATURE), horizon)
            for c, k in zip(self.changes, self.key.tolist(), strict=True)
        ]
        for turn, (shock, rows) in enumerate(self.shocks):
            events = change_times(shock.events, _rng(seed, turn, _SHOCKS), horizon)
            for row in rows.tolist():
                # A stream that depends on the source and the shock, so that both can be named in any order.
                thin = _rng(seed, int(self.key[row]), _SHOCKS + 1 + turn)
                changes[row] = np.sort(np.append(changes[row], events[thin.random(len(events)) < shock.chance]))
        return Drawn(changes, self._requests(seed, horizon), [_rng(seed, k, _POLLS) for k in self.key.tolist()])

    def _requests(self, seed: int, horizon: float) -> list[Floats]:
        if isinstance(self.requests, list):
            return [times[times <= horizon] for times in self.requests]
        out = []
        for key, weight in zip(self.key.tolist(), self.weight.tolist(), strict=True):
            if self.requests * weight == 0:
                out.append(np.empty(0))
                continue
            rng = _rng(seed, key, _READERS)
            out.append(np.sort(rng.uniform(0.0, horizon, rng.poisson(self.requests * weight * horizon))))
        return out


def _rng(seed: int, key: int, stream: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key, stream))))


def column(
    name: str,
    values: ArrayLike,
    n: int,
    *,
    above: float | None = None,
    least: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> Floats:
    """`values` as a column with one number for each of n sources (or hosts); a scalar stands for all."""
    x = numbers(name, values, above=above, least=least, most=most, infinite=infinite)
    require(
        x.ndim == 0 or x.shape == (n,),
        name,
        f"of shape {x.shape}",
        f"must have {n} values",
        "give one per source, or one for all",
    )
    return np.broadcast_to(x, (n,)) if x.ndim == 0 else x


def _rows(name: str, values: ArrayLike, n: int | None, below: int | None, least: int = 0) -> NDArray[np.intp]:
    x = np.asarray(values)
    fits = x.size == 0 or (x.dtype.kind in "iu" and x.min() >= least and (below is None or x.max() < below))
    if not fits or x.ndim > 1 or (n is not None and x.ndim == 1 and len(x) != n):
        raise InputError(
            sentence(
                name, repr(values)[:60], "must be whole numbers that name rows, one per source", "number them from 0"
            )
        )
    rows = x.astype(np.intp)
    return np.broadcast_to(rows, (n,)) if n is not None and rows.ndim == 0 else np.atleast_1d(rows)
