"""What a part of a living fleet would spend, by price and by time: these add up, so that nobody has to hold a fleet.

Rules of this file:
1. A sketch says how much falls due from when it was made until each of some moments, at each of some prices around one.
   Moments are absolute: as time goes by it stays true of whoever was not polled.
2. Who was polled since is taken out as it stood before, and put in as it stands after: exactly what the sketch of the
   part as it stands now would have of it.
3. At the price that is known every source is looked at. How much more or less falls due at others is seen at every so
   manieth source of a large part: the next price is near, and made exact when the part is looked at again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Integers, LearnerColumns, SharedTiming
from unstale.core.learning.compiled import compiled_loop
from unstale.core.learning.due import due_after_answer
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.mixture import Scratch, Shared, scratch
from unstale.frozen import dataclass

#: the prices that are looked at, in logarithms from the one that is known: close where the next one will be
NODES = np.array([-4.0, -2.0, -1.0, -0.5, -0.2, 0.0, 0.2, 0.5, 1.0, 2.0, 4.0])
_CENTRE = len(NODES) // 2
#: parts of more sources than this are thinned so much, where other prices are looked at
_MANY, _THIN = 20_000, 8
#: moments at which it is said how much has fallen due
MOMENTS = 9
#: halvings of the stretch in which a price is looked for
_HALVINGS = 50


@dataclass(frozen=True, slots=True)
class PartSketch:
    """`spent[k, j]` falls due until `moments[j]` at the price whose logarithm is `prices[k]`.

    So it does of one source in `thin`; `whole[j]` does of all at the price in the middle.
    """

    prices: Floats
    moments: Floats
    spent: Floats
    whole: Floats
    thin: int

    @staticmethod
    def nothing(price: float, now: float, span: float, sources: int) -> PartSketch:
        """Of no sources yet but about so many to come, around a price, for so many seconds."""
        moments = now + span * np.linspace(0.0, 1.0, MOMENTS)
        spent, thin = np.zeros((len(NODES), MOMENTS)), _THIN if sources > _MANY else 1
        return PartSketch(math.log(price) + NODES, moments, spent, np.zeros(MOMENTS), thin)

    def add(self, learner: Learner, ids: Integers, asleep: Floats, times: float = 1.0) -> None:
        """Put in what sources spend, or with `times` −1 take it out again.

        Rows whose `last` is finite go by the price. `asleep` is when each of the others is due whatever the price is,
        inf for never.
        """
        columns, mind = learner.columns, (learner.shared, learner.timing, scratch(len(HALF_LIVES)))
        some = ids % self.thin == 0
        for which, at, spent in (
            (np.isfinite(columns.last), self.prices[[_CENTRE]], self.whole[None]),
            (np.isfinite(columns.last) & some, self.prices, self.spent),
        ):
            rows = np.flatnonzero(which)
            spent += times * _spent(rows, ids[rows], np.exp(at), self.moments, columns, *mind)
        due = np.flatnonzero(~np.isfinite(columns.last) & (asleep < math.inf))
        by_then = asleep[due, None] <= self.moments
        self.whole[:] += times * (columns.cost[due] @ by_then)
        self.spent[:] += times * ((columns.cost[due] * some[due]) @ by_then)

    def until(self, moment: float) -> Floats:
        """What falls due until then at each of the prices; beyond its last moment as evenly as before it."""
        j = int(np.clip(np.searchsorted(self.moments, moment), 1, MOMENTS - 1))
        share = (moment - self.moments[j - 1]) / (self.moments[j] - self.moments[j - 1])
        found: Floats = self.spent[:, j - 1] + share * (self.spent[:, j] - self.spent[:, j - 1])
        whole = max(float(self.whole[j - 1] + share * (self.whole[j] - self.whole[j - 1])), 0.0)
        # Where the few tell nothing, all are alike.
        return np.maximum(found * (whole / found[_CENTRE]), 0.0) if found[_CENTRE] > 0.0 else np.full(len(found), whole)


def price_of_parts(sketches: Sequence[PartSketch], cost: float, until: float) -> float:
    """The price at which what falls due in all parts until then costs so much; of what was looked at the nearest."""
    centres = np.array([one.prices[_CENTRE] for one in sketches])
    known = np.log(np.maximum([one.until(until) for one in sketches], 1e-9))
    low, high = float(centres.min() + NODES[0]), float(centres.max() + NODES[-1])
    rows = np.arange(len(sketches))
    for _ in range(_HALVINGS):
        x = 0.5 * (low + high)
        # All parts at once: each has been looked at from its own price on.
        away = np.clip(x - centres, NODES[0], NODES[-1])
        j = np.clip(np.searchsorted(NODES, away, "right") - 1, 0, len(NODES) - 2)
        share = (away - NODES[j]) / (NODES[j + 1] - NODES[j])
        if np.exp(known[rows, j] + share * (known[rows, j + 1] - known[rows, j])).sum() > cost:
            low = x
        else:
            high = x
    return math.exp(0.5 * (low + high))


@compiled_loop
def _spent(
    which: Integers,
    numbers: Integers,
    prices: Floats,
    moments: Floats,
    columns: LearnerColumns,
    shared: Shared,
    timing: SharedTiming,
    at: Scratch,
) -> Floats:
    """What these sources spend until each moment at each price, from the first moment on."""
    out, begin = np.zeros((len(prices), len(moments))), moments[0]
    for k in range(len(which)):
        i = which[k]
        cost = columns.cost[i]
        for p in range(len(prices)):
            due = max(begin, due_after_answer(i, numbers[k], prices[p], columns, shared, timing, at))
            for j in range(len(moments)):
                if due <= moments[j]:
                    out[p, j] += cost * (1.0 + math.floor((moments[j] - due) / columns.interval[i]))
    return out
