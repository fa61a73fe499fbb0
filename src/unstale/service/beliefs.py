"""What was believed of a source after each of its polls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unstale.core.learning.outlook import WIDTH, BelievedColumns, outlook
from unstale.keeper.outcomes import Answer
from unstale.keeper.replay import PastPolls, blank, replay
from unstale.ports import LEARNER, Observation

#: polls that a belief is followed over
POLLS = 300


@dataclass(frozen=True, slots=True)
class BeliefPoint:
    """A change rate as it was believed at a time, with the interval that holds it with probability 0.9."""

    at: float
    change_rate: float
    low: float
    high: float


def believed(told: Sequence[Observation], settings: Mapping[str, bytes]) -> list[BeliefPoint]:
    """What polls taught, oldest first, after each answer, as today's fleet would read them.

    Today's prior and clock are used throughout, so that the curve shows this source and not what others taught.
    """
    points = []
    taught = blank(1, WIDTH)
    for one in told:
        if one.answer is Answer.FAILED:
            continue
        modified = np.nan if one.modified is None else one.modified
        polls = PastPolls(
            np.zeros(1, np.int64),
            np.array([one.polled_at]),
            np.ones(1, np.bool_),
            np.array([one.answer is Answer.CHANGED]),
            np.array([modified]),
            np.ones(1, np.int64),
        )
        taught = replay(polls, taught, {1: settings.get(LEARNER, b"")})
        seen = outlook(BelievedColumns(taught.rows, taught.last, taught.found, settings), one.polled_at)
        points.append(BeliefPoint(one.polled_at, float(seen.change_rate[0]), float(seen.low[0]), float(seen.high[0])))
    return points
