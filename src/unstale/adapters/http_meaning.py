"""What an answer over HTTP means for the poll that asked for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from http import HTTPStatus

from unstale.adapters.addresses import web_address
from unstale.adapters.http_age import aged
from unstale.adapters.http_request import conditions, validator
from unstale.adapters.retry_headers import ASKING, http_date, rate_limit, wait
from unstale.adapters.transfer import WHOLE, TransferReply
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request


def found(request: Request, reply: TransferReply, polled_at: float) -> Fetched:
    """What a poll found, dated by what caches on the way say."""
    seen = fetched(request, reply, polled_at)
    return aged(seen, request, reply.headers, _host(reply.address)) if "age" in reply.headers else seen


def not_modified(request: Request, address: str, headers: Mapping[str, str], received: int, at: float) -> Fetched:
    """What a poll found that was told so by its first answer: the same as `found`, of which there is most."""
    # In the order of its fields: naming them would take as long as all the rest.
    seen = Fetched(
        Answer.UNCHANGED,
        at,
        None,
        "",
        validator(headers.get("etag") or request.etag),
        validator(headers.get("last-modified") or request.last_modified),
        (),
        "",
        None,
        304,
        address,
        received,
    )
    if not ASKING.isdisjoint(headers):
        seen = replace(seen, retry_after=wait(304, headers, at), rate_limit=rate_limit(headers, at))
    return aged(seen, request, headers, _host(address)) if "age" in headers else seen


def fetched(request: Request, reply: TransferReply, polled_at: float) -> Fetched:
    """What a reply means for the poll that asked for it."""
    headers, status, reason = reply.headers, reply.status, reply.reason
    answer, body, media_type = Answer.FAILED, None, ""
    etag, last_modified = headers.get("etag"), headers.get("last-modified")
    changed_at: tuple[float, ...] = ()
    if not reason and status in WHOLE and not reply.same:
        answer, body, media_type = Answer.CHANGED, reply.body, headers.get("content-type", "")
        changed_at = _changed_at(headers, polled_at)
    elif not reason and (reply.same or (status == 304 and conditions(request.etag, request.last_modified))):
        answer = Answer.UNCHANGED
        etag, last_modified = etag or request.etag, last_modified or request.last_modified
    else:
        reason = reason or f"{_host(reply.address)}: it answered {_named(status)}"
        etag = last_modified = None
    return Fetched(
        answer,
        polled_at,
        body,
        media_type,
        validator(etag),
        validator(last_modified),
        changed_at,
        reason,
        wait(status, headers, polled_at),
        status,
        reply.address,
        reply.received,
        requests=reply.requests,
        rate_limit=rate_limit(headers, polled_at),
    )


def _changed_at(headers: Mapping[str, str], polled_at: float) -> tuple[float, ...]:
    """The time of Last-Modified, unless it is no earlier than the answer itself and so tells nothing."""
    when = http_date(headers.get("last-modified"))
    answered = http_date(headers.get("date")) or polled_at
    return (when,) if when is not None and 0.0 < when < min(answered, polled_at) else ()


def _named(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return str(status)


def _host(address: str) -> str:
    return web_address(address).host
