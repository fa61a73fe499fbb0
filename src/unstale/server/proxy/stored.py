"""Stored responses: which of them answers a request, how many are kept, and when they are forgotten."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import field
from typing import Protocol

from unstale.frozen import dataclass
from unstale.server.proxy.fields import Directives, Fields, members

#: bytes that a stored response takes besides its body and header lines, about
_OVERHEAD = 1000


@dataclass(frozen=True, slots=True)
class StoredPart:
    """Which bytes a partial response holds, both ends included, and how many there are in all if that is known."""

    first: int
    last: int
    total: int | None


@dataclass(frozen=True, slots=True)
class Stored:
    """One response as it is kept. Times are seconds since the epoch; `lifetime` counts from its making at the origin.

    `control` are the directives that hold here. `selecting` are the request fields that Vary names, made comparable,
    and `asked` the same as they were sent, to ask again for this variant.
    """

    address: str
    status: int
    fields: Fields
    body: bytes = field(repr=False)
    taken_at: float
    initial_age: float
    lifetime: float
    control: Directives
    selecting: tuple[tuple[str, str | None], ...] = ()
    asked: Fields = field(default_factory=Fields)
    part: StoredPart | None = None
    #: whether its origin said how long it lasts
    told: bool = True

    def http_age(self, now: float) -> float:
        """Seconds since the origin made or confirmed it [RFC 9111 section 4.2.3]."""
        return self.initial_age + max(0.0, now - self.taken_at)

    def left(self, now: float) -> float:
        """Seconds until it is stale, negative once it is."""
        return self.lifetime - self.http_age(now)

    def size(self) -> int:
        """Bytes it takes, about."""
        return len(self.body) + sum(len(name) + len(value) for name, value in self.fields.lines) + _OVERHEAD


def varying(fields: Fields) -> list[str]:
    """The request fields that the answer depends on, in lower case; `*` stands for more than we can see."""
    return sorted({name.lower() for name in members(fields.joined("vary"))})


def selecting(names: list[str], request: Fields) -> tuple[tuple[str, str | None], ...]:
    """These request fields in a form in which equal meanings are equal.

    Space around commas never matters; languages are compared without case, and in order of preference, not of writing.

    >>> selecting(["a", "b"], Fields.of([("A", "1,2"), ("a", " 3")]))
    (('a', '1,2,3'), ('b', None))
    >>> selecting(["accept-language"], Fields.of([("Accept-Language", "en;q=0.5, FR , de")]))
    (('accept-language', 'de;1,fr;1,en;0.5'),)
    """
    return tuple((name, _comparable(name, request.joined(name))) for name in names)


def _comparable(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    if name == "accept-language":
        liked = sorted(_languages(text), key=lambda language: (-language[0], language[1]))
        return ",".join(f"{tag};{quality:g}" for quality, tag in liked)
    return ",".join(members(text))


def _languages(text: str | None) -> list[tuple[float, str]]:
    found = []
    for member in members(text):
        tag, *parameters = [piece.strip().lower() for piece in member.split(";")]
        written = next((piece[2:] for piece in parameters if piece.startswith("q=")), "1")
        digits = written.replace(".", "", 1)
        found.append((float(written) if digits.isascii() and digits.isdigit() else 1.0, tag))
    return found


def answers(stored: Stored, request: Fields) -> bool:
    """Whether this variant is the one for such a request [RFC 9111 section 4.1].

    Besides equal fields: one that is in the language the client likes best, whatever else the client would take.
    """
    if stored.selecting == selecting([name for name, _ in stored.selecting], request):
        return True
    others = [name for name, _ in stored.selecting if name != "accept-language"]
    if len(others) == len(stored.selecting) or selecting(others, request) != tuple(
        pair for pair in stored.selecting if pair[0] != "accept-language"
    ):
        return False
    liked = sorted(_languages(request.joined("accept-language")), reverse=True)
    best = [tag for quality, tag in liked if quality == liked[0][0] and quality > 0.0]
    return best == [(stored.fields.joined("content-language") or "").lower()]


class Watcher(Protocol):
    """Hears what comes into a stock and what leaves it."""

    def took(self, old: Stored | None, new: Stored) -> None:
        """A response is kept, in place of an old one for the same requests or as the first."""

    def gone(self, address: str) -> None:
        """Nothing is kept of this address any more."""


class Stock:
    """All stored responses, variants by address; beyond `most` bytes the address that was asked longest ago goes."""

    def __init__(self, most: int, variants: int = 32, watchers: Sequence[Watcher] = ()) -> None:
        self._most, self._variants, self._watchers = most, variants, watchers
        self._kept: OrderedDict[str, list[Stored]] = OrderedDict()
        self.size = 0

    def __contains__(self, address: str) -> bool:
        return address in self._kept

    def __len__(self) -> int:
        return len(self._kept)

    def variants(self, address: str) -> list[Stored]:
        """What is kept of this address, newest first."""
        return list(self._kept.get(address, ()))

    def find(self, address: str, request: Fields) -> Stored | None:
        """The newest variant for such a request; the address counts as asked."""
        kept = self._kept.get(address)
        if kept is None:
            return None
        self._kept.move_to_end(address)
        return next((stored for stored in kept if answers(stored, request)), None)

    def put(self, stored: Stored) -> None:
        """Keep this one, in place of the variant for the same requests, unless it alone would be too much."""
        if stored.size() > self._most:
            return self.drop(stored)
        before = self._kept.get(stored.address, ())
        kept = [other for other in before if other.selecting != stored.selecting]
        old = next((other for other in before if other.selecting == stored.selecting), None)
        self._set(stored.address, [stored, *kept][: self._variants])
        for watcher in self._watchers:
            watcher.took(old, stored)
        while self.size > self._most:
            self._set(next(iter(self._kept)), [])
        return None

    def drop(self, stored: Stored) -> None:
        """Forget this variant."""
        kept = self._kept.get(stored.address, ())
        self._set(stored.address, [other for other in kept if other.selecting != stored.selecting])

    def forget(self, address: str) -> None:
        """Forget everything of this address."""
        self._set(address, [])

    def _set(self, address: str, kept: list[Stored]) -> None:
        before = self._kept.pop(address, [])
        self.size += sum(stored.size() for stored in kept) - sum(stored.size() for stored in before)
        if kept:
            self._kept[address] = kept
        elif before:
            for watcher in self._watchers:
                watcher.gone(address)
