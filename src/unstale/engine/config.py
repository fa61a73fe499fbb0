"""From a store's columns to a scheduler: what an engine may spend, and the fleet it starts or goes on with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from functools import cached_property

import numpy as np

from unstale.calendar import Hours, spans
from unstale.core.checks import number
from unstale.engine.contracts import Contract
from unstale.engine.host_grants import HostGrant
from unstale.engine.host_limits import WEEK, HostLimits, opens_in
from unstale.engine.said import BUDGET, BudgetSaid
from unstale.engine.said_settings import SAID, fields_said
from unstale.frozen import dataclass
from unstale.keeper.costs import POLLS, stated
from unstale.keeper.living import learner_of
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.keeper.spending import BURST_SECONDS, LATEST, seconds_to_next_look, usual_burst
from unstale.ports import FleetColumns

__all__ = ["BURST_SECONDS", "LATEST", "EngineConfig", "next_look", "scheduler_of"]


@dataclass(frozen=True)
class EngineConfig:
    """What an engine may spend and how it goes about it. `budget` is cost per second, averaged over the week.

    `hours` are when polls are allowed, empty for always: the budget is spent in them. `polls` may be open at once;
    a claim comes back after `lease` seconds; on a stop, what is in flight has `grace` seconds to end.
    """

    budget: float
    #: 0 leaves it to `burst_for`
    burst: float = 0.0
    objective: str = "freshness"
    hours: tuple[Hours, ...] = ()
    polls: int = 512
    lease: float = 600.0
    grace: float = 10.0
    owner: str = "engine"
    #: names of the hosts that group sources, as the store numbers them
    hosts: tuple[str, ...] = field(default=(), compare=False)
    #: the budget that the settings say, which the store's own may overrule; 0: the same
    settled: float = 0.0
    #: polls per second that sources which were never polled may have beside the budget, within their hosts' limits
    first_rate: float = 0.0
    #: what is promised of sources, by tag; sources may say more by themselves
    contracts: Mapping[str, Contract] = field(default_factory=dict, compare=False)
    #: what hosts are granted, over what else is known of them
    granted: Mapping[str, HostGrant] = field(default_factory=dict, compare=False)
    #: what the budget counts, one of `keeper.costs.UNITS`; what polls use of any but polls is measured and learned
    cost_in: str = POLLS

    def __post_init__(self) -> None:
        number("budget", self.budget, above=0)
        number("burst", self.burst, least=0)
        number("first_rate", self.first_rate, least=0)
        if self.settled == 0.0:
            object.__setattr__(self, "settled", self.budget)

    @property
    def rate(self) -> float:
        """Cost per second while polls are allowed: a budget confined to some hours is spent in them."""
        return self.budget / self._share

    def burst_for(self, scheduler: Scheduler) -> float:
        """What may be spent at once after a pause: as the settings say, but the dearest poll at least."""
        cost = scheduler.learner.columns.cost
        if self.burst:
            return max(self.burst, float(cost.max(initial=0.0)))
        return usual_burst(cost, self.rate) + scheduler.put_aside()

    def spare(self, scheduler: Scheduler, level: float, now: float) -> float:
        """What of a bucket's level may be spent beside the budget: what is above half a burst and not put aside."""
        burst = self.burst_for(scheduler)
        half = 0.5 * max(burst - scheduler.put_aside(), 0.0)
        return level - half - min(scheduler.put_aside(now), burst - half)

    def opens_in(self, now: float) -> float:
        """Seconds until polls are allowed, 0 if they are."""
        return opens_in(self.hours, now)

    def amended(self, settings: Mapping[str, bytes]) -> EngineConfig:
        """These config, as the settings give them, with what operators have said to the store since, if anything."""
        word = BudgetSaid.read(settings.get(BUDGET, b""))
        budget = self.settled if word is None else word.budget
        said = fields_said(settings.get(SAID, b""))
        return self if budget == self.budget and not said else replace(self, budget=budget, **said)

    @cached_property
    def _share(self) -> float:
        """The share of a week in which polls are allowed; a week without any cannot be."""
        return spans(self.hours, 0.0, WEEK).total / WEEK if self.hours else 1.0


def scheduler_of(
    standing: FleetColumns, config: EngineConfig, now: float, host_limits: HostLimits, own: bool = False
) -> tuple[Scheduler, Integers]:
    """The scheduler of a fleet as it stands in a store, and the rows whose due times make no sense at this time.

    They lie farther ahead than any wait: a clock has jumped since. They are due within their longest wait. With `own`,
    what sources are listed with is the scheduler's from then on, and is not copied: a large fleet is held once.
    """
    awake = ~standing.paused
    cost = float(standing.cost[awake].sum())
    scale = cost / config.budget if cost > 0.0 else 1.0
    given = {name: getattr(standing, name) for name in ("weight", "cost", "shortest", "longest")}
    state = standing.settings.get("learner", b"")
    learner = learner_of(scale, given, standing.beliefs, config.objective, state, own=own)
    columns = learner.columns
    cap = np.array([host_limits.cap(host) if host else math.inf for host in standing.hosts])
    scheduler = Scheduler.of(
        learner,
        standing.source,
        due=standing.due,
        answered=np.minimum(standing.last, now),
        found=np.minimum(standing.found, now),
        failures=standing.failures,
        paused=standing.paused,
        stated=stated(standing.listed),
        host=standing.host,
        cap=cap,
    )
    scheduler.due_at[standing.paused] = np.inf
    if standing.price is not None and standing.price.price > 0.0:
        scheduler.price = standing.price.price
    late = np.flatnonzero(
        ~scheduler.awake() & awake & (scheduler.due_at > now + columns.longest) & np.isfinite(scheduler.due_at)
    )
    turn = (standing.source[late] * 0.6180339887498949) % 1.0
    scheduler.due_at[late] = now + turn * columns.longest[late]
    return scheduler, late


def next_look(scheduler: Scheduler, rate: float) -> float:
    """Seconds after which the price is looked at again."""
    return seconds_to_next_look(scheduler.learner.columns.cost, scheduler.learner.scale, rate)
