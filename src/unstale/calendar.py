"""Hours of the day and days of the week in which polls are allowed, in a time zone.

A moment is allowed iff the clock on the wall there reads an allowed time. So when clocks go forward the
hour that is skipped is skipped here too, and when they go back the repeated hour counts twice. A window
past midnight belongs to the day on which it begins. `core.windows` does the rest with plain seconds.
"""

from __future__ import annotations

import re
from datetime import datetime
from zoneinfo import ZoneInfo

import numpy as np

from unstale.core.checks import number
from unstale.core.windows import Windows
from unstale.errors import InputError, sentence
from unstale.frozen import dataclass

DAY = 86_400
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: 1970-01-01 was a Thursday
_EPOCH_WEEKDAY = 3
#: no zone changes its offset twice within this time
_STEP = 43_200
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")


@dataclass(frozen=True, slots=True)
class Hours:
    """Allowed for `length` seconds from `begin` (seconds after midnight) on `days` (0 = Monday) in `zone`."""

    begin: int
    length: int
    days: frozenset[int]
    zone: ZoneInfo


def parse_hours(text: str) -> tuple[Hours, ...]:
    """Windows from text: hours, then days and a zone if you like, several of them separated by `;`.

    Days default to all of them, the zone to UTC. Equal hours (`00:00-00:00`, or `00:00-24:00`) mean the
    whole day.

    >>> nights, weekend = parse_hours("22:00-06:00 Mon-Fri Europe/Berlin; 00:00-24:00 Sat,Sun Europe/Berlin")
    >>> nights.begin // 3600, nights.length // 3600, sorted(weekend.days), weekend.zone.key
    (22, 8, [5, 6], 'Europe/Berlin')
    """
    return tuple(_parse_one(part) for part in text.split(";"))


def written_hours(hours: tuple[Hours, ...]) -> str:
    """Windows as they are written.

    >>> written_hours(parse_hours("22:00-06:00 Mon-Tue Europe/Berlin; 00:00-24:00 Sat"))
    '22:00-06:00 Mon,Tue Europe/Berlin; 00:00-00:00 Sat UTC'
    """
    return "; ".join(map(_written, hours))


def _written(one: Hours) -> str:
    def at(seconds: int) -> str:
        return f"{seconds // 3600 % 24:02}:{seconds % 3600 // 60:02}"

    days = "" if len(one.days) == 7 else " " + ",".join(DAYS[day].capitalize() for day in sorted(one.days))
    return f"{at(one.begin)}-{at(one.begin + one.length)}{days} {one.zone.key}"


def spans(hours: tuple[Hours, ...], start: float, stop: float) -> Windows:
    """The allowed spans between two moments (seconds since the epoch), joined and cut at both ends.

    >>> night = parse_hours("22:00-06:00 Sat Europe/Berlin")  # clocks go forward on 31 March 2024
    >>> spans(night, 1711753200, 1711926000).total / 3600
    7.0
    """
    first = number("start", start)
    last = number("stop", stop, least=first, remedy="give an end after the start")
    begins, ends = [np.empty(0)], [np.empty(0)]
    for rule in hours:
        for left, right, offset in _steady(rule.zone, first, last):
            # One day early, for a window that began the evening before.
            days = np.arange((left + offset) // DAY - 1, (right + offset) // DAY + 1)
            days = days[np.isin((days + _EPOCH_WEEKDAY) % 7, list(rule.days))]
            opens = days * DAY + rule.begin - offset
            begins.append(np.clip(opens, left, right))
            ends.append(np.clip(opens + rule.length, left, right))
    return Windows(np.concatenate(begins), np.concatenate(ends))


def _steady(zone: ZoneInfo, start: float, stop: float) -> list[tuple[float, float, int]]:
    """[start, stop) cut where the zone's offset from UTC changes: (from, to, offset in seconds)."""
    pieces, left, offset = [], start, _offset(zone, start)
    at = start
    while at < stop:
        ahead = min(at + _STEP, stop)
        if (then := _offset(zone, ahead)) != offset:
            low, high = int(np.floor(at)), int(np.ceil(ahead))
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
            pieces.append((left, min(float(high), stop), offset))
            left, offset = float(high), then
        at = ahead
    if left < stop:
        pieces.append((left, stop, offset))
    return pieces


def _offset(zone: ZoneInfo, time: float) -> int:
    shift = datetime.fromtimestamp(time, zone).utcoffset()
    return round(shift.total_seconds()) if shift is not None else 0


def _parse_one(text: str) -> Hours:
    words = text.split()
    match = _HOURS.fullmatch(words[0]) if words else None
    if match is None or len(words) > 3:
        raise _unread(text, "must begin with hours, then have at most days and a zone")
    hour, minute, end_hour, end_minute = map(int, match.groups())
    begin, end = 60 * (60 * hour + minute), 60 * (60 * end_hour + end_minute)
    if begin >= DAY or end > DAY or max(minute, end_minute) > 59:
        raise _unread(text, "must begin before 24:00 and end by 24:00")
    days, zone = frozenset(range(7)), ZoneInfo("UTC")
    for word in words[1:]:
        if word[:3].lower() in DAYS and word[3:4] in ("", "-", ","):
            days = _parse_days(word, text)
        else:
            zone = _parse_zone(word, text)
    return Hours(begin % DAY, (end - begin) % DAY or DAY, days, zone)


def _parse_days(word: str, text: str) -> frozenset[int]:
    chosen: set[int] = set()
    for part in word.lower().split(","):
        first, _, last = part.partition("-")
        if first not in DAYS or (last or first) not in DAYS:
            raise _unread(text, f"has days {part!r} that are not Mon, Tue, Wed, Thu, Fri, Sat or Sun")
        low = DAYS.index(first)
        chosen.update((low + i) % 7 for i in range((DAYS.index(last or first) - low) % 7 + 1))
    return frozenset(chosen)


def _parse_zone(word: str, text: str) -> ZoneInfo:
    try:
        return ZoneInfo(word)
    except (KeyError, ValueError, OSError):
        raise _unread(text, f"names the zone {word!r}, which this machine does not know") from None


def _unread(text: str, rule: str) -> InputError:
    return InputError(sentence("window", repr(text.strip()), rule, "write it as '22:00-06:00 Mon-Fri Europe/Berlin'"))
