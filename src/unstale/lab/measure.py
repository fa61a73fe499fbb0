"""How fresh replicas truly were: from when sources changed and which version each replica served from when on.

Rules of this file:
1. Nothing is sampled: between two events nothing changes, and every stretch between them counts by its length.
2. Sources differ by chance, and what happens to all of them at once differs from time to time: a standard error is
   the larger of the two that sources and batches of time give.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from unstale.core.checks import Floats
from unstale.core.replication.cooperation import meeting_chance
from unstale.errors import require
from unstale.frozen import dataclass

#: batches of time that a run is divided into
BATCHES = 10


@dataclass(frozen=True, slots=True)
class ServedVersions:
    """The versions that one replica served of one source: from `t[i]` on, `version[i]`. Before the first, none."""

    t: Floats
    version: Floats

    def at(self, t: Floats) -> Floats:
        """The version served at each t, -1 where there was none."""
        return np.append(-1.0, self.version)[np.searchsorted(self.t, t, side="right")]


@dataclass(frozen=True, slots=True)
class MeasuredFreshness:
    """A measured freshness and its standard error."""

    value: float
    error: float

    def off(self, model: float) -> float:
        """How many standard errors a model is away; an error of 0 only agrees with itself."""
        if self.error > 0:
            return (self.value - model) / self.error
        return 0.0 if self.value == model else float(np.inf)


def fresh_time(
    changes: Sequence[Floats], served: Sequence[Sequence[ServedVersions]], start: float, end: float, asked: int = 1
) -> Floats:
    """Share of time that copies were fresh: one row for each replica, then a last one for readers; source, batch.

    `served[r][s]` is what replica r served of source s, `changes[s]` when that changed. A copy is fresh while its
    version is the number of changes so far. Readers ask `asked` random replicas and see the freshest answer: with j
    of m fresh that is fresh with the chance 1 − C(m−j, asked)/C(m, asked). [004 sect. IV, 004 sect. VI].

    >>> one = ServedVersions(np.array([0.0, 6.0]), np.array([0.0, 1.0]))
    >>> fresh_time([np.array([3.0])], [[one]], 0.0, 10.0).mean(axis=2).tolist()
    [[0.7], [0.7]]
    """
    require(start < end, "start", start, f"must be before the end, {end}", "swap the two")
    edges = np.linspace(start, end, BATCHES + 1)
    replicas, sources = len(served), len(changes)
    chance = meeting_chance(replicas + 1, asked)
    shares = np.zeros((replicas + 1, sources, BATCHES))
    for s in range(sources):
        events = [changes[s], *(one[s].t for one in served)]
        cuts = np.unique(np.concatenate([edges, *(t[(t > start) & (t < end)] for t in events)]))
        middle, length = (cuts[:-1] + cuts[1:]) / 2.0, np.diff(cuts)
        batch = np.clip(np.searchsorted(edges, middle, side="right") - 1, 0, BATCHES - 1)
        true = np.searchsorted(changes[s], middle, side="right")
        fresh = np.array([one[s].at(middle) == true for one in served], dtype=np.float64)
        rows = np.vstack([fresh, chance[fresh.sum(axis=0).astype(np.int64)]])
        for r, row in enumerate(rows):
            shares[r, s] = np.bincount(batch, row * length, BATCHES)
    return np.asarray(shares * BATCHES / (end - start))


def estimate(shares: Floats) -> MeasuredFreshness:
    """The mean of shares by source and batch, and its standard error.

    >>> estimate(np.array([[0.2, 0.4], [0.6, 0.8]]))
    MeasuredFreshness(value=0.5, error=0.2)
    """
    return MeasuredFreshness(
        float(round(shares.mean(), 12)), max(_error(shares.mean(axis=1)), _error(shares.mean(axis=0)))
    )


def _error(means: Floats) -> float:
    return float(round(means.std(ddof=1) / np.sqrt(len(means)), 12)) if len(means) > 1 else 0.0
