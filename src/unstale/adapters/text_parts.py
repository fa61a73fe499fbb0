"""Parts of a text: what stands between two marks, what an expression finds, dates and numbers.

Rules of this file:
1. Expressions are the operator's and texts are strangers': whoever looks for one in the other can be ended meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unstale.errors import InputError, require, sentence

#: characters of an expression
LONGEST = 1000
_MONTHS = "jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec"
_MONTH = rf"(?:{_MONTHS})[a-z]{{0,6}}\.?"
_CLOCK = r"\d{1,2}:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:\s?[ap]\.?m\.?)?(?:\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_DATES = re.compile(
    rf"\b\d{{4}}-\d\d-\d\d(?:[T ]{_CLOCK})?|\b\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}\b|\b\d{{4}}/\d{{1,2}}/\d{{1,2}}\b"
    rf"|\b{_MONTH}\s\d{{1,2}}(?:st|nd|rd|th)?(?:,?\s\d{{4}})?\b|\b\d{{1,2}}(?:st|nd|rd|th|\.)?\s{_MONTH}(?:\s\d{{4}})?\b"
    rf"|\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{{0,6}},|\b{_CLOCK}"
    r"|\b(?:\d{1,4}|an?)\s(?:second|minute|hour|day|week|month|year|sec|min|hr)s?\sago\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-+\u2212]?\d(?:[\d.,'\u2019\u00a0\u202f]{0,40}\d)?")
_GROUPS = re.compile(r"['\u2019\u00a0\u202f]")


def without_dates(text: str) -> str:
    """A text in which all dates and times of day are one.

    >>> without_dates("On May 3, 2026 at 12:30 (2 hours ago), 2026-05-03T12:30:00Z: 17 trains")
    'On 0 at 0 (0), 0: 17 trains'
    """
    return _DATES.sub("0", text)


def first_number(text: str) -> float | None:
    """The first number in a text: with both a point and a comma, the last is the decimal one; a lone comma before three
    digits groups thousands.

    >>> first_number("now 1.234,50 EUR"), first_number("$1,234"), first_number("12,5 %"), first_number("none")
    (1234.5, 1234.0, 12.5, None)
    """
    found = _NUMBER.search(text)
    if found is None:
        return None
    digits = _GROUPS.sub("", found[0]).replace("\u2212", "-")
    if "," in digits and "." in digits:
        decimal, group = (",", ".") if digits.rfind(",") > digits.rfind(".") else (".", ",")
        digits = digits.replace(group, "").replace(decimal, ".")
    elif digits.count(",") == 1 and len(digits) - digits.rfind(",") != 4:
        digits = digits.replace(",", ".")
    digits = digits.replace(",", "")
    try:
        return float(digits if digits.count(".") < 2 else digits.replace(".", ""))
    except ValueError:
        return None


def expression(text: str) -> re.Pattern[str]:
    """A regular expression, over many lines; InputError if it is none."""
    require(
        0 < len(text) <= LONGEST, "pattern", f"of {len(text)} characters", f"must have 1 to {LONGEST}", "correct it"
    )
    try:
        return re.compile(text, re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        what = sentence(
            "pattern", repr(text[:60]), f"is no regular expression ({error})", "write it like Price: [0-9.]+"
        )
        raise InputError(what) from None


def found_by(text: str, patterns: Sequence[re.Pattern[str]]) -> str:
    """All that expressions find, one find a line: their groups where they have some.

    >>> found_by("Price: 9 EUR, was 12 EUR", [re.compile(r"(\\d+) EUR")])
    '9\\n12'
    """
    finds = (match for one in patterns for match in one.finditer(text))
    return "\n".join(" ".join(filter(None, match.groups())) if match.re.groups else match[0] for match in finds)


def between(text: str, marks: Sequence[tuple[str, str]]) -> str:
    """What stands between each two marks, the marks left out; an end that is not there is the end of the text.

    >>> between("a <!-- news --> b <!-- end --> c <!-- news --> d", [("<!-- news -->", "<!-- end -->")])
    ' b \\n d'
    """
    found: list[str] = []
    for begin, end in marks:
        at = text.find(begin)
        while at >= 0:
            inside = at + len(begin)
            stop = text.find(end, inside) if end else -1
            found.append(text[inside:] if stop < 0 else text[inside:stop])
            at = -1 if stop < 0 else text.find(begin, stop + len(end))
    return "\n".join(found)
