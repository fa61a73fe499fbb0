"""A replica of `unstale lab` that polls when the engine's own brain says so, within the budget that others have."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace

from unstale.cli.lab_node import BEAT, LEASE, Poller
from unstale.engine.claim_now import claim_now
from unstale.engine.judge import judge
from unstale.keeper.outcomes import Outcome
from unstale.keeper.scheduler import Scheduler
from unstale.ports import Claim, Fetched, Listing

#: sources taken at once
MOST = 100


class BrainPoller(Poller):
    """Learns how often each source changes, and polls at the price that spends as much as `rate` for each would."""

    async def begin(self, listings: Sequence[Listing]) -> None:
        """Add the sources; all are due, as far as the budget allows."""
        now = time.time()
        # Each in an order of its own: replicas that begin together need not poll together for ever.
        listings = [listings[i] for i in self._rng.permutation(len(listings)).tolist()]
        ids = await self._executor.do(lambda store: store.add(listings, now))
        self._brain = Scheduler(self._rate * len(ids))
        self._brain.add(ids, now)

    async def _claims(self) -> list[Claim]:
        now = time.time()
        if (wait := self._brain.wait(now)) > 0.0:
            await asyncio.sleep(min(max(wait, BEAT), 0.1))
            return []
        taken = [int(source) for source in self._brain.take(now, MOST)]
        pairs = await self._executor.do(lambda store: claim_now(store, taken, now, lease=LEASE, owner="lab"))
        # claimed as if they were long overdue
        claims = [replace(claim, due=now) for claim, _ in pairs]
        for source in set(taken) - {claim.source for claim in claims}:
            self._brain.give_back(source, now + BEAT)
        if not claims:
            await asyncio.sleep(BEAT)
        return claims

    def _due_after(self, claim: Claim, fetched: Fetched) -> float:
        return self._learned(claim, fetched, by_peer=False)

    def _due_told(self, claim: Claim, fetched: Fetched, due: float) -> float:
        return self._learned(claim, fetched, by_peer=True)

    def _learned(self, claim: Claim, fetched: Fetched, *, by_peer: bool) -> float:
        """Teach the brain what was found; when it wants the source next."""
        answer, _ = judge(claim, fetched, None)
        followed = bool(fetched.via) and not by_peer
        self._brain.record(
            Outcome(
                claim.source,
                answer,
                fetched.polled_at,
                not_before=fetched.not_before,
                by_peer=by_peer,
                followed=followed,
            )
        )
        return self._brain.due_of(claim.source)
