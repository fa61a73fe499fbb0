"""Times and rates as people say them, for sentences that every face repeats."""

from __future__ import annotations

import math

from unstale.units import DAY, format_duration, format_rate


def span(seconds: float) -> str:
    """A length of time as people say it.

    >>> span(90.0), span(float("inf"))
    ('1.5 min', 'never')
    """
    return "never" if math.isnan(seconds) else format_duration(seconds / DAY)


def ago(then: float, now: float) -> str:
    """How long ago something was, or how far ahead it is.

    >>> ago(40.0, 100.0), ago(160.0, 100.0), ago(100.0, 100.0), ago(float("-inf"), 100.0)
    ('1 min ago', 'in 1 min', 'now', 'never')
    """
    if not math.isfinite(then):
        return "never"
    if abs(now - then) < 0.5:
        return "now"
    return f"{span(now - then)} ago" if then < now else f"in {span(then - now)}"


def coming(due: float, now: float) -> str:
    """When something is to come: what is overdue comes now.

    >>> coming(40.0, 100.0), coming(160.0, 100.0)
    ('now', 'in 1 min')
    """
    return "now" if due <= now else ago(due, now)


def per(rate: float) -> str:
    """A rate per second as people say it.

    >>> per(1.0 / 86400.0)
    '1/day'
    """
    return format_rate(DAY * rate)
