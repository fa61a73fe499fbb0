"""A chain of replicas that all poll by the engine's brain, in virtual time: each follows the one above it.

Rules of this file:
1. The brain is the real one, with its budget, its learning and its jitter; a poll takes no time.
2. Whoever follows hears what a replica says of its copies: as of when they are, and the second in which it looks again.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.replication.redundancy import whole
from unstale.keeper.outcomes import Answer, Outcome
from unstale.keeper.scheduler import Scheduler
from unstale.sim.copy import checked_seed
from unstale.sim.statistics import Estimate, batch_means

#: mean intervals by which each begins before the one that follows it, and until all have learned
AHEAD, WARM = 3.0, 12.0
#: seconds between two looks at a replica at least, as those who follow keep it, and those after which time goes on
SOONEST, BEAT = 1.0, 0.002


def simulate_following(
    change_rate: float,
    sync_rate: float,
    depth: int,
    *,
    slack: float = 1.5,
    sources: int = 30,
    horizon: float = 100.0,
    seed: int = 0,
) -> Estimate:
    """Freshness of every replica of a chain with brains, the first with the budget to poll all sources at `sync_rate`.

    Those that follow have `slack` times that, and are in step with it: `followed_levels` of `core.replication`, but for
    what a replica looks later than it said. Without slack they wait for their budget, and nothing is gained over
    polls at times of their own. `horizon` is in mean intervals. Errors are those between sources.

    >>> run = simulate_following(0.1, 0.2, 1, horizon=20.0, seed=1)
    >>> abs(float(run.value[0]) - 0.787) < 5 * float(run.error[0]) < 0.2
    True
    """
    rate, every = number("change_rate", change_rate, above=0), 1.0 / number("sync_rate", sync_rate, above=0)
    count, levels = whole("sources", sources), whole("depth", depth)
    start = every * (WARM + AHEAD * levels)
    end = start + every * number("horizon", horizon, above=0)
    rng = np.random.default_rng(checked_seed(seed))
    enough = int(rate * end + 12 * math.sqrt(rate * end)) + 20
    changes = [np.cumsum(rng.exponential(1.0 / rate, enough)) for _ in range(count)]
    chain = [_Replica(count, count / every * (slack if level else 1.0)) for level in range(levels)]
    begun, now = 0, 0.0
    while now < end:
        if begun < levels and now >= AHEAD * every * begun:
            chain[begun].brain.add([int(i) for i in rng.permutation(count)], now)
            begun += 1
        for level in range(begun):
            for source in chain[level].brain.take(now):
                above = chain[level - 1] if level else None
                chain[level].poll(int(source), now, above, changes[int(source)], (start, end))
        pause = min(replica.brain.wait(now) for replica in chain[:begun])
        now += max(min(pause, every), BEAT)
    fresh = np.array([replica.closed(end, changes, (start, end)) for replica in chain])
    return batch_means(fresh, np.full(fresh.shape, end - start))


class _Replica:
    """One of the chain: of each source as of when its copy is, since when it is held, and how long it was fresh."""

    def __init__(self, sources: int, budget: float) -> None:
        self.brain = Scheduler(budget)
        self.as_of, self.since, self.fresh = np.full(sources, -np.inf), np.zeros(sources), np.zeros(sources)

    def poll(
        self, source: int, now: float, above: _Replica | None, changes: Floats, within: tuple[float, float]
    ) -> None:
        """Look at a source, or at what the replica above holds of it."""
        as_of, not_before = now, -math.inf
        if above is not None:
            as_of = float(above.as_of[source])
            expires = math.floor(above.brain.due_of(source))
            not_before = now + max(expires + 1.0 - now, SOONEST, 0.1 * (now - as_of))
        if as_of == -math.inf:
            self.brain.record(Outcome(source, Answer.FAILED, now))
            return
        before = float(self.as_of[source])
        changed = before == -math.inf or np.searchsorted(changes, before) < np.searchsorted(changes, as_of)
        self._close(source, now, changes, within)
        self.as_of[source], self.since[source] = as_of, now
        answer = Answer.CHANGED if changed else Answer.UNCHANGED
        self.brain.record(Outcome(source, answer, as_of, not_before=not_before, followed=above is not None))

    def closed(self, end: float, changes: list[Floats], within: tuple[float, float]) -> Floats:
        """How long each source was fresh in all."""
        for source in range(len(self.fresh)):
            self._close(source, end, changes[source], within)
        return self.fresh

    def _close(self, source: int, now: float, changes: Floats, within: tuple[float, float]) -> None:
        """Count what the copy that is held was fresh until now."""
        if self.as_of[source] > -math.inf:
            stale = changes[np.searchsorted(changes, self.as_of[source])]
            begin, last = max(self.since[source], within[0]), min(now, float(stale), within[1])
            self.fresh[source] += max(last - begin, 0.0)
