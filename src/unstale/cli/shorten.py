"""Addresses that fit into a column: shortened in the middle, and so that rows are still told apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from unstale.secrecy import shown_address

#: who asks is the same for all rows, and no part of where a source is
_USER = re.compile(r"(?<=://)[^/?#@]*@")
_SCHEME = re.compile(r"^https?://(www\.)?")
#: shares of the room that the beginning takes, the first that tells all rows apart is taken
_HEADS = (0.5, 0.3, 0.7, 0.15)
_CUT = "…"


def shortened(addresses: Sequence[str], width: int) -> list[str]:
    """The addresses in at most `width` characters each.

    What fits stays whole. Otherwise the user goes first, then the scheme of the web, then the middle; where two rows
    would look the same, what is kept of them is where they differ.

    >>> shortened([f"postgresql://me:$P@db.example.org/shop#{table}" for table in ("orders", "users")], 24)
    ['postgresql:…/shop#orders', 'postgresql:…g/shop#users']
    """
    rows = [shown_address(address) for address in addresses]
    if all(len(row) <= width for row in rows):
        return rows
    rows = [row if len(row) <= width else _USER.sub("", row) for row in rows]
    rows = [row if len(row) <= width else _SCHEME.sub("", row) for row in rows]
    tries = [[_middle(row, width, share) for row in rows] for share in _HEADS]
    best = min(tries, key=lambda tried: len(tried) - len(set(tried)))
    often = Counter(best)
    return [
        text if often[text] == 1 else _around(row, _difference(row, rows), width)
        for row, text in zip(rows, best, strict=True)
    ]


def fitted(
    head: Sequence[str], rows: Sequence[Sequence[str]], width: int, least: int = 16
) -> tuple[list[str], list[list[str]]]:
    """A table of texts within `width` characters, two between columns: its head and its rows.

    The first column has addresses. The others stand in the order of their importance: the last go first until the
    addresses have `least` characters, and the second always stays.

    >>> fitted(["source", "fresh", "next poll"], [["https://example.org/news/today", "98 %", "in 3 min"]], 30)
    (['source', 'fresh'], [['example.org/news/today', '98 %']])
    """
    kept = len(head)
    while kept > 2 and _room(head, rows, kept, width) < min(least, max((len(row[0]) for row in rows), default=0)):
        kept -= 1
    names = shortened([row[0] for row in rows], max(_room(head, rows, kept, width), 1))
    return list(head[:kept]), [[name, *row[1:kept]] for name, row in zip(names, rows, strict=True)]


def _room(head: Sequence[str], rows: Sequence[Sequence[str]], kept: int, width: int) -> int:
    others = (max(len(head[k]), *(len(row[k]) for row in rows)) if rows else len(head[k]) for k in range(1, kept))
    return width - sum(other + 2 for other in others)


def _middle(text: str, width: int, share: float) -> str:
    if len(text) <= width:
        return text
    head = int((width - 1) * share)
    return f"{text[:head]}{_CUT}{text[len(text) - (width - 1 - head) :]}" if width > 1 else _CUT[:width]


def _difference(text: str, rows: Sequence[str]) -> int:
    """Where `text` begins to differ from the row that is most like it."""
    return max((_common(text, row) for row in rows if row != text), default=0)


def _common(one: str, other: str) -> int:
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _around(text: str, at: int, width: int) -> str:
    """The beginning, and the part that begins a little before `at`, as far as there is room."""
    head = max((width - 2) // 4, 0)
    room = max(width - head - 2, 0)
    begin = min(max(at - room // 3, head), max(len(text) - room - 1, head))
    rest = text[begin:]
    kept = rest if len(rest) <= room + 1 else f"{rest[:room]}{_CUT}"
    return f"{text[:head]}{_CUT}{kept}"[:width]
