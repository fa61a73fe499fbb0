"""Polling databases: a table or a query is a source, its copy a table in a local SQLite file.

The address is SQLAlchemy's, `postgresql://reader:$PASSWORD@host/shop#orders`, the table behind `#`. Options:

    table      the table instead, `schema.name`; or  query  a SELECT
    key        columns that tell rows apart; a table's primary key if not given
    changed    column of the last change, such as updated_at: only rows since the last reading are read
    overlap    seconds (or units of a number) before the newest change that are read again, for late commits
    probe      auto, changed, xmin, checksum or count: how to tell that nothing changed; see `sql_probe`
    sweep      seconds after which everything is read and compared again, whatever the probe says
    batch      rows read at a time; max_bytes  most bytes of values that one poll may read

The body is a short account in JSON: the local table, its columns, rows, what the last change inserted, changed and
deleted, and a digest that is the same for the same content. Deletes are found when rows are counted: if they are not
as many as here, all keys are compared.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any

from unstale.adapters.addresses import Gate
from unstale.adapters.sql_places import Ask, ask
from unstale.adapters.sql_probe import Look, look
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_tables import LocalTable, Tables, view_name
from unstale.adapters.sql_values import Plain, plain, row_hash, size
from unstale.errors import InputError, UnstaleError
from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.ports import Fetched, Request

_Row = tuple[bytes, bytes, Sequence[Plain]]


class SqlFetcher:
    """Looks at tables of databases and keeps their copies in `target`, a SQLite file of its own.

    `gate` says which IP addresses may be dialled, `roots` in which folders files and sockets may lie; `held` are
    SQLite files that this process has open, which are no sources. At most `threads` sources are looked at at a time.
    """

    def __init__(
        self,
        target: Path,
        gate: Gate | None = None,
        *,
        roots: Iterable[Path] = (),
        held: Iterable[Path] = (),
        threads: int = 8,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._target, self._gate, self._now = target, gate or Gate(), now
        self._roots = [root.resolve() for root in roots]
        self._held = [target, *held]
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="unstale-sql")
        self._opening = threading.Lock()
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._closed = asyncio.Event()

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        polled_at = self._now()
        if self._closed.is_set():
            return Fetched(Answer.FAILED, polled_at, reason="the fetcher is closed")
        try:
            wanted = ask(request.address, request.options)
        except InputError as error:
            return Fetched(Answer.FAILED, polled_at, reason=str(error))
        flight = _Flight(time.monotonic() + request.seconds)
        looking = asyncio.create_task(self._take_turn(wanted, request, flight, polled_at))
        closing = asyncio.create_task(self._closed.wait())
        try:
            await asyncio.wait({looking, closing}, timeout=request.seconds, return_when=asyncio.FIRST_COMPLETED)
            if looking.done():
                return looking.result()
            late = f"no whole answer within {request.seconds:g} s"
            reason = "the fetcher was closed before the answer came" if self._closed.is_set() else late
            return Fetched(Answer.FAILED, polled_at, reason=reason)
        finally:
            flight.stop()
            looking.cancel()
            closing.cancel()

    async def close(self) -> None:
        """Give back connections; what is in flight ends as FAILED."""
        self._closed.set()
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _take_turn(self, wanted: Ask, request: Request, flight: _Flight, polled_at: float) -> Fetched:
        # One poll of a table at a time: the next one finds what this one brought.
        async with self._turns[_name(wanted)]:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._look, wanted, request, flight, polled_at)

    def _look(self, wanted: Ask, request: Request, flight: _Flight, polled_at: float) -> Fetched:
        try:
            source = Source(wanted, flight.patient)
            flight.add(source)
            source.open(self._gate, self._roots, self._held, flight.left())
            # Who makes the file must be alone with it.
            with self._opening:
                tables = Tables(self._target, flight.patient)
            flight.add(tables)
            copy = _Copying(wanted, source, tables, flight, polled_at)
            seen, done = copy.run()
            return _fetched(request, seen, done, polled_at, copy.received)
        except Exception as error:
            # A poll must end as an answer, whatever a driver makes of what a source holds.
            known = isinstance(error, UnstaleError)
            if not known:
                log("driver_failed", {"kind": "sql", "place": "target"})
            reason = str(error) if known else f"its rows could not be copied ({type(error).__name__})"
            if flight.left() <= 0.0:
                reason = f"no whole answer within {request.seconds:g} s"
            return Fetched(Answer.FAILED, polled_at, reason=reason)
        finally:
            flight.land()


class _Flight:
    """One poll under way in a thread, and how to end it from outside."""

    def __init__(self, deadline: float) -> None:
        self._deadline, self._stopped = deadline, False
        self._parts: list[Source | Tables] = []
        self._lock = threading.Lock()

    def add(self, part: Source | Tables) -> None:
        with self._lock:
            self._parts.append(part)

    def left(self) -> float:
        return 0.0 if self._stopped else self._deadline - time.monotonic()

    def patient(self) -> bool:
        """Whether there is time to wait for a lock; waits a moment if so."""
        if self.left() > 0.0:
            time.sleep(0.01)
        return self.left() > 0.0

    def check(self) -> None:
        if self.left() <= 0.0:
            raise InputError("the poll was ended")

    def stop(self) -> None:
        """End it; from another thread."""
        self._stopped = True
        with self._lock:
            for part in self._parts:
                part.interrupt()

    def land(self) -> None:
        with self._lock:
            parts, self._parts = self._parts, []
        for part in parts:
            part.close()


class _Copying:
    """From a probe to a local table that equals its source."""

    def __init__(self, wanted: Ask, source: Source, tables: Tables, flight: _Flight, now: float) -> None:
        self._ask, self._source, self._tables, self._flight, self._now = wanted, source, tables, flight, now
        self.received = 0

    def run(self) -> tuple[Look, LocalTable]:
        """What the probe saw, and the table after it."""
        held = self._tables.held(_name(self._ask), view_name(self._ask.table or "query"))
        columns = self._source.columns()
        seen = look(self._source, columns, held.mark)
        swept = held.edition > 0 and 0.0 <= self._now - held.read_at < self._ask.sweep
        if swept and seen.probe and seen.probe == held.probe:
            return seen, held
        key = self._source.key()
        wanted = replace(held, columns=columns, key=key, probe=seen.probe, mark=seen.mark)
        if swept and key and seen.since is not None and (held.columns, held.key) == (columns, key):
            enough, among = self._stage_since(wanted, seen)
            if enough:
                return seen, self._merge(wanted, seen, among)
        self._tables.stage(columns, self._rows(columns, key, None))
        return seen, self._merge(replace(wanted, read_at=self._now), seen, "incoming")

    def _merge(self, wanted: LocalTable, seen: Look, among: str | None) -> LocalTable:
        self._flight.check()
        return self._tables.merge(wanted, kind=seen.kind, among=among)

    def _stage_since(self, wanted: LocalTable, seen: Look) -> tuple[bool, str | None]:
        """Put aside what changed since the last reading: whether that is enough, and what rows must be in to stay."""
        self._tables.stage(wanted.columns, self._rows(wanted.columns, wanted.key, seen.since))
        if wanted.rows + self._tables.new_rows(wanted.name) == seen.rows:
            return True, None
        self._tables.stage_keys(self._keys(wanted.key))
        return self._tables.absent(wanted.name) == 0, "present"

    def _rows(self, columns: Sequence[str], key: Sequence[str], since: Any) -> Iterator[_Row]:
        places = [columns.index(name) for name in key]
        for row in self._source.rows(where=since):
            values = self._received(row)
            yield row_hash([values[i] for i in places]) if places else b"", row_hash(values), values

    def _keys(self, key: Sequence[str]) -> Iterator[bytes]:
        for row in self._source.rows(key):
            yield row_hash(self._received(row))

    def _received(self, row: Sequence[Any]) -> list[Plain]:
        values = [plain(value) for value in row]
        self.received += size(values)
        if self.received > self._ask.max_bytes:
            raise InputError(f"the rows have more than {self._ask.max_bytes} bytes: raise max_bytes if they may")
        self._flight.check()
        return values


def _fetched(request: Request, seen: Look, done: LocalTable, polled_at: float, received: int) -> Fetched:
    digest = done.digest.hex()
    etag = f"{done.probe}-{digest}"
    if request.etag is not None and request.etag.rpartition("-")[2] == digest:
        return Fetched(Answer.UNCHANGED, polled_at, etag=etag, address=request.address, received=received)
    if len(done.manifest) > request.limit:
        return Fetched(Answer.FAILED, polled_at, reason=f"its account has more than {request.limit} bytes")
    told = seen.changed_at
    return Fetched(
        Answer.CHANGED,
        polled_at,
        done.manifest,
        "application/json",
        etag,
        changed_at=(told,) if told is not None and 0.0 < told < polled_at else (),
        address=request.address,
        received=max(received, len(done.manifest)),
    )


def _name(wanted: Ask) -> str:
    """The name of a source's table: the same as long as the source is the same."""
    text = ascii((wanted.address, wanted.table, wanted.query))
    return f"source_{blake2b(text.encode('ascii'), digest_size=8).hexdigest()}"
