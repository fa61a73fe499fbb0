"""What a fleet as a whole tells at a moment: sums over all its sources, and who harms most. Computed here alone.

Rules of this file:
1. Who reads a store and who holds its fleet in memory add up the same columns in the same way.
2. Of a large fleet the engine keeps the sums in the store, with their moment: reading all sources to add them up takes
   seconds. They count for a while, and while nobody has edited the fleet.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Protocol

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.outlook import BelievedSources, Outlook
from unstale.engine.summary import ComparedSources, Comparison, compare
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Bits, Integers, Wholes

#: the setting in which an engine keeps the sums of its fleet
SUMS = "sums"
#: sources of a fleet whose sums are kept, and who of them harm most that are named
MANY, NAMED = 20_000, 100


class StandingSources(BelievedSources, Protocol):
    """Sources in columns, as far as sums need them; `host` is a number of each source's host."""

    @property
    def source(self) -> Integers: ...
    @property
    def paused(self) -> Bits: ...
    @property
    def failures(self) -> Wholes: ...
    @property
    def weight(self) -> Floats: ...
    @property
    def cost(self) -> Floats: ...
    @property
    def host(self) -> Wholes: ...


@dataclass(frozen=True, slots=True)
class FleetSums:
    """How many sources there are, and of those that are not paused how many fail, never answered, were never polled;
    how they compare, their mean age by weight, and what one poll of each costs.

    Of those that were never polled it tells what their polls cost, and the seconds that the host needs that takes
    longest. `worst` are ids, those that harm most first.
    """

    total: int
    paused: int
    failing: int
    never_answered: int
    never_polled: int
    compared: Comparison
    age: float
    cost: float
    first_cost: float
    first_spacing: float
    hosts: int
    worst: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeptSums:
    """Sums of a moment, as an engine keeps them: under this budget, and when the store had counted so many edits.

    Until `until` they are told for what is now.
    """

    at: float
    until: float
    edited: int
    budget: float
    sums: FleetSums

    def written(self) -> bytes:
        """As it is kept."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def read(kept: bytes) -> KeptSums | None:
        """What `written` gave; None for what is none, or another version's."""
        try:
            told: dict[str, Any] = json.loads(kept or b"{}")
            sums = dict(told.pop("sums"))
            compared, worst = Comparison(**sums.pop("compared")), tuple(sums.pop("worst"))
            return KeptSums(**told, sums=FleetSums(**sums, compared=compared, worst=worst))
        except (ValueError, TypeError, KeyError):
            return None


def sums(
    standing: StandingSources,
    seen: Outlook,
    budget: float,
    hosts: Sequence[str],
    spacing: Callable[[str], float],
    *,
    part: bool = False,
    named: int = NAMED,
) -> FleetSums:
    """The sums of sources of which this is believed; a `part` of a fleet is not what the budget is divided over."""
    every = len(standing.source)
    active = every - int(np.count_nonzero(standing.paused))
    # Where nobody is paused, all are meant: a large fleet is not copied to be looked at.
    some = np.flatnonzero(~standing.paused) if active < every else slice(None)
    weight, cost, last = (column[some] for column in (standing.weight, standing.cost, standing.last))
    failures = standing.failures[some]
    compared = compare(
        ComparedSources(standing.beliefs[some], last, standing.found[some], standing.settings, weight, cost, failures),
        Outlook(*(column[some] for column in (seen.change_rate, seen.fresh, seen.age))),
        budget,
        math.nan if part else None,
    )
    age = seen.age[some]
    copied, never = np.isfinite(age), np.isinf(last)
    waiting = never & (failures == 0)
    # Whoever has most sources sets the pace: at one host polls follow each other at its spacing.
    each = np.bincount(standing.host[some][waiting], minlength=1)
    return FleetSums(
        total=every,
        paused=every - active,
        failing=int((failures > 0).sum()),
        never_answered=int(never.sum()),
        never_polled=int(waiting.sum()),
        compared=compared,
        age=_mean(age[copied], weight[copied]),
        cost=float(cost.sum()),
        first_cost=float(cost[waiting].sum()),
        first_spacing=max(
            (spacing(hosts[host]) * int(each[host]) for host in np.flatnonzero(each).tolist() if host < len(hosts)),
            default=0.0,
        ),
        hosts=len(hosts),
        worst=tuple(standing.source[worst(standing, seen, some, named)].tolist()),
    )


def worst(standing: StandingSources, seen: Outlook, some: Integers | slice, limit: int) -> Integers:
    """Of some rows, or of all, those that harm most, the worst first; among equals the longest unseen."""
    harm = 1.0 - seen.fresh
    harm *= standing.weight
    theirs = harm[some]
    if limit < len(theirs):
        least = np.partition(theirs, len(theirs) - limit)[len(theirs) - limit] if limit else np.inf
        found = np.flatnonzero(theirs >= least)
    else:
        found = np.arange(len(theirs))
    rows: Integers = found if isinstance(some, slice) else some[found]
    return rows[np.lexsort((standing.last[rows], -harm[rows]))][:limit]


def _mean(values: Floats, weight: Floats) -> float:
    total = float(weight.sum())
    return float(values @ weight) / total if total > 0.0 else math.nan
