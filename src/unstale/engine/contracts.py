"""Contracts of freshness: which sources owners were promised something of, and how long polls of these may be apart.

Rules of this file:
1. A contract is an upper bound on the wait, and nothing else: the price decides below it.
2. Polls are planned a tenth sooner than the contract needs: a poll takes a while, and may have to wait for its turn.
3. A source may say terms of its own and have tags that settings promise something of: all of them hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unstale.core.checks import Floats, number
from unstale.core.contract import longest_wait
from unstale.core.learning.outlook import BelievedColumns, outlook
from unstale.frozen import dataclass
from unstale.keeper.scheduler import Integers, Scheduler
from unstale.ports import Catalogue, FleetColumns, Listing, tags_of
from unstale.units import DAY, format_duration, parse_duration

#: the name under which contracts go that sources have by themselves
OWN = "own"
#: the part of what a contract allows after which a poll is due
EARLY = 0.9
_ALL = 2**62


@dataclass(frozen=True, slots=True)
class Contract:
    """A copy lacks no change that is older than `fresh_within` seconds, for `target` of the time."""

    fresh_within: float = 0.0
    target: float = 1.0

    @property
    def words(self) -> str:
        """What is promised, as people say it.

        >>> Contract(3600.0).words, Contract(0.0, 0.95).words, Contract(3600.0, 0.95).words
        ('fresh within 1 h', 'fresh for 95 % of the time', 'fresh within 1 h for 95 % of the time')
        """
        within = f" within {format_duration(self.fresh_within / DAY)}" if self.fresh_within else ""
        share = "" if self.target == 1.0 else f" for {100 * self.target:g} % of the time"
        return f"fresh{within}{share}"

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Contract | None:
        """The contract that a source has by its own options; None if it has none.

        >>> Contract.of({"fresh_within": "1h"}), Contract.of({"title": "orders"})
        (Contract(fresh_within=3600.0, target=1.0), None)
        """
        within, target = options.get("fresh_within"), options.get("target")
        if within is None and target is None:
            return None
        seconds = 0.0 if within is None else round(parse_duration(str(within), "fresh_within") * DAY, 6)
        return cls(seconds, 1.0 if target is None else number("target", target, above=0, most=1))


@dataclass(frozen=True, slots=True)
class Promises:
    """Contracts in columns: `contract[i]` of `names` is what was promised of `source[i]`."""

    names: tuple[str, ...]
    source: Integers
    contract: Integers
    within: Floats
    target: Floats

    def rows(self, ids: Integers) -> tuple[Integers, Integers]:
        """The promises about these sources, ids rising, and the rows that they are about."""
        if not len(self.source) or not len(ids):
            return np.empty(0, np.int64), np.empty(0, np.int64)
        place = np.minimum(ids.searchsorted(self.source), len(ids) - 1)
        mine = np.flatnonzero(ids[place] == self.source)
        return mine, place[mine]

    def binds(self, source: int, longest: float, change_rate: float) -> bool:
        """Whether the longest wait of a source is that of a contract."""
        mine = np.flatnonzero(self.source == source) if len(self.source) else self.source
        if not len(mine):
            return False
        allowed = self.allowed(mine, np.full(len(mine), change_rate))
        return longest >= EARLY * float(allowed.min()) * (1.0 - 1e-9)

    def allowed(self, mine: Integers, change_rate: Floats) -> Floats:
        """How long the last answer of each of these may be ago, at these change rates."""
        return longest_wait(change_rate, self.within[mine], self.target[mine])


#: nobody was promised anything
NOTHING = Promises((OWN,), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), np.empty(0))


def promised(
    store: Catalogue,
    by_tag: Mapping[str, Contract],
    sources: Sequence[int] | None = None,
    listings: Sequence[Listing] | None = None,
) -> Promises:
    """What was promised of all sources, or of these, whose `listings` may have been read already."""
    if sources is not None:
        few = store.listings(sources) if listings is None else listings
        own = few
        tagged = {tag: [one.id for one in few if tag in tags_of(one.options)] for tag in by_tag}
    else:
        own = store.listings(store.search(options=("fresh_within", "target"), limit=_ALL))
        tagged = {tag: store.search(tag=tag, limit=_ALL) for tag in by_tag}
    found = [(0, one.id, terms) for one in own if (terms := Contract.of(one.options)) is not None]
    for place, (tag, those) in enumerate(tagged.items(), 1):
        found += [(place, source, by_tag[tag]) for source in those]
    return Promises(
        (OWN, *tagged),
        np.array([source for _, source, _ in found], dtype=np.int64),
        np.array([place for place, _, _ in found], dtype=np.int64),
        np.array([terms.fresh_within for _, _, terms in found], dtype=np.float64),
        np.array([terms.target for _, _, terms in found], dtype=np.float64),
    )


def bounded(standing: FleetColumns, promises: Promises) -> FleetColumns:
    """A fleet whose longest waits keep what was promised of its sources."""
    mine, rows = promises.rows(standing.source)
    if not len(mine):
        return standing
    few = BelievedColumns(standing.beliefs[rows], standing.last[rows], standing.found[rows], standing.settings)
    rates, longest = outlook(few, 0.0).change_rate, standing.longest.copy()
    _tighten(longest, rows, promises.allowed(mine, rates))
    return replace(standing, longest=longest)


def keep_promises(scheduler: Scheduler, promises: Promises, listed: Floats) -> None:
    """The same for a scheduler that has learned since, `listed` being the longest waits without contracts."""
    mine, rows = promises.rows(scheduler.ids)
    if len(mine):
        columns = scheduler.learner.columns
        longest = listed.copy()
        _tighten(longest, rows, promises.allowed(mine, scheduler.learner.change_rate()[rows]))
        columns.longest[rows] = np.maximum(longest[rows], columns.shortest[rows])


def _tighten(longest: Floats, rows: Integers, allowed: Floats) -> None:
    # Several promises about one source: the strictest.
    np.minimum.at(longest, rows, EARLY * allowed)
