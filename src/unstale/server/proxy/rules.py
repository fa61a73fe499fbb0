"""What a shared cache may store and reuse, and for how long: RFC 9111, RFC 5861 and RFC 9213 as pure decisions.

Rules of this file:
1. Nothing here has a clock: `now` and the times of a message are arguments, in seconds since the epoch.
2. An explicit lifetime is honoured. Where there is none, what was learned of the source counts before any guess.
3. Malformed freshness means stale, never fresh.
"""

from __future__ import annotations

from dataclasses import replace
from enum import Enum

from unstale import codings
from unstale.server.dates import as_date, read_date
from unstale.server.proxy.fields import (
    Directives,
    Fields,
    directives,
    http_age,
    members,
    seconds,
    targeted,
)
from unstale.server.proxy.stored import Stored, StoredPart, selecting, varying

#: statuses that may be stored without being told so [RFC 9110 section 15.1]
HEURISTIC = frozenset({200, 203, 204, 206, 300, 301, 308, 404, 405, 410, 414, 501})
#: statuses whose caching rules are all followed here
UNDERSTOOD = HEURISTIC | {302, 303, 307, 400, 401, 403, 500, 502, 503, 504}
#: statuses that mean the origin failed, and an older answer may be better [RFC 5861 section 4]
FAILED = frozenset({500, 502, 503, 504})
#: share of the time since Last-Modified that a response without explicit lifetime is taken to last, and its bound
SHARE, LONGEST_GUESS = 0.1, 86_400.0
#: how long a stale response may stand in for an origin that fails, where nobody said so
STANDS_IN = 86_400.0
#: bytes to which a compressed body may unpack and still be kept
MOST_UNPACKED = 256 * 2**20

_STRICT = ("must-revalidate", "proxy-revalidate", "s-maxage")
_AUTHORISING = frozenset({"public", "must-revalidate", "s-maxage"})


class Use(Enum):
    """What to do with a stored response: answer with it, answer and ask the origin behind that, or ask first."""

    ANSWER = "answer"
    ANSWER_AND_ASK = "answer and ask"
    ASK = "ask"


def control_of(fields: Fields) -> Directives:
    """The directives that hold for this cache: of a targeted field if there is one, else of Cache-Control."""
    found = targeted(fields)
    return directives(fields.joined("cache-control")) if found is None else found


def explicit_lifetime(fields: Fields, control: Directives, taken_at: float) -> float | None:
    """Seconds the response says it is fresh for; None if it does not say. A shared cache's own word comes first.

    >>> explicit_lifetime(Fields(), {"max-age": "60", "s-maxage": "5"}, 0.0), explicit_lifetime(Fields(), {}, 0.0)
    (5.0, None)
    """
    for name in ("s-maxage", "max-age"):
        if name in control:
            return seconds(control[name]) or 0.0
    if targeted(fields) is not None or "expires" not in fields:
        return None
    ends, made = read_date(fields.joined("expires")), read_date(fields.first("date"))
    return max(0.0, (ends or 0.0) - (taken_at if made is None else made))


def lifetime(status: int, fields: Fields, control: Directives, taken_at: float, learned: float | None = None) -> float:
    """Seconds from its making for which a response is fresh [RFC 9111 section 4.2].

    Where it does not say, and its status permits a guess: what was learned, else a tenth of the time since
    Last-Modified, at most a day. Cookies are never shared on a guess.

    >>> lifetime(200, Fields.of([("Last-Modified", as_date(1000.0)), ("Date", as_date(2000.0))]), {}, 2000.0)
    100.0
    """
    told = explicit_lifetime(fields, control, taken_at)
    if told is not None:
        return told
    if not (status in HEURISTIC or "public" in control) or "set-cookie" in fields:
        return 0.0
    if learned is not None:
        return max(0.0, learned)
    modified, made = read_date(fields.first("last-modified")), read_date(fields.first("date"))
    if modified is None:
        return 0.0
    return min(max(0.0, SHARE * ((taken_at if made is None else made) - modified)), LONGEST_GUESS)


def initial_age(fields: Fields, asked_at: float, taken_at: float) -> float:
    """How old a response was when it came: what it says plus its journey, or by its Date if that is more.

    >>> initial_age(Fields.of([("Age", "30")]), 100.0, 102.0)
    32.0
    """
    made = read_date(fields.first("date"))
    apparent = 0.0 if made is None else max(0.0, taken_at - made)
    return max(apparent, http_age(fields) + max(0.0, taken_at - asked_at))


def storable(status: int, request: Fields, fields: Fields) -> bool:
    """Whether a shared cache may keep the answer to a GET [RFC 9111 section 3].

    >>> storable(200, Fields(), Fields.of([("Cache-Control", "max-age=5, private")]))
    False
    """
    control = control_of(fields)
    if status < 200 or status == 304 or "no-store" in directives(request.joined("cache-control")):
        return False
    if "must-understand" in control and status not in UNDERSTOOD:
        return False
    if "no-store" in control and "must-understand" not in control:
        return False
    if "private" in control and control["private"] is None:
        return False
    if "authorization" in request and not _AUTHORISING & set(control):
        return False
    if "*" in varying(fields):
        return False
    told = explicit_lifetime(fields, control, 0.0) is not None
    return told or "public" in control or status in HEURISTIC


def to_store(
    address: str,
    status: int,
    request: Fields,
    fields: Fields,
    *,
    asked_at: float,
    taken_at: float,
    learned: float | None = None,
) -> Stored | None:
    """The stored form of an answer, its body still to come; None if it may not or need not be kept.

    Not needed is what could be neither reused nor confirmed.
    """
    part = part_of(fields) if status == 206 else None
    if not storable(status, request, fields) or (status == 206 and part is None):
        return None
    control = control_of(fields)
    kept = fields.end_to_end().without(_hidden(control) | {"age"})
    if "date" not in kept:
        kept = kept.having(("date", as_date(taken_at)))
    lasts = lifetime(status, fields, control, taken_at, learned)
    if lasts <= 0.0 and not validators(kept):
        return None
    names = varying(fields)
    asked = Fields(tuple(line for line in request.lines if line[0] in names))
    return Stored(
        address,
        status,
        kept,
        b"",
        taken_at,
        initial_age(fields, asked_at, taken_at),
        lasts,
        control,
        selecting(names, request),
        asked,
        part,
        explicit_lifetime(fields, control, taken_at) is not None,
    )


def whole(stored: Stored, body: bytes) -> Stored | None:
    """The stored form with its body; None if that is not what was announced.

    A partial answer is as long as its Content-Range says. A whole one that is compressed has its own end: without it
    the origin was cut short, and its answer is passed on as it came but not kept.
    """
    part = stored.part
    if part is not None:
        return None if part.last - part.first + 1 != len(body) else replace(stored, body=body)
    coding = stored.fields.joined("content-encoding")
    if coding is not None and stored.status == 200 and not codings.whole(body, coding, MOST_UNPACKED):
        return None
    return replace(stored, body=body)


def part_of(fields: Fields) -> StoredPart | None:
    """Which bytes a partial answer says it holds, None if it does not say."""
    unit, _, said = (fields.first("content-range") or "").partition(" ")
    span, _, total = said.partition("/")
    first, _, last = span.partition("-")
    start, end, size = seconds(first), seconds(last), seconds(total)
    if unit.lower() != "bytes" or start is None or end is None:
        return None
    return StoredPart(int(start), int(end), None if size is None else int(size))


def _hidden(control: Directives) -> set[str]:
    """Fields that must not be reused unconfirmed, or not by others: those that no-cache and private name."""
    return {name.lower() for key in ("no-cache", "private") for name in members(control.get(key))}


def validators(fields: Fields) -> tuple[tuple[str, str], ...]:
    """The conditions that ask whether a response still holds, as header lines; they go back byte for byte."""
    etag, modified = fields.first("etag"), fields.first("last-modified")
    return (*((("if-none-match", etag),) if etag else ()), *((("if-modified-since", modified),) if modified else ()))


def use(stored: Stored, wish: Directives, now: float) -> Use:
    """Whether a stored response answers a request with these directives [RFC 9111 sections 4.2, 5.2.1; RFC 5861]."""
    old, left = stored.http_age(now), stored.left(now)
    bare = "no-cache" in stored.control and stored.control["no-cache"] is None
    if bare or "no-cache" in wish or "no-store" in wish:
        return Use.ASK
    if "max-age" in wish and old > (seconds(wish["max-age"]) or 0.0) and "max-stale" not in wish:
        return Use.ASK
    if "min-fresh" in wish and left < (seconds(wish["min-fresh"]) or 0.0):
        return Use.ASK
    if left > 0.0:
        return Use.ANSWER
    if any(name in stored.control for name in _STRICT):
        return Use.ASK
    if "max-stale" in wish and (wish["max-stale"] is None or -left <= (seconds(wish["max-stale"]) or 0.0)):
        return Use.ANSWER
    if -left < (seconds(stored.control.get("stale-while-revalidate")) or 0.0):
        return Use.ANSWER_AND_ASK
    return Use.ASK


def stands_in(stored: Stored, wish: Directives, now: float) -> bool:
    """Whether a stored response may be served because the origin fails [RFC 9111 4.2.4, RFC 5861 section 4]."""
    control = stored.control
    if any(name in control for name in _STRICT) or ("no-cache" in control and control["no-cache"] is None):
        return False
    if {"no-cache", "no-store", "max-age", "min-fresh"} & set(wish) and "stale-if-error" not in wish:
        return False
    bounds = [seconds(given["stale-if-error"]) for given in (control, wish) if "stale-if-error" in given]
    return -stored.left(now) <= min((bound or 0.0 for bound in bounds), default=STANDS_IN)


def confirms(stored: Stored, fields: Fields) -> bool:
    """Whether a 304 with these fields speaks of this response: an entity tag that differs means another one."""
    etag = fields.first("etag")
    return etag is None or _weakly(etag) == _weakly(stored.fields.first("etag") or "")


def freshened(
    stored: Stored, fields: Fields, *, asked_at: float, taken_at: float, request: Fields, learned: float | None = None
) -> Stored:
    """A stored response after a 304, or a HEAD that agrees with it: new fields replace old ones [RFC 9111 3.2].

    Its length, and the range of a partial one, belong to the body and stay. It answers such requests as this one.
    """
    new = fields.end_to_end().without({"age", "content-length"} | ({"content-range"} if stored.part else set()))
    if "date" not in new:
        new = new.having(("date", as_date(taken_at)))
    merged = Fields((*stored.fields.without(name for name, _ in new.lines).lines, *new.lines))
    control = control_of(merged)
    lasts = lifetime(stored.status, merged, control, taken_at, learned)
    aged = initial_age(fields, asked_at, taken_at)
    names = varying(merged)
    return replace(
        stored,
        fields=merged.without(_hidden(control)),
        control=control,
        taken_at=taken_at,
        initial_age=aged,
        lifetime=lasts,
        selecting=selecting(names, request),
        asked=Fields(tuple(line for line in request.lines if line[0] in names)),
        told=explicit_lifetime(merged, control, taken_at) is not None,
    )


def agrees(stored: Stored, fields: Fields) -> bool:
    """Whether the answer to a HEAD fits a stored response: validators and length, where it gives them, are equal."""
    for name in ("etag", "last-modified"):
        if name in fields and fields.first(name) != stored.fields.first(name):
            return False
    length = fields.first("content-length")
    return length is None or stored.part is not None or length == str(len(stored.body))


def matches(given: str | None, etag: str | None) -> bool:
    """Whether If-None-Match names this entity tag; weak comparison, and tags without quotes count as if quoted.

    >>> matches('"a", W/"b"', 'W/"b"'), matches('"a"', '"b"'), matches("*", None)
    (True, False, True)
    """
    named = members(given)
    return "*" in named or (etag is not None and _weakly(etag) in {_weakly(tag) for tag in named})


def _weakly(tag: str) -> str:
    return tag.removeprefix("W/").strip('"')
