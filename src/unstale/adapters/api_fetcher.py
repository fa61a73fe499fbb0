"""Polling resources of JSON APIs: records are a source, their copy a typed table in a local target.

Rules of this file:
1. All pages are read before anything is written: a page that fails leaves the old copy as it is.
2. What changed since the last reading is asked for alone where the API can tell; records that are gone are then found
   when everything is read again, after `sweep`.
3. An ETag is believed only of a resource that came whole on one page.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any
from urllib.parse import urlsplit

from unstale.adapters.api_auth import ApiAuth
from unstale.adapters.api_pages import first_place, next_place
from unstale.adapters.api_records import RecordReading, columns_of, last_of_each, read_json, records_in, values_in
from unstale.adapters.api_terms import ApiTerms, terms_of
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.retry_headers import rate_limit, wait
from unstale.adapters.sql_copying import named
from unstale.adapters.sql_flight import SqlFlight
from unstale.adapters.sql_probe import before
from unstale.adapters.sql_records import view_name
from unstale.adapters.sql_targets import LocalTable, open_target
from unstale.adapters.target_places import TargetPlace
from unstale.adapters.transfer import TransferReply
from unstale.errors import InputError, UnstaleError
from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.logs import log
from unstale.ports import Fetched, Request

#: what pages may have together: bytes, in times of what one body may have, and values, each about a hundred bytes
_BODIES, _VALUES = 8, 1_000_000


@dataclass(slots=True)
class _Read:
    """What a reading brought so far."""

    records: list[Any] = field(default_factory=list)
    calls: int = 0
    received: int = 0
    values: int = 0
    decoded: int = 0
    etag: str | None = None
    unchanged: bool = False
    last: TransferReply = field(default_factory=TransferReply)


class ApiFetcher:
    """Looks at resources of APIs through `web` and keeps their records as tables in `target`; see `sql_targets`."""

    def __init__(
        self,
        web: HttpFetcher,
        auth: ApiAuth,
        target: TargetPlace,
        known: Sequence[ApiTerms] = (),
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._web, self._auth, self._target, self._known, self._now = web, auth, target, known, now
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        polled_at, read, flight = self._now(), _Read(), SqlFlight(time.monotonic() + request.seconds)
        try:
            async with asyncio.timeout(request.seconds), self._turns[request.address]:
                return await self._poll(request, read, flight, polled_at)
        except TimeoutError:
            reason = f"no whole answer within {request.seconds:g} s"
        except UnstaleError as error:
            reason = str(error)
        except Exception as error:  # A poll must end as an answer, whatever a target makes of what an API sends.
            log("driver_failed", {"kind": "api", "place": "target"})
            reason = f"its records could not be copied ({type(error).__name__})"
        finally:
            flight.stop()
        return self._told(Fetched(Answer.FAILED, polled_at, reason=reason), read)

    async def close(self) -> None:
        """Give back connections; what is in flight ends as FAILED."""
        await self._web.close()

    async def _poll(self, request: Request, read: _Read, flight: SqlFlight, polled_at: float) -> Fetched:
        terms = terms_of(request.address, request.options, self._known)
        name = named((request.address, terms.records))
        held = await asyncio.to_thread(self._held, name, request.address, flight)
        digest, _, etag = (request.etag or "").partition(" ")
        # What the source's own word is about must still be here.
        same = held.edition > 0 and held.digest.hex() == digest
        swept = held.edition > 0 and 0.0 <= polled_at - held.read_at < terms.sweep
        since = _since(held.mark, terms) if swept and terms.since and held.key == terms.key else ""
        await self._pages(request, terms, since, etag if same and not since else "", read)
        if read.unchanged:
            return self._told(Fetched(Answer.UNCHANGED, polled_at, etag=request.etag, address=request.address), read)
        done = await asyncio.to_thread(self._merge, held, terms, read.records, bool(since), polled_at, flight)
        if done is None:
            # What changed does not fit the table as it is: all of it is read anew.
            read.records.clear()
            await self._pages(request, terms, "", "", read)
            done = await asyncio.to_thread(self._merge, held, terms, read.records, False, polled_at, flight)
        assert done is not None
        told = f"{done.digest.hex()} {read.etag or ''}".rstrip()
        if done.digest.hex() == digest:
            return self._told(Fetched(Answer.UNCHANGED, polled_at, etag=told, address=request.address), read)
        found = Fetched(
            Answer.CHANGED, polled_at, done.manifest, "application/json", told, address=request.address, status=200
        )
        return self._told(found, read)

    async def _pages(self, request: Request, terms: ApiTerms, since: str, etag: str, read: _Read) -> None:
        """Read all pages, or learn that nothing changed."""
        address: str = first_place(request.address, terms, since)
        asked, sent, number = {address}, await self._auth.headers(terms), 0
        read.etag, read.values, read.decoded = None, 0, 0
        while address:
            number += 1
            headers = {"Accept": "application/json", **request.headers, **sent}
            asking = replace(
                request, address=address, etag=etag or None, last_modified=None, headers=headers, digest=None
            )
            reply = await self._web.look(asking)
            read.calls, read.received, read.last = read.calls + reply.requests, read.received + reply.received, reply
            if reply.status == 401 and terms.token_address and number == 1 and not read.records:
                sent, terms, number = await self._auth.headers(terms, anew=True), replace(terms, token_address=""), 0
                continue
            if etag and reply.status == 304:
                read.unchanged, read.etag = True, etag
                return
            if reply.reason or reply.status not in (200, 203):
                raise InputError(reply.reason or f"{_host(address)}: it answered {reply.status}")
            text = bytes(reply.body)
            read.values, read.decoded = read.values + values_in(text), read.decoded + len(text)
            if read.values > _VALUES:
                # Before they are made: a few kilobytes of a packed page can hold millions.
                raise InputError(f"its pages have more than {_VALUES:,} values: ask for fewer records, fields or pages")
            if read.decoded > _BODIES * request.limit:
                raise InputError(f"its pages have more than {_BODIES * request.limit} bytes: raise limit if they may")
            body = await asyncio.to_thread(read_json, text)
            found = records_in(body, terms.records)
            read.records += found
            following = next_place(address, reply.headers, body, terms, len(found), number)
            if not following and number == 1 and not since:
                read.etag = reply.headers.get("etag")
            if following in asked:
                raise InputError("its next page is one that was read already: check paging and next")
            if following and number >= terms.pages:
                raise InputError(f"it has more than {terms.pages} pages: raise pages if it may")
            address, etag = following, ""
            asked.add(following)

    def _held(self, name: str, address: str, flight: SqlFlight) -> LocalTable:
        tables = open_target(self._target, flight.patient)
        try:
            return tables.held(name, view_name(urlsplit(address).path.rstrip("/").rpartition("/")[2] or "api"))
        finally:
            tables.close()

    def _merge(
        self, held: LocalTable, terms: ApiTerms, records: list[Any], part: bool, now: float, flight: SqlFlight
    ) -> LocalTable | None:
        """The table with these records; None if they are a part that it cannot hold as it is."""
        rows = last_of_each(records, terms.key)
        columns = columns_of(rows, terms.types, held.columns if part else (held.columns if not rows else ()))
        names = tuple(column.name for column in columns)
        if part and names != held.columns:
            return None
        if not columns:
            raise InputError("it has no record yet, so its table has no columns: it is looked at again later")
        tables = open_target(self._target, flight.patient)
        flight.add(tables)
        try:
            types = tables.take(RecordReading(columns, terms.key, rows), held.types if part else ())
            if part and types != held.types:
                return None
            mark = _mark(rows, terms, held.mark if part else "")
            wanted = replace(held, columns=names, key=terms.key, types=types, mark=mark)
            wanted = wanted if part else replace(wanted, read_at=now)
            flight.check()
            return tables.merge(wanted, kind="since" if part else "all", among=None if part else "incoming")
        finally:
            flight.land()

    def _told(self, fetched: Fetched, read: _Read) -> Fetched:
        """What came back, with what the API says of how it wants to be asked."""
        headers, now = read.last.headers, self._now()
        calls = max(read.calls, 1)
        return replace(
            fetched,
            status=fetched.status or read.last.status,
            received=read.received,
            requests=calls,
            calls=calls,
            rows=len(read.records),
            retry_after=wait(read.last.status, headers, now),
            rate_limit=rate_limit(headers, now),
        )


def _since(mark: str, terms: ApiTerms) -> str:
    """The time from which changes are asked for: a while before the newest that was seen."""
    newest = json.loads(mark) if mark else None
    begin = before(newest, terms.overlap) if newest is not None else None
    if begin is None:
        return ""
    # The zone that the API writes is the one that it reads.
    zone = newest[19:] if isinstance(newest, str) and newest[19:] in ("Z", "+00:00") else ""
    return f"{begin}{zone}"


def _mark(records: Sequence[Any], terms: ApiTerms, old: str) -> str:
    if not terms.changed:
        return ""
    seen = [one[terms.changed] for one in records if one.get(terms.changed) is not None]
    if old:
        seen.append(json.loads(old))
    try:
        return json.dumps(max(seen), default=str) if seen else ""
    except TypeError:
        raise InputError(f"field {terms.changed!r} has texts and numbers: name another one in changed") from None


def _host(address: str) -> str:
    return urlsplit(address).hostname or ""
