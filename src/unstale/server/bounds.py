"""How old a copy a client accepts: Cache-Control of the request and the same as query parameters [RFC 9111 5.2.1].

Rules of this file:
1. A directive that cannot be read is ignored in a header, as the RFC says, and refused in the query.
2. All bounds that are given must hold. What is named in both places is taken from the query, which passes every cache.
3. One deviation: max-age alone accepts a copy past its Expires. Ours is when we look again, not what the source said.
4. Age counts from when the copy was equal to its source, however many caches and replicas it came through: a poll
   that ended after the question is no excuse for a copy that is older than was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime

from unstale.errors import InputError, sentence
from unstale.frozen import dataclass
from unstale.units import DAY, parse_duration

#: an interval that is not given as a number: any
ANY = math.inf
_SPANS = ("max_age", "min_fresh", "max_stale", "stale_if_error")
_FLAGS = ("no_cache", "only_if_cached")
#: other names of the same
_SAME = {"max_staleness": "max_age"}
NAMES = (*_SPANS, *_SAME, *_FLAGS, "min_as_of", "min_version", "version")
#: seconds by which a copy may be older than the moment of the question and count as polled for it: times in headers
#: are whole seconds, and a poll that was under way shows the source as it was while the client waited
TICK = 1.0
_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d{1,9})?)S)?)?")
#: as programs write numbers: tiny ones with an exponent
_NUMBER = re.compile(r"[0-9]{1,12}(\.[0-9]{1,20})?([eE]-?[0-9]{1,3})?")
_ISO_SECONDS = (604_800.0, 86_400.0, 3_600.0, 60.0, 1.0)


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a request asks for; None where it does not say. Times are seconds."""

    max_age: float | None = None
    min_fresh: float | None = None
    max_stale: float | None = None
    stale_if_error: float | None = None
    no_cache: bool = False
    only_if_cached: bool = False
    #: as of when the copy must be at the earliest, seconds since the epoch
    min_as_of: float | None = None
    min_version: int | None = None
    #: a kept version instead of the newest
    version: int | None = None

    def unmet(self, now: float, as_of: float, left: float, version: int, waited: float | None = None) -> str:
        """The first bound that a copy breaks, empty if none: as of when it is, what is left until Expires, its version.

        `waited` is how long ago the request came, if a poll has ended since.

        >>> Bounds(max_age=30).unmet(now=140.0, as_of=100.0, left=20.0, version=3)
        'the copy is as of 40 s ago, max-age allows 30 s'
        >>> Bounds(max_age=30).unmet(now=130.0, as_of=100.0, left=-5.0, version=3)
        ''
        """
        age = now - as_of
        # What was looked at for this request is as young as it can be.
        polled = waited is not None and age <= waited + TICK
        if self.min_version is not None and version < self.min_version:
            return f"the newest version is {version}, min_version asks for {self.min_version}"
        if self.min_as_of is not None and as_of < self.min_as_of:
            return f"the copy is {self.min_as_of - as_of:.3g} s older than min_as_of asks for"
        if as_of == -math.inf and (self.no_cache or self.max_age is not None):
            return "there is no copy yet"
        if self.no_cache and not polled:
            asks = "no-cache asks for a poll"
            return asks if waited is None else f"{asks} of the source, and the copy is as of {age:.0f} s ago"
        if self.max_age is not None and age > self.max_age and not polled:
            return f"the copy is as of {age:.0f} s ago, max-age allows {self.max_age:g} s"
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
    >>> read("", {"max_staleness": "PT5M"}).max_age, read("", {"min_as_of": "2025-11-15T20:00:00Z"}).min_as_of
    (300.0, 1763236800.0)
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
        same = _SAME.get(name, name)
        if same != name and same in query:
            raise InputError(sentence(name, "and " + same, "mean the same", "give one of them"))
        given[same] = _parameter(name, text)
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
    if name == "min_as_of":
        return _moment(text)
    if name not in _SPANS and name not in _SAME:
        raise InputError(sentence("parameter", repr(name[:20]), "is not known", f"use {', '.join(NAMES)}"))
    if name == "max_stale" and not text:
        return ANY
    # As everywhere in HTTP a bare number is seconds; elsewhere in this product it is days.
    if text.isascii() and text.isdigit():
        return float(text[:12])
    if text[:1] == "P" and (parts := _ISO.fullmatch(text[:40])) and text[-1:] not in "PT":
        return sum(float(part) * each for part, each in zip(parts.groups(), _ISO_SECONDS, strict=True) if part)
    return parse_duration(text[:40], name) * DAY


def _moment(text: str) -> float:
    """A moment as seconds since the epoch, also `@1763236800` as in Replica-Status, or as ISO 8601 with its zone."""
    bare = text.removeprefix("@")
    if _NUMBER.fullmatch(bare) and (seconds := float(bare)) < 1e12:
        return seconds
    try:
        # In a query a plus sign is a space.
        when = datetime.fromisoformat(text[:40].replace(" ", "+"))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        remedy = "write it like 2025-11-15T20:00:00Z or 1763236800"
        raise InputError(sentence("min_as_of", repr(text[:40]), "is not a moment", remedy)) from None
