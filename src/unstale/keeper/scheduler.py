"""The scheduler: which sources to poll now, so that copies are as fresh as a budget allows. The one brain.

It serves the engine, the workers, the simulator, the backtest and anybody's own loop.

Rules of this file:
1. No clock, no files, no randomness: times are handed in. Times are seconds since the epoch, lengths of time seconds.
2. Fleets are columns. What is added, edited or removed is gathered, and the columns made anew when they are next asked.
3. The budget is kept without being asked for: whoever calls `take` and `record` in a loop spends it, and no more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Self, Unpack

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats, number
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import kept
from unstale.errors import InputError, require, sentence
from unstale.keeper.collected import Collected, Group, Worth
from unstale.keeper.explaining import explained
from unstale.keeper.living import Given, SourceNames, learner_of
from unstale.keeper.outcomes import Answer, Outcome
from unstale.keeper.rows import Bits, FleetRows, Integers, RowState
from unstale.keeper.saving import Saved, read, written
from unstale.keeper.spending import Allowance, per_second, seconds, seconds_to_next_look, usual_burst

__all__ = ["Bits", "Integers", "Scheduler", "Source"]

Source = int | str
_NO_NUMBERS: NDArray[np.int64] = np.empty(0, np.int64)


class Scheduler(FleetRows):
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
        self.objective = objective
        self.budget = None if budget is None else number("budget", per_second(budget), above=0)
        self._mean = 1.0 if mean_interval is None else number("mean_interval", seconds(mean_interval, ""), above=0)
        self.host_cap = {host: per_second(cap, "host_cap") for host, cap in (host_cap or {}).items()}
        self.names, self.given, self._allowance = SourceNames(), Given.none(), Allowance()
        self._plan_at = self._review_at = -math.inf
        self._edited = False
        self._groups, self._collected_at, self._signals = dict[int, Group](), 0.0, b""
        learner = Learner(0, self._mean, objective=objective)
        super().__init__(learner, _NO_NUMBERS, due=np.empty(0))
        self.held = np.zeros(0, np.bool_)
        if price is not None:
            self.price = number("price", price, above=0)

    @classmethod
    def of(cls, learner: Learner, ids: Integers, *, due: Floats, **state: Unpack[RowState]) -> Self:
        """A fleet as a store has it: row i is source `ids[i]`, ids rising. The store keeps names, bounds and budget.

        >>> scheduler = Scheduler.of(Learner(2, 60.0), np.array([7, 9]), due=np.zeros(2))
        >>> answered, at = np.array([True, False]), np.array([100.0, 100.0])
        >>> first = scheduler.decide(np.array([0, 1]), answered, at, np.ones(2, bool))
        >>> (first > 100.0).tolist(), scheduler.awake().tolist(), scheduler.failures.tolist()
        ([True, True], [True, False], [0, 1])
        """
        made = cls(mean_interval=learner.scale)
        FleetRows.__init__(made, learner, ids, due=due, **state)
        return made

    def __len__(self) -> int:
        return len(self.names)

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
        from the budget: one for all, or one each. No poll comes sooner after another than `shortest` seconds, nor
        later than `longest`; text like "15m" says its own unit. Sources of one `host` share its cap.
        """
        new = [sources] if isinstance(sources, int | str) else list(sources)
        self.given.add(new, weight, cost, seconds(shortest, "shortest"), seconds(longest, "longest"), host)
        self.names.add(new, now)
        self._allowance.begin(now)
        self._edited = True

    def collect(self, collection: Source, members: Iterable[Source], now: float, *, entries: int = 0) -> None:
        """Say that one source is a collection that tells of others, its members; saying it again replaces them.

        `entries` is how many of the last changes it shows, 0 if it shows all members. It is then polled by what its
        listings are worth, and members by what they were told of; what it said is handed to `listing`.
        """
        known = [self.names.row(source) for source in members]
        number = int(self.names.numbers()[self.names.row(collection)])
        self._groups[number] = Group(number, self.names.numbers()[known], entries)
        self._edited = True
        self._collected_at = now

    def listing(self, collection: Source, now: float, changed: Mapping[Source, float], hole: float = 0.0) -> None:
        """What a poll of a collection has shown: which members changed since the last one, and when.

        Record the poll itself too. `hole` is time since the last one that this one tells nothing of, in seconds.

        >>> scheduler = Scheduler("24/day")
        >>> scheduler.add(["sitemap", "news", "law"], now=0.0)
        >>> scheduler.collect("sitemap", ["news", "law"], now=0.0)
        >>> scheduler.listing("sitemap", 7200.0, {"news": 7000.0})
        >>> scheduler.worth("sitemap").members, scheduler.worth("sitemap").trusted
        (2, False)
        """
        self._settle()
        rows = np.array([self.names.row(source) for source in changed], dtype=np.int64)
        self.hear(self.names.row(collection), now, rows, np.array(list(changed.values()), dtype=np.float64), hole)

    def worth(self, collection: Source) -> Worth:
        """What is known of a collection: whether it is trusted and used, how often it is polled, how true it was."""
        self._settle()
        row = self.names.row(collection)
        known = self.collected is not None and self.collected.number[row] >= 0
        require(known, "collection", repr(collection), "is none", "say so with Scheduler.collect")
        assert self.collected is not None
        return self.collected.worth(row)

    def edit(self, source: Source, **changes: float | str) -> None:
        """Change weight, cost, shortest, longest or host of a source while it lives."""
        self._settle()
        row = self.names.row(source)
        for name, value in changes.items():
            said = seconds(value, name) if name in ("shortest", "longest") else value
            self.given.edit(row, name, said)
        self._edited = True

    def remove(self, source: Source) -> None:
        """Forget a source, and what was learned of it. A poll of it that is under way will count for nothing."""
        self._settle()
        row = self.names.remove(source)
        self.given.remove(row)
        keep = np.arange(len(self.ids)) != row
        self._restore({name: column[keep] for name, column in self._living().items()}, self.learner)

    def pause(self, source: Source) -> None:
        """Do not poll a source until it is resumed; what was learned of it stays."""
        self._settle()
        row = self.names.row(source)
        self.paused[row], self.due_at[row] = True, math.inf
        self._edited = True

    def resume(self, source: Source, now: float) -> None:
        """Poll a paused source again: it is due now."""
        self._settle()
        row = self.names.row(source)
        if self.paused[row]:
            self.paused[row], self.due_at[row] = False, now
            self._edited = True

    def due(self, now: float, most: int | None = None) -> list[Source]:
        """Which sources are due, the longest waiting first, as far as the budget allows; nothing is marked."""
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

    def due_of(self, source: Source) -> float:
        """When a source is due: seconds since the epoch, infinite while it is paused."""
        self._settle()
        return float(self.due_at[self.names.row(source)])

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

    def publish(self, price: float) -> None:
        """Go on at a price that somebody else has found."""
        self._settle()
        self.price = number("price", price, above=0)

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
                tuple(_remembered(group, self.collected) for group in self._groups.values()),
                b"" if self.collected is None else self.collected.kept(),
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
        made._groups, made._signals = {group.collection: group for group in saved.groups}, saved.signals
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
            return _NO_NUMBERS
        cost = self.learner.columns.cost
        if self.budget is not None:
            burst = usual_burst(cost, self.budget)
            self._allowance.fill(now, self.budget, burst, max(burst, float(cost.sum())))
            if now >= self._plan_at:
                self._replan(now)
        rows = np.flatnonzero((self.due_at <= now) & ~self.held & ~self.paused)
        rows = rows[np.argsort(self.due_at[rows], kind="stable")]
        if self.budget is not None:
            # Not past one that cannot be paid for yet: what is dear would never have its turn.
            rows = rows[np.cumsum(cost[rows]) <= self._allowance.level + 1e-9]
        return rows if most is None else rows[:most]

    def _replan(self, now: float) -> None:
        """Look at the fleet as a whole now and then, find the price, and move what is due at other times by it."""
        assert self.budget is not None
        learner, allowance = self.learner, self._allowance
        look = seconds_to_next_look(learner.columns.cost, learner.scale, self.budget)
        until = now + max(look, allowance.gap)
        if now >= self._review_at:
            if math.isfinite(self._review_at):
                self.review()
            self._review_at = now + max(0.5 * learner.scale, until - now)
        self.plan(max(self.budget * (until - now) + allowance.level, 0.0), now, until)
        rows, due = self.moves(now, now + 2.0 * (until - now))
        self.moved(rows, due)
        self._plan_at = until

    def _living(self) -> dict[str, np.ndarray]:
        """What polls and decisions have made of each source, in columns."""
        columns = self.learner.columns
        return {
            "beliefs": columns.rows,
            "found": np.where(np.isfinite(columns.found), columns.found, -np.inf),
            "interval": columns.interval,
            "due_at": self.due_at,
            "answered": self.answered,
            "not_before": self.not_before,
            "failures": self.failures,
            "paused": self.paused,
            "held": self.held,
        }

    def _settle(self) -> None:
        """Make the columns anew if sources were added or edited."""
        if self._edited:
            living = self.names.grown(self._living(), self.learner.columns.rows.shape[1])
            self._restore(living, self.learner)

    def _restore(self, living: Mapping[str, np.ndarray], known: Learner | bytes) -> None:
        """The columns of these sources, learned so far, under what the fleet as a whole has taught."""
        before = self.collected
        given, paused = self.given.columns(), living["paused"].astype(np.bool_)
        cost = float(given["cost"][~paused].sum())
        scale = self._mean if self.budget is None else cost / self.budget if cost > 0.0 else 1.0
        state = known if isinstance(known, bytes) else kept(known)
        learner = learner_of(scale, given, living["beliefs"].copy(), self.objective, state)
        hosts, host = np.unique(given["host"], return_inverse=True)
        price = self.price
        FleetRows.__init__(
            self,
            learner,
            self.names.numbers(),
            due=living["due_at"],
            answered=living["answered"],
            found=np.minimum(living["found"], living["answered"]),
            failures=living["failures"],
            paused=paused,
            host=host,
            cap=np.array([self.host_cap.get(name, math.inf) if name else math.inf for name in hosts] or [math.inf]),
        )
        same = isinstance(known, bytes) or known.scale == scale
        learner.columns.interval[:] = np.where(living["interval"] > 0.0, living["interval"], scale) if same else scale
        self.not_before, self.held = living["not_before"].copy(), living["held"].astype(np.bool_)
        self.hold(np.flatnonzero(self.held))
        if self._groups:
            groups = [_remembered(group, before) for group in self._groups.values()]
            self.collected = Collected(learner, self.ids, groups, self._collected_at)
            self.collected.restore(before.kept() if before is not None else self._signals)
        if (len(self.names) and np.isfinite(self._plan_at)) or self.budget is None or isinstance(known, bytes):
            self.price = price
        self._plan_at, self._edited = -math.inf, False


def _remembered(group: Group, before: Collected | None) -> Group:
    """A collection with the signals that its members have not been polled for."""
    return group if before is None else replace(group, told=before.told_of(group.members))


def _answer(outcome: Outcome) -> Answer:
    try:
        return Answer(outcome.answer)
    except ValueError:
        known = ", ".join(Answer)
        raise InputError(sentence("answer", repr(outcome.answer), "is not known", f"use one of {known}")) from None
