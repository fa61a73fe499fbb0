"""How often copies are asked for, and the weights that follow: the fleet is kept fresh for those who read it.

Rules of this file:
1. A request is one number more in a dictionary; everything else happens every few minutes.
2. What is known of rates is in the store, where every server adds its part. A weight that somebody else has set since
   is the new base of that source.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol, TypeVar

from unstale.errors import StoreError
from unstale.units import DAY

#: seconds in which a request loses half of what it counts
HALF_LIFE = DAY
#: seconds between two times that requests become weights: the engine reads its fleet anew then
PERIOD = 300.0
#: a weight is changed if it has moved by more than this share, and a source is forgotten below so many requests a day
SHARE, FEWEST = 0.2, 0.02
#: sources whose rates are remembered
MOST = 200_000
SETTING = "requests"

K = TypeVar("K", int, str)


def folded(rates: Mapping[K, float], counts: Mapping[K, int], seconds: float) -> dict[K, float]:
    """Requests per day, after so many seconds in which these came; each fades with the half-life.

    In the long run the mean of `rate` is the true rate: a request adds ln 2 / half_life, and fades at that rate. Those
    that have become rare are left out, and of too many the rarest.

    >>> round(folded({7: 10.0}, {7: 3}, 86400.0)[7], 4)
    7.0794
    """
    fading, each = 0.5 ** (max(seconds, 0.0) / HALF_LIFE), math.log(2.0) * DAY / HALF_LIFE
    found = {source: rate * fading for source, rate in rates.items()}
    for source, count in counts.items():
        found[source] = found.get(source, 0.0) + count * each
    common = sorted(((rate, source) for source, rate in found.items() if rate >= FEWEST), reverse=True)[:MOST]
    return {source: rate for rate, source in common}


def weight_of(base: float, rate: float) -> float:
    """The weight of a source that is asked for so many times a day.

    weight = base·(1 + rate). Weights in proportion to request rates make the freshness by weight the probability that
    an answer is fresh [002 eq. 1]; the 1 stands for a request a day that nobody made, so that a source nobody reads
    keeps its base and is not forgotten.

    >>> weight_of(2.0, 9.0)
    20.0
    """
    return base * (1.0 + rate)


class Weights(Protocol):
    """What weighing needs of a store. Calls may take a while."""

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none."""

    def weights(self, sources: Sequence[int]) -> dict[int, float]:
        """The weights of those of these sources that exist."""

    def weigh(self, weights: Mapping[int, float], settings: Mapping[str, bytes]) -> None:
        """Change weights, if there are any to change, and keep settings."""


class Weigher:
    """Turns counts of requests into weights, every few minutes."""

    def __init__(self, store: Weights, take: Callable[[], Mapping[int, int]], clock: Callable[[], float]) -> None:
        self._store, self._take, self._clock = store, take, clock

    async def run(self, period: float = PERIOD) -> None:
        """Until it is cancelled."""
        while True:
            await asyncio.sleep(period)
            counts = self._take()
            try:
                await asyncio.to_thread(self.weigh, counts)
            except StoreError:
                # Requests of these minutes are lost, which weights can bear.
                continue

    def weigh(self, counts: Mapping[int, int]) -> int:
        """Add these requests to what is known, and change the weights that have moved; how many did."""
        then, known = _read(self._store.setting(SETTING))
        now = self._clock()
        rates = folded({source: rate for source, (_, rate, _) in known.items()}, counts, now - then)
        present = self._store.weights(sorted({*rates, *known}))
        moved, kept = {}, {}
        for source, weight in present.items():
            base, _, ours = known.get(source, (weight, 0.0, weight))
            if weight != ours:
                base = weight
            rate = rates.get(source, 0.0)
            wanted = weight_of(base, rate)
            if abs(wanted - weight) > SHARE * weight or (not rate and wanted != weight):
                moved[source] = weight = wanted
            if rate:
                kept[source] = (base, rate, weight)
        state = json.dumps({"at": now, "sources": {str(s): list(row) for s, row in kept.items()}})
        self._store.weigh(moved, {SETTING: state.encode()})
        return len(moved)


def _read(state: bytes) -> tuple[float, dict[int, tuple[float, float, float]]]:
    """When rates were last folded, and of each source its base, its rate, and the weight that was made of them."""
    try:
        said = json.loads(state or b"{}")
        sources = {int(source): (float(a), float(b), float(c)) for source, (a, b, c) in said["sources"].items()}
        return float(said["at"]), sources
    except (ValueError, KeyError, TypeError, AttributeError):
        return 0.0, {}
