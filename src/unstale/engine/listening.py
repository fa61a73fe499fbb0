"""Listening: what a poll of a collection says becomes members, signals and due times.

Rules of this file:
1. What a listing says is kept in the store before the scheduler hears of it: after a stop nothing told is lost.
2. Whom a listing does not show has no signal: no word is no news. Whether it is gone, `departing` decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unstale.engine.departing import depart
from unstale.engine.joining import MemberOf, compared, taken_up
from unstale.engine.listed import COLLECTION
from unstale.engine.loading import LoadedFleet
from unstale.engine.outcomes import PollOutcome
from unstale.engine.store_executor import StoreExecutor
from unstale.engine.trees import CollectionTrees
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.listings.paged import scrolls
from unstale.listings.records import ListingPoll
from unstale.logs import Tell
from unstale.ports import Claim, Store, number_of
from unstale.secrecy import shown_address

#: what a new member is worth, in weights, as an option of its collection; 1 where its owner does not say
DISCOVERY = "discovery"


@dataclass(frozen=True, slots=True)
class Listened:
    """What one poll of a collection came to: signals by source, time it tells nothing of, how many members moved."""

    signals: Mapping[int, float]
    hole: float = 0.0
    moved: int = 0
    #: sources that were not known before
    added: int = 0


class MemberKeeper:
    """Keeps in the store what polls of collections say: who joins, what was told, who is gone.

    `member_of` makes the listing of a member, or raises InputError.
    """

    def __init__(self, executor: StoreExecutor[Any], member_of: MemberOf, tell: Tell) -> None:
        self._executor, self._member_of, self._tell = executor, member_of, tell
        self._trees = CollectionTrees()

    async def heard(self, outcomes: Sequence[PollOutcome]) -> None:
        """Take up what recorded polls of collections said."""
        for outcome in outcomes:
            if outcome.claim.options and COLLECTION in outcome.claim.options and outcome.answer is not Answer.FAILED:
                await self._hear(outcome.claim, outcome.fetched.polled_at, outcome.listing)

    async def _hear(self, claim: Claim, now: float, shown: ListingPoll | None) -> None:
        await self.kept(claim, now, shown)

    async def kept(self, claim: Claim, now: float, shown: ListingPoll | None) -> Listened:
        """Write down what a listing says (None: what the last one did)."""
        signals: Mapping[int, float] = {}
        hole, joined, added = 0.0, 0, 0
        if shown is not None:
            known = await self._executor.do(lambda store: store.members(claim.source))
            heard = compared(known, shown, now)
            taken = await self._executor.do(
                lambda store: taken_up(store, claim, known, heard, shown, now, self._member_of, self._trees)
            )
            added, joined = taken.added, taken.joined
            signals, hole = heard.signals, uncovered(claim, shown, now)
            why = {**shown.refused, **taken.left_out}
            if added or why:
                self._tell("members", {**_about(claim), "added": added, "refused": sum(why.values()), "why": why})
        left = await self._executor.do(lambda store: depart(store, claim, shown, now))
        moved = {"paused": len(left.pause), "resumed": len(left.resume), "removed": len(left.forget)}
        if any(moved.values()):
            self._tell("departures", {**_about(claim), **moved})
        return Listened(signals, hole, joined + sum(moved.values()), added)


class Listener(MemberKeeper):
    """Hears what polls of collections said: besides what is kept, signals go to the scheduler of a fleet."""

    def __init__(self, executor: StoreExecutor[Store], fleet: LoadedFleet, member_of: MemberOf, tell: Tell) -> None:
        super().__init__(executor, member_of, tell)
        self._fleet = fleet

    async def _hear(self, claim: Claim, now: float, shown: ListingPoll | None) -> None:
        """The fleet's lock is held."""
        told_of = await self.kept(claim, now, shown)
        # Who is new, or is told of now, is known once the fleet is read again.
        self._fleet.outdated = self._fleet.outdated or told_of.moved > 0
        scheduler, signals = self._fleet.scheduler, told_of.signals
        row = self._fleet.rows([claim.source])
        if not len(row):
            return
        collected = scheduler.collected
        if shown is not None and collected is not None and collected.number[row[0]] >= 0 and scrolls(claim.options):
            collected.shows(int(row[0]), len(shown.entries))
        if shown is not None and collected is not None and np.isfinite(claim.last):
            # Those of the first look were there before.
            worth = number_of(claim.options, DISCOVERY, 1.0) * told_of.added
            collected.finds(int(row[0]), worth, now - claim.last)
        members = self._fleet.rows(list(signals))
        told = np.array([signals[int(source)] for source in scheduler.ids[members]], dtype=np.float64)
        before = scheduler.due_at[members]
        due = scheduler.hear(int(row[0]), now, members, told, told_of.hole)
        if len(due):
            was = before[np.searchsorted(members, due)].tolist()
            await self._hasten(scheduler.ids[due].tolist(), scheduler.due_at[due].tolist(), was)

    async def _hasten(self, sources: list[int], due: list[float], was: list[float]) -> None:
        """The store is told that these are due, which were due then."""
        await self._executor.do(lambda store: store.set_due(sources, due))


def uncovered(claim: Claim, shown: ListingPoll, now: float) -> float:
    """Time since the last listing of which this one tells nothing: cut short, or scrolled out."""
    last = claim.last if np.isfinite(claim.last) else now
    if not shown.complete:
        return now - last
    times = [entry.time for entry in shown.entries if entry.time is not None]
    return max(min(times) - last, 0.0) if scrolls(claim.options) and times else 0.0


def _about(claim: Claim) -> dict[str, object]:
    return {"source": claim.source, "address": shown_address(claim.address)}
