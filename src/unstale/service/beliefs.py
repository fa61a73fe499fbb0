"""What was believed of a source after each of its polls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from unstale.core.learning.outlook import WIDTH, BelievedColumns, outlook, rates_within
from unstale.core.signals.hearing import BEFORE
from unstale.frozen import dataclass
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
        polls = polls_of([0], [one])
        taught = replay(polls._replace(epoch=np.ones_like(polls.epoch)), taught, {1: settings.get(LEARNER, b"")})
        held = BelievedColumns(taught.rows, taught.last, taught.found, settings)
        rate = outlook(held, one.polled_at).change_rate
        low, high = rates_within(held, rate)
        points.append(BeliefPoint(one.polled_at, float(rate[0]), float(low[0]), float(high[0])))
    return points


def polls_of(rows: Sequence[int], told: Sequence[Observation]) -> PastPolls:
    """Observations of sources in these rows as polls to replay, those of one source oldest first.

    A poll that a signal caused taught as two: nothing had changed until the signal, then it had.
    """
    twice = [
        (row, one, before)
        for row, one in zip(rows, told, strict=True)
        for before in ((True, False) if one.told else (False,))
    ]
    return PastPolls(
        np.array([row for row, _, _ in twice], dtype=np.int64),
        np.array([one.told - BEFORE if before and one.told else one.polled_at for _, one, before in twice]),
        np.array([one.answer is not Answer.FAILED for _, one, _ in twice], dtype=np.bool_),
        np.array([one.answer is Answer.CHANGED and not before for _, one, before in twice], dtype=np.bool_),
        np.array([np.nan if before else _said(one) for _, one, before in twice], dtype=np.float64),
        np.array([one.epoch for _, one, _ in twice], dtype=np.int64),
    )


def _said(one: Observation) -> float:
    when = one.modified if one.told is None else one.told
    return np.nan if when is None else when
