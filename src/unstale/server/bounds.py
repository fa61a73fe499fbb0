"""How old a copy a client accepts: Cache-Control of the request and the same as query parameters [RFC 9111 5.2.1].

Rules of this file:
1. A directive that cannot be read is ignored in a header, as the RFC says, and refused in the query.
2. All bounds that are given must hold. What is named in both places is taken from the query, which passes every cache.
3. One deviation: max-age alone accepts a copy past its Expires. Ours is when we look again, not what the source said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from unstale.errors import InputError, sentence
from unstale.units import DAY, parse_duration

#: an interval that is not given as a number: any
ANY = math.inf
_SPANS = ("max_age", "min_fresh", "max_stale", "stale_if_error")
_FLAGS = ("no_cache", "only_if_cached")
NAMES = (*_SPANS, *_FLAGS, "min_version", "version")


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a request asks for; None where it does not say. Times are seconds."""

    max_age: float | None = None
    min_fresh: float | None = None
    max_stale: float | None = None
    stale_if_error: float | None = None
    no_cache: bool = False
    only_if_cached: bool = False
    min_version: int | None = None
    #: a kept version instead of the newest
    version: int | None = None

    def unmet(self, age: float, left: float, version: int, polled: bool = False) -> str:
        """The first bound that a copy breaks, empty if none: its age, what is left until Expires, its version.

        A copy that was `polled` for this request is as young as it can be.

        >>> Bounds(max_age=30).unmet(age=40, left=20, version=3)
        'the copy was checked 40 s ago, max-age allows 30 s'
        >>> Bounds(max_age=30).unmet(age=30, left=-5, version=3)
        ''
        """
        if self.min_version is not None and version < self.min_version:
            return f"the newest version is {version}, min_version asks for {self.min_version}"
        if not polled:
            if self.no_cache:
                return "no-cache asks for a poll"
            if self.max_age is not None and age > self.max_age:
                return f"the copy was checked {age:.0f} s ago, max-age allows {self.max_age:g} s"
            if self.max_stale is not None and -left > self.max_stale:
                return f"the copy is stale since {-left:.0f} s, max-stale allows {self.max_stale:g} s"
        if self.min_fresh is not None and left < self.min_fresh:
            return f"the copy is fresh for {left:.0f} s, min-fresh asks for {self.min_fresh:g} s"
        return ""


NONE = Bounds()


def read(cache_control: str, query: Mapping[str, str]) -> Bounds:
    """The bounds of a request.

    >>> read("max-age=60, no-transform", {"max_age": "2min"})
    Bounds(max_age=120.0, min_fresh=None, max_stale=None, stale_if_error=None, no_cache=False, ...)
    """
    given: dict[str, float | int | bool] = {}
    for directive in cache_control.lower().split(",") if cache_control else ():
        name, _, text = directive.strip().partition("=")
        name, text = name.replace("-", "_"), text.strip('"')
        if name in _FLAGS:
            given[name] = True
        elif name == "max_stale" and not text:
            given[name] = ANY
        elif name in _SPANS and text.isascii() and text.isdigit():
            given[name] = float(text[:12])
    for name, text in query.items():
        given[name] = _parameter(name, text)
    return Bounds(**given)  # type: ignore[arg-type]


def _parameter(name: str, text: str) -> float | int | bool:
    if name in ("min_version", "version"):
        if not (text.isascii() and text.isdigit() and 0 < len(text) <= 18 and int(text) > 0):
            raise InputError(sentence(name, repr(text[:20]), "is not a version", "versions count from 1"))
        return int(text)
    if name in _FLAGS:
        if text not in ("", "1", "true", "0", "false"):
            raise InputError(sentence(name, repr(text[:20]), "is not yes or no", f"write {name} or {name}=0"))
        return text not in ("0", "false")
    if name not in _SPANS:
        raise InputError(sentence("parameter", repr(name[:20]), "is not known", f"use {', '.join(NAMES)}"))
    if name == "max_stale" and not text:
        return ANY
    # As everywhere in HTTP a bare number is seconds; elsewhere in this product it is days.
    if text.isascii() and text.isdigit():
        return float(text[:12])
    return parse_duration(text[:40], name) * DAY
