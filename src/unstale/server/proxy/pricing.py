"""Whether it pays to ask an origin again for what is stored: a cache that refreshes by price.

A request for a stored answer is the moment to ask, for then that very request is answered fresh too. An answer that is
asked for w times a second and t old, of an object whose change rate is a Gamma(a, b) belief, is worth asking for again

    w·φ(t) + P(stale)    where  P(stale) = 1 − s^a,  s = b/(b + t),  φ(t) = (b − (b + t)·s^a)/(a − 1) − t·s^a

of stale answers that it saves: those of the requests to come, and this one. Asking at the first request past the age at
which that reaches the price is the best rule for requests that come at random (the cycle lasts τ + 1/w; its stale
answers and its one question, divided by that, are least where the formula equals the price). Behind an answer that is
already given, the value is w·φ(t) alone.

Rules of this file:
1. The price follows from the budget without a model: each question raises it, time lowers it, and where both are even
   the budget is spent. First answers, which no cache can avoid, are not counted.
2. Only where an origin leaves the lifetime to us does the price decide. What it says holds, here as everywhere.
"""

from __future__ import annotations

import math

from unstale.core.belief import posterior
from unstale.frozen import dataclass
from unstale.server.dates import read_date
from unstale.server.proxy.stored import Stored

#: by how much a question raises the logarithm of the price, and its bounds
STEP, LOWEST, HIGHEST = 0.03, -9.0, 25.0
#: seconds after which half of the requests that were counted is forgotten, and the shortest time they are counted over
MEMORY, SHORTEST = 86_400.0, 1.0
#: changes that a belief counts at most: beyond them old ones fade
MOST_CHANGES = 30.0
#: seconds between changes of an object of which nothing is known
UNKNOWN = 3600.0


@dataclass(slots=True)
class Known:
    """What is known of one address: the belief about its change rate; requests, and since when they were counted."""

    shape: float
    exposure: float
    requests: float
    since: float

    def request_rate(self, now: float) -> float:
        """Requests a second."""
        return self.requests / max(now - self.since, SHORTEST)


def values(shape: float, exposure: float, age: float) -> tuple[float, float]:
    """φ and the probability of being stale, at this age; see the head of this file, and core's table of values.

    >>> [round(value, 4) for value in values(2.0, 1.0, 1.0)], [round(value, 4) for value in values(1.0, 1.0, 1.0)]
    ([0.25, 0.75], [0.1931, 0.5])
    """
    kept = math.exp(-shape * math.log1p(age / exposure))
    if abs(shape - 1.0) < 1e-7:
        gone = exposure * math.log1p(age / exposure)
    else:
        gone = (exposure - (exposure + age) * kept) / (shape - 1.0)
    return max(gone - age * kept, 0.0), 1.0 - kept


class Pricing:
    """Judges questions to origins; `budget` is how many of them may be asked a second for what is stored already."""

    def __init__(self, budget: float, now: float) -> None:
        self._budget, self._level, self._at = budget, 0.0, now
        self.known: dict[str, Known] = {}

    def price(self, now: float) -> float:
        """Stale answers that one more question has to save."""
        self._level = max(self._level - STEP * self._budget * max(now - self._at, 0.0), LOWEST)
        self._at = max(now, self._at)
        return math.exp(self._level)

    def wanted(self, address: str, now: float) -> None:
        """Somebody asks for what is stored."""
        if (known := self.known.get(address)) is not None:
            known.requests += 1.0
            if now - known.since > 2.0 * MEMORY:
                known.requests, known.since = known.requests / 2.0, now - MEMORY

    def pays(self, stored: Stored, now: float, *, behind: bool = False) -> bool:
        """Whether to ask before answering, or `behind` an answer that has been given."""
        known, age = self.known.get(stored.address), stored.http_age(now)
        if known is None or age <= 0.0:
            return known is None
        later, stale = values(known.shape, known.exposure, age)
        return known.request_rate(now) * later + (0.0 if behind else stale) >= self.price(now)

    def took(self, old: Stored | None, new: Stored) -> None:
        """An answer came, in place of an old one or as the first."""
        known, now = self.known.get(new.address), new.taken_at
        if known is None:
            # An object is likely to stay as it is for about as long as it has been so.
            modified = read_date(new.fields.first("last-modified"))
            lasted = UNKNOWN if modified is None or modified >= now else now - modified
            self.known[new.address] = Known(1.0, lasted, 0.0, now)
        elif old is not None:
            self.price(now)
            self._level = min(self._level + STEP, HIGHEST)
            elapsed = max(now - old.taken_at, 0.0)
            if (old.status, old.body) == (new.status, new.body):
                known.exposure += elapsed
            else:
                shape, exposure = posterior(known.shape, known.exposure, elapsed)
                known.shape, known.exposure = float(shape), float(exposure)
            if (fading := known.shape / MOST_CHANGES) > 1.0:
                known.shape, known.exposure = known.shape / fading, known.exposure / fading

    def gone(self, address: str) -> None:
        """Nothing is stored of it any more."""
        self.known.pop(address, None)
