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

from unstale.adapters.addresses import Gate
from unstale.adapters.environment import filled
from unstale.calendar import spans
from unstale.cli.fetchers import agent
from unstale.cli.settings import OnChange, Settings
from unstale.engine.deliveries import Sink
from unstale.errors import InputError, StoreError, UnstaleError
from unstale.fingerprint import Content, fingerprint
from unstale.ports import Aside, Body, Claim, Event, Listing, ReadStore, tags_of
from unstale.service.news import short_difference
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

    def __init__(self, sink: Sink, one: OnChange, store: StoreReading, counts: Counts, aside: Aside, home: str) -> None:
        self._sink, self._one, self._store = sink, one, store
        self._counts, self._aside, self._home = counts, aside, home
        self.name, self.batch = sink.name, sink.batch
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
        if listing is None:
            return None if self._one.tags else event
        if self._one.tags and not set(self._one.tags) & set(tags_of(listing.options)):
            return None
        if old is not None and new is not None and await self._same(listing, old, new):
            return None
        lines, more = await asyncio.to_thread(short_difference, old, new, listing.kind)
        link = f"{self._home}/#/sources/{event.source}?new={event.version}" if self._home else ""
        title, tags = str(listing.options.get("title", "")), tuple(tags_of(listing.options))
        return replace(event, title=title, tags=tags, lines=lines, more=more, link=link)

    async def _same(self, listing: Listing, old: Body, new: Body) -> bool:
        """Whether two versions differ in nothing that counts now."""
        content = self._counts(Claim(listing.id, 0, listing.address, listing.kind, 0.0, listing.options))
        if content is None:
            return False
        try:
            marks = [await self._aside.run(fingerprint, one.data, one.media_type, content) for one in (old, new)]
        except InputError:
            return False
        return marks[0] == marks[1]


def _found(store: ReadStore, event: Event) -> Found:
    listing = next(iter(store.listings([event.source])), None)
    copies = [store.copy(event.source, version) for version in (event.version - 1, event.version) if version]
    bodies = [None if copy is None else copy.body for copy in copies]
    return listing, bodies[0] if len(bodies) == 2 else None, bodies[-1]


def receivers(settings: Settings, store: StoreReading, counts: Counts, aside: Aside) -> list[Sink]:
    """Everybody whom the settings want told."""
    gate = Gate(settings.http.allow_networks)
    home = settings.server.address.rstrip("/")
    return [Receiver(sink_of(one, gate, settings), one, store, counts, aside, home) for one in settings.on_change]


def sink_of(one: OnChange, gate: Gate, settings: Settings) -> Sink:
    """The way to one of them."""
    if one.log:
        from unstale.adapters.log_sink import LogSink

        return LogSink(one.log)
    if one.command:
        from unstale.adapters.command_sink import CommandSink

        return CommandSink(one.command)
    if one.notify:
        from unstale.adapters.apprise_sink import AppriseSink

        return AppriseSink(filled(one.notify), together=bool(one.hours))
    from unstale.adapters.webhook import Webhook

    return Webhook(
        filled(one.webhook), gate, secret=filled(one.secret), agent=agent(settings), ca_file=settings.http.ca_file
    )


class ReceiverTrials:
    """Everybody whom the settings want told, by name, to be tried out from a browser."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def names(self) -> list[str]:
        """Who they are; what keeps one from being told is said in place of its name."""
        return [self._made(one)[1] for one in self._settings.on_change]

    async def tell(self, place: int, at: float) -> str:
        """Tell one of them that this is a test; why it was not taken, or nothing."""
        sink, why = self._made(self._settings.on_change[place])
        if sink is None:
            return why
        home = self._settings.server.address.rstrip("/")
        lines = (("-", "before"), ("+", "after"))
        event = Event(0, 0, "https://example.org/", 2, at, b"\0" * 32, "A test of Unstale", (), lines, False, home)
        try:
            return (await sink.tell([event]))[1]
        finally:
            await sink.close()

    def _made(self, one: OnChange) -> tuple[Sink | None, str]:
        try:
            sink = sink_of(one, Gate(self._settings.http.allow_networks), self._settings)
        except UnstaleError as error:
            return None, str(error)
        return sink, sink.name
