"""Dates as HTTP writes them: exactly three formats, of which one is sent [RFC 9110 5.6.7].

What is nearly a date is none: a cache that guesses would take a broken Expires for a long life.
"""

from __future__ import annotations

import calendar
import math
import re
import time
from email.utils import formatdate
from functools import lru_cache

_NAMES = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTHS = {name: i for i, name in enumerate(_NAMES, 1)}
_DAY, _LONG_DAY = "(?:mon|tue|wed|thu|fri|sat|sun)", "(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH, _TIME = f"(?P<month>{'|'.join(_MONTHS)})", r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)"
_FORMS = [
    # the one that is sent: Sun, 06 Nov 1994 08:49:37 GMT
    re.compile(rf"{_DAY}, (?P<day>\d\d) {_MONTH} (?P<year>\d{{4}}) {_TIME} gmt", re.ASCII | re.IGNORECASE),
    # RFC 850: Sunday, 06-Nov-94 08:49:37 GMT
    re.compile(rf"{_LONG_DAY}, (?P<day>\d\d)-{_MONTH}-(?P<year>\d\d) {_TIME} gmt", re.ASCII | re.IGNORECASE),
    # C's asctime: Sun Nov  6 08:49:37 1994
    re.compile(rf"{_DAY} {_MONTH} (?P<day>\d\d| \d) {_TIME} (?P<year>\d{{4}})", re.ASCII | re.IGNORECASE),
]


def read_date(text: str | None) -> float | None:
    """Seconds since the epoch from an HTTP date, None if it is none; which day of the week it says does not matter.

    >>> read_date("Sun, 06 Nov 1994 08:49:37 GMT"), read_date("Sunday, 06-Nov-94 08:49:37 GMT")
    (784111777.0, 784111777.0)
    >>> read_date("Thu Jan  1 00:01:00 1970"), read_date("Thu, 1 Jan 1970 00:01:00 GMT"), read_date("0")
    (60.0, None, None)
    """
    for form in _FORMS if text else ():
        if match := form.fullmatch(text or ""):
            return _seconds(match)
    return None


def _seconds(match: re.Match[str]) -> float | None:
    year = int(match["year"])
    if len(match["year"]) == 2:
        # Of the two centuries that are meant the one that is not more than 50 years ahead.
        this = time.gmtime().tm_year
        year += this - this % 100
        year -= 100 if year > this + 50 else 0
    month, day = _MONTHS[match["month"].lower()], int(match["day"])
    hour, minute, second = int(match["hour"]), int(match["minute"]), int(match["second"])
    # A minute may have a leap second.
    if year < 1 or not (1 <= day <= calendar.monthrange(year, month)[1] and hour < 24 and minute < 60 and second < 61):
        return None
    return float(calendar.timegm((year, month, day, hour, minute, second, 0, 1, 0)))


def as_date(at: float) -> str:
    """A time as HTTP writes it, whole seconds, never before 1970.

    >>> as_date(1763236800.9)
    'Sat, 15 Nov 2025 20:00:00 GMT'
    """
    day, second = divmod(min(max(math.floor(at), 0), 253402300799), 86_400)
    minute, second = divmod(second, 60)
    hour, minute = divmod(minute, 60)
    return f"{_of_day(day)} {hour:02}:{minute:02}:{second:02} GMT"


@lru_cache(maxsize=4096)
def _of_day(day: int) -> str:
    # Hardly two sources are due in the same second, nearly all within some days.
    return formatdate(day * 86_400, usegmt=True)[:16]
