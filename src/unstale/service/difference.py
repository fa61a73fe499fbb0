"""How two versions differ, line by line, within bounds: what is compared was written by strangers."""

from __future__ import annotations

import difflib
import re
from typing import Any

#: bytes of a version, lines of it and characters of a line that are compared; lines that are shown
BYTES, LINES, LINE, SHOWN = 2**19, 2000, 400, 1500
#: lines that are shown around a change
AROUND = 3

_TEXT = ("text/", "application/json", "application/xml", "application/javascript", "application/x-ndjson", "image/svg")


def readable(data: bytes, media_type: str) -> bool:
    """Whether bytes can be shown as text.

    >>> readable(b"a,b", "text/csv"), readable(bytes(4), ""), readable(b"<a/>", "application/atom+xml; charset=utf-8")
    (True, False, True)
    """
    kind = media_type.partition(";")[0].strip().lower()
    return kind.startswith(_TEXT) or kind.endswith(("+xml", "+json")) or (not kind and b"\0" not in data[:4096])


def lines_of(data: bytes) -> tuple[list[str], bool]:
    """Bytes as lines, and whether something was left out. A long line of markup is broken at its tags."""
    text = data[:BYTES].decode("utf-8", "replace")
    lines: list[str] = []
    for line in text.splitlines()[: LINES + 1]:
        parts = re.split(r"(?<=>)(?=<)|(?<=[,;])(?=\S)", line) if len(line) > LINE else [line]
        lines.extend(part[:LINE] for part in parts)
        if len(lines) > LINES:
            break
    return lines[:LINES], len(data) > BYTES or len(lines) > LINES


def difference(old: bytes, new: bytes) -> dict[str, Any]:
    """What was taken away (-), added (+) and stayed ( ) nearby; `@` marks what is left out between.

    >>> difference(b"a\\nb\\nc", b"a\\nB\\nc")["lines"]
    [[' ', 'a'], ['-', 'b'], ['+', 'B'], [' ', 'c']]
    """
    (before, cut_before), (after, cut_after) = lines_of(old), lines_of(new)
    # The heuristic for lines that occur often keeps the time in bounds.
    found = difflib.SequenceMatcher(None, before, after, autojunk=True)
    lines: list[list[str]] = []
    for group in found.get_grouped_opcodes(AROUND):
        if lines or group[0][1] > 0:
            lines.append(["@", f"line {group[0][3] + 1}"])
        for kind, i, j, k, m in group:
            if kind == "equal":
                lines += [[" ", line] for line in after[k:m]]
            else:
                lines += [["-", line] for line in before[i:j]]
                lines += [["+", line] for line in after[k:m]]
    return {"lines": lines[:SHOWN], "cut": cut_before or cut_after or len(lines) > SHOWN}
