"""A point in time as people write it, ISO 8601 or RFC 822, as seconds since the epoch."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def moment(text: str) -> tuple[float, bool]:
    """Seconds since the epoch, and whether the text named no zone (then UTC); NaN if it is not a time.

    >>> moment("2024-05-01T12:00:00+02:00"), moment("Wed, 01 May 2024 10:00:00 GMT"), moment("2024-05-01")
    ((1714557600.0, False), (1714557600.0, False), (1714521600.0, True))
    """
    text = text.strip()
    try:
        # Databases print the zone's name where ISO 8601 has an offset.
        when = datetime.fromisoformat(text.removesuffix(" UTC") + "Z" if text.endswith(" UTC") else text)
    except ValueError:
        try:
            when = parsedate_to_datetime(text)
        except (ValueError, TypeError, IndexError, OverflowError):
            return float("nan"), False
    try:
        return when.replace(tzinfo=when.tzinfo or UTC).timestamp(), when.tzinfo is None
    except (ValueError, OverflowError):
        return float("nan"), False
