"""How long a source asks to be left alone: Retry-After and the RateLimit headers, as seconds.

What a source writes is a wish, not a command: it counts for at least a second and at most a day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

from unstale.ports import RateLimit

#: the shortest and the longest wait that is believed, in seconds
SHORTEST, LONGEST = 1.0, 86_400.0
#: an X-RateLimit-Reset above this is a time, below it a wait: nobody asks for thirty years
_EPOCH = 1e9
#: answers whose Retry-After means something
_WAITING = frozenset({301, 302, 303, 307, 308, 413, 429, 503})
_NAMED = re.compile(r"\b(limit|remaining|reset)=([0-9]+)")
_PAIR = re.compile(r"\b(r|t|remaining|reset)=([0-9]+)")
#: the headers by which a source asks for something
ASKING = frozenset(
    {
        "retry-after",
        "ratelimit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    }
)
#: the headers that `wait` and `rate_limit` read
HEADERS = ASKING | {"date", "ratelimit-limit", "ratelimit-policy", "x-ratelimit-limit"}
_ITEM = re.compile(r'\s*("[^"]*"|[\w*.-]+)((?:\s*;\s*\w+=[0-9]+)*)\s*')


def http_date(text: str | None) -> float | None:
    """An HTTP date as seconds since the epoch, None if it is not one.

    >>> http_date("Wed, 01 May 2024 10:00:00 GMT"), http_date("soon")
    (1714557600.0, None)
    """
    try:
        when = parsedate_to_datetime(text or "")
        # A date without a zone is in GMT, as the oldest of HTTP's three forms always is.
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError, OSError):
        return None


def retry_after(text: str | None, now: float) -> float | None:
    """Seconds to wait by a Retry-After header (seconds or a date); None if it is absent or neither.

    >>> retry_after("120", now=0.0), retry_after("Thu, 01 Jan 1970 00:05:00 GMT", now=60.0), retry_after("-1", now=0.0)
    (120.0, 240.0, None)
    """
    seconds = whole_number(text)
    if seconds is None:
        when = http_date(text)
        seconds = None if when is None else when - now
    return None if seconds is None else min(max(seconds, SHORTEST), LONGEST)


def wait(status: int, headers: Mapping[str, str], now: float) -> float | None:
    """Seconds the source asks to be left alone after this answer, None if it does not ask.

    Retry-After counts on answers that ask for another try; RateLimit headers count on all, once nothing remains.
    Header names are lower case. Dates are read by the source's own clock where it tells its time.

    >>> wait(200, {"ratelimit": '"hour";r=0;t=30'}, now=0.0), wait(200, {"retry-after": "9"}, now=0.0)
    (30.0, None)
    """
    if ASKING.isdisjoint(headers):
        return None  # as nearly always, and dates are dear to read
    now = http_date(headers.get("date")) or now
    waits = [_rate_limit(headers, now)]
    if status in _WAITING:
        waits.append(retry_after(headers.get("retry-after"), now))
    known = [seconds for seconds in waits if seconds is not None]
    return max(known) if known else None


def rate_limit(headers: Mapping[str, str], now: float) -> RateLimit | None:
    """How much may still be asked of the host, and for how long that has to do; None if it does not say.

    The RateLimit fields of the IETF's draft, in their forms of today and of before, and the common X-RateLimit ones. Of
    several quotas the one counts that leaves least per second. Header names are lower case.

    >>> rate_limit({"ratelimit": '"hour";r=600;t=1200', "ratelimit-policy": '"hour";q=5000;w=3600'}, now=0.0)
    RateLimit(left=600.0, seconds=1200.0, of=5000.0)
    >>> rate_limit({"x-ratelimit-limit": "60", "x-ratelimit-remaining": "30", "x-ratelimit-reset": "10"}, now=0.0)
    RateLimit(left=30.0, seconds=10.0, of=60.0)
    """
    if ASKING.isdisjoint(headers):
        return None
    now = http_date(headers.get("date")) or now
    policies = _items(headers.get("ratelimit-policy", ""))
    found = [
        RateLimit(item["r"], item["t"], policies.get(name, {}).get("q", 0.0))
        for name, item in _items(headers.get("ratelimit", "")).items()
        if "r" in item and item.get("t", 0.0) > 0.0
    ]
    pairs = dict(_NAMED.findall(headers.get("ratelimit", "")))
    for told in (
        pairs,
        *(
            {name: headers.get(f"{prefix}ratelimit-{name}") for name in ("limit", "remaining", "reset")}
            for prefix in ("", "x-")
        ),
    ):
        left, reset = whole_number(told.get("remaining")), whole_number(told.get("reset"))
        if left is not None and reset is not None:
            seconds = reset - now if reset > _EPOCH else reset
            if seconds > 0.0:
                found.append(RateLimit(left, seconds, whole_number((told.get("limit") or "").partition(",")[0]) or 0.0))
    return min(found, key=lambda one: one.left / one.seconds, default=None)


def _items(text: str) -> dict[str, dict[str, float]]:
    """The items of a list of structured fields with their whole parameters."""
    found = {}
    for part in text.split(","):
        if (item := _ITEM.fullmatch(part)) is not None and item[2]:
            parameters = (one.partition("=") for one in item[2].replace(" ", "").strip(";").split(";"))
            found[item[1]] = {name: float(value[:15]) for name, _, value in parameters}
    return found


def _rate_limit(headers: Mapping[str, str], now: float) -> float | None:
    pairs = dict(_PAIR.findall(headers.get("ratelimit", "")))
    remaining = pairs.get("r", pairs.get("remaining"))
    reset = pairs.get("t", pairs.get("reset"))
    for prefix in ("", "x-"):
        remaining = remaining or headers.get(f"{prefix}ratelimit-remaining")
        reset = reset or headers.get(f"{prefix}ratelimit-reset")
    seconds = whole_number(reset)
    if whole_number(remaining) != 0.0 or seconds is None:
        return None
    return min(max(seconds - now if seconds > _EPOCH else seconds, SHORTEST), LONGEST)


def whole_number(text: str | None) -> float | None:
    """Digits as a number, None if there is anything else."""
    # str.isdigit takes the digits of every script, and float takes "nan".
    text = (text or "").strip()
    return float(text[:300]) if text.isascii() and text.isdigit() else None
