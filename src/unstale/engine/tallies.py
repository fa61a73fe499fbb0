"""What workers tell of the sources that they have polled, where a fleet is planned in parts: how each stood before and
after, a row of floats, so that whoever has a sketch of its part takes the one out and puts the other in."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH
from unstale.keeper.living import learner_of
from unstale.keeper.scheduler import Integers, Scheduler

#: beyond the belief: last answer, last change, when it is due whatever the price is, and what bounds its polls
_MORE = ("last", "found", "asleep", "weight", "cost", "shortest", "longest")
_STATE = WIDTH + len(_MORE)
_ROW = 2 + 2 * _STATE
#: batches of which a worker remembers how sources stood, until it can tell: parts are read anew in any case
MOST_TALLIES = 100


class PolledSources(NamedTuple):
    """Some polls: of which sources, when they were recorded, and how these stood before and after."""

    source: Integers
    at: Floats
    before: Floats
    after: Floats

    def where(self, which: Integers) -> PolledSources:
        """These of them."""
        return PolledSources(self.source[which], self.at[which], self.before[which], self.after[which])


def standing_of(scheduler: Scheduler, rows: Integers) -> Floats:
    """How sources stand, a row each."""
    columns = scheduler.learner.columns
    more = [asleep(scheduler)[rows] if name == "asleep" else getattr(columns, name)[rows] for name in _MORE]
    return np.column_stack([columns.rows[rows], *more])


def asleep(scheduler: Scheduler) -> Floats:
    """When sources that fail are tried again, whatever the price is; inf for all others."""
    return np.where((scheduler.failures > 0) & ~scheduler.paused, scheduler.due_at, math.inf)


def packed(sources: Integers, at: float, before: Floats, after: Floats) -> bytes:
    """Polls in bytes.

    >>> one = packed(np.array([7]), 5.0, np.zeros((1, _STATE)), np.ones((1, _STATE)))
    >>> told = unpacked([one, one, b"nonsense"])
    >>> told.source.tolist(), told.at.tolist(), told.after.shape == (2, _STATE)
    ([7, 7], [5.0, 5.0], True)
    """
    return np.column_stack([sources, np.full(len(sources), at), before, after]).tobytes()


def unpacked(values: list[bytes]) -> PolledSources:
    """All that was told; what is nothing of the kind is left out."""
    rows = [np.frombuffer(value).reshape(-1, _ROW) for value in values if len(value) % (8 * _ROW) == 0]
    flat = np.concatenate([np.empty((0, _ROW)), *rows])
    return PolledSources(flat[:, 0].astype(np.int64), flat[:, 1], flat[:, 2 : 2 + _STATE], flat[:, 2 + _STATE :])


def learner_with(states: Floats, scale: float, objective: str, state: bytes) -> tuple[Learner, Floats]:
    """A learner of sources that stand so, and when those that sleep are due."""
    more = dict(zip(_MORE, states[:, WIDTH:].T, strict=True))
    learner = learner_of(scale, more, np.ascontiguousarray(states[:, :WIDTH]), objective, state)
    learner.columns.last[:], learner.columns.found[:] = more["last"], more["found"]
    return learner, more["asleep"]


class UntoldPolls:
    """How sources stood before and after polls, batch by batch, until it can be told."""

    def __init__(self) -> None:
        self._before: tuple[Integers, Floats] | None = None
        self._told: list[bytes] = []

    def begin(self, scheduler: Scheduler, rows: Integers | None) -> None:
        """A batch of polls of these rows is going to be learned; None: of this one nobody need know."""
        self._before = None if rows is None else (rows, standing_of(scheduler, rows))

    def end(self, scheduler: Scheduler, now: float) -> None:
        """The batch was learned."""
        if self._before is not None and len(self._told) < MOST_TALLIES:
            rows, before = self._before
            self._told.append(packed(scheduler.ids[rows], now, before, standing_of(scheduler, rows)))

    def take(self) -> bytes:
        """What is to be told."""
        told, self._told = b"".join(self._told), []
        return told
