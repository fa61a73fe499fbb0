"""Who acts, and what is noted of what they did: words without anything that could be secret.

Rules of this file:
1. Nothing is noted of what nobody did: an engine that enlists members and weighs sources is nobody.
2. What is noted names sources, fields and names that people gave; never values of fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from unstale.units import many

#: who acts in this context, "" for nobody; asyncio's threads inherit it
_WHO: ContextVar[str] = ContextVar("who", default="")
#: characters of who and what that are noted, and sources that are named
WHO, WHAT, NAMED = 100, 500, 3


@contextmanager
def acting(who: str) -> Iterator[None]:
    """What is done inside is done by somebody."""
    before = _WHO.set(who[:WHO])
    try:
        yield
    finally:
        _WHO.reset(before)


def who_acts() -> str:
    """Who acts here."""
    return _WHO.get()


def these(addresses: Sequence[str], count: int | None = None) -> str:
    """Sources by name, as many as are read with pleasure.

    >>> these(["http://a/", "http://b/"]), these(["a", "b", "c", "d"]), these([])
    ('http://a/, http://b/', 'a, b, c and 1 more source', 'no source')
    """
    total = len(addresses) if count is None else count
    shown = ", ".join(one[:100] for one in addresses[:NAMED])
    rest = total - min(len(addresses), NAMED)
    return f"{shown} and {many(rest, 'more source')}" if rest else shown or "no source"


def difference(kind: str, before: Sequence[tuple[str, object]], after: Sequence[tuple[str, object]]) -> str:
    """What was done to things with names.

    >>> difference("token", [("a", 1), ("b", 1)], [("b", 2), ("c", 1)])
    'added token c; changed token b; removed token a'
    """
    old, new = dict(before), dict(after)
    done = {
        "added": [name for name in new if name not in old],
        "changed": [name for name in new if name in old and old[name] != new[name]],
        "removed": [name for name in old if name not in new],
    }
    return "; ".join(f"{verb} {kind} {', '.join(names)}" for verb, names in done.items() if names)
