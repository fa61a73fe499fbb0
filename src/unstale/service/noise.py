"""Sources that change at nearly every poll: what differs each time, and what could be left out so that it does not.

Rules of this file:
1. Nothing is concluded from a few polls, and what is offered is only what differed between all versions compared.
2. What strangers wrote is scanned once, in time that grows with its length, and only the first of it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import field
from itertools import pairwise
from typing import Any

from unstale.frozen import dataclass
from unstale.html_text import is_html, is_json
from unstale.keeper.outcomes import Answer
from unstale.pictured import apart
from unstale.ports import Body, ReadStore
from unstale.service.difference import difference
from unstale.units import many

#: polls that are looked at, how many there must be, and the share of them that must have found a change
POLLS, ENOUGH, SHARE = 20, 4, 0.8
#: versions that are compared, bytes of each, and what is offered at most
VERSIONS, BYTES, OFFERED = 4, 2**19, 5
#: what is this long is more than a clock or a counter, and is not offered to be left out
LONG = 300
#: lines that are shown of what would still differ
SHOWN = 40

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]{0,40})([^<>]{0,2000})>")
_MARK = re.compile(r"""\b(id|class)\s*=\s*["']?([A-Za-z_][\w-]{0,60})""")
_VOID = re.compile(r"area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr")
_UNSEEN = frozenset(("script", "style", "meta"))
_PLAIN = re.compile(r"[A-Za-z0-9_.#*/~-]{1,200}")
_DIGITS = re.compile(r"[0-9]+")
_DEEPEST = 500
_LONG = " " * LONG


@dataclass(frozen=True, slots=True)
class Noise:
    """How many of the newest polls found a change, and what of a copy differed each time: CSS or JSON pointers."""

    changed: int
    polls: int
    selectors: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    #: whether nothing but numbers differed
    digits: bool = False
    #: what differed last
    lines: tuple[tuple[str, str], ...] = field(default=())

    @property
    def offer(self) -> dict[str, Any]:
        """What could be said under `normalise` so that these no longer count; empty if nothing is known."""
        if self.selectors:
            return {"selectors": list(self.selectors)}
        if self.pointers:
            return {"pointers": list(self.pointers)}
        return {"digits": True} if self.digits else {}

    def sentence(self, source: int) -> str:
        """What is to be said of it, and what can be done."""
        ways = [f"--drop '{one}'" for one in self.selectors] + [f"--drop-json '{one}'" for one in self.pointers]
        way = " ".join(ways) or ("--ignore-digits" if self.digits else "--drop CSS")
        return (
            f"it changed at {self.changed} of its last {many(self.polls, 'poll')}: if what differs means nothing "
            f"(`unstale diff {source}` shows it), leave it out with `unstale edit {source} {way}`"
        )


def noise(store: ReadStore, source: int) -> Noise | None:
    """What makes a source change at nearly every poll; None if it does not, or if that is what it is polled for."""
    if any(one.options.get("collection") for one in store.listings([source])):
        return None
    begun = store.checkpoint(source)
    # What counted as a change before a belief was begun anew may have been none.
    since = begun.latest if begun is not None and begun.belief is None else 0
    newest = store.observations(source, POLLS)
    polls = [one for one in newest if one.answer is not Answer.FAILED and one.token > since]
    # The first copy is no change.
    answered = polls[:-1] if len(newest) < POLLS and not since else polls
    changed = sum(one.answer is Answer.CHANGED for one in answered)
    if len(answered) < ENOUGH or changed < SHARE * len(answered):
        return None
    copies = [store.copy(source, version) for version in store.versions(source)[:VERSIONS]]
    bodies = [copy.body for copy in copies if copy is not None]
    found = Noise(changed, len(answered))
    return found if len(bodies) < 2 else _compared(found, bodies)


def _compared(found: Noise, bodies: Sequence[Body]) -> Noise:
    kind, texts = bodies[0].media_type, [apart(body.data)[0][:BYTES] for body in bodies]
    selectors: tuple[str, ...] = ()
    pointers: tuple[str, ...] = ()
    if is_html(kind):
        selectors = _always([elements(text) for text in texts])
    elif is_json(kind):
        pointers = _always([members(text) for text in texts])
    bare = {_DIGITS.sub("0", text.decode("utf-8", "replace")) for text in texts}
    told = difference(texts[1], texts[0])["lines"]
    lines = tuple((sign, line) for sign, line in told if sign in "+-")[:OFFERED]
    return Noise(found.changed, found.polls, selectors, pointers, len(bare) == 1, lines)


def _always(parts: Sequence[dict[str, str]]) -> tuple[str, ...]:
    """The names of what differs between each two that follow one another, as long as it is in all and is little."""
    pairs = list(pairwise(parts))
    names = [name for name in parts[0] if name != "body" and all(len(one.get(name, _LONG)) < LONG for one in parts)]
    found = [name for name in names if all(one[name] != other[name] for one, other in pairs)]
    # Who copies a command from what we say must not run what a stranger wrote.
    return tuple(found) if len(found) <= OFFERED and all(_PLAIN.fullmatch(name) for name in found) else ()


def elements(data: bytes) -> dict[str, str]:
    """The texts of a page by the nearest element that has an id or a class, as CSS would find it.

    >>> elements(b"<body><p id=now>12:00</p><p>a <b class='x y'>c</b>")
    {'p#now': '12:00', 'body': 'a', 'b.x': 'c'}
    """
    text, at = data.decode("utf-8", "replace"), 0
    stack: list[tuple[str, str]] = []
    found: dict[str, list[str]] = {}
    for tag in _TAG.finditer(text):
        words = text[at : tag.start()].strip()
        if words and not (stack and stack[-1][0] in _UNSEEN):
            found.setdefault(next((css for _, css in reversed(stack) if css), "body"), []).append(words)
        at, name = tag.end(), tag[2].lower()
        if tag[1]:
            depth = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][0] == name), -1)
            del stack[depth if depth >= 0 else len(stack) :]
        elif not _VOID.fullmatch(name) and len(stack) < _DEEPEST:
            mark = _MARK.search(tag[3])
            css = "" if mark is None else f"{name}{'#' if mark[1] == 'id' else '.'}{mark[2]}"
            stack.append((name, css))
    if text[at:].strip():
        found.setdefault(next((css for _, css in reversed(stack) if css), "body"), []).append(text[at:].strip())
    return {css: "\n".join(words) for css, words in found.items()}


def members(data: bytes) -> dict[str, str]:
    """The plain values in JSON by their pointers; places in lists count as any place.

    >>> members(b'{"now": 3, "items": [{"id": 1}, {"id": 2}]}')
    {'/now': '3', '/items/*/id': '1\\n2'}
    """
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    found: dict[str, list[str]] = {}
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        place, one = waiting.pop()
        if isinstance(one, dict):
            inner = [(f"{place}/{key.replace('~', '~0').replace('/', '~1')}", under) for key, under in one.items()]
            waiting += inner[::-1]
        elif isinstance(one, list):
            waiting += [(f"{place}/*", under) for under in one][::-1]
        else:
            found.setdefault(place, []).append(json.dumps(one))
    return {place: "\n".join(values) for place, values in found.items() if place}


def tried(texts: Sequence[str]) -> dict[str, Any]:
    """What would count of the newest copy, and how the one before it would still differ; oldest first.

    >>> tried(["a 1", "a 1"])["same"], tried(["a 1", "a 2"])["lines"]
    (True, [['-', 'a 1'], ['+', 'a 2']])
    """
    if not texts:
        return {"copies": 0, "same": True, "counts": [], "lines": []}
    newest = [line.strip()[:300] for line in texts[-1].splitlines() if line.strip()]
    found = difference(*(text.encode("utf-8", "replace") for text in (texts[0], texts[-1])))
    return {
        "copies": len(texts),
        "same": len(texts) < 2 or texts[0] == texts[-1],
        "counts": newest[:SHOWN],
        "lines": found["lines"][:SHOWN],
    }
