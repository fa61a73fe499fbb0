"""What caches on the way to a source say: how old their answer is, and until when they have nothing newer.

Rules of this file:
1. An answer with Age came from a cache: it shows the source as it was when that cache last asked, not as it is now.
   Without Age a Date in the past is more likely a slow clock, and is not counted.
2. Until its lifetime ends a cache answers the same: a poll before then is spent for nothing. The source's owner may say
   otherwise (option `early`), for caches that are told when something changes.
3. Nothing older than what we hold takes its place, and time never goes back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from unstale.adapters.retry_headers import http_date, whole_number
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

#: the longest that a cache's word keeps us away, and by which an answer may be older than our copy and still be
#: believed; seconds
LONGEST, SURPRISING = 86_400.0, 86_400.0
#: at least this share of an answer's age passes until the next look, or a second: it will not have become much younger
SHARE, SOONEST = 0.1, 1.0
#: Age is cut to whole seconds
TICK = 1.0


def as_of(headers: Mapping[str, str], begun: float) -> float:
    """When the source was as an answer shows it, the request having begun at `begun` [RFC 9111 4.2.3].

    as_of = min(Date, begun − Age) where a cache says an Age, else `begun`.

    >>> as_of({"age": "3600"}, 5000.0), as_of({"age": "60", "date": "Thu, 01 Jan 1970 01:00:00 GMT"}, 5000.0)
    (1400.0, 3600.0)
    """
    age = whole_number(headers.get("age", "").partition(",")[0])
    if age is None:
        return begun
    made = http_date(headers.get("date"))
    return min(begun - age, begun if made is None else made)


def lifetime_left(headers: Mapping[str, str], age: float) -> float:
    """Seconds for which a cache that says such an age will answer the same, 0 if it does not say.

    >>> lifetime_left({"age": "60", "cache-control": "max-age=5, s-maxage=300"}, 60.0), lifetime_left({}, 0.0)
    (240.0, 0.0)
    """
    control = dict(part.strip().lower().partition("=")[::2] for part in headers.get("cache-control", "").split(","))
    for name in ("s-maxage", "max-age"):
        lasts = whole_number(control.get(name, "").strip('"'))
        if lasts is not None:
            return min(max(lasts - age, 0.0), LONGEST)
    ends, made = http_date(headers.get("expires")), http_date(headers.get("date"))
    return 0.0 if ends is None or made is None else min(max(ends - made - age, 0.0), LONGEST)


def aged(found: Fetched, request: Request, headers: Mapping[str, str], host: str) -> Fetched:
    """What a poll found, dated by what caches on the way say of its answer."""
    if found.answer is Answer.FAILED or "age" not in headers:
        return found
    begun = found.polled_at
    when = as_of(headers, begun)
    age = begun - when
    if when < request.since - SURPRISING:
        reason = f"{host}: its answer is {request.since - when:.0f} s older than our copy, by the Age that a cache says"
        return Fetched(
            Answer.FAILED, begun, reason=reason, status=found.status, address=found.address, received=found.received
        )
    wait = 0.0 if age < TICK else max(SOONEST, SHARE * age)
    if not request.options.get("early"):
        wait = max(wait, lifetime_left(headers, age))
    # Times are counted from what the answer shows; what the source asks for is counted from now.
    later = begun + max(wait, found.retry_after or 0.0) if wait or found.retry_after else found.not_before
    told = tuple(at for at in found.changed_at if at <= when)
    if when < request.since - TICK:
        # Another cache, with an older answer than the last one: it shows nothing that we do not know.
        return replace(
            found,
            answer=Answer.UNCHANGED,
            polled_at=request.since,
            body=None,
            media_type="",
            etag=request.etag,
            last_modified=request.last_modified,
            changed_at=(),
            not_before=later,
        )
    return replace(found, polled_at=max(when, request.since), changed_at=told, not_before=later)
