"""Claiming of a worker: which sources of its shards are polled is decided here, and nobody else has an eye on them.

Rules of this file:
1. A poll begins while its shard is surely ours and its host's spacing is over, or its claim is given back. That is
   looked at when it is begun, and by who asks in the last moment before the request goes out.
2. What was not begun is paid back, and due again at once.
3. Whoever was sent away from a busy host goes before all others there, and who was never polled before these: at a host
   with more sources than turns none starves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from unstale.engine.claiming import HOLD, Claiming
from unstale.engine.first_round import never_polled
from unstale.engine.held_fleet import HeldFleet
from unstale.engine.held_host_limits import HeldHostLimits
from unstale.engine.polling import PollsUnderWay
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.scheduler import Integers
from unstale.ports import Claim, Clock, SharedStore

#: what the last batch of claims counts in the mean lag
SMOOTH = 0.1
#: the part of a lease for which a claimed poll may wait for its host
PATIENCE = 0.25


class HeldClaiming(Claiming):
    """Claims what is due of the held shards and begins its polls."""

    def __init__(
        self,
        executor: StoreExecutor[SharedStore],
        fleet: HeldFleet,
        polls: PollsUnderWay,
        host_limits: HeldHostLimits,
        clock: Clock,
        unrecorded: Callable[[], int],
    ) -> None:
        hold = min(HOLD, PATIENCE * fleet.config.lease)
        super().__init__(executor, fleet, polls, host_limits, clock, unrecorded, hold)
        self._shared, self._held, self._limits = executor, fleet, host_limits
        # Turns at a host drift while its sources are claimed: nobody is sent away for that.
        self._patience = 2.0 * hold
        #: claims that are to be given back, and how many were; how long after they were due sources are claimed, lately
        self.late: list[Claim] = []
        self.passed_on, self.lag = 0, 0.0
        #: when polls at spaced hosts have begun, and by when their requests must go out, by token
        self._begun: dict[int, tuple[float, float]] = {}

    def begins(self, claim: Claim, host: str, sure_until: float) -> bool:
        """Whether a poll may begin now, our shards being surely ours until then; if not, its claim is seen to."""
        now = self._clock.now()
        if self._held.lost or now > min(claim.begin_by, sure_until):
            # We were stopped, or the store took its time.
            self._limits.end(host)
            self.pass_on([claim])
            return False
        if (at := self._limits.begins(host, now)) > now:
            self._limits.end(host)
            self.lines.wait(claim, host, at, now, first=True)
            return False
        if (latest := self._limits.latest(host, now)) < claim.begin_by:
            self._begun[claim.token] = now, latest
        self._held.sent.pop(claim.source, None)
        return True

    def unbegun(self, claim: Claim, host: str) -> None:
        """Nothing was asked of its host, whose turn is another's."""
        begun, _ = self._begun.pop(claim.token, (-math.inf, 0.0))
        self._limits.unbegun(host, begun)
        self._limits.end(host)
        self.pass_on([claim])

    def over(self, claim: Claim) -> None:
        """Its poll has ended."""
        self._begun.pop(claim.token, None)

    def timed(self, claim: Claim) -> Claim:
        """The claim with the time by which its request must go out."""
        begun = self._begun.get(claim.token)
        return claim if begun is None else replace(claim, begin_by=begun[1])

    def shift(self, by: float) -> None:
        """The clock was set."""
        super().shift(by)
        self._begun = {token: (begun + by, latest + by) for token, (begun, latest) in self._begun.items()}

    def pass_on(self, claims: Sequence[Claim]) -> None:
        """These are to be given back, and nothing is paid for them."""
        self.late += claims
        self.passed_on += len(claims)
        rows = self._held.rows([claim.source for claim in claims])
        self._held.bucket.spend(-float(self._held.scheduler.learner.columns.cost[rows].sum()))

    async def give_back_late(self) -> None:
        """Give back what was not begun."""
        late = list(self.late)
        if late:
            now = self._clock.now()
            await self.postpone([(claim, now) for claim in late])
            del self.late[: len(late)]

    async def postpone(self, later: Sequence[tuple[Claim, float]]) -> None:
        """Give claims back, to be due at other times; nobody else has to hear of it."""
        claims, due = [claim for claim, _ in later], [at for _, at in later]
        owner, was = self._held.config.owner, [claim.due for claim in claims]

        def give_back(store: SharedStore) -> None:
            store.set_due([claim.source for claim in claims], due, was=was)
            store.give_back(owner, claims)

        await self._shared.do(give_back)
        for claim in claims:
            self._held.sent.setdefault(claim.source)
        known = {claim.source: at for claim, at in later}
        rows, scheduler = self._held.rows(list(known)), self._held.scheduler
        self._held.taken[rows] = False
        scheduler.put_back(rows, np.array([known[int(source)] for source in scheduler.ids[rows]]))

    def _in_order(self, ready: Integers, now: float, most: int) -> Integers:
        scheduler, ahead = self._held.scheduler, np.zeros(len(self._held.taken), np.bool_)
        ahead[never_polled(scheduler)] = True
        new = ready[ahead[ready]]
        places = {source: place for place, source in enumerate(self._held.sent)}
        sent = ready[np.isin(ready, self._held.rows(list(places)), kind="table") & ~ahead[ready]] if places else new[:0]
        sent = np.array(sorted(sent.tolist(), key=lambda row: places[int(scheduler.ids[row])]), np.int64)
        ahead[sent] = True
        others = super()._in_order(ready[~ahead[ready]], now, most)
        return np.concatenate([new, sent, others])[:most]

    async def _claim(self, wanted: list[int], now: float) -> list[Claim]:
        config = self._held.config
        claims = await self._shared.do(lambda store: store.take(wanted, lease=config.lease, owner=config.owner))
        if claims:
            lag = sum(max(now - claim.due, 0.0) for claim in claims) / len(claims)
            self.lag += SMOOTH * (lag - self.lag)
        places = {source: place for place, source in enumerate(wanted)}
        return sorted(claims, key=lambda claim: places[claim.source])
