"""When to look at a source again: after a poll, on arrival or restart, and when the price has changed.

Rules of this file:
1. A decision takes a record and returns a new one; nothing else is read or changed.
2. The bounds are promises: after jitter and back-off a due time still keeps `shortest` and `longest`.
3. A failure teaches nothing: `last_poll` stays, so the next answer covers the whole time since the last one.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.phase import SPREAD
from unstale.keeper.outcomes import Answer, Outcome
from unstale.keeper.records import Record

#: every failure in a row doubles the interval, six times at most: 64 intervals
MOST_DOUBLINGS = 6
#: relative half-width of a backed-off interval: sources that failed together do not come back together
FAILURE_SPREAD = 0.5

#: 1/golden ratio: multiples modulo 1 fill [0, 1) evenly
_GOLDEN = (5.0**0.5 - 1.0) / 2.0
_FAILED = Answer.FAILED


def decide(
    record: Record, outcome: Outcome, price: float, now: float, rng: np.random.Generator, surcharge: float = 0.0
) -> Record:
    """The record after a poll: due again one jittered interval after the look, at today's price.

    due = polled_at + interval·(1 + 0.05·u), u uniform on [−1, 1], so that polls cannot lock into a source's
    timing. A failed poll takes the same road with a longer interval: doubled for each failure in a row,
    64-fold at most, and spread by half of itself. Never before `now`.

    >>> from unstale.keeper import Source
    >>> polled = Outcome(Answer.UNCHANGED, polled_at=100.0)
    >>> daily = Record(Source(0, 2.0, shortest=5.0, longest=5.0))
    >>> record = decide(daily, polled, 0.1, 100.0, np.random.default_rng(1))
    >>> record.due, record.last_poll
    (105.0, 100.0)
    """
    source, polled_at = record.source, outcome.polled_at
    worth = price * source.cost + surcharge
    interval = record.interval if worth == record.worth else record.interval_at(price, surcharge)
    if outcome.answer is _FAILED:
        failures, last_poll = record.failures + 1, record.last_poll
        stretch = 2.0 ** min(failures, MOST_DOUBLINGS) * (1.0 + FAILURE_SPREAD * (2.0 * rng.random() - 1.0))
    else:
        failures, last_poll = 0, polled_at
        stretch = 1.0 + SPREAD * (2.0 * rng.random() - 1.0)
    wait = interval * stretch
    if wait < source.shortest:
        wait = source.shortest
    elif wait > source.longest:
        wait = source.longest
    due = polled_at + wait
    return Record(source, last_poll, interval, due if due > now else now, failures, worth)


def admit(record: Record, price: float, now: float, phase: float, surcharge: float = 0.0) -> Record:
    """The record of a source that is new, or known again after a restart.

    One that is not overdue is due an interval after its last poll; any other at now + phase·interval, phase in
    [0, 1) spread over the fleet (`core.orders.phases`), so that neither a start nor a long stop ends in a
    burst.

    >>> from unstale.keeper import Source
    >>> admit(Record(Source(0, 2.0, longest=8.0)), price=9.0, now=100.0, phase=0.25).due
    102.0
    """
    interval = record.interval_at(price, surcharge)
    due = record.last_poll + interval
    if due <= now or math.isinf(record.last_poll):
        due = now + phase * interval if math.isfinite(interval) else math.inf
    worth = price * record.source.cost + surcharge
    return Record(record.source, record.last_poll, interval, due, record.failures, worth)


def reprice(record: Record, price: float, now: float, surcharge: float = 0.0) -> Record:
    """The record under a new price: what is left of the wait is scaled like the interval.

    due = now + (due − now)·new interval/old interval. It keeps jitter and back-off and spreads polls as before:
    a price that falls makes the fleet poll faster, not all at once. A source taken back after being abandoned
    is due within its new interval, at a phase that depends on its id.

    >>> from unstale.keeper import Source
    >>> waiting = admit(Record(Source(0, 2.0, longest=8.0)), price=9.0, now=100.0, phase=0.5)
    >>> waiting.due, round(reprice(waiting, price=0.25, now=100.0).due, 6)
    (104.0, 100.419587)
    """
    interval = record.interval_at(price, surcharge)
    if math.isinf(interval):
        due = math.inf
    elif math.isinf(record.interval):
        due = now + (record.source.id * _GOLDEN) % 1.0 * interval
    else:
        due = now + max(record.due - now, 0.0) * (interval / record.interval)
    if record.failures == 0 and math.isfinite(record.last_poll):
        # The wait so far was counted at another pace, so the bounds need another look.
        latest, earliest = record.last_poll + record.source.longest, record.last_poll + record.source.shortest
        due = max(min(due, latest), earliest, now)
    worth = price * record.source.cost + surcharge
    return Record(record.source, record.last_poll, interval, due, record.failures, worth)
