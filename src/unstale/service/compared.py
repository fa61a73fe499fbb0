"""Two versions of a source beside each other, in the form in which a reader would compare them.

Rules of this file:
1. A page is compared by the text that is seen, JSON by its structure, a table by its rows, a feed by its entries;
   everything also as it is.
2. Lines that belong together are compared by words. What is too long for that is compared by lines, within bounds.
"""

from __future__ import annotations

import difflib
import json
import re
from collections import Counter
from typing import Any

from unstale.errors import InputError
from unstale.feeds import read_feed
from unstale.html_text import html_text, is_html, is_json
from unstale.listings.feed_entries import entry_of
from unstale.pictured import apart
from unstale.ports import Body
from unstale.service.difference import difference, lines_of
from unstale.service.structure import json_lines, table_lines

FORMS = ("text", "structure", "rows", "entries", "source")
#: pairs of lines that are compared by words, lines of a block in which pairs are sought, and how alike a pair must be
PAIRS, BLOCK, ALIKE = 300, 40, 0.4
#: words between the first and the last that differ, up to which it is told which of them do
WORDS = 80
_WORD = re.compile(r"\w+|\s+|[^\w\s]")
#: a stretch of a line, and whether it is only in this one
Piece = list[Any]


def compared(old: Body | None, new: Body, kind: str, form: str | None = None) -> dict[str, Any]:
    """How two versions differ, or one as it is: lines as `difference` tells them, and rows by words.

    A row is its sign (` `, `-`, `+`, `~` for a line that became another, `@` for what is left out), the old line and
    the new one, each in parts with a 1 where it differs.
    """
    forms = forms_of(new.media_type, kind)
    chosen = form if form in forms else forms[0]
    after = _as(new, chosen)
    if old is None:
        lines, cut = lines_of(after)
        told: list[list[str]] = [[" ", line] for line in lines]
        found: dict[str, Any] = {"lines": told, "cut": cut, "same": True}
    else:
        found = difference(_as(old, chosen), after) | {"same": old.data == new.data}
    if form is None and chosen != "source" and not found["lines"] and not found["same"]:
        # What differs is not seen in this form, and is what was asked for.
        return compared(old, new, kind, "source")
    return found | {"rows": by_words(found["lines"]), "form": chosen, "forms": forms}


def forms_of(media_type: str, kind: str = "http") -> list[str]:
    """In which forms a copy can be compared, the best first.

    >>> forms_of("text/html; charset=utf-8"), forms_of("text/csv"), forms_of("application/rss+xml", "feed")
    (['text', 'source'], ['rows', 'source'], ['entries', 'source'])
    """
    first = ["entries"] if kind == "feed" else ["text"] if is_html(media_type) else []
    return [
        *first,
        *(["structure"] if is_json(media_type) else []),
        *(["rows"] if is_table(media_type) else []),
        "source",
    ]


def is_table(media_type: str) -> bool:
    """Whether a copy is a table in text."""
    return media_type.partition(";")[0].strip().lower() in ("text/csv", "text/tab-separated-values")


def _as(body: Body, form: str) -> bytes:
    """A body in a form, as lines; as it is where it is not what it says it is. Pictures are compared elsewhere."""
    try:
        if form == "text":
            lines = html_text(body.data)
        elif form == "structure":
            lines = json_lines(json.loads(body.data))
        elif form == "rows":
            lines = table_lines(body.data.decode("utf-8"))
        elif form == "entries":
            told = (entry_of(one) for one in read_feed(body.data, repair=True).entries)
            lines = [" · ".join(filter(None, (one["title"], one["time"], one["link"]))) for one in told]
        else:
            return apart(body.data)[0]
    except (InputError, ValueError, RecursionError):
        return body.data
    return "\n".join(lines).encode("utf-8", "replace")


def by_words(lines: list[list[str]]) -> list[list[Any]]:
    """Lines as rows: where some were taken away and others added, those that are alike beside each other.

    >>> by_words([["-", "9 trains a day"], ["+", "8 trains a day"]])
    [['~', [[1, '9'], [0, ' trains a day']], [[1, '8'], [0, ' trains a day']]]]
    """
    rows: list[list[Any]] = []
    left, at = PAIRS, 0
    while at < len(lines):
        sign, line = lines[at]
        if sign != "-":
            rows.append([sign, None if sign == "+" else [[0, line]], [[0, line]]])
            at += 1
            continue
        taken = _run(lines, at, "-")
        added = _run(lines, at + len(taken), "+")
        at += len(taken) + len(added)
        pairs = _pairs(taken, added) if left > 0 else {}
        left -= len(pairs)
        rows += _beside(taken, added, pairs)
    return rows


def _run(lines: list[list[str]], at: int, sign: str) -> list[str]:
    end = at
    while end < len(lines) and lines[end][0] == sign:
        end += 1
    return [line for _, line in lines[at:end]]


def _pairs(taken: list[str], added: list[str]) -> dict[int, int]:
    """Which added line each taken one became, both in order."""
    if max(len(taken), len(added)) > BLOCK:
        return {}
    found: dict[int, int] = {}
    begin = 0
    for i, old in enumerate(taken):
        alike = [(_alike(old, new), -j) for j, new in enumerate(added[begin:], begin)]
        best, place = max(alike, default=(0.0, 0))
        if best >= ALIKE:
            found[i], begin = -place, 1 - place
    return found


def _alike(old: str, new: str) -> float:
    """The share of their words that two lines have in common, in whatever order."""
    before, after = Counter(_WORD.findall(old)), Counter(_WORD.findall(new))
    return 2.0 * (before & after).total() / max(before.total() + after.total(), 1)


def _beside(taken: list[str], added: list[str], pairs: dict[int, int]) -> list[list[Any]]:
    rows: list[list[Any]] = []
    begin = 0
    for i, old in enumerate(taken):
        if i in pairs:
            rows += [["+", None, [[0, line]]] for line in added[begin : pairs[i]]]
            rows.append(["~", *_parts(old, added[pairs[i]])])
            begin = pairs[i] + 1
        else:
            rows.append(["-", [[0, old]], None])
    return rows + [["+", None, [[0, line]]] for line in added[begin:]]


def _parts(old: str, new: str) -> tuple[list[Piece], list[Piece]]:
    before, after = _WORD.findall(old), _WORD.findall(new)
    head = _common(before, after)
    tail = _common(before[head:][::-1], after[head:][::-1])
    inner = before[head : len(before) - tail], after[head : len(after) - tail]
    sides: tuple[list[Piece], list[Piece]] = ([], [])
    steps = [("replace", 0, len(inner[0]), 0, len(inner[1]))]
    if max(map(len, inner)) <= WORDS:
        steps = list(difflib.SequenceMatcher(None, *inner, autojunk=False).get_opcodes())
    for side, words in zip(sides, (before, after), strict=True):
        side += [[0, "".join(words[:head])]] if head else []
    for kind, i, j, k, m in steps:
        for side, words in zip(sides, (inner[0][i:j], inner[1][k:m]), strict=True):
            if words:
                side.append([int(kind != "equal"), "".join(words)])
    for side, words in zip(sides, (before, after), strict=True):
        side += [[0, "".join(words[len(words) - tail :])]] if tail else []
    return sides


def _common(one: list[str], other: list[str]) -> int:
    """How many words two lists begin with in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
