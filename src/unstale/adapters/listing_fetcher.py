"""Polling collections on the web: where a listing is asked for, and its pages, followed to the end of them.

Rules of this file:
1. A listing that comes in pages is one poll: its body is all entries, as `ListingPoll.plain` writes them.
2. Where a collection tells what changed since a point, that point is kept as the validator of its copy.
3. A page that fails fails the poll: what was cut short would look like the end.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from unstale.adapters.normalise import content_hash
from unstale.errors import InputError
from unstale.keeper.outcomes import Answer
from unstale.listings.changelog import call
from unstale.listings.packed import MOST_BYTES
from unstale.listings.paged import followed
from unstale.listings.readers import read_plain
from unstale.listings.records import Plain
from unstale.listings.refs import ASKED, WHERE
from unstale.listings.taking import MOST_ENTRIES
from unstale.ports import Aside, Fetched, Fetcher, Request

#: pages of one listing, entries of one page where we may say so, and seconds between two pages
MOST_PAGES, PAGE, PAUSE = 1_000, 1_000, 0.2
#: what is asked for: of package indexes the form that has serials and hashes
#: (in two pieces, for it is named after a registry, and no file of ours names one)
_ACCEPTED = {"simple": "application/vnd.py" + "pi.simple.v1+json, text/html;q=0.1"}
_XML = {"Content-Type": "text/xml"}
#: the parameter that a cursor goes into, where its form says it
_CURSORS = {"objects": "continuation-token", "changes": "since", "digest": "after"}
_POINT = '"since-'
#: seconds before the last look from which on is asked: clocks differ
_OVERLAP = 60.0


class ListingFetcher:
    """Looks at collections through a fetcher of the web; strangers' pages are read in `aside`, where there is one."""

    def __init__(
        self, web: Fetcher, aside: Aside | None = None, *, now: Callable[[], float] = time.time, pause: float = PAUSE
    ) -> None:
        self._web, self._aside, self._now, self._pause = web, aside, now, pause

    async def fetch(self, request: Request) -> Fetched:
        """Look once; see `unstale.ports.Fetcher` for what is promised."""
        form = str(request.options.get("collection"))
        asked = _asked(form, request)
        if not followed(request.options):
            return await self._web.fetch(asked)
        begun = self._now()
        try:
            async with asyncio.timeout(request.seconds):
                return await self._all(form, request, asked, begun)
        except TimeoutError:
            return Fetched(Answer.FAILED, begun, reason=f"no whole listing within {request.seconds:g} s")
        except InputError as error:
            return Fetched(Answer.FAILED, begun, reason=str(error))

    async def close(self) -> None:
        """Give back connections."""
        await self._web.close()

    async def _all(self, form: str, request: Request, asked: Request, begun: float) -> Fetched:
        point = _point(request.etag)
        page = replace(asked, address=_first(form, asked, point), etag=None, last_modified=None, digest=None)
        if form == "changelog":
            # A full page has more than pages of the web.
            most, headers = max(page.limit, MOST_BYTES), {**_XML, **page.headers}
            page = replace(page, content=call(point), headers=headers, limit=most)
        whole: Plain = {"entries": [], "more": [], "cursor": None, "complete": True, "refused": {}}
        received = requests = 0
        seen = {(page.address, page.content)}
        for turn in range(MOST_PAGES):
            if turn:
                await asyncio.sleep(self._pause)
            found = await self._web.fetch(page)
            if found.answer is Answer.FAILED or found.body is None:
                return replace(found, answer=Answer.FAILED, reason=found.reason or "a page of the listing is missing")
            received, requests = received + found.received, requests + found.requests
            told = await self._read(form, bytes(found.body), found.address or page.address, begun, request)
            cursor = told["cursor"]
            if form == "changes":
                point, further = cursor or point, len(told["entries"]) >= PAGE
            elif form == "changelog":
                # A page that is full is followed by another.
                point, further, told["complete"] = cursor or point, not told["complete"], True
            else:
                further = cursor is not None
            _add(whole, told)
            following = _next(form, page, cursor) if further and cursor else None
            where = following and (following.address, following.content)
            if following is None or where in seen or len(whole["entries"]) >= MOST_ENTRIES:
                whole["complete"] = whole["complete"] and (following is None or where in seen)
                break
            seen.add((following.address, following.content))
            page = following
        else:
            whole["complete"] = False
        return _fetched(form, request, whole, point, begun, received, requests)

    async def _read(self, form: str, body: bytes, base: str, now: float, request: Request) -> Plain:
        args = (form, body, base, now, dict(request.options), request.address)
        return read_plain(*args) if self._aside is None else await self._aside.run(read_plain, *args)


def _asked(form: str, request: Request) -> Request:
    """Where and how a listing of this form is asked for."""
    headers = {"Accept": _ACCEPTED[form], **request.headers} if form in _ACCEPTED else request.headers
    address = request.address
    if form == "refs" and WHERE not in address:
        address = address.rstrip("/") + ASKED
    return replace(request, address=address, headers=headers)


def _point(etag: str | None) -> str:
    """From where on is asked, as the last look has left it; empty: there was none."""
    return etag[len(_POINT) : -1] if etag and etag.startswith(_POINT) else ""


def _first(form: str, request: Request, point: str) -> str:
    address, since = request.address, str(request.options.get("since") or "")
    if form == "objects":
        return _with(address, {"list-type": "2"})
    if form == "changes":
        # What was before the first look is not asked for: it may be all that ever happened.
        return _with(address, {"since": point or "now", "limit": str(PAGE)})
    if since and point:
        name, _, value = since.partition("=")
        at = max(float(point) - _OVERLAP, 0.0)
        told = {"{epoch}": str(int(at)), "{iso}": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")}
        return _with(address, {name: told.get(value or "{iso}", value)})
    return address


def _next(form: str, last: Request, cursor: str) -> Request | None:
    """How the next page is asked for; only ever at the place of this one."""
    if form == "changelog":
        return replace(last, content=call(cursor))
    if name := _CURSORS.get(form) or last.options.get("cursor"):
        return replace(last, address=_with(last.address, {str(name): cursor}))
    found = urljoin(last.address, cursor)
    return replace(last, address=found) if urlsplit(found)[:2] == urlsplit(last.address)[:2] else None


def _with(address: str, said: Mapping[str, str]) -> str:
    """An address with these parameters, in place of those of the same names."""
    place = urlsplit(address)
    others = [(name, value) for name, value in parse_qsl(place.query, keep_blank_values=True) if name not in said]
    return urlunsplit(place._replace(query=urlencode([*others, *said.items()])))


def _add(whole: Plain, part: Plain) -> None:
    whole["entries"] += part["entries"]
    whole["more"] += part["more"]
    whole["complete"] = whole["complete"] and part["complete"]
    for reason, count in part["refused"].items():
        whole["refused"][reason] = whole["refused"].get(reason, 0) + count


def _fetched(
    form: str, request: Request, whole: Plain, point: str, begun: float, received: int, requests: int
) -> Fetched:
    told = form in ("changes", "changelog")
    since = told or bool(request.options.get("since"))
    body = json.dumps(whole).encode()
    if since and not told:
        point = f"{begun:.0f}"
    etag = f'{_POINT}{point}"' if since else f'"{content_hash(body)[:32]}"'
    # A point that moved is kept, or what nobody wants of it would be asked for again and again.
    nothing = not whole["entries"] and (not told or etag == request.etag) if since else etag == request.etag
    if request.etag is not None and nothing:
        return Fetched(
            Answer.UNCHANGED,
            begun,
            etag=request.etag,
            address=request.address,
            received=received,
            requests=requests,
        )
    return Fetched(
        Answer.CHANGED,
        begun,
        body,
        "application/json",
        etag,
        address=request.address,
        received=received,
        requests=requests,
    )
