"""Whom the settings want told of changes: what each of them hears, in which words, and when.

Rules of this file:
1. A first copy is no change, and what does not count by the present settings of a source is none: neither is told
   unless it was asked for.
2. What is not told counts as told: nothing waits behind it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from unstale.calendar import spans
from unstale.cli.settings import OnChange, Settings
from unstale.cli.sinks import set_up, sink_of
from unstale.engine.sink import Sink
from unstale.errors import InputError, StoreError
from unstale.fingerprint import Content, Selective, fingerprint, fires
from unstale.ports import Aside, Body, Claim, Event, Listing, ReadStore, tags_of
from unstale.service.news import short_difference
from unstale.service.own_titles import given_title, own_title
from unstale.service.receivers import NewsReceiver
from unstale.units import DAY

#: what counts in the body of a source
Counts = Callable[[Claim], Content | None]
#: a source and its bodies before and after a change, as far as they are kept
Found = tuple[Listing | None, Body | None, Body | None]
#: days within which hours that are said once a week come again, clocks that are set included
_AHEAD = 15.0 * DAY


class StoreReading(Protocol):
    """Whoever reads the store in turn with others."""

    async def do(self, work: Callable[[ReadStore], Found]) -> Found:
        """What a piece of work finds."""


class Receiver:
    """A sink that hears what its settings want, described; at the hours that they name."""

    def __init__(
        self,
        sink: Sink,
        one: OnChange,
        store: StoreReading,
        counts: Counts,
        aside: Aside,
        home: str,
        name: str = "",
    ) -> None:
        self._sink, self._one, self._store = sink, one, store
        self._counts, self._aside, self._home = counts, aside, home
        self.name, self.batch = name or sink.name, sink.batch
        # Who is told at hours is told in turn: all wait together.
        self.width = 1 if one.hours else sink.width

    def until(self, now: float) -> float:
        """When it may be told: now, or when its next hours begin."""
        if not self._one.hours:
            return now
        open_ = spans(self._one.hours, now, now + _AHEAD)
        return now if bool(open_.is_open(now)) else float(open_.start[0]) if len(open_.start) else now + _AHEAD

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """Tell of those that are wanted; how many of all were taken, and why not the next."""
        found = [await self._described(event) for event in events]
        wanted = [(place, event) for place, event in enumerate(found) if event is not None]
        if not wanted:
            return len(events), ""
        taken, reason = await self._sink.tell([event for _, event in wanted])
        return (len(events), "") if taken == len(wanted) else (wanted[taken][0], reason)

    async def close(self) -> None:
        """Give back what is held."""
        await self._sink.close()

    async def _described(self, event: Event) -> Event | None:
        """An event with what there is to say of it; None if it is not to be told."""
        if event.first and not self._one.first:
            return None
        try:
            listing, old, new = await self._store.do(lambda store: _found(store, event))
        except StoreError:
            # Damaged copies are told of elsewhere: that something changed is still true.
            listing, old, new = None, None, None
        if not self._concerned(event, () if listing is None else tags_of(listing.options)):
            return None
        if listing is None:
            return event
        if old is not None and new is not None and not await self._news(listing, old, new):
            return None
        lines, more = await asyncio.to_thread(short_difference, old, new, listing.kind)
        link = f"{self._home}/#/sources/{event.source}?new={event.version}" if self._home else ""
        title, tags = given_title(listing) or own_title(new), tuple(tags_of(listing.options))
        return replace(event, title=title, tags=tags, lines=lines, more=more, link=link)

    def _concerned(self, event: Event, tags: Sequence[str]) -> bool:
        """Whether it wants to hear of a source: by its address or by a tag, of all if it names neither."""
        one = self._one
        return not (one.tags or one.sources) or event.address in one.sources or bool(set(one.tags) & set(tags))

    async def _news(self, listing: Listing, old: Body, new: Body) -> bool:
        """Whether two versions differ in what counts now, and in a way that the source's triggers ask for."""
        content = self._counts(Claim(listing.id, 0, listing.address, listing.kind, 0.0, listing.options))
        if content is None:
            return True
        try:
            marks = [await self._aside.run(fingerprint, one.data, one.media_type, content) for one in (old, new)]
            if marks[0] == marks[1] or not isinstance(content, Selective):
                return marks[0] != marks[1]
            return await self._aside.run(fires, content, old.data, old.media_type, new.data, new.media_type)
        except InputError:
            return True


def _found(store: ReadStore, event: Event) -> Found:
    listing = next(iter(store.listings([event.source])), None)
    copies = [store.copy(event.source, version) for version in (event.version - 1, event.version) if version]
    bodies = [None if copy is None else copy.body for copy in copies]
    return listing, bodies[0] if len(bodies) == 2 else None, bodies[-1]


def receivers(
    settings: Settings,
    store: StoreReading,
    counts: Counts,
    aside: Aside,
    more: Sequence[NewsReceiver] = (),
) -> list[Sink]:
    """Everybody whom the settings want told, and `more`, who were set up in a browser."""
    home = settings.server.address.rstrip("/")
    found: list[Sink] = [
        Receiver(sink_of(one, settings, aside), one, store, counts, aside, home) for one in settings.on_change
    ]
    for said in more:
        one, sink = set_up(said, settings, aside)
        found.append(Receiver(sink, one, store, counts, aside, home, said.listener))
    return found
