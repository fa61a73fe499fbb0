"""The scheduler: which sources to poll now, so that copies are as fresh as a budget allows. The one brain.

It serves the engine, the workers, the simulator, the backtest and anybody's own loop.

Rules of this file:
1. No clock, no files, no randomness: times are handed in. Times are seconds since the epoch, lengths of time seconds.
2. Fleets are columns, made anew when sources were added or edited (`named_fleet`).
3. The budget is kept without being asked for: whoever calls `take` and `record` in a loop spends it, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, Unpack

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import kept
from unstale.errors import InputError, require, sentence
from unstale.keeper.explaining import explained
from unstale.keeper.named_fleet import NO_NUMBERS, NamedFleet, Source, remembered
from unstale.keeper.outcomes import Answer, Outcome
from unstale.keeper.rows import Bits, FleetRows, Integers, RowState, Wholes
from unstale.keeper.saving import Saved, read, written
from unstale.keeper.spending import Allowance, per_second, seconds, seconds_to_next_look, usual_burst

__all__ = ["Bits", "Integers", "Scheduler", "Source", "Wholes"]


class Scheduler(NamedFleet):
    """A living fleet that says what to poll now: freshest copies for a budget, or at a price that somebody publishes.

    `budget` is cost per second, a number or text with its unit ("5000/day"). Without one, `price` decides alone, and
    `mean_interval` says how often sources are polled on average, in seconds. `host_cap` is polls per second at hosts.

    >>> scheduler = Scheduler("24/day")
    >>> scheduler.add(["news", "law"], now=0.0)
    >>> scheduler.take(now=3600.0)
    ['news']
    >>> scheduler.record(Outcome("news", "changed", polled_at=3600.0))
    >>> scheduler.take(now=7200.0)
    ['law']
    """

    def __init__(
        self,
        budget: float | str | None = None,
        *,
        price: float | None = None,
        mean_interval: float | str | None = None,
        objective: str = "freshness",
        host_cap: Mapping[str, float | str] | None = None,
    ) -> None:
        require(
            (budget is None) or (price is None and mean_interval is None),
            "price",
            price,
            "cannot be given with a budget, which sets the price",
            "give one of them",
        )
        super().__init__(
            objective,
            None if budget is None else number("budget", per_second(budget), above=0),
            1.0 if mean_interval is None else number("mean_interval", seconds(mean_interval, ""), above=0),
            {host: per_second(cap, "host_cap") for host, cap in (host_cap or {}).items()},
        )
        if price is not None:
            self.price = number("price", price, above=0)

    def _begin(self, objective: str, budget: float | None, mean: float, host_cap: Mapping[str, float]) -> None:
        super()._begin(objective, budget, mean, host_cap)
        self._allowance, self._review_at = Allowance(), -math.inf

    @classmethod
    def of(cls, learner: Learner, ids: Integers, *, due: Floats, **state: Unpack[RowState]) -> Self:
        """A fleet as a store has it: row i is source `ids[i]`, ids rising. The store keeps names, bounds and budget.

        >>> scheduler = Scheduler.of(Learner(2, 60.0), np.array([7, 9]), due=np.zeros(2))
        >>> answered, at = np.array([True, False]), np.array([100.0, 100.0])
        >>> first = scheduler.decide(np.array([0, 1]), answered, at, np.ones(2, bool))
        >>> (first > 100.0).tolist(), scheduler.awake().tolist(), scheduler.failures.tolist()
        ([True, True], [True, False], [0, 1])
        """
        made = cls.__new__(cls)
        made._begin("freshness", None, learner.scale, {})
        FleetRows.__init__(made, learner, ids, due=due, **state)
        return made

    def add(
        self,
        sources: Source | Iterable[Source],
        now: float,
        *,
        weight: float | Sequence[float] = 1.0,
        cost: float | Sequence[float] = 1.0,
        shortest: float | str = 0.0,
        longest: float | str = math.inf,
        host: str = "",
    ) -> None:
        """Take sources up; they are due at once, as far as the budget allows.

        A source is named by text or a whole number. `weight` is how much it matters, `cost` what a poll of it takes
        from the budget: one for all, or one each; where it is 1, outcomes may tell what polls `used`. No poll comes
        sooner after another than `shortest` seconds, nor later than `longest`; text like "15m" says its own unit.
        Sources of one `host` share its cap.
        """
        new = [sources] if isinstance(sources, int | str) else list(sources)
        self.given.add(new, weight, cost, seconds(shortest, "shortest"), seconds(longest, "longest"), host)
        self.names.add(new, now)
        self._allowance.begin(now)
        self._edited = True

    def due(self, now: float, most: int | None = None) -> list[Source]:
        """Which sources are due, the longest waiting first, as far as the budget allows; nothing is marked.

        Of more than `most` those are named whose polls are worth most.
        """
        return [self.names.of(row) for row in self._due_rows(now, most).tolist()]

    def take(self, now: float, most: int | None = None) -> list[Source]:
        """Which sources to poll now; they count as being polled until they are recorded or given back."""
        rows = self._due_rows(now, most)
        self.hold(rows)
        self.held[rows] = True
        self._allowance.spend(float(self.learner.columns.cost[rows].sum()))
        return [self.names.of(row) for row in rows.tolist()]

    def give_back(self, source: Source, due: float) -> None:
        """A source was taken and not polled: it is due then, and its cost is not spent."""
        self._settle()
        row = self.names.row(source)
        if self.held[row]:
            self.held[row] = False
            self._allowance.spend(-float(self.learner.columns.cost[row]))
            self.put_back(np.array([row]), np.array([due]))

    def record(self, outcomes: Outcome | Iterable[Outcome]) -> None:
        """Learn from polls, in the order given, and decide when their sources are due again."""
        self._settle()
        batch: dict[int, Outcome] = {}
        for outcome in [outcomes] if isinstance(outcomes, Outcome) else outcomes:
            if outcome.source not in self.names:
                # Removed while it was being polled.
                continue
            row = self.names.row(outcome.source)
            if row in batch:
                self._record(batch)
                batch = {}
            batch[row] = outcome
        self._record(batch)

    def wait(self, now: float) -> float:
        """Seconds until there may be something to poll; 0 if there is."""
        self._settle()
        free = ~self.held & ~self.paused
        if not free.any():
            return math.inf
        first = int(np.argmin(np.where(free, self.due_at, math.inf)))
        pause = max(float(self.due_at[first]) - now, 0.0)
        if self.budget is not None:
            short = float(self.learner.columns.cost[first]) - self._allowance.level
            pause = max(min(pause, max(self._plan_at - now, 0.0)), short / self.budget - (now - self._allowance.at))
        return max(pause, 0.0)

    @property
    def spent(self) -> float:
        """What polls have cost so far."""
        return self._allowance.spent

    def explain(self, source: Source) -> str:
        """One sentence: how often a source is polled, and why."""
        self._settle()
        return explained(self, source, self.names.row(source))

    def save(self) -> bytes:
        """Everything that it knows; polls that are under way are due again once it is loaded."""
        self._settle()
        clock = self._allowance
        return written(
            Saved(
                self.objective,
                self.budget,
                self._mean,
                self.price,
                self.host_cap,
                tuple(self.surcharge.tolist()),
                (clock.at, clock.level, clock.spent, clock.gap, self._plan_at, self._review_at),
                self.names,
                self.given,
                {name: column for name, column in self._living().items() if name != "held"},
                kept(self.learner),
                (
                    *(remembered(group, self.collected) for group in self._groups.values()),
                    *(() if self.collected is None else self.collected.pushed_groups()),
                ),
                b"" if self.collected is None else self.collected.kept(),
                b"" if self.collected is None else self.collected.counts(),
                b"" if self.learner.siblings is None else self.learner.siblings.kept(),
            )
        )

    @classmethod
    def load(cls, data: bytes) -> Scheduler:
        """A scheduler as it was saved."""
        saved = read(data)
        made = cls(saved.budget, mean_interval=None if saved.budget else saved.mean_interval, objective=saved.objective)
        made.host_cap, made.names, made.given = dict(saved.host_cap), saved.names, saved.given
        *clock, made._plan_at, made._review_at = saved.clock
        made._allowance = Allowance(*clock)
        made._groups = {group.collection: group for group in saved.groups if group.collection >= 0}
        made._channels = [group for group in saved.groups if group.collection < 0]
        made._signals, made._counts, made._kin = saved.signals, saved.counts, saved.kin
        made.price = saved.price
        plan_at = made._plan_at
        made._restore({**saved.living, "held": np.zeros(len(saved.names), np.bool_)}, saved.state)
        made._plan_at = plan_at
        made.surcharge_hosts(np.array(saved.surcharge))
        return made

    def _record(self, batch: Mapping[int, Outcome]) -> None:
        if not batch:
            return
        told, rows = list(batch.values()), np.array(list(batch), dtype=np.int64)
        answers = [_answer(outcome) for outcome in told]
        used = np.array([math.nan if o.used is None else o.used for o in told], dtype=np.float64)
        if not np.isnan(used).all():
            ours, answered = self.held[rows], [answer is not Answer.FAILED for answer in answers]
            beyond = self.pay(rows, used, np.array(answered, dtype=np.bool_))
            # Of what was polled without being taken nothing is paid yet.
            self._allowance.spend(float(np.where(ours, beyond, np.nan_to_num(used)).sum()))
            self.given.learn(rows.tolist(), self.learner.columns.cost[rows].tolist())
        self.held[rows] = False
        self.decide(
            rows,
            np.array([answer is not Answer.FAILED for answer in answers], dtype=np.bool_),
            np.array([outcome.polled_at for outcome in told], dtype=np.float64),
            np.array([answer is Answer.CHANGED for answer in answers], dtype=np.bool_),
            np.array([math.nan if o.last_modified is None else o.last_modified for o in told], dtype=np.float64),
            np.array([outcome.not_before for outcome in told], dtype=np.float64),
            np.array([outcome.by_peer for outcome in told], dtype=np.bool_),
            np.array([outcome.followed for outcome in told], dtype=np.bool_),
        )
        paused = rows[self.paused[rows]]
        self.hold(paused)
        self.due_at[paused] = math.inf

    def _due_rows(self, now: float, most: int | None) -> Integers:
        self._settle()
        if not len(self.ids):
            return NO_NUMBERS
        cost = self.learner.columns.cost
        if self.budget is not None:
            burst = usual_burst(cost, self.budget) + self.put_aside()
            self._allowance.fill(now, self.budget, burst, max(burst, float(cost.sum())))
            if now >= self._plan_at:
                self._replan(now)
        rows = np.flatnonzero((self.due_at <= now) & ~self.held & ~self.paused)
        if most is not None and len(rows) > most:
            rows = self.foremost(rows, now, most)
        else:
            rows = rows[np.argsort(self.due_at[rows], kind="stable")]
        if self.budget is not None:
            # Not past one that cannot be paid for yet: what is dear would never have its turn.
            rows = rows[np.cumsum(cost[rows]) <= self._allowance.level + 1e-9]
        return rows

    def _replan(self, now: float) -> None:
        """Look at the fleet as a whole now and then, find the price, and move what is due at other times by it."""
        assert self.budget is not None
        if self.costs_moved():
            self._edited = True
            self._settle()
        learner, allowance = self.learner, self._allowance
        look = seconds_to_next_look(learner.columns.cost, learner.scale, self.budget)
        until = now + max(look, allowance.gap)
        if now >= self._review_at:
            if math.isfinite(self._review_at):
                self.review()
            self._review_at = now + max(0.5 * learner.scale, until - now)
        spare = allowance.level - self.put_aside(now)
        end = self.horizon(now, until)
        self.plan(max(self.budget * (end - now) + spare, 0.0), now, end)
        rows, due = self.moves(now, now + 2.0 * (until - now))
        self.moved(rows, due)
        self._plan_at = until


def _answer(outcome: Outcome) -> Answer:
    try:
        return Answer(outcome.answer)
    except ValueError:
        known = ", ".join(Answer)
        raise InputError(sentence("answer", repr(outcome.answer), "is not known", f"use one of {known}")) from None
