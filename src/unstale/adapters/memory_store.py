"""A store that forgets when the process ends: for tests, trials and demonstrations. The same contract as SQLite's."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Literal

import numpy as np

from unstale.adapters import memory_entries
from unstale.adapters.feed_versions import entries_in
from unstale.adapters.memory_outbox import MemoryOutbox
from unstale.adapters.memory_shelf import Kept, Lease
from unstale.adapters.store_checks import (
    LONGEST_REASON,
    check_claim,
    check_due,
    check_entries,
    check_listings,
    refuse_duplicates,
)
from unstale.adapters.store_shared import kept_versions, tally
from unstale.errors import require
from unstale.keeper.outcomes import Answer
from unstale.listings.records import CollectionMember
from unstale.ports import (
    LEARNER,
    Checkpoint,
    Claim,
    Copy,
    Entry,
    Epoch,
    FleetColumns,
    Listing,
    Observation,
    Price,
    what_counts,
    widened,
)


class MemoryStore(MemoryOutbox):
    """Keeps the contract `Store` in memory.

    It keeps all observations; `versions` bounds the copies.
    """

    def __init__(self, *, versions: int = 3) -> None:
        require(versions >= 1, "versions", versions, "must be 1 or more", "keep at least the newest copy")
        self._versions = versions
        super().__init__()
        self._members: dict[tuple[int, int], CollectionMember] = {}

    def add(
        self, listings: Sequence[Listing], now: float, *, duplicates: Literal["refuse", "replace"] = "refuse"
    ) -> list[int]:
        """Add all or none; known addresses are refused or take the new listing."""
        texts = check_listings(listings, now, duplicates)
        if duplicates == "refuse":
            refuse_duplicates(listings, self._ids.keys())
        ids = []
        for listing, text in zip(listings, texts, strict=True):
            # Options go through JSON, as in any store: nobody can change them from outside.
            plain = dataclasses.replace(listing, options=json.loads(text) if text else {})
            source = self._ids.get(listing.address)
            if source is None:
                self._counters["added"] += 1
                source = self._ids[listing.address] = self._counters["added"]
                self._sources[source] = Kept(dataclasses.replace(plain, id=source, added_at=now), now)
            else:
                kept = self._sources[source]
                if what_counts(plain) != what_counts(kept.listing):
                    self._judge_anew(kept)
                kept.listing = dataclasses.replace(plain, id=source, added_at=kept.listing.added_at)
                if listing.paused:
                    self._end(kept, "ended")
            ids.append(source)
        self._counters["edited"] += bool(ids)
        return ids

    def remove(self, sources: Sequence[int]) -> int:
        """Forget sources with all they taught."""
        gone = [kept for source in sources if (kept := self._sources.pop(int(source), None))]
        for kept in gone:
            self._end(kept, "ended")
            del self._ids[kept.listing.address]
        self._counters["edited"] += bool(gone)
        return len(gone)

    def fleet(self, width: int) -> FleetColumns:
        """Everything a start needs, in columns."""
        return self.columns_of(list(self._sources), width)

    def columns_of(self, sources: Sequence[int], width: int) -> FleetColumns:
        """These sources in columns, those that exist, ids rising."""
        all_kept = [self._sources[s] for s in sorted({int(s) for s in sources}) if s in self._sources]
        listings = [kept.listing for kept in all_kept]
        hosts = tuple(sorted({listing.host for listing in listings}))
        beliefs = np.zeros((len(all_kept), width))
        for i, kept in enumerate(all_kept):
            beliefs[i] = np.frombuffer(widened(kept.belief, width))
        return FleetColumns(
            source=np.array([s.id for s in listings], dtype=np.int64),
            weight=np.array([s.weight for s in listings], dtype=np.float64),
            cost=np.array([kept.cost for kept in all_kept], dtype=np.float64),
            shortest=np.array([s.shortest for s in listings], dtype=np.float64),
            longest=np.array([s.longest for s in listings], dtype=np.float64),
            host=np.array([hosts.index(s.host) for s in listings], dtype=np.int64),
            hosts=hosts,
            paused=np.array([s.paused for s in listings], dtype=np.bool_),
            due=np.array([kept.due for kept in all_kept], dtype=np.float64),
            last=np.array([kept.last for kept in all_kept], dtype=np.float64),
            found=np.array([kept.found for kept in all_kept], dtype=np.float64),
            failures=np.array([kept.failures for kept in all_kept], dtype=np.int64),
            beliefs=beliefs,
            settings=dict(self._settings),
            price=self._prices[-1] if self._prices else None,
            listed=np.array([s.cost for s in listings], dtype=np.float64),
        )

    def claim(
        self, now: float, limit: int, *, lease: float, owner: str, among: Sequence[int] | None = None
    ) -> list[Claim]:
        """Up to `limit` sources that are due, longest overdue first."""
        check_claim(now, limit, lease)
        for kept in self._sources.values():
            if kept.lease and not now < kept.lease.until <= now + lease:
                self._end(kept, "expired")
        chosen = None if among is None else {int(source) for source in among}
        due = [source for source, _ in self.waiting(now) if chosen is None or source in chosen]
        return [self._claim(source, now + lease, owner) for source in due[: int(limit)]]

    def waiting(self, until: float) -> list[tuple[int, float]]:
        """Who waits and is due by then, longest overdue first."""
        due = [
            (kept.due, source)
            for source, kept in self._sources.items()
            if kept.due <= until and not kept.lease and not kept.listing.paused
        ]
        return [(source, time) for time, source in sorted(due)]

    def record(
        self, entries: Sequence[Entry], *, settings: Mapping[str, bytes] | None = None, price: Price | None = None
    ) -> list[bool]:
        """Observations, copies, beliefs, due times, settings and a price."""
        check_entries(entries)
        if price is not None:
            self._prices.append(price)
        recorded = [self._record(entry) for entry in entries]
        given = settings or {}
        if LEARNER in given and given[LEARNER] != self._settings.get(LEARNER):
            self._epochs.append(Epoch(len(self._epochs) + 1, given[LEARNER]))
        self._measure_in(given)
        self._settings.update(given)
        return recorded

    def give_back(self, owner: str, claims: Sequence[Claim] | None = None) -> int:
        """End claims without an outcome: these, or all of the owner's."""
        tokens = None if claims is None else {claim.token for claim in claims}
        ended = [
            kept
            for kept in self._sources.values()
            if kept.lease and kept.lease.owner == owner and (tokens is None or kept.lease.token in tokens)
        ]
        for kept in ended:
            self._end(kept, "given_back")
        return len(ended)

    def set_due(self, sources: Sequence[int], due: Sequence[float], *, was: Sequence[float] | None = None) -> None:
        """Move due times, with `was` only where they still are that."""
        check_due(sources, due, was)
        before = [None] * len(due) if was is None else was
        for source, time, old in zip(sources, due, before, strict=True):
            kept = self._sources.get(int(source))
            if kept and old in (None, kept.due):
                kept.due = float(time)

    def distrust(self, copies: Sequence[tuple[int, int]]) -> None:
        """Nothing here can be damaged; what is named is asked for anew."""
        for source, version in copies:
            kept = self._sources.get(source)
            if kept and kept.copies and kept.copies[-1].version == version:
                newest = kept.copies[-1]
                body = dataclasses.replace(newest.body, etag=None, last_modified=None, fingerprint=None)
                kept.copies[-1] = dataclasses.replace(newest, digest=b"", body=body)

    def relearn(self, sources: Sequence[int]) -> None:
        """What polls of these have taught up to now counts no more."""
        for kept in (self._sources[source] for source in sources if source in self._sources):
            kept.belief = None
            latest = max((one.token for one in kept.observations), default=0)
            kept.anew = Checkpoint(latest, kept.last, kept.found, None)
        self._counters["edited"] += bool(sources)

    def members(self, collection: int | None = None, source: int | None = None) -> list[CollectionMember]:
        """Whom one collection tells of, or each of all; of one source, what tells of it."""
        mine = {p: m for p, m in self._members.items() if collection in (None, p[0]) and source in (None, p[1])}
        return [m for p, m in sorted(mine.items()) if p[0] != p[1] and set(p) <= self._sources.keys()]

    def pushes(self, sources: Sequence[int] | None = None) -> list[CollectionMember]:
        """What was last pushed of these sources, or of all."""
        own = sorted(source for source, other in self._members if source == other and source in self._sources)
        return [self._members[source, source] for source in own if sources is None or source in sources]

    def enlist(self, members: Sequence[CollectionMember]) -> None:
        """Take up whom collections tell of, or what they say now."""
        self._members.update({(one.collection, one.source): one for one in members})

    def moved(self) -> int | None:
        """Nobody else can write."""
        return None

    def close(self) -> None:
        """Nothing to give back."""

    def _judge_anew(self, kept: Kept) -> None:
        """Other things count: what the newest copy is is not known by it, and a poll under way judges by what did."""
        self._end(kept, "ended")
        if kept.copies:
            newest = kept.copies[-1]
            kept.copies[-1] = dataclasses.replace(newest, body=dataclasses.replace(newest.body, fingerprint=None))

    def _end(self, kept: Kept, how: str) -> None:
        if kept.lease:
            kept.lease = None
            self._counters[how] += 1

    def _claim(self, source: int, until: float, owner: str) -> Claim:
        kept = self._sources[source]
        self._counters["claimed"] += 1
        token = self._counters["claimed"]
        kept.lease = Lease(token, until, owner)
        newest = kept.copies[-1] if kept.copies else None
        told = (newest.body.etag, newest.body.last_modified, newest.body.fingerprint) if newest else (None, None, None)
        return Claim(
            source,
            token,
            kept.listing.address,
            kept.listing.kind,
            kept.due,
            kept.listing.options,
            kept.last,
            kept.failures,
            kept.observations[-1].token if kept.observations else 0,
            newest.version if newest else 0,
            *told,
        )

    def _record(self, entry: Entry) -> bool:
        kept = self._sources.get(entry.claim.source)
        if kept is None or not kept.lease or kept.lease.token != entry.claim.token:
            self._counters["dropped"] += 1
            return False
        elapsed = math.nan if math.isinf(kept.last) else entry.polled_at - kept.last
        kept.lease = None
        seen = Observation(
            entry.claim.token,
            entry.claim.source,
            entry.polled_at,
            entry.answer,
            elapsed,
            entry.modified,
            entry.received,
            entry.reason[:LONGEST_REASON],
            len(self._epochs),
            entry.told,
        )
        kept.observations.append(seen)
        if entry.answer is Answer.FAILED:
            kept.failures += 1
        else:
            kept.failures, kept.last = 0, entry.polled_at
            kept.found = entry.polled_at if entry.answer is Answer.CHANGED else min(kept.found, entry.polled_at)
        kept.due = entry.due
        kept.belief = entry.belief if entry.belief is not None else kept.belief
        kept.learned = entry.learned if entry.learned is not None else kept.learned
        self._keep(kept, entry)
        self._counters.update(tally([entry]))
        return True

    def _keep(self, kept: Kept, entry: Entry) -> None:
        if entry.body is None:
            return
        digest = sha256(entry.body.data).digest()
        newest = kept.copies[-1] if kept.copies else None
        if newest and (newest.digest == digest or entry.answer is Answer.UNCHANGED):
            # What counts is the same, so the bytes stay those we hold; only what came with them is renewed.
            kept.copies[-1] = dataclasses.replace(newest, body=dataclasses.replace(entry.body, data=newest.body.data))
        else:
            number = newest.version + 1 if newest else 1
            # Bytes of its own: a poller may count those it gave as long as anybody holds them.
            body = dataclasses.replace(entry.body, data=bytes(entry.body.data))
            kept.copies.append(Copy(entry.claim.source, number, entry.polled_at, digest, body))
            del kept.copies[: -kept_versions(entry.claim, self._versions)]
            self._tell(entry, number, digest)
            memory_entries.keep(kept.entries, number, entry.polled_at, entries_in(entry))
