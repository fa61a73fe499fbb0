"""How polls ended: what is recorded of them, and how many there were of each kind."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from unstale.core.rising import rising
from unstale.engine.judge import changed_when
from unstale.frozen import dataclass
from unstale.keeper.costs import POLLS
from unstale.keeper.costs import used as used_of
from unstale.keeper.outcomes import Answer
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.listings.records import ListingPoll
from unstale.ports import Body, Claim, Entry, Fetched
from unstale.secrecy import shown_address


@dataclass(frozen=True, slots=True)
class PollOutcome:
    """How a claimed poll ended, before it is recorded."""

    claim: Claim
    answer: Answer
    fetched: Fetched
    body: Body | None
    #: what it says of others, if it is a collection that has said something
    listing: ListingPoll | None = None
    #: whether a peer looked, and we were told
    by_peer: bool = False
    #: by how much the clock had been set in all when it ended
    jumped: float = 0.0

    def moved(self, jumped: float) -> PollOutcome:
        """The same by a clock that was set since: its times stay as long ago as they were.

        >>> claim = Claim(1, 1, "memory:1", "memory", due=0.0)
        >>> early = PollOutcome(claim, Answer.UNCHANGED, Fetched(Answer.UNCHANGED, 3700.0), None, jumped=3600.0)
        >>> early.moved(0.0).fetched.polled_at
        100.0
        """
        by = jumped - self.jumped
        return self if not by else replace(self, fetched=_shifted(self.fetched, by), jumped=jumped)


class Begun(NamedTuple):
    """When a poll began, by a clock that had been set by so much in all."""

    at: float
    jumped: float

    def dated(self, outcome: PollOutcome, now: float, jumped: float) -> PollOutcome:
        """How a poll ended in which the clock was set: it may have been looked at before or after that."""
        fetched, by = outcome.fetched, jumped - self.jumped
        if self.at + by <= fetched.polled_at <= now:
            return outcome
        return replace(outcome, fetched=_shifted(fetched, min(by, now - fetched.polled_at)))


def _shifted(fetched: Fetched, by: float) -> Fetched:
    """By a clock that was set since; when its source says that it changed is its own word."""
    return replace(fetched, polled_at=fetched.polled_at + by, not_before=fetched.not_before + by)


@dataclass(slots=True)
class Counters:
    """What an engine did since it started."""

    polls: int = 0
    first: int = 0
    changed: int = 0
    unchanged: int = 0
    failed: int = 0
    dropped: int = 0
    received: int = 0

    def count(
        self, outcomes: Sequence[PollOutcome], held: Sequence[bool], tell: Callable[[str, Mapping[str, Any]], None]
    ) -> int:
        """Count recorded outcomes and tell of them; how many came too late, their claims no longer held."""
        late = 0
        for outcome, mine in zip(outcomes, held, strict=True):
            claim, fetched = outcome.claim, outcome.fetched
            if not mine:
                late += 1
                continue
            self.polls += 1
            self.received += fetched.received
            if outcome.answer is Answer.UNCHANGED:
                self.unchanged += 1
                continue
            about = {"source": claim.source, "address": shown_address(claim.address)}
            if outcome.answer is Answer.CHANGED:
                # The first copy of a source is new to us, and no change.
                self.changed += claim.version > 0
                self.first += claim.version == 0
                tell("changed", about)
            else:
                self.failed += 1
                tell("poll_failed", {**about, "reason": fetched.reason})
        self.dropped += late
        return late


def rows_of(scheduler: Scheduler, sources: Sequence[int]) -> Integers:
    """The rows of those of these sources that the scheduler knows, rising."""
    wanted = rising(sources)
    at = np.searchsorted(scheduler.ids, wanted)
    inside = at < len(scheduler.ids)
    rows = at[inside]
    mine: Integers = rows[scheduler.ids[rows] == wanted[inside]]
    return mine


class TaughtBatch(NamedTuple):
    """Entries to record, and of which polls; what the budget owes for them beyond what polls were expected to use."""

    entries: list[Entry]
    polls: list[PollOutcome]
    beyond: float


def entries_of(
    scheduler: Scheduler, batch: Sequence[PollOutcome], unit: str = POLLS, first: float = 0.0
) -> TaughtBatch:
    """Teach the scheduler what polls found; sources that are gone have no entries.

    `unit` is what the budget counts. First polls that had an allowance of their own (`first` a second) owe nothing.
    """
    rows = rows_of(scheduler, [outcome.claim.source for outcome in batch])
    by_source = dict(zip(scheduler.ids[rows].tolist(), rows.tolist(), strict=True))
    mine = [outcome for outcome in batch if outcome.claim.source in by_source]
    which = np.array([by_source[outcome.claim.source] for outcome in mine], dtype=np.int64)
    fetched, answers = [o.fetched for o in mine], [o.answer for o in mine]
    changed = np.array([answer is Answer.CHANGED for answer in answers], np.bool_)
    said: list[float | None] = [None] * len(mine)
    for i in np.flatnonzero(changed).tolist():
        said[i] = changed_when(mine[i].claim, answers[i], fetched[i])
    columns, answered = scheduler.learner.columns, np.array([one is not Answer.FAILED for one in answers], np.bool_)
    expected = columns.cost[which]
    used = expected if unit == POLLS else np.array([math.nan if o.by_peer else _used(unit, o.fetched) for o in mine])
    beyond = scheduler.pay(which, used, answered) if unit != POLLS else np.zeros(len(mine))
    learned = columns.cost[which]
    times, peers = [f.polled_at for f in fetched], np.array([o.by_peer for o in mine], np.bool_)
    waits = np.array([f.retry_after or 0.0 for f in fetched])
    due = scheduler.decide(
        which,
        answered,
        polled := np.array(times),
        changed,
        np.array(said, np.float64),
        np.maximum(polled + waits, [f.not_before for f in fetched]),
        peers,
        np.array([f.via != "" for f in fetched], np.bool_) & ~peers,
    )
    beliefs, size = columns.rows[which].tobytes(), 8 * columns.rows.shape[1]
    costs, told = (expected + beyond).tolist(), scheduler.told[which].tolist()
    dear = np.where(learned == expected, math.nan, learned).tolist()
    entries = [
        Entry(
            o.claim,
            o.answer,
            f.polled_at,
            at,
            beliefs[size * i : size * (i + 1)],
            when,
            f.received,
            f.reason,
            o.body,
            cost,
            f.requests,
            # Whatever is not a number is not itself.
            by if by == by else None,
            new if new == new else None,
        )
        for i, (o, f, at, when, cost, by, new) in enumerate(
            zip(mine, fetched, due.tolist(), said, costs, told, dear, strict=True)
        )
    ]
    if not beyond.any():
        return TaughtBatch(entries, mine, 0.0)
    beside = [first > 0.0 and math.isinf(o.claim.last) and not o.claim.failures for o in mine]
    return TaughtBatch(entries, mine, float(beyond[~np.array(beside, dtype=np.bool_)].sum()))


def _used(unit: str, fetched: Fetched) -> float:
    return used_of(unit, max(fetched.calls, fetched.requests), fetched.rows, fetched.received)
