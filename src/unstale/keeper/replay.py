"""What polls taught, learned again: the beliefs that a fleet's observations lead to, by the learner that made them.

Only observations are truth; a belief is a cache of what they say, and this rebuilds it.

Rules of this file:
1. It mirrors `Scheduler.decide`: a first answer teaches nothing but when it was, a failure teaches nothing at all.
2. Numbers are those of the live learner bit for bit, as long as each poll names the shared state it was learned under
   and the clock did not jump: after a jump the engine goes on from its own reading of the time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import unpacked
from unstale.keeper.rows import Bits, Integers


class PastPolls(NamedTuple):
    """Polls of a fleet in columns, those of one source oldest first; `source` counts its rows from 0.

    `modified` is when the source said it last changed, or NaN; `epoch` numbers the shared state that was in force.
    """

    source: Integers
    polled_at: Floats
    answered: Bits
    changed: Bits
    modified: Floats
    epoch: Integers

    def only(self, which: Bits) -> PastPolls:
        """Some of them, in the same order."""
        return PastPolls(
            self.source[which],
            self.polled_at[which],
            self.answered[which],
            self.changed[which],
            self.modified[which],
            self.epoch[which],
        )


class Taught(NamedTuple):
    """What sources have taught: a row of the belief each, the last answer and the last change that was found."""

    rows: Floats
    last: Floats
    found: Floats
    #: False where a shared state is missing, so that nothing can be said
    known: Bits


def blank(sources: int, width: int) -> Taught:
    """Sources that have taught nothing yet."""
    never = np.full(sources, -np.inf)
    return Taught(np.zeros((sources, width)), never, never.copy(), np.ones(sources, dtype=np.bool_))


def replay(polls: PastPolls, start: Taught, epochs: Mapping[int, bytes]) -> Taught:
    """What sources have taught once these polls are added to what they taught at the `start`.

    `epochs` holds the learner's shared state under each number, as `core.learning.state.kept` wrote it.

    >>> from unstale.core.learning.state import WIDTH, kept
    >>> polls = PastPolls(np.zeros(3, np.int64), np.array([0.0, 60.0, 120.0]), np.array([True, False, True]),
    ...               np.ones(3, bool), np.full(3, np.nan), np.ones(3, np.int64))
    >>> taught = replay(polls, blank(1, WIDTH), {1: kept(Learner(1, 60.0))})
    >>> taught.last.tolist(), taught.found.tolist(), [round(float(x), 3) for x in taught.rows[0, :2]]
    ([120.0], [120.0], [0.6, 0.6])
    """
    rows, known = start.rows.copy(), start.known.copy()
    last = np.where(np.isfinite(start.last), start.last, np.inf)
    found = np.where(np.isfinite(last), np.maximum(start.found, 0.0), np.inf)
    polls = polls.only(polls.answered)
    _, first = np.unique(polls.source, return_index=True)
    first = first[np.isinf(last[polls.source[first]])]
    last[polls.source[first]] = found[polls.source[first]] = polls.polled_at[first]
    rest = np.ones(len(polls.source), dtype=np.bool_)
    rest[first] = False
    polls = polls.only(rest)
    learner = Learner(len(rows), 1.0)
    learner.columns = learner.columns._replace(rows=rows, last=last, found=found)
    for epoch in np.unique(polls.epoch):
        under = polls.only(polls.epoch == epoch)
        state = unpacked(epochs.get(int(epoch), b""))
        if state is None:
            known[under.source] = False
            continue
        learner.shared, learner.timing = state
        learner.observe(under.source, under.polled_at, under.changed, under.modified)
    never = np.isinf(last)
    return Taught(rows, np.where(never, -np.inf, last), np.where(never, -np.inf, found), known)
