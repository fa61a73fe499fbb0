"""A fleet whose sources are named and come and go while it lives: what is said of them becomes columns.

Rules of this file:
1. What is added, edited or removed is gathered, and the columns are made anew when they are next asked.
2. Nothing that was learned is lost by an edit: beliefs, due times, collections and what they told go by names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import number
from unstale.core.learning.learner import Learner
from unstale.core.learning.siblings import siblings_of
from unstale.core.learning.state import kept
from unstale.errors import require
from unstale.keeper.collected import Collected, Group, Worth
from unstale.keeper.living import Given, SourceNames, learner_of
from unstale.keeper.rows import FleetRows
from unstale.keeper.spending import seconds
from unstale.listings.records import CHANNELS

Source = int | str
NO_NUMBERS: NDArray[np.int64] = np.empty(0, np.int64)


class NamedFleet(FleetRows):
    """Rows of a fleet by the names of their sources. `mean` is the mean interval where no budget says it."""

    def __init__(self, objective: str, budget: float | None, mean: float, host_cap: Mapping[str, float]) -> None:
        self._begin(objective, budget, mean, host_cap)
        super().__init__(Learner(0, mean, objective=objective), NO_NUMBERS, due=np.empty(0))

    def _begin(self, objective: str, budget: float | None, mean: float, host_cap: Mapping[str, float]) -> None:
        """All but the rows."""
        self.objective, self.budget, self._mean, self.host_cap = objective, budget, mean, dict(host_cap)
        self.names, self.given = SourceNames(), Given.none()
        #: when the price is looked at again: at once after an edit
        self._plan_at = -math.inf
        self._edited = False
        self._groups, self._collected_at = dict[int, Group](), 0.0
        #: the channels of a scheduler that was saved
        self._channels = list[Group]()
        #: what was learned of collections, as it was saved
        self._signals = self._counts = self._kin = b""
        self.held = np.zeros(0, np.bool_)

    def __len__(self) -> int:
        return len(self.names)

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

        >>> from unstale import Scheduler
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

    def pushed(self, channel: str, sources: Iterable[Source], now: float) -> None:
        """Somebody says, unasked, that these sources have changed: a `hint`, a hub (`websub`) or a `webhook`.

        They are due now as far as what was said by that channel has proved true; see `worth`.

        >>> from unstale import Scheduler
        >>> scheduler = Scheduler("24/day")
        >>> scheduler.add(["news", "law"], now=0.0)
        >>> scheduler.pushed("webhook", ["news"], now=60.0)
        >>> scheduler.worth("webhook").members, scheduler.worth("webhook").new
        (1, True)
        """
        self._settle()
        require(channel in CHANNELS, "channel", repr(channel), "is not known", f"use one of {', '.join(CHANNELS)}")
        rows = np.unique(np.array([self.names.row(source) for source in sources], dtype=np.int64))
        rows = self.push(CHANNELS[channel], rows, now)
        self.ask(rows, np.minimum(self.due_at[rows], now))

    def worth(self, collection: Source) -> Worth:
        """What is known of a collection, or of a channel by which signals are pushed: whether it is trusted and used,
        how often it is polled, how true it was."""
        self._settle()
        if self.collected is not None and collection in CHANNELS and collection not in self.names:
            return self.collected.worth_of(self.collected.channels[CHANNELS[str(collection)]])
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

    def due_of(self, source: Source) -> float:
        """When a source is due: seconds since the epoch, infinite while it is paused."""
        self._settle()
        return float(self.due_at[self.names.row(source)])

    def publish(self, price: float) -> None:
        """Go on at a price that somebody else has found."""
        self._settle()
        self.price = number("price", price, above=0)

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
            "heard": np.zeros(len(self.ids), np.float32) if (kin := self.learner.siblings) is None else kin.heard,
        }

    def _settle(self) -> None:
        """Make the columns anew if sources were added or edited."""
        if self._edited:
            living = self.names.grown(self._living(), self.learner.columns.rows.shape[1])
            self._restore(living, self.learner)

    def _restore(self, living: Mapping[str, np.ndarray], known: Learner | bytes) -> None:
        """The columns of these sources, learned so far, under what the fleet as a whole has taught."""
        before, kin = self.collected, self.learner.siblings
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
            stated=given["stated"],
            host=host,
            cap=np.array([self.host_cap.get(name, math.inf) if name else math.inf for name in hosts] or [math.inf]),
        )
        same = isinstance(known, bytes) or known.scale == scale
        learner.columns.interval[:] = np.where(living["interval"] > 0.0, living["interval"], scale) if same else scale
        self.not_before, self.held = living["not_before"].copy(), living["held"].astype(np.bool_)
        self.hold(np.flatnonzero(self.held))
        learner.siblings = siblings_of(list(self.names), self._kin if kin is None else kin.kept())
        if learner.siblings is not None:
            learner.siblings.heard[:] = living["heard"]
            learner.siblings.hasten(np.flatnonzero(living["heard"]), learner.columns, learner.shared)
        if self._groups or self._channels or before is not None:
            channels = self._channels if before is None else before.pushed_groups()
            groups = [*(remembered(group, before) for group in self._groups.values()), *channels]
            self.collected = Collected(learner, self.ids, groups, self._collected_at)
            self.collected.restore(before.kept() if before is not None else self._signals)
            self.collected.recount(before.counts() if before is not None else self._counts)
        if (len(self.names) and np.isfinite(self._plan_at)) or self.budget is None or isinstance(known, bytes):
            self.price = price
        self._plan_at, self._edited = -math.inf, False


def remembered(group: Group, before: Collected | None) -> Group:
    """A collection with the signals that its members have not been polled for."""
    return group if before is None else replace(group, told=before.told_of(group.members))
