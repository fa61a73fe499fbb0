"""Polling databases: a table or a query is a source, its copy a typed table in a local target.

The address is SQLAlchemy's, `postgresql://reader:$PASSWORD@host/shop#orders`, the table behind `#`. Options:

    table      the table instead, `schema.name`; or  query  a SELECT
    key        columns that tell rows apart; a table's primary key if not given
    changed    column of the last change, such as updated_at: only rows since the last reading are read
    overlap    seconds (or units of a number) before the newest change that are read again, for late commits
    probe      auto, changed, xmin, checksum or count: how to tell that nothing changed; see `sql_probe`
    sweep      seconds after which everything is read and compared again, whatever the probe says
    types      the types that columns shall have instead of their source's, by name; see `sql_types`
    group      tables of this database that are copied together, at one moment and in one switch; see `sql_group`
    partition  columns by whose values files of Parquet are divided, `country` or `at:month`; see `parquet_partitions`
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
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from unstale.adapters.addresses import Gate
from unstale.adapters.sql_catalogue import asked_of, catalogue
from unstale.adapters.sql_copying import Copying, table_name
from unstale.adapters.sql_flight import SqlFlight
from unstale.adapters.sql_group import copy_group, group_name, members
from unstale.adapters.sql_places import Ask, ask
from unstale.adapters.sql_probe import Look
from unstale.adapters.sql_source import Source
from unstale.adapters.sql_targets import LocalTable, Target, open_target
from unstale.adapters.target_places import TargetPlace
from unstale.errors import InputError, UnstaleError
from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.ports import Fetched, Request


class SqlFetcher:
    """Looks at tables of databases and keeps their copies in `target`, a place of its own; see `sql_targets`.

    `gate` says which IP addresses may be dialled, `roots` in which folders files and sockets may lie; `held` are
    SQLite files that this process has open, which are no sources. Parts of large tables are kept in a folder beside the
    target, or in `parts` if it is elsewhere; none: a copy that breaks off begins anew. At most `threads` sources are
    looked at at a time.
    """

    def __init__(
        self,
        target: TargetPlace,
        gate: Gate | None = None,
        *,
        roots: Iterable[Path] = (),
        held: Iterable[Path] = (),
        parts: Path | None = None,
        threads: int = 8,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._target, self._gate, self._now = target, gate or Gate(), now
        self._roots = [root.resolve() for root in roots]
        self._held = [*([target] if isinstance(target, Path) else []), *held]
        # Beside a target on this machine there is room for what it will hold.
        self._parts = target.with_name(f".{target.name}.parts") if isinstance(target, Path) else parts
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
            listing = bool(request.options.get("collection"))
            wanted = asked_of(request.address) if listing else ask(request.address, request.options)
        except InputError as error:
            return Fetched(Answer.FAILED, polled_at, reason=str(error))
        flight = SqlFlight(time.monotonic() + request.seconds, request.hear, self._now)
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

    async def _take_turn(self, wanted: Ask, request: Request, flight: SqlFlight, polled_at: float) -> Fetched:
        # One poll of a table at a time: the next one finds what this one brought.
        alone = group_name(wanted) if wanted.group else table_name(wanted)
        async with self._turns[wanted.address if wanted.own else alone]:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._threads, self._look, wanted, request, flight, polled_at)

    def _look(self, wanted: Ask, request: Request, flight: SqlFlight, polled_at: float) -> Fetched:
        source: Source | None = None
        copy: Copying | None = None
        try:
            source = source_of(wanted, flight.patient)
            flight.add(source)
            if wanted.group:
                return self._look_at_group(wanted, request, source, flight, polled_at)
            source.open(self._gate, self._roots, self._held, flight.left())
            if wanted.own:
                return replace(catalogue(source, request, polled_at), requests=source.statements)
            tables = self._tables(wanted, flight)
            copy = Copying(wanted, source, tables, flight, polled_at, self._parts)
            seen, done = copy.run()
            copy.settled()
            return _fetched(request, seen, done, polled_at, copy.received, copy.came, source.statements)
        except Exception as error:
            # A poll must end as an answer, whatever a driver makes of what a source holds.
            known = isinstance(error, UnstaleError)
            if not known:
                log("driver_failed", {"kind": "sql", "place": "target"})
            reason = str(error) if known else f"its rows could not be copied ({type(error).__name__})"
            if flight.left() <= 0.0:
                reason = f"no whole answer within {request.seconds:g} s"
            # What came for nothing was used all the same.
            asked, used = max(source.statements if source else 0, 1), (copy.received, copy.came) if copy else (0, 0)
            return Fetched(Answer.FAILED, polled_at, reason=reason, received=used[0], requests=asked, rows=used[1])
        finally:
            flight.land()

    def _look_at_group(
        self, wanted: Ask, request: Request, source: Source, flight: SqlFlight, polled_at: float
    ) -> Fetched:
        tables = self._tables(wanted, flight)
        known = members(wanted, tables, polled_at)
        source.open(self._gate, self._roots, self._held, flight.left(), [one.table for one in known])
        seen, done, received, rows = copy_group(wanted, known, source, tables, flight, polled_at, self._parts)
        return _fetched(request, seen, done, polled_at, received, rows, source.statements)

    def _tables(self, wanted: Ask, flight: SqlFlight) -> Target:
        # Who makes the file must be alone with it.
        with self._opening:
            tables = open_target(self._target, flight.patient, wanted.partition)
        flight.add(tables)
        return tables


def source_of(wanted: Ask, patient: Callable[[], bool]) -> Source:
    """The database of an address, not yet opened."""
    if wanted.address.lower().startswith("duckdb:"):
        from unstale.adapters.duckdb_source import DuckSource

        return DuckSource(wanted, patient)
    return Source(wanted, patient)


def _fetched(
    request: Request, seen: Look, done: LocalTable, polled_at: float, received: int, rows: int, statements: int
) -> Fetched:
    digest, asked = done.digest.hex(), max(statements, 1)
    etag = f"{done.probe}-{digest}"
    if request.etag is not None and request.etag.rpartition("-")[2] == digest:
        return Fetched(
            Answer.UNCHANGED,
            polled_at,
            etag=etag,
            address=request.address,
            received=received,
            requests=asked,
            rows=rows,
        )
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
        requests=asked,
        rows=rows,
    )
