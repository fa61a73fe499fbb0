"""Signals that come by themselves: somebody says that a source has changed, without being asked.

Rules of this file:
1. A channel by which this is said is a collection whose listing is never polled and costs nothing: it has told of all
   time up to now.
2. Who says it twice before the next poll has said it once: a liar could shout.
"""

from __future__ import annotations

import math

from unstale.core.learning.columns import Integers
from unstale.core.learning.compiled import compiled
from unstale.core.signals.choices import Mind

_MOST_HEARD = 65_535


@compiled
def hear_push(now: float, rows: Integers, mind: Mind) -> None:
    """These members are said to have changed just now."""
    members, last = mind.members, mind.columns.last
    for i in rows:
        if members.signals[i] == 0:
            members.heard[i] = min(members.heard[i] + 1, _MOST_HEARD)
        if now > last[i] or last[i] == math.inf:
            members.signals[i] = max(members.signals[i], 1)
            members.told[i] = now
