"""How long a source asks to be left alone: Retry-After and the RateLimit headers, as seconds.

What a source writes is a wish, not a command: it counts for at least a second and at most a day.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

#: the shortest and the longest wait that is believed, in seconds
SHORTEST, LONGEST = 1.0, 86_400.0
#: an X-RateLimit-Reset above this is a time, below it a wait: nobody asks for thirty years
_EPOCH = 1e9
#: answers whose Retry-After means something
_WAITING = frozenset({301, 302, 303, 307, 308, 413, 429, 503})
_PAIR = re.compile(r"\b(r|t|remaining|reset)=([0-9]+)")
_ASKING = frozenset(
    {
        "retry-after",
        "ratelimit",
        "ratelimit-remaining",
        "ratelimit-reset",
        "x-ratelimit-remaining",
        "x-ratelimit-reset",
    }
)
#: the headers that `wait` reads
HEADERS = _ASKING | {"date"}


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
    if _ASKING.isdisjoint(headers):
        return None  # as nearly always, and dates are dear to read
    now = http_date(headers.get("date")) or now
    waits = [_rate_limit(headers, now)]
    if status in _WAITING:
        waits.append(retry_after(headers.get("retry-after"), now))
    known = [seconds for seconds in waits if seconds is not None]
    return max(known) if known else None


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
