"""Claiming: what is due is claimed within the budget, and begun as its host allows.

Rules of this file:
1. Only what the bucket holds is claimed; who is claimed is polled or given back. What was never polled has an allowance
   of its own beside it, so that first copies come soon; its hosts' limits hold all the same.
2. Only who can be polled in a moment is claimed: those whose hosts are free by then, as far as is known here. A poll
   whose host turns out to be free later is given back until then.
3. Due times are known here; what others have moved is read once they have written.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from unstale.addresses import host_of
from unstale.engine.budget import Bucket
from unstale.engine.claim_now import claim_now
from unstale.engine.first_round import never_polled
from unstale.engine.host_limits import HostLimits
from unstale.engine.host_lines import HostLines
from unstale.engine.loading import LoadedFleet
from unstale.engine.pace import Pace
from unstale.engine.polling import PollsUnderWay
from unstale.engine.recording import BATCH, BEAT
from unstale.engine.store_executor import StoreExecutor
from unstale.keeper.scheduler import Integers
from unstale.ports import Claim, Clock, Store

#: seconds between two looks at a store that others may have moved
LOOK = 0.05
#: a poll whose host is free within so many seconds is held, others are given back until then
HOLD = 2.0
#: sources that may be claimed beyond those that are being polled, and the seconds within which they must be begun:
#: who waits here has its place in the line, whoever else has become worth more meanwhile
AHEAD, SOON = 512, 1.0
#: looks for somebody whose host is free in one turn
ROUNDS = 4
#: a host has a crowd if more than one in so many of those who are due are its own
CROWD = 8
#: times as long as it took to read who waits, that is not done again
SHARE = 20.0
#: seconds between two looks for sources that were never polled, while there are some and while there are none
FIRST, FIRST_IDLE = 0.25, 1.0


class Claiming:
    """Claims what is due of one fleet and begins its polls; `unrecorded` counts outcomes that wait to be recorded."""

    def __init__(
        self,
        executor: StoreExecutor[Store],
        fleet: LoadedFleet,
        polls: PollsUnderWay,
        host_limits: HostLimits,
        clock: Clock,
        unrecorded: Callable[[], int],
        hold: float = HOLD,
    ) -> None:
        self._executor, self._fleet, self._polls, self._host_limits = executor, fleet, polls, host_limits
        self._clock, self._unrecorded, self._hold = clock, unrecorded, hold
        #: who is claimed may wait so long for its host
        self._patience = hold
        self.lines = HostLines(polls, host_limits, clock, AHEAD)
        self._stir_at = -math.inf
        #: when one of the hosts that had no room may have some
        self._free_at = math.inf
        self._first, self._first_at = Bucket(0.0, 1.0, clock.now()), -math.inf
        self._pace = Pace(clock.now())

    @property
    def busy(self) -> bool:
        """Whether polls wait for others to end."""
        return bool(self._polls.ahead or len(self.lines))

    def shift(self, by: float) -> None:
        """The clock was set."""
        self._stir_at += by
        self._first_at += by
        self._first.shift(by)
        self.lines.shift(by)

    async def step(self, now: float, until_plan: float) -> float:
        """Claim and begin what is due; seconds until it is worth another look, `until_plan` at most."""
        fleet, config = self._fleet, self._fleet.config
        idle = max(min(LOOK if self._executor.shared else math.inf, until_plan), 1e-3)
        if (shut := config.opens_in(now)) > 0.0:
            return min(shut, idle)
        dearest = fleet.dearest
        held = len(self._polls.under_way) + len(self._polls.ahead) + self._unrecorded()
        in_line = len(self.lines)
        ahead = min(int(SOON * self._pace.of(self._polls.ended, now)), AHEAD)
        free = config.polls - held + min(ahead, AHEAD - in_line)
        if config.first_rate > 0.0 and now >= self._first_at:
            await self._begin_first(now, free)
        idle = min(idle, max(self._first_at - now, 1e-3)) if config.first_rate > 0.0 else idle
        room = min(BATCH, free, int(fleet.bucket.level(now) / dearest + 1e-9))
        if len(self._polls.ahead) > AHEAD // 2:
            # Few large claims cost less than many small ones.
            return min(LOOK, idle)
        if room < 1:
            pause = fleet.bucket.wait(dearest, now) if free > 0 else LOOK
            return min(max(pause, BEAT), idle)
        if fleet.stirred and now >= self._stir_at:
            await fleet.catch_up(now)
            self._stir_at = now + SHARE * (self._clock.now() - now)
        rows = self._choose(now, room)
        if not len(rows):
            due = float(fleet.scheduler.due_at[~fleet.taken].min(initial=math.inf))
            # Who is due already waits for a host.
            return min(due - now if due > now else max(self._free_at - now, BEAT), idle)
        wanted = fleet.scheduler.ids[rows].tolist()
        claims = await self._claim(wanted, now)
        if len(claims) < len(wanted):
            self._missed(sorted(set(wanted) - {claim.source for claim in claims}), now)
        await self._begin(claims, now)
        return 0.0 if len(claims) == BATCH else BEAT

    async def _claim(self, wanted: list[int], now: float) -> list[Claim]:
        config = self._fleet.config
        return await self._executor.do(
            lambda store: store.claim(now, len(wanted), lease=config.lease, owner=config.owner, among=wanted)
        )

    async def postpone(self, later: Sequence[tuple[Claim, float]]) -> None:
        """Give claims back, to be due at other times."""
        claims, due = [claim for claim, _ in later], [at for _, at in later]

        def give_back(store: Store) -> None:
            store.set_due([claim.source for claim in claims], due)
            store.give_back(self._fleet.config.owner, claims)

        await self._executor.do(give_back)
        known = dict(zip((claim.source for claim in claims), due, strict=True))
        rows, scheduler = self._fleet.rows(list(known)), self._fleet.scheduler
        self._fleet.taken[rows] = False
        scheduler.put_back(rows, np.array([known[int(source)] for source in scheduler.ids[rows]]))

    async def _begin_first(self, now: float, free: int) -> None:
        """Claim and begin what was never polled, within its own allowance."""
        fleet, scheduler, config = self._fleet, self._fleet.scheduler, self._fleet.config
        self._first.set(config.first_rate, max(config.first_rate, 1.0))
        rows = never_polled(scheduler)
        # While there is nothing of the kind, looking for it should cost nothing.
        self._first_at = now + (max(FIRST, 1.0 / config.first_rate) if len(rows) else FIRST_IDLE)
        room = min(BATCH, free, int(self._first.level(now) + 1e-9))
        rows = rows[(scheduler.due_at[rows] <= now) & ~fleet.taken[rows]]
        wanted = scheduler.ids[rows[: max(room, 0)]].tolist()
        if wanted:
            claims = await self._executor.do(
                lambda store: claim_now(store, wanted, now, lease=config.lease, owner=config.owner)
            )
            await self._begin([claim for claim, _ in claims], now, self._first)

    def _choose(self, now: float, room: int) -> Integers:
        """Up to so many rows that are due and whose hosts are free, those first whose polls are worth most."""
        fleet, scheduler = self._fleet, self._fleet.scheduler
        ready = np.flatnonzero((scheduler.due_at <= now) & ~fleet.taken)
        chosen: list[int] = []
        free: dict[int, int] = {}
        full = np.zeros(len(fleet.config.hosts), np.bool_)
        self._free_at = math.inf
        # Nobody need be put in order whose host has no room: where one has most of those who are due, that is a lot.
        crowds = np.bincount(scheduler.host[ready], minlength=len(full))
        for host in np.flatnonzero(CROWD * crowds > len(ready)).tolist():
            free[host] = self._host_room(fleet.config.hosts[host], now)
            full[host] = free[host] < 1
        ready = ready[~full[scheduler.host[ready]]] if full.any() else ready
        for _ in range(ROUNDS):
            head = self._in_order(ready, now, room + 1)
            for row, host in zip(head.tolist(), scheduler.host[head].tolist(), strict=True):
                if len(chosen) == room:
                    break
                if host not in free:
                    free[host] = self._host_room(fleet.config.hosts[host], now)
                if free[host] > 0:
                    free[host] -= 1
                    chosen.append(row)
                else:
                    full[host] = True
            if len(chosen) == room or len(head) == len(ready):
                break
            # Others may be worth less and have free hosts.
            ready = np.setdiff1d(ready, head, assume_unique=True)
            ready = ready[~full[scheduler.host[ready]]]
        return np.array(chosen, dtype=np.int64)

    def _in_order(self, ready: Integers, now: float, most: int) -> Integers:
        """Up to so many of these rows, in the order in which they should be polled."""
        return self._fleet.scheduler.foremost(ready, now, most)

    def _host_room(self, name: str, now: float) -> int:
        # Of those without a group the host is known once they are claimed.
        if not name:
            return BATCH
        waiting, most = self.lines.at(name), self.lines.longest(name)
        # Few large claims cost less than many small ones.
        room = 0 if waiting > most // 2 else self._host_limits.room(name, now, self._hold, most - waiting)
        if not room:
            self._free_at = min(self._free_at, self._host_limits.opens_at(name, now) - self._hold)
        return room

    def _missed(self, sources: Sequence[int], now: float) -> None:
        """Somebody else holds them, or has moved them: they are tried again in a moment."""
        self._fleet.scheduler.due_at[self._fleet.rows(sources)] = now + HOLD
        self._fleet.stirred = True

    async def _begin(self, claims: Sequence[Claim], now: float, bucket: Bucket | None = None) -> None:
        fleet, scheduler = self._fleet, self._fleet.scheduler
        rows = fleet.rows([claim.source for claim in claims])
        fleet.take(rows)
        later: list[tuple[Claim, float]] = []
        costs, hosts, limits = scheduler.learner.columns.cost[rows], fleet.config.hosts, self._host_limits
        known = zip(costs.tolist(), scheduler.host[rows].tolist(), strict=True)
        by_source = dict(zip(scheduler.ids[rows].tolist(), known, strict=True))
        purse = bucket or fleet.bucket
        for claim in claims:
            about = by_source.get(claim.source)
            if about is None:
                # Added since the fleet was read: once it is known, it is polled.
                fleet.outdated = True
                later.append((claim, now))
                continue
            # The allowance of first polls counts polls, the budget what they cost.
            cost = about[0] if bucket is None else 1.0
            purse.spend(cost)
            host = hosts[about[1]] or host_of(claim.address)
            if not self.lines.at(host) and limits.at_once(host, now):
                self._polls.start(claim, host)
                continue
            at = limits.slot(host, now, within=self._patience)
            if at > now + self._patience or self.lines.at(host) >= self.lines.longest(host):
                later.append((claim, max(at, now + self._hold)))
                purse.spend(-cost)
            elif at <= now and limits.begin(host):
                self._polls.start(claim, host)
            else:
                self.lines.wait(claim, host, at, now)
        if later:
            await self.postpone(later)
