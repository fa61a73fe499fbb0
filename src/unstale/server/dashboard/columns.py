"""All sources in columns, to be sorted and searched in milliseconds however many there are.

Rules of this file:
1. What is sorted by and what is shown are of one moment, which may be a while ago and is told.
2. Reading costs a twentieth of the time at most, and nobody waits for it but the first.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unstale.core.checks import Floats
from unstale.service import FleetService
from unstale.service.moment import Moment, listed, reasons
from unstale.service.records import SourceView

Rows = NDArray[np.int64]

#: matches that are counted; where there are more, the first in order are looked for instead
COUNTED = 5000
#: seconds between two readings at least, and how much longer than a reading the pause is
LEAST, PAUSE = 5.0, 20.0
STATES = ("failing", "paused", "stale", "never")


@dataclass(frozen=True, slots=True)
class Names:
    """Addresses in lower case, one a line, whose they are and where each begins; `edited` counts the store's edits."""

    text: bytes
    begin: Rows
    source: Rows
    edited: int

    def having(self, wanted: bytes, most: int) -> tuple[Rows, bool]:
        """The sources whose address contains this, and whether these are all: about `most` are looked for."""
        places: list[int] = []
        at = self.text.find(wanted)
        while at >= 0 and len(places) <= most:
            places.append(at)
            at = self.text.find(wanted, at + 1)
        lines = np.unique(self.begin.searchsorted(np.array(places, dtype=np.int64), side="right") - 1)
        return self.source[lines], at < 0

    def has(self, source: int, wanted: bytes) -> bool:
        """Whether the address of one source contains this."""
        line = int(self.source.searchsorted(source))
        return self.text.find(wanted, int(self.begin[line]), int(self.begin[line + 1])) >= 0


@dataclass(frozen=True, slots=True)
class SourceColumns:
    """The fleet as it stood at a time; `by` holds what can be sorted by, paused sources and NaN come last."""

    moment: Moment
    source: Rows
    by: Mapping[str, Floats]
    states: Mapping[str, NDArray[np.bool_]]
    host: Rows
    hosts: Mapping[str, int]
    names: Names

    def views(self, service: FleetService, ids: Sequence[int]) -> list[SourceView]:
        """These sources as they stood when they were sorted, in the order given."""
        every = self.moment.standing.source
        wanted = np.array(ids, dtype=np.int64)
        rows = every.searchsorted(wanted)
        rows = rows[every[np.minimum(rows, len(every) - 1)] == wanted] if len(every) else rows[:0]
        return self.moment.views(rows, listed(service.store, ids), reasons(service.store, self.moment, rows))

    def find(
        self,
        *,
        text: str = "",
        host: str | None = None,
        state: str | None = None,
        sort: str = "id",
        down: bool = False,
        offset: int = 0,
        limit: int = 50,
    ) -> tuple[list[int], int | None]:
        """Ids of the sources wanted, in order, and how many there are in all (None: more than were counted)."""
        keys = -self.by[sort] if down else self.by[sort]
        rows = self._chosen(host, state)
        wanted = text.strip().lower().encode("utf-8", "replace")
        if not wanted:
            total = len(keys) if rows is None else len(rows)
            return self._ids(_first(keys, rows, offset + limit)[offset:]), total
        having, whole = self.names.having(wanted, COUNTED)
        if whole:
            found = np.flatnonzero(np.isin(self.source, having, assume_unique=True))
            rows = found if rows is None else np.intersect1d(found, rows, assume_unique=True)
            return self._ids(_first(keys, rows, offset + limit)[offset:]), len(rows)
        chosen: list[int] = []
        for row in _in_order(keys, rows):
            source = int(self.source[row])
            if self.names.has(source, wanted):
                chosen.append(source)
                if len(chosen) == offset + limit:
                    break
        return chosen[offset:], None

    def _chosen(self, host: str | None, state: str | None) -> Rows | None:
        """The rows of a host, or in a state; None for all."""
        if host is None and state is None:
            return None
        mask = np.ones(len(self.source), dtype=np.bool_) if state is None else self.states[state].copy()
        if host is not None:
            mask &= self.host == self.hosts.get(host, -1)
        return np.flatnonzero(mask)

    def _ids(self, rows: Rows) -> list[int]:
        return [int(source) for source in self.source[rows]]


class Reader:
    """Keeps the columns recent while somebody looks at them."""

    def __init__(self, service: FleetService) -> None:
        self._service = service
        self._columns: SourceColumns | None = None
        self._reading: asyncio.Task[None] | None = None
        self._next = 0.0

    def now(self) -> SourceColumns | None:
        """What was read last, None if that is still to come; reading anew begins where it is time."""
        idle = self._reading is None or self._reading.done()
        if idle and time.monotonic() >= self._next:
            self._reading = asyncio.create_task(self._read())
        return self._columns

    async def ready(self, seconds: float) -> SourceColumns | None:
        """The same, after waiting so long at most for the first reading."""
        found = self.now()
        if found is None and self._reading is not None:
            await asyncio.wait({self._reading}, timeout=seconds)
            if self._reading.done():
                self._reading.result()
        return self._columns

    async def _read(self) -> None:
        begun = time.monotonic()
        try:
            self._columns = await asyncio.to_thread(read, self._service, self._columns)
        finally:
            now = time.monotonic()
            self._next = now + max(LEAST, PAUSE * (now - begun))


def read(service: FleetService, before: SourceColumns | None = None) -> SourceColumns:
    """All sources; the addresses `before` are taken again unless the fleet was edited since."""
    # First the names: who is added in between is found the next time.
    edited = service.store.counters().get("edited", 0)
    known = before.names if before is not None and before.names.edited == edited else _names(service, edited)
    moment = service.moment()
    standing, seen = moment.standing, moment.seen
    rows = np.flatnonzero(np.isin(standing.source, known.source, assume_unique=True))
    source, host, paused = standing.source[rows], standing.host[rows], standing.paused[rows]
    failures, due, last = standing.failures[rows], standing.due[rows], standing.last[rows]
    fresh = seen.fresh[rows]
    never = np.isneginf(last)

    def polled(values: Floats) -> Floats:
        return np.where(paused | ~np.isfinite(values), np.nan, values)

    by = {
        "id": source.astype(np.float64),
        "weight": standing.weight[rows],
        "failures": failures.astype(np.float64),
        "due": polled(due),
        "interval": moment.intervals(rows),
        "changed": polled(standing.found[rows]),
        "fresh": np.where(paused, np.nan, fresh),
        "age": polled(seen.age[rows]),
        "change_rate": polled(seen.change_rate[rows]),
    }
    states = {
        "failing": (failures > 0) & ~paused,
        "paused": paused,
        "stale": (fresh < 0.5) & ~paused & ~never,
        "never": never & ~paused,
    }
    hosts = {name: i for i, name in enumerate(standing.hosts)}
    return SourceColumns(moment, source, by, states, host, hosts, known)


def _names(service: FleetService, edited: int) -> Names:
    source, lines, begin, at = [], [], [0], 0
    for number, address in service.store.addresses():
        line = address.lower().encode("utf-8", "replace") + b"\n"
        at += len(line)
        source.append(number)
        lines.append(line)
        begin.append(at)
    return Names(b"".join(lines), np.array(begin, dtype=np.int64), np.array(source, dtype=np.int64), edited)


def _first(keys: Floats, rows: Rows | None, count: int) -> Rows:
    """The `count` rows with the least keys, in order; those without a key come last, equals by row."""
    own = keys if rows is None else keys[rows]
    if count < len(own):
        # All that are as small as the last of them, so that equals are always taken in the same order.
        edge = np.partition(own, count - 1)[count - 1]
        near = np.flatnonzero(own <= edge) if np.isfinite(edge) else np.arange(len(own))
    else:
        near = np.arange(len(own))
    chosen = near[np.argsort(own[near], kind="stable")][:count]
    return chosen if rows is None else rows[chosen]


def _in_order(keys: Floats, rows: Rows | None) -> Iterator[int]:
    """All rows by their keys, sorted only as far as they are asked for."""
    total, given, count = len(keys) if rows is None else len(rows), 0, 2000
    while given < total:
        yield from _first(keys, rows, min(count, total))[given:].tolist()
        given, count = min(count, total), 10 * count
