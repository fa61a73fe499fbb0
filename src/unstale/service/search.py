"""What people type to find sources, read once for every face: `tag:news failing fresh<0.5 "two words" -paused`.

Rules of this file:
1. All terms must hold; a dash before one means that it must not. Whatever is no term of ours is looked for as text.
2. Numbers are as people write them: lengths of time like 2h, shares like 0.5 or 50%. `changed<1d` is within a day.
"""

from __future__ import annotations

import re
from typing import Literal

from unstale.errors import InputError, require, sentence, suggestion
from unstale.frozen import dataclass
from unstale.units import DAY, parse_duration, plain_number

#: states that a source can be in, each a word of its own
STATES = ("failing", "paused", "stale", "never")
#: what is compared with a text: as a whole (host, kind, tag) or as a part (title)
TEXTS = ("tag", "host", "kind", "title")
#: what is compared with a number: plain ones, shares, and lengths of time in seconds
NUMBERS = ("id", "weight", "cost", "failures")
SHARES = ("fresh",)
SPANS = ("age", "interval", "changed", "checked", "due")

Sign = Literal["<", "<=", ">", ">=", "="]
#: terms of one search, and characters of a term
MOST, LONGEST = 50, 500
_TERM = re.compile(r'(-?)(?:([A-Za-z_]+)(:|<=|>=|<|>|=))?("[^"]*"?|\S+)?', re.ASCII)


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: `name` is text, state, one of TEXTS, or a number's; `sign` compares numbers."""

    name: str
    value: str | float
    sign: Sign = "="
    negated: bool = False


def parse(search: str) -> tuple[Term, ...]:
    """The terms of a search; InputError for one that nothing can fulfil.

    >>> [(one.name, one.sign, one.value) for one in parse('tag:news failing fresh<50% age>2h "two words" -https://x')]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('tag', '=', 'news'), ('state', '=', 'failing'), ('fresh', '<', 0.5), ('age', '>', 7200.0),
     ('text', '=', 'two words'), ('text', '=', 'https://x')]
    """
    found = [_term(one) for one in _TERM.finditer(search) if one[0].strip("- ")]
    require(len(found) <= MOST, "search", f"of {len(found)} terms", f"has more than {MOST}", "look for less at a time")
    return tuple(found)


def _term(found: re.Match[str]) -> Term:
    name, sign, value = (found[2] or "").lower(), found[3] or "", (found[4] or "").strip('"')[:LONGEST]
    negated, whole = bool(found[1]), found[0].removeprefix("-").strip('"')[:LONGEST]
    if name in TEXTS and sign in (":", "="):
        return Term(name, value.lower() if name == "title" else value, "=", negated)
    if name in (*NUMBERS, *SHARES, *SPANS) and sign:
        return Term(name, _number(name, value), _signs(sign), negated)
    if name and sign in ("<", ">", "<=", ">=") and plain_number(value) is not None:
        names = (*NUMBERS, *SHARES, *SPANS)
        raise InputError(
            sentence("search", repr(whole[:40]), "compares nothing", suggestion(name, names, f"use {', '.join(names)}"))
        )
    if whole.lower() in STATES:
        return Term("state", whole.lower(), "=", negated)
    return Term("text", whole.lower(), "=", negated)


def _signs(sign: str) -> Sign:
    match sign:
        case "<" | "<=" | ">" | ">=":
            return sign
    return "="


def _number(name: str, value: str) -> float:
    if name in SPANS and value:
        return DAY * parse_duration(value, name)
    share = name in SHARES and value.endswith("%")
    plain = plain_number(value.removesuffix("%") if share else value)
    if plain is None:
        how = {"fresh": "0.5 or 50%"}.get(name, "2h" if name in SPANS else "3")
        raise InputError(sentence("search", repr(name), "must be compared with a number", f"write it like {how}"))
    return plain / 100.0 if share else plain
