"""When each of many sources changes: drawn only as far as somebody asks, and the same whoever asks when.

Rules of this file:
1. The first change of all sources is drawn at once, in columns, so that a million sources that nobody looked at cost
   eight bytes each. What comes later is drawn source by source, each portion from a stream of its own.
2. A stream begins in equilibrium: the first wait is drawn like an age, the rest are gaps.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import Floats, number, numbers
from unstale.core.processes import Process
from unstale.core.trace import Trace
from unstale.errors import require

#: changes of one source are at least this far apart, in seconds: times since 1970 are not told apart much closer
CLOSEST = 1e-6
#: changes drawn at a time: as many as there are, within bounds, so that nobody's asking changes what is drawn
_FEWEST, _MOST = 16, 4096


def spread_rates(sources: int, mean: float, spread: float, seed: int) -> Floats:
    """Change rates of many sources: lognormal with this mean, `spread` being the deviation of their logarithms.

    >>> spread_rates(3, 0.5, 0.0, seed=1).tolist()
    [0.5, 0.5, 0.5]
    """
    count = number("sources", sources, least=1, most=1e8, remedy="give the number of sources, such as 100")
    require(count == int(count), "sources", sources, "must be a whole number", "give one such as 100")
    mean = number("change_rate", mean, least=0, remedy="give changes per second, 0 for none")
    spread = number("spread", spread, least=0, most=5, remedy="0 makes all rates equal, 1 spreads them well")
    normal = _stream(seed, 0).standard_normal(int(count))
    return np.asarray(mean * np.exp(spread * normal - spread * spread / 2.0))


class Changing:
    """The change times of sources 0, 1, …: those of source i have the gaps of one of `shapes`, in turn, at `rate[i]`.

    Rates are per second, 0 for a source that never changes; times are seconds since the epoch, from `start` on.

    >>> from unstale.core.processes import Constant
    >>> changing = Changing([Constant(1.0)], [0.1, 0.0], seed=1, start=1000.0)
    >>> changing.at(0, 1100.0)[0], changing.at(1, 1100.0)
    (10, (0, 1000.0, inf))
    """

    def __init__(self, shapes: Sequence[Process], rate: ArrayLike, *, seed: int, start: float) -> None:
        require(len(shapes), "shapes", "[]", "must name a process", "give one such as Poisson(1.0)")
        self.rate = np.atleast_1d(
            numbers("change_rate", rate, least=0, most=1e4, remedy="give changes per second, at most 10,000")
        )
        self.start = number("start", start, remedy="give seconds since the epoch")
        self.seed = int(number("seed", seed, least=0, most=2.0**53, remedy="give a whole number such as 1"))
        self._shapes = [shape.with_rate(1.0) for shape in shapes]
        wait = np.empty(len(self.rate))
        for k, shape in enumerate(self._shapes):
            waits = wait[k :: len(self._shapes)]
            waits[:] = shape.sample_age(_stream(self.seed, 1, k), len(waits))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            self._first = array("d", np.where(self.rate > 0, self.start + wait / self.rate, np.inf).tobytes())
        self._drawn: dict[int, array[float]] = {}
        # A server in a thread draws while somebody else asks for the truth.
        self._drawing = threading.Lock()

    def __len__(self) -> int:
        return len(self.rate)

    def otherwise(self) -> Changing:
        """As many sources that change by the same laws at the same rates, but at other times."""
        return Changing(self._shapes, self.rate, seed=(self.seed + 1) % 2**53, start=self.start)

    def at(self, i: int, t: float) -> tuple[int, float, float]:
        """The version of source i at t (how often it has changed), since when it is that, and until when."""
        if t < self._first[i]:
            return 0, self.start, self._first[i]
        times = self._times(i, t)
        version = bisect_right(times, t)
        return version, times[version - 1], times[version]

    def times(self, i: int, t: float) -> Floats:
        """The changes of source i up to and at t, rising."""
        if t < self._first[i]:
            return np.empty(0)
        times = self._times(i, t)
        return np.array(times[: bisect_right(times, t)])

    def trace(self, names: Sequence[str], t: float) -> Trace:
        """The changes of all sources up to and at t: the truth."""
        first = np.frombuffer(self._first)
        found = [self.times(i, t) for i in np.flatnonzero(first <= t).tolist()]
        counts = np.zeros(len(self), dtype=np.int64)
        counts[first <= t] = [len(times) for times in found]
        starts = np.concatenate([[0], np.cumsum(counts)])
        return Trace(tuple(names), starts, np.concatenate([np.empty(0), *found]))

    def _times(self, i: int, t: float) -> array[float]:
        """The drawn times of source i, one of them later than t."""
        times = self._drawn.get(i)
        if times is not None and times[-1] > t:
            return times
        with self._drawing:
            times = self._drawn.setdefault(i, array("d", [self._first[i]]))
            while times[-1] <= t:
                count = len(times)
                shape, rng = self._shapes[i % len(self._shapes)], _stream(self.seed, 2, i, count)
                with np.errstate(over="ignore"):
                    gaps = shape.sample(rng, min(max(_FEWEST, count), _MOST)) / self.rate[i]
                    times.frombytes((times[-1] + np.cumsum(np.maximum(gaps, CLOSEST))).tobytes())
            return times


def _stream(*key: int) -> np.random.Generator:
    seed, *rest = key
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=tuple(rest))))
