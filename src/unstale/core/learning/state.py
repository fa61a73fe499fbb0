"""What a learner knows of the fleet as a whole, as bytes that a store can keep: everything but the sources' own rows.

Rules of this file:
1. The layout is a fixed row of floats. Bytes of any other length are no state: one starts anew, and learns it again.
2. `kept` and `restore` are inverse to each other: a restart changes nothing.
"""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.bursts import SPANS, Bursts
from unstale.core.learning.clock import DAYS, HOURS, WEEK, WeekClock
from unstale.core.learning.columns import SharedTiming
from unstale.core.learning.harm import harm_of
from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.mixture import Shared, width
from unstale.core.learning.timing import best_waits, even_waits
from unstale.core.objectives import objective_of

#: floats that hold what one source has taught
WIDTH = width(len(HALF_LIVES))

_FRESHNESS = harm_of(objective_of("freshness"), 1.0)
_SIZES = (2, len(HALF_LIVES), len(HALF_LIVES), 1, WEEK, 1, 2 * (HOURS + DAYS), SPANS, 1, 1, 2 * SPANS, 2)


def kept(learner: Learner) -> bytes:
    """The shared state of a learner.

    >>> learner, other = Learner(3, 60.0), Learner(3, 60.0)
    >>> learner.shared.prior[:] = 2.0, 90.0
    >>> restore(other, kept(learner))
    True
    >>> other.shared.prior.tolist()
    [2.0, 90.0]
    """
    shared, timing = learner.shared, learner.timing
    parts: tuple[object, ...] = (
        shared.prior,
        shared.half_lives,
        shared.favour,
        shared.harm.mark,
        timing.clock.intensity,
        timing.clock.trusted,
        timing.hours,
        timing.bursts.factor,
        timing.bursts.unit,
        timing.bursts.trusted,
        timing.silences,
        timing.credit,
    )
    return np.concatenate([np.ravel(np.asarray(part, dtype=np.float64)) for part in parts]).tobytes()


def restore(learner: Learner, state: bytes) -> bool:
    """Give a learner the shared state that another one kept; False if it is none, and nothing is changed."""
    read = unpacked(state)
    if read is None or read[0].harm.mark != learner.shared.harm.mark:
        return False
    learner.shared, learner.timing = read[0]._replace(harm=learner.shared.harm), read[1]
    if learner.timing.clock.trusted and learner.shared.harm.timed:
        learner.timing.waits[:] = best_waits(learner.timing.clock.intensity)
    return True


def unpacked(state: bytes) -> tuple[Shared, SharedTiming] | None:
    """The shared state that these bytes hold, without the best waits on the clock; None if they hold none.

    Of the objective it holds a mark alone, which tells it from others: what polls taught does not depend on it.
    """
    if len(state) != 8 * sum(_SIZES):
        return None
    flat = np.frombuffer(state).copy()
    if not np.isfinite(flat).all():
        return None
    prior, lives, favour, mark, intensity, by_clock, hours, factor, unit, by_bursts, silences, credit = _cut(flat)
    clock = WeekClock(intensity, np.concatenate([[0.0], np.cumsum(intensity)]), bool(by_clock[0]))
    bursts = Bursts(factor, float(unit[0]), bool(by_bursts[0]))
    return (
        Shared(prior, lives, favour, _FRESHNESS._replace(mark=float(mark[0]))),
        SharedTiming(clock, even_waits(), hours.reshape(2, -1), bursts, silences.reshape(2, -1), credit),
    )


def _cut(flat: Floats) -> list[Floats]:
    return list(np.split(flat, np.cumsum(_SIZES)[:-1]))
