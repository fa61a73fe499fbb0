"""Human units in and out: `1/day`, `3/h`, `15m`. A bare number is per day, or days.

Inside, rates and times have no unit of their own; what people type and read is days throughout.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from unstale.errors import InputError, sentence

DAY = 86_400
#: length of each unit in seconds (whole, so that 15m is exactly 96/day); the first name is the one we print
UNITS: dict[tuple[str, ...], int] = {
    ("s", "sec", "secs", "second", "seconds"): 1,
    ("min", "m", "mins", "minute", "minutes"): 60,
    ("h", "hr", "hrs", "hour", "hours"): 3_600,
    ("day", "d", "days"): DAY,
    ("week", "w", "weeks"): 7 * DAY,
    ("month", "mo", "months"): 2_629_800,
    ("year", "y", "yr", "years"): 31_557_600,
}
_SECONDS = {name: seconds for names, seconds in UNITS.items() for name in names}
_NUMBER = r"[-+]?[0-9]*\.?[0-9]+(?:[eE][+-]?[0-9]+)?"
_PART = re.compile(rf"\s*({_NUMBER})\s*([A-Za-z]+)\s*")
_RATE = re.compile(rf"\s*({_NUMBER})\s*(?:/|per)\s*({_NUMBER})?\s*([A-Za-z]+)\s*")
_KNOWN = "s, min, h, day, week, month, year"


def parse_rate(text: str | float, name: str = "rate") -> float:
    """Events per day from `3/h`, `1000/day`, `2 per 5min`, `15m` (one every 15 minutes) or a bare number.

    >>> parse_rate("3/h"), parse_rate("15m"), parse_rate(2)
    (72.0, 96.0, 2.0)
    """
    plain = _bare(text)
    if plain is not None:
        return _finite(plain, text, name)
    if match := _RATE.fullmatch(str(text)):
        count, many, unit = match.groups()
        length = float(many or 1) * _seconds(unit, text, name)
        return _finite(float(count) * DAY / length if length else math.inf, text, name)
    if seconds := _span(str(text)):
        return _finite(DAY / seconds, text, name)
    _unknown_unit(str(text), name)
    raise InputError(sentence(name, repr(text), "is not a rate", "write it like 1/day, 3/h or 15m"))


def parse_duration(text: str | float, name: str = "interval") -> float:
    """Days from `15m`, `1h30m`, `2 days` or a bare number.

    >>> parse_duration("36h"), parse_duration("1h30m")
    (1.5, 0.0625)
    """
    plain = _bare(text)
    if plain is not None:
        return _finite(plain, text, name)
    seconds = _span(str(text))
    if seconds is None:
        _unknown_unit(str(text), name)
        raise InputError(sentence(name, repr(text), "is not a length of time", "write it like 15m or 2h"))
    return _finite(seconds / DAY, text, name)


def format_rate(per_day: float) -> str:
    """A rate as people say it, in the unit that gives a number of at least 1.

    >>> format_rate(72), format_rate(0.5), format_rate(0)
    ('3/h', '3.5/week', '0/day')
    """
    if per_day == 0 or not math.isfinite(per_day):
        return f"{per_day:g}/day"
    for names, seconds in UNITS.items():
        if (count := per_day * seconds / DAY) >= 0.9995:
            return f"{_short(count)}/{names[0]}"
    return f"{_short(per_day * 365.25)}/year"


def format_duration(days: float) -> str:
    """A length of time as people say it.

    >>> format_duration(0.03), format_duration(1.5), format_duration(float("inf"))
    ('43.2 min', '1.5 days', 'never')
    """
    if math.isinf(days):
        return "never"
    for name, length in (("years", 365.25), ("days", 1.0), ("h", 1 / 24), ("min", 1 / 1440)):
        if days >= length * 0.9995:
            shown = _short(days / length)
            return f"{shown} {name[:-1] if shown == '1' and name.endswith('s') else name}"
    return f"{_short(days * 86_400)} s"


def written_seconds(seconds: float) -> str:
    """A length of time that is read back as the same: in the largest unit of which it is a whole number.

    >>> [written_seconds(seconds) for seconds in (5400.0, 0.5, 172800.0, 0.0)]
    ['90m', '0.5s', '2d', '0s']
    """
    sizes = ((DAY, "d"), (3600.0, "h"), (60.0, "m"))
    size, unit = next(((size, unit) for size, unit in sizes if seconds and seconds % size == 0.0), (1.0, "s"))
    count = seconds / size
    return f"{int(count) if count == int(count) else count}{unit}"


def named_parts(text: str) -> Iterator[tuple[str, str, str]]:
    """The parts of a line that says something of several names: each as it is written, its name, and what is said.

    >>> list(named_parts("orders: 1h; news: 1d 95%;"))
    [('orders: 1h', 'orders', '1h'), ('news: 1d 95%', 'news', '1d 95%')]
    """
    for part in filter(None, map(str.strip, text.split(";"))):
        name, _, said = part.rpartition(":")
        yield part, name.strip(), said.strip()


def _short(x: float) -> str:
    """Three significant digits without a trailing `.0`, whole numbers whole."""
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{float(f'{x:.3g}'):g}"


def plain_number(text: str) -> float | None:
    """The number that a text is, None if it is none: 1_000 and digits of other scripts are not numbers here.

    >>> plain_number(" 1.5e3 "), plain_number("1_000"), plain_number("٣")
    (1500.0, None, None)
    """
    try:
        return float(text) if text.isascii() and "_" not in text else None
    except ValueError:
        return None


def _bare(text: str | float) -> float | None:
    return plain_number(text) if isinstance(text, str) else float(text)


def many(count: int, one: str, several: str = "") -> str:
    """So many of something, as it is said.

    >>> many(1, "poll"), many(1203, "poll"), many(0, "copy", "copies")
    ('1 poll', '1,203 polls', '0 copies')
    """
    return f"{count:,} {one if count == 1 else several or one + 's'}"


def _span(text: str) -> float | None:
    """Seconds in `number unit` parts that cover the whole text, or None."""
    total, end = 0.0, 0
    while match := _PART.match(text, end):
        unit = _SECONDS.get(match[2].lower())
        if unit is None:
            return None
        total, end = total + float(match[1]) * unit, match.end()
    return total if end and end == len(text) else None


def _seconds(unit: str, text: object, name: str) -> int:
    try:
        return _SECONDS[unit.lower()]
    except KeyError:
        raise InputError(sentence(name, repr(text), f"has the unknown unit '{unit}'", f"use one of {_KNOWN}")) from None


def _unknown_unit(text: str, name: str) -> None:
    for _, unit in _PART.findall(text):
        _seconds(unit, text, name)


def _finite(x: float, text: object, name: str) -> float:
    if not math.isfinite(x) or x < 0:
        raise InputError(sentence(name, text, "must be a finite number at least 0", "try 1/day or 15m"))
    return x
