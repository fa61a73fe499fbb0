"""One copy, simulated: freshness, age, penalties and missed changes as averages with standard errors.

Rules of this file:
1. A run is cut into batches that share nothing: each is a stationary history of its own, begun at the last
   poll before its time 0. So batch means are exact, also for heavy tails, and phases are averaged over.
2. Laws the kernels know are simulated there; every other process, and every penalty, goes through drawn
   histories in NumPy. Both are exact; they use different random numbers.
3. Ages are integrated, not sampled: the only error is that of the drawn times.
"""

from __future__ import annotations

import math

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear, Penalty
from unstale.core.processes import Process, Superposition, WeeklyPoisson
from unstale.errors import require
from unstale.frozen import dataclass
from unstale.sim import draws, kernels
from unstale.sim.statistics import Estimate, batch_means, finite_variance

#: polls and changes that take about an hour
MOST_EVENTS = 1e11


@dataclass(frozen=True, slots=True)
class Sweep:
    """Polls in random order as they really come: every source once per round, in a new order each round.

    One poll in each round of length `interval`, in a random one of `sources` slots, or anywhere in it if there
    are many sources (None). Gaps are triangular, but each depends on the one before; time averages do not mind.
    [000 Algorithm B.2, Lemma 2].

    >>> Sweep(2.0).rate
    0.5
    """

    interval: float
    sources: int | None = None

    def __post_init__(self) -> None:
        number("interval", self.interval, above=0, remedy="give the length of a round")
        number("sources", self.sources or 1, least=1, remedy="give their number, or None for many")

    @property
    def rate(self) -> float:
        return 1.0 / self.interval

    def times(self, rng: np.random.Generator, stop: float) -> Floats:
        """Polls from the last one before 0 on to the first after `stop`; where the rounds begin is random."""
        rounds = np.arange(-1.0, stop / self.interval + 3.0)
        place = rng.random(rounds.size) if self.sources is None else rng.integers(self.sources, size=rounds.size)
        times = self.interval * (rounds - rng.random() + place / (self.sources or 1))
        return times[np.searchsorted(times, 0.0, side="right") - 1 :]


@dataclass(frozen=True, slots=True)
class CopyHistory:
    """What happened to one copy: polls from the last one before 0 on, changes after that poll, and the end.

    Measured from 0 to `stop`. A change at the very time of a poll counts as after it.
    """

    polls: Floats
    changes: Floats
    stop: float

    def collected(self, penalty: Penalty) -> float:
        """∫ w(age) from 0 to the end: w2 of each stale stretch."""
        begin = np.clip(self.polls, 0.0, self.stop)
        stop = np.clip(np.append(self.polls[1:], np.inf), 0.0, self.stop)
        first = np.append(self.changes, np.inf)[np.searchsorted(self.changes, self.polls)]
        stale = first < stop
        return self._harm(penalty, first[stale], np.maximum(first, begin)[stale], stop[stale])

    def collected_by_all(self, penalty: Penalty) -> float:
        """∫ Σ w(lag) over all unseen changes: each collects w2 until it is polled."""
        unseen = self.changes[self.changes < self.stop]
        stop = np.append(self.polls, np.inf)[np.searchsorted(self.polls, unseen, side="right")]
        stop = np.minimum(stop, self.stop)
        counts = stop > 0
        return self._harm(penalty, unseen[counts], np.maximum(unseen, 0.0)[counts], stop[counts])

    def within(self, tau: float) -> float:
        """Time fresh, or stale by at most tau."""
        first = np.append(self.changes, np.inf)[np.searchsorted(self.changes, self.polls)]
        stop = np.clip(np.append(self.polls[1:], np.inf), 0.0, self.stop)
        return float(
            np.sum(np.clip(first + tau, np.clip(self.polls, 0.0, self.stop), stop))
            - np.sum(np.clip(self.polls, 0.0, self.stop))
        )

    @staticmethod
    def _harm(penalty: Penalty, change: Floats, begin: Floats, stop: Floats) -> float:
        high, low = np.asarray(penalty.w2(stop - change)), np.asarray(penalty.w2(begin - change))
        return float(np.sum(high - low))


@dataclass(frozen=True, slots=True)
class CopyRun:
    """What one simulated copy was like; None for what was not asked."""

    freshness: Estimate
    age: Estimate
    #: mean age while stale
    lag: Estimate
    missed_changes: Estimate
    #: share of time fresh or stale by at most tau
    consistency: Estimate | None
    #: mean penalty of the age, and of all unseen changes together
    staleness: Estimate | None
    update_staleness: Estimate | None
    polls: int
    changes: int


def simulate_copy(
    changes: Process | WeeklyPoisson,
    polls: Process | Sweep,
    penalty: Penalty | None = None,
    *,
    polls_count: int = 100_000,
    horizon: float | None = None,
    seed: int = 0,
    tau: float | None = None,
    batches: int = 64,
) -> CopyRun:
    """Simulate one copy for about `polls_count` polls, or for the time `horizon`, in independent batches.

    Time averages of what `unstale.core.staleness` computes: freshness, age, lag, missed changes, and, if asked,
    consistency(tau) and the staleness of a penalty; each within a few of its standard errors of the formula.
    Where the variance is infinite (irregular polls), the error is inf and only the order of magnitude counts.
    Same arguments, same result, bit for bit, on any number of threads. [003 eqs. 42, 50].

    >>> from unstale.core.processes import Constant, Poisson
    >>> run = simulate_copy(Poisson(1.0), Constant(1.0), seed=1)
    >>> abs(run.freshness.z(0.632120558829)) < 3, abs(run.age.z(0.132120558829)) < 3
    (True, True)
    """
    seed = checked_seed(seed)
    batches = int(number("batches", batches, least=2, remedy="give 2 or more, or there is no error"))
    if horizon is None:
        horizon = number("polls_count", polls_count, least=batches, remedy="give a poll for each batch") / polls.rate
    length = number("horizon", horizon, above=0) / batches
    tau = None if tau is None else number("tau", tau, least=0)
    require_events((polls.rate + changes.rate) * horizon, "horizon", horizon)
    sums = None if penalty is not None else _compiled(changes, polls, length, seed, tau, batches)
    if sums is None:
        sums = _drawn(changes, polls, penalty, length, seed, tau, batches)
    tail = polls.tail if isinstance(polls, Process) else math.inf
    power = 0.0 if penalty is None else _growth(penalty)

    def mean(column: int, power: float) -> Estimate:
        return batch_means(sums[:, column], np.full(batches, length), finite=finite_variance(tail, power))

    return CopyRun(
        freshness=mean(0, 0),
        age=mean(1, 1),
        lag=batch_means(sums[:, 1], length - sums[:, 0], finite=finite_variance(tail, 1)),
        missed_changes=mean(2, 1),
        consistency=None if tau is None else mean(3, 0),
        staleness=None if penalty is None else mean(6, power),
        update_staleness=None if penalty is None else mean(7, _summed_growth(penalty)),
        polls=int(sums[:, 4].sum()),
        changes=int(sums[:, 5].sum()),
    )


def draw(
    changes: Process | WeeklyPoisson, polls: Process | Sweep, horizon: float, rng: np.random.Generator
) -> CopyHistory:
    """One stationary history of a copy from 0 to the horizon.

    Polls come at times that are random to the source, so the changes are met in equilibrium at the last poll
    before 0 [003 definition 6]. A source that follows the clock of a week keeps its own time.
    """
    at = _polled(polls, horizon, rng)
    if isinstance(changes, WeeklyPoisson):
        return CopyHistory(at, changes.sample_times(rng, float(at[0]), horizon), horizon)
    return CopyHistory(at, _changed(changes, float(at[0]), horizon, rng), horizon)


def _polled(polls: Process | Sweep, horizon: float, rng: np.random.Generator) -> Floats:
    """Polls from the last one before 0 on to the first after the horizon."""
    if isinstance(polls, Sweep):
        return polls.times(rng, horizon)
    if isinstance(polls, Superposition):
        times = np.sort(np.concatenate([_polled(p, horizon, rng) for p in polls.processes]))
        first, last = np.searchsorted(times, [0.0, horizon], side="right")
        return times[first - 1 : last + 1]
    met = float(polls.sample_length_biased(rng, 1)[0])
    since = met * rng.random()
    return np.append(-since, _onward(polls, met - since, horizon, rng))


def _changed(changes: Process, begin: float, horizon: float, rng: np.random.Generator) -> Floats:
    """Changes from `begin` on, in equilibrium there; of a long time before 0 only the first and the last ones."""
    if isinstance(changes, Superposition):
        return np.sort(np.concatenate([_changed(p, begin, horizon, rng) for p in changes.processes]))
    first = begin + float(changes.sample_age(rng, 1)[0])
    forgotten = -kernels.FORGOTTEN * changes.mean
    if first >= forgotten:
        return _onward(changes, first, horizon, rng)
    again = forgotten + float(changes.sample_age(rng, 1)[0])
    return np.append(first, _onward(changes, again, horizon, rng))


def _onward(process: Process, now: float, horizon: float, rng: np.random.Generator) -> Floats:
    """Events from the one at `now` on to the first after the horizon."""
    parts = []
    while now < horizon:
        more = int(min((horizon - now) * process.rate * 1.05 + 16, 1e6))
        times = np.cumsum(np.append(now, process.sample(rng, more)))
        parts.append(times[:-1])
        now = float(times[-1])
    return np.concatenate([*parts, [now]])


def _drawn(
    changes: Process | WeeklyPoisson,
    polls: Process | Sweep,
    penalty: Penalty | None,
    length: float,
    seed: int,
    tau: float | None,
    batches: int,
) -> Floats:
    sums = np.zeros((batches, 8))
    for row, stream in zip(sums, np.random.SeedSequence(seed).spawn(batches), strict=True):
        history = draw(changes, polls, length, np.random.Generator(np.random.PCG64(stream)))
        row[0] = length - history.collected(Indicator())
        row[1] = history.collected(Linear())
        row[2] = history.collected_by_all(Indicator())
        row[3] = history.within(tau or 0.0)
        row[4] = np.count_nonzero((history.polls > 0) & (history.polls < length))
        row[5] = np.count_nonzero((history.changes >= 0) & (history.changes < length))
        if penalty is not None:
            row[6:] = history.collected(penalty), history.collected_by_all(penalty)
    return sums


def _compiled(
    changes: Process | WeeklyPoisson, polls: Process | Sweep, length: float, seed: int, tau: float | None, batches: int
) -> Floats | None:
    if isinstance(changes, WeeklyPoisson) or (isinstance(polls, Sweep) and polls.sources is not None):
        return None
    change_law = draws.law_of(changes)
    sweep: draws.Law = (draws.SWEEP, 0.0, 1.0 / polls.rate)
    poll_law = sweep if isinstance(polls, Sweep) else draws.law_of(polls)
    if change_law is None or poll_law is None:
        return None
    sums = np.empty((batches, 7))

    def work(first: int, last: int) -> None:
        kernels.copy_runs(draws.word(seed), first, last, *change_law, changes.mean, *poll_law, length, tau or 0.0, sums)

    kernels.in_threads(work, batches, 4, None)
    return sums


def _growth(penalty: Penalty) -> float:
    """The power of the age like which a penalty grows at most; without a degree it is bounded or counts as linear."""
    if penalty.degree is not None:
        return penalty.degree
    return 0.0 if math.isfinite(penalty.limit) else 1.0


def _summed_growth(penalty: Penalty) -> float:
    """The same for the penalties of all changes since a poll: one power more, but for a penalty that fades.

    The sum grows like w2, which is seen from afar; a logarithm is no power at all.
    """
    far = 1e15
    power = math.log2(float(penalty.w2(2 * far)) / float(penalty.w2(far)))
    return power if power > 0.1 else 0.0


def require_events(expected: float, name: str, value: float) -> None:
    """Refuse what would take hours."""
    require(
        expected <= MOST_EVENTS,
        name,
        f"{value:g} with about {expected:.3g} events",
        f"must give {MOST_EVENTS:.0e} events at most",
        "simulate less",
    )


def checked_seed(seed: object) -> int:
    """A seed both kinds of streams take: a whole number of 0 or more."""
    value = number("seed", seed, least=0, most=2.0**53, remedy="give a whole number such as 1")
    require(value == int(value), "seed", seed, "must be a whole number", "give a number such as 1")
    return int(value)
