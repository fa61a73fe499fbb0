"""What can be done to a fleet: sources added, edited, paused, removed, hinted at and polled, on every store."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from unstale.core.learning.state import WIDTH
from unstale.engine.config import scheduler_of
from unstale.engine.contracts import bounded, promised
from unstale.engine.host_limits import HostLimits
from unstale.engine.outcomes import PollOutcome, entries_of
from unstale.engine.said_settings import SAID
from unstale.errors import InputError, StoreError, sentence
from unstale.ports import Claim, Listing, ReadStore, Store, tags_of, what_counts
from unstale.service.edits import NAMED, WHAT, these, who_acts
from unstale.service.hints import hasten, push
from unstale.service.known_promises import KnownPromises
from unstale.service.noise import noise
from unstale.service.own_titles import OwnTitles
from unstale.service.service_settings import ServiceSettings

#: polls what was claimed
Look = Callable[[Sequence[Claim]], Sequence[PollOutcome]]


class FleetChanges:
    """Reads through `store`; `writing` opens it for those who change things, when the first of them comes."""

    def __init__(
        self,
        store: ReadStore,
        terms: ServiceSettings,
        *,
        writing: Callable[[], Store] | None = None,
        clock: Callable[[], float] = lambda: time.time(),
    ) -> None:
        self.store, self.terms, self.clock = store, terms, clock
        self._promised = KnownPromises()
        self._own_titles = OwnTitles()
        self._written = None if writing is None else _Opened(writing)

    def add(self, rows: Sequence[Mapping[str, Any]], *, replacing: bool = False) -> list[int]:
        """Add sources as they are described, all or none."""
        listings: list[Listing] = []
        for i, row in enumerate(rows):
            try:
                listings.append(self.terms.listing(row, None))
            except InputError as error:
                raise InputError(f"body[{i}]: {error}") from None
        ids = self.writer.add(listings, self.clock(), duplicates="replace" if replacing else "refuse")
        self.note(f"added {these([one.address for one in listings])}")
        return ids

    def unlisted(self, listings: Sequence[Listing]) -> list[Listing]:
        """Those of these that the fleet does not have."""
        if not self.store.counters().get("added"):
            return list(listings)
        return [listing for listing in listings if self.store.find(listing.address) is None]

    def take(self, listings: Sequence[Listing], *, replacing: bool = False) -> int:
        """Take over a list: what is new is added, and what is known takes what is said now if it may. How many are new.

        All or none.
        """
        new = self.unlisted(listings)
        self.writer.add(listings if replacing else new, self.clock(), duplicates="replace" if replacing else "refuse")
        self.note(f"added {these([one.address for one in new])} by a list of {len(listings):,}")
        return len(new)

    def edit(self, sources: Sequence[int], changes: Mapping[str, Any]) -> int:
        """Change what is said of sources; beliefs and copies stay. How many there are.

        But where a source changed at nearly every poll and other things count now, its belief is begun anew: what it
        was taught are false changes.
        """
        before = self.store.listings(sources)
        made = [self.terms.listing({"address": one.address, **changes}, one) for one in before]
        if made:
            other = [old.id for old, new in zip(before, made, strict=True) if what_counts(old) != what_counts(new)]
            noisy = [source for source in other if noise(self.store, source) is not None]
            self._promised.replace(self.writer, before, made, self.clock())
            if noisy:
                self.writer.relearn(noisy)
            said = ", ".join(sorted({*changes, *(changes.get("options") or {})} - {"options"}))
            self.note(f"changed {said} of {_names(made)}")
        return len(made)

    def tag(self, sources: Sequence[int], more: Sequence[str], less: Sequence[str] = ()) -> int:
        """File sources under more tags, and under some no longer. How many there are."""
        before, made = self.store.listings(sources), []
        for one in before:
            tags = [tag for tag in dict.fromkeys([*tags_of(one.options), *more]) if tag not in less]
            rest = {name: value for name, value in one.options.items() if name != "tags"}
            made.append(replace(one, options=rest | ({"tags": tags} if tags else {})))
        if made:
            self._promised.replace(self.writer, before, made, self.clock())
            said = " ".join([*(f"+{tag}" for tag in more), *(f"-{tag}" for tag in less)])
            self.note(f"tagged {said} {_names(made)}")
        return len(made)

    def pause(self, sources: Sequence[int], paused: bool) -> int:
        """Poll sources no more, or again; their copies stay. How many there are."""
        before = self.store.listings(sources)
        made = [replace(one, paused=paused) for one in before]
        if made:
            self._promised.replace(self.writer, before, made, self.clock())
            self.note(f"{'paused' if paused else 'resumed'} {_names(made)}")
        return len(made)

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources; how many there were."""
        named = [one.address for one in self.store.listings(sources[:NAMED])]
        gone = self.writer.remove(sources)
        if gone:
            self.note(f"removed {these(named, gone)}")
        return gone

    def hint(self, sources: Sequence[int], by: str = "hint") -> None:
        """Somebody says that sources have changed: they are due now, if what was said by that channel proved true."""
        push(self.writer, sources, by, self.clock())

    def hasten(self, sources: Sequence[int]) -> None:
        """Have sources polled as soon as the budget allows, whatever a poll of them is worth."""
        hasten(self.writer, sources, self.clock())

    def repair(self, copies: Sequence[tuple[int, int]]) -> int:
        """Have sources polled anew of which a copy is damaged; how many of them can be: old versions are past."""
        newest = {head.source: head.version for head in self.store.heads([source for source, _ in copies])}
        mendable = [(source, version) for source, version in copies if newest.get(source) == version]
        self.writer.distrust(mendable)
        self.hasten([source for source, _ in mendable])
        return len(mendable)

    def poll(self, sources: Sequence[int], look: Look) -> None:
        """Poll sources here and now, and record it like any other poll: for a fleet that nobody else keeps fresh.

        What `look` says of claims counts; those that another holds are left to it.
        """
        config = self.terms.config.amended({SAID: self.store.setting(SAID)})
        now, store = self.clock(), self.writer
        store.set_due(sources, [0.0] * len(sources))
        # Of these alone: where somebody else holds one of them, whom nobody asked for would be held in its stead.
        claims = store.claim(now, len(sources), lease=config.lease, owner="poll", among=list(sources))
        outcomes = look(claims)
        standing = bounded(store.columns_of(sources, WIDTH), promised(store, config.contracts, sources))
        scheduler, _ = scheduler_of(standing, config, now, HostLimits(self.terms.rules, config.granted))
        scheduler.price = max(scheduler.price, 1e-300)
        store.record(entries_of(scheduler, outcomes)[0])

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, with `was` only where they still are that."""
        self.writer.set_due(sources, due, was=was)

    def weigh(self, weights: Mapping[int, float], settings: Mapping[str, bytes]) -> None:
        """Change weights, if there are any to change, and keep settings."""
        if weights:
            changed = [replace(one, weight=weights[one.id]) for one in self.store.listings(sorted(weights))]
            self.writer.add(changed, self.clock(), duplicates="replace")
        self.writer.record([], settings=settings)

    def note(self, what: str) -> None:
        """Keep in the log of edits what somebody did, if somebody did it."""
        if who := who_acts():
            self.writer.note_edit(self.clock(), who, what[:WHAT])

    def ready(self) -> None:
        """Have done what the first who changes anything would wait for: the store is open, sources can be judged."""
        self.terms.listing({"address": "https://example.org/"}, None)
        assert self.writer is not None

    @property
    def writer(self) -> Store:
        """The store, to be changed."""
        if self._written is None:
            raise StoreError(sentence("store", "here", "is only read", "serve it with a token"))
        return self._written.store

    def close(self) -> None:
        """Give back the stores; closing again does nothing."""
        if self._written is not None:
            self._written.close()
        self.store.close()


def _names(listings: Sequence[Listing]) -> str:
    return these([one.address for one in listings])


class _Opened:
    """A store that is opened when it is first needed."""

    def __init__(self, opening: Callable[[], Store]) -> None:
        self._opening, self._store = opening, None

    _store: Store | None

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = self._opening()
        return self._store

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
