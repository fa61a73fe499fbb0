"""The service of one fleet: what can be asked of its store and done to it, as command line, API and dashboard offer it.

Everything may take a while; any thread may ask, one at a time is answered by the store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from unstale.core.learning.outlook import WIDTH
from unstale.engine.config import EngineConfig
from unstale.engine.contracts import NOTHING, Promises, bounded, promised
from unstale.engine.fleet_sums import NAMED, SUMS, KeptSums
from unstale.engine.said_settings import SAID
from unstale.errors import InputError, sentence
from unstale.keeper.outcomes import Answer
from unstale.ports import Edition, FleetColumns, Listing, Observation
from unstale.service import explain as explaining
from unstale.service import status as stating
from unstale.service.beliefs import POLLS, BeliefPoint, believed
from unstale.service.collections import CollectionView, collections, collections_of_workers
from unstale.service.columns import SourceColumns
from unstale.service.columns import read as read_columns
from unstale.service.course import gathered
from unstale.service.entries import FeedEntries, feed_entries
from unstale.service.fleet_terms import FleetTerms
from unstale.service.moment import ENGINE, FleetScale, Moment, engine_says, listed, reasons
from unstale.service.preview import preview
from unstale.service.records import (
    EngineState,
    Explanation,
    History,
    HostView,
    LogLine,
    Preview,
    PricePoint,
    SourceView,
    Status,
    Totals,
)
from unstale.service.search import parse

#: sources that a status lists, and that tell what holds for a fleet
WORST, SAMPLE = 20, 2500
#: sources whose options are read one by one, and that were promised something and are read by themselves
FEW, PROMISED = 1000, 5000
_ALL = 2**62


class FleetService(FleetTerms):
    """What can be asked of a fleet, and done to it."""

    #: what the fleet as a whole tells of its parts, and when that was true
    _whole: tuple[tuple[object, ...], FleetScale] | None = None

    # What it is at a moment

    def moment(self, sources: Sequence[int] | None = None, listings: Sequence[Listing] | None = None) -> Moment:
        """The whole fleet now, or some of its sources, whose `listings` may have been read already."""
        now, terms = self.clock(), self.terms
        standing = self.store.fleet(WIDTH) if sources is None else self.store.columns_of(sources, WIDTH)
        # Of many it is quicker to ask who was promised anything at all.
        few = sources if listings is not None or len(sources or ()) <= FEW else None
        config = terms.config.amended(standing.settings)
        promises = self._promises(config) if few is None else promised(self.store, config.contracts, few, listings)
        standing = bounded(standing, promises)
        budget = self._budget(standing.settings, now)
        config = replace(config, budget=budget.rate)
        whole = None if sources is None else partial(self._of_whole, standing, budget.rate)
        return Moment(now, standing, config, terms, whole, promises)

    def status(self, sources: Sequence[int] | None = None, *, limit: int = WORST) -> Status:
        """How the fleet stands, or some of its sources. Of a large one its engine has lately added up how it stands."""
        kept = self._summed() if sources is None and limit <= NAMED else None
        promises = self._promises(self.terms.config.amended({SAID: self.store.setting(SAID)})) if kept else NOTHING
        if kept is None or len(promises.source) > PROMISED:
            return self.status_of(self.moment(sources), limit=limit)
        few = replace(kept.sums, worst=kept.sums.worst[:limit])
        moment = self.moment(sorted({*few.worst, *promises.source.tolist()}))
        there = moment.standing.source
        told = moment.part(np.flatnonzero(np.isin(there, few.worst)))
        few = replace(few, worst=tuple(told.standing.source[told.by_harm()].tolist()))
        budget = self._budget(moment.standing.settings, moment.now)
        return stating.told_status(self.store, moment, told, budget, self.running(), few, kept.at)

    def status_of(self, moment: Moment, *, limit: int = WORST) -> Status:
        """How a moment stands."""
        running = self.running()
        budget = self._budget(moment.standing.settings, moment.now)
        return stating.status(self.store, moment, budget, running, limit)

    def views(self, sources: Sequence[int]) -> list[SourceView]:
        """These sources one by one, those that exist, in the order asked."""
        named = listed(self.store, sources)
        moment = self.moment(sources, list(named.values()))
        place = {source: row for row, source in enumerate(moment.standing.source.tolist())}
        rows = np.array([place[source] for source in sources if source in place], dtype=np.int64)
        return moment.views(rows, named, reasons(self.store, moment, rows))

    def titles(self, sources: Sequence[SourceView]) -> Mapping[int, str]:
        """What these are called, by themselves where nobody said it."""
        return self._own_titles.of(self.store, [one.listing for one in sources])

    def columns(self, before: SourceColumns | None = None) -> SourceColumns:
        """All sources in columns, to be searched; what `before` has read and still holds is not read again."""
        return read_columns(self.store, self.moment, before, self._own_titles)

    def found(self, search: str) -> list[int]:
        """The sources that a search means, rising."""
        terms = parse(search)
        return self.columns().all(terms)

    def explain(self, source: int) -> Explanation:
        """Why a source is polled as it is."""
        count = self.store.counters().get("added", 0)
        # Of many sources some tell what another price would cost.
        some = None if count <= SAMPLE else sorted({source, *range(1, count + 1, -(-count // SAMPLE))})
        found = explaining.explain(self.store, self.moment(some), source, self.running())
        if found is None:
            raise unknown(source)
        return found

    def collections(self) -> list[CollectionView]:
        """What tells of many sources, and what it is worth."""
        return collections(self.store) if self.store.alive() is None else collections_of_workers(self.store)

    def preview(self, budget: float | None = None) -> Preview:
        """What a budget would do under the present beliefs; the one in force if none is named."""
        now = self.clock()
        rate = self.budget().rate if budget is None else budget
        terms = replace(self.terms, config=self.terms.config.amended({SAID: self.store.setting(SAID)}))
        return preview(self.store, terms, partial(self._promises, terms.config), rate, now)

    def engine(self) -> EngineState:
        """What keeps it fresh, and what it did since it started."""
        said = engine_says({ENGINE: self.store.setting(ENGINE)})
        return stating.engine_state(self.store, said, self.running(), self.totals())

    def totals(self) -> Totals:
        """What was recorded since the store was made."""
        return stating.totals_of(self.store.counters())

    def hosts(self) -> list[HostView]:
        """Hosts with their sources, what they are granted and how dear a poll is there, most sources first."""
        surcharges = self._surcharges()
        said = self.terms.config.amended({SAID: self.store.setting(SAID)}).granted
        found = [
            HostView(
                one.name,
                one.sources,
                one.paused,
                one.failing,
                self._granted(one.name, said),
                surcharges.get(one.name, 1.0),
            )
            for one in self.store.hosts()
        ]
        return sorted(found, key=lambda one: (-one.sources, one.name))

    # What it was

    def history(self, source: int, limit: int, *, changes: bool = False) -> History:
        """What polls of a source found, newest first; with `changes` only those that found one."""
        listing = listed(self.store, [source]).get(source)
        if listing is None:
            raise unknown(source)
        # One more than is shown tells whether there are more.
        polls = self.store.observations(source, _ALL if changes else limit + 1)
        polls = [poll for poll in polls if not changes or poll.answer is Answer.CHANGED]
        return History(listing, tuple(polls[:limit]), len(polls) > limit, tuple(self.versions(source)))

    def observations(self, source: int, limit: int) -> list[Observation]:
        """The newest polls of a source."""
        return self.store.observations(source, limit)

    def versions(self, source: int) -> list[Edition]:
        """The kept versions, newest first."""
        kept = self.store.editions([(source, version) for version in self.store.versions(source)])
        return [one for one in kept if one is not None]

    def entries(self, source: int, limit: int = 1000, before: int | None = None) -> FeedEntries:
        """The entries of a feed, newest first, also those that it has dropped; with `before`, the ones that follow."""
        return feed_entries(self.store, source, limit, before)

    def beliefs(self, source: int) -> list[BeliefPoint]:
        """What was believed of a source after each of its newest polls, oldest first."""
        told = self.store.observations(source, POLLS)[::-1]
        return believed(told, self.store.columns_of([source], WIDTH).settings)

    def course(self, since: float, points: int) -> list[PricePoint]:
        """The history of price and freshness in at most so many points."""
        return gathered(self.store.prices(since), points)

    def log(self, limit: int) -> list[LogLine]:
        """The newest polls, newest first."""
        rows = self.store.recent(limit)
        names = {one.id: one.address for one in self.store.listings(sorted({row.source for row in rows}))}
        return [
            LogLine(row.token, row.source, names.get(row.source, ""), row.polled_at, row.answer.value) for row in rows
        ]

    def weights(self, sources: Sequence[int]) -> dict[int, float]:
        """The weights of those of these sources that exist."""
        return {one.id: one.weight for one in self.store.listings(sources)}

    def setting(self, name: str) -> bytes:
        """A named setting, empty if there is none."""
        return self.store.setting(name)

    def _summed(self) -> KeptSums | None:
        """The sums that the engine of a large fleet keeps, if they count now: it runs, under this budget, and nobody
        has edited the fleet since."""
        kept = KeptSums.read(self.store.setting(SUMS)) if self.running() else None
        if kept is None or not kept.at <= self.clock() <= kept.until or kept.budget != self.budget().rate:
            return None
        return kept if kept.edited == self.store.counters().get("edited", 0) else None

    def _promises(self, config: EngineConfig, few: Sequence[int] | None = None) -> Promises:
        return self._promised.of(self.store, config.contracts, few)

    def _of_whole(self, part: FleetColumns, budget: float) -> FleetScale:
        """What a part takes from the whole: read anew after an edit, or another price, surcharge or budget."""
        edited, engine = self.store.counters().get("edited", 0), engine_says(part.settings)
        key = (edited, budget, engine.get("at"), None if part.price is None else part.price.at)
        # What an engine publishes need not be found out.
        known = isinstance(engine.get("surcharges"), dict) and self._whole is not None and self._whole[0][:2] == key[:2]
        if known and self._whole is not None:
            told = {str(host): float(factor) for host, factor in engine["surcharges"].items()}
            self._whole = key, replace(self._whole[1], surcharges=told)
        elif self._whole is None or self._whole[0] != key:
            kept, said = self._summed(), engine.get("surcharges")
            cost = self.store.total_cost() if kept is None else kept.sums.cost
            # Without an engine's word the whole must be planned to know them.
            dear = said if isinstance(said, dict) else self.moment().surcharges
            told = {str(host): float(factor) for host, factor in dear.items()}
            self._whole = key, FleetScale(cost / budget if cost > 0.0 else 1.0, told)
        return self._whole[1]

    def _surcharges(self) -> Mapping[str, float]:
        return self.moment([]).surcharges


def unknown(source: int) -> InputError:
    """What is said of a source that is not there."""
    return InputError(sentence("source", source, "is not listed", "see `unstale list`"))
