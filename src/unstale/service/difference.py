"""How two versions differ, line by line, within bounds: what is compared was written by strangers.

Rules of this file:
1. Nothing is cut before it is compared, but for what lies beyond the first bytes; that, and what is not shown, is told.
2. Long lines are broken where their content says so, so that a change in one moves no other break.
"""

from __future__ import annotations

import difflib
import re
from typing import Any

#: bytes of a version, lines that may differ of it, and characters of a line; lines that are shown
BYTES, LINES, LINE, SHOWN = 2**22, 2000, 400, 1500
#: lines that are shown around a change
AROUND = 3

_TEXT = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson", "image/svg")
#: where a long line may be broken, the best places first: between tags, after commas, sentences, words
_BREAKS = tuple(map(re.compile, (r"(?<=>)(?=<)", r"(?<=[,;])(?=\S)", r"(?<=[.!?])(?=\s)", r"(?<=\s)(?=\S)")))


def readable(data: bytes, media_type: str) -> bool:
    """Whether bytes can be shown as text.

    >>> readable(b"a,b", "text/csv"), readable(bytes(4), ""), readable(b"<a/>", "application/atom+xml; charset=utf-8")
    (True, False, True)
    """
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith(_TEXT) or kind.endswith(("+xml", "+json")) or (not kind and b"\0" not in data[:4096])


def lines_of(data: bytes) -> tuple[list[str], bool]:
    """Bytes as lines to be shown, and whether something was left out."""
    lines = _lines(data)
    return lines[:LINES], len(data) > BYTES or len(lines) > LINES


def difference(old: bytes, new: bytes) -> dict[str, Any]:
    """What was taken away (-), added (+) and stayed ( ) nearby; `@` marks what is left out between.

    `cut`: not all of it was compared or is shown, so that lines that are the same say nothing of the whole; `same`
    does.

    >>> difference(b"a\\nb\\nc", b"a\\nB\\nc")["lines"]
    [[' ', 'a'], ['-', 'b'], ['+', 'B'], [' ', 'c']]
    >>> difference(b"a\\nb", b"a\\r\\nb")
    {'lines': [], 'cut': False, 'same': False}
    """
    before, after = _lines(old), _lines(new)
    head = _alike(before, after)
    tail = _alike(before[head:][::-1], after[head:][::-1])
    # What is the same at both ends costs nothing; of what is between, so much is compared.
    first = max(head - AROUND, 0)
    ends = [len(lines) - max(tail - AROUND, 0) for lines in (before, after)]
    cut = max(len(old), len(new)) > BYTES or max(ends) - first > LINES
    before, after = (lines[first : min(end, first + LINES)] for lines, end in zip((before, after), ends, strict=True))
    # The heuristic for lines that occur often keeps the time in bounds.
    found = difflib.SequenceMatcher(None, before, after, autojunk=True)
    lines: list[list[str]] = []
    for group in found.get_grouped_opcodes(AROUND):
        at = first + group[0][3]
        if lines or at > 0:
            lines.append(["@", f"line {at + 1}"])
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += [[" ", line] for line in after[k:m]]
            else:
                lines += [["-", line] for line in before[i:j]]
                lines += [["+", line] for line in after[k:m]]
    return {"lines": lines[:SHOWN], "cut": cut or len(lines) > SHOWN, "same": old == new}


def _alike(one: list[str], other: list[str]) -> int:
    """How many lines two lists begin with in common."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _lines(data: bytes) -> list[str]:
    found: list[str] = []
    for line in data[:BYTES].decode("utf-8", "replace").splitlines():
        parts = [line]
        for pattern in _BREAKS:
            if any(len(part) > LINE for part in parts):
                parts = [less for part in parts for less in (pattern.split(part) if len(part) > LINE else [part])]
        found += [part[i : i + LINE] for part in parts for i in range(0, max(len(part), 1), LINE)]
    return found
