"""Taking entries from strangers: bounded, within a scope, and what is refused is counted by reason.

Rules of this file:
1. One bad entry never costs the others; nothing is raised for it.
2. An entry outside the collection's scope is refused: other hosts, private addresses, other schemes.
3. Beyond `most` entries nothing is kept, and the listing is not complete.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import field
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any
from urllib.parse import urldefrag, urljoin

from unstale.addresses import host_of
from unstale.frozen import dataclass
from unstale.listings.records import ListingEntry, ListingPoll
from unstale.moments import moment

#: entries, inner listings and characters of an address that are taken
MOST_ENTRIES, MOST_INNER, LONGEST = 1_000_000, 1_000, 2_048
#: the option by which a collection may tell of sources anywhere, those that are listed already
ELSEWHERE = "elsewhere"
#: a time further ahead of now is no time
_AHEAD = 86_400.0
#: how exact a written time is, by what it leaves out
_GRAINS = (
    (re.compile(r"\d{4}-\d\d-\d\d\Z"), 86_400.0),
    (re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?![:\d])"), 60.0),
    # as folders are shown: others with seconds say parts of them too
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\Z"), 1.0),
)
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
#: the ports of the web, and where an address says another
_PORTS = {"http": "80", "https": "443"}
_PORT = re.compile(r"([^/?#:]+)://(?:[^/?#]*@)?(?:\[[^\]/?#]*\]|[^/?#:]*)(?::(\d*))?(?:[?#].*)?")
_LOCAL = ("localhost", "localhost.localdomain")


@dataclass(frozen=True, slots=True)
class Scope:
    """Where members may be: at these hosts, by these schemes; at private addresses only if the collection is at one.

    On the web also at which ports, if there are some: what else listens at a host is none of a web site's business.
    """

    hosts: frozenset[str]
    schemes: frozenset[str] = frozenset({"http", "https"})
    ports: frozenset[str] = frozenset()
    #: whether members may be at any public host: it is for those who know which sources there are to take no others
    anywhere: bool = False

    @classmethod
    def of(cls, address: str, *, anywhere: bool = False) -> Scope:
        """The host of a collection, with and without `www.`; its own scheme, and https with http.

        >>> scope = Scope.of("https://www.example.org:8443/sitemap.xml")
        >>> sorted(scope.hosts), sorted(scope.ports)
        (['example.org', 'www.example.org'], ['443', '80', '8443'])
        """
        host, found = host_of(address), _SCHEME.match(address)
        scheme = found[1].lower() if found else ""
        if scheme not in _PORTS:
            return cls(frozenset({host}), frozenset({scheme}))
        bare = host.removeprefix("www.")
        ports = frozenset({_port(address), *_PORTS.values()})
        return cls(frozenset({host, bare, f"www.{bare}"}), frozenset(_PORTS), ports, anywhere)

    def refusal(self, address: str) -> str | None:
        """Why a member may not be at this address, or None."""
        if len(address) > LONGEST:
            return "too long"
        found = _SCHEME.match(address)
        # Names of objects in a bucket are what they are; on the web a space is written in another way.
        if found is None or not address.isprintable() or (" " in address and found[1].lower() in _PORTS):
            return "not an address"
        if found[1].lower() not in self.schemes:
            return "another scheme"
        host = host_of(address)
        if host not in self.hosts:
            return "a private address" if private(host) else None if self.anywhere else "another host"
        return "another port" if self.ports and not self.anywhere and _port(address) not in self.ports else None


def _port(address: str) -> str:
    # As for hosts: where many addresses are at one place, it is looked at once.
    end = address.find("/", address.find("://") + 3)
    return _port_before_path(address if end < 0 else address[:end])


@lru_cache(maxsize=4096)
def _port_before_path(place: str) -> str:
    found = _PORT.fullmatch(place)
    return (found[2] or "").lstrip("0") or _PORTS.get(found[1].lower(), "") if found else ""


def patterns(said: object) -> tuple[str, ...]:
    """Patterns of addresses as an option says them: one, or a list.

    >>> patterns("*/news/*"), patterns(["*.html", "*/"]), patterns(None)
    (('*/news/*',), ('*.html', '*/'), ())
    """
    if isinstance(said, str):
        return (said,)
    return tuple(map(str, said)) if isinstance(said, list | tuple) else ()


def private(host: str) -> bool:
    """Whether a host is this machine or within a private network, as far as its name tells.

    >>> private("10.0.0.8"), private("::1"), private("example.org")
    (True, True, False)
    """
    if host in _LOCAL or host.endswith((".localhost", ".internal", ".local")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


@dataclass(slots=True)
class Taker:
    """Collects what a reader finds. `base` is where the listing is: relative addresses are joined to it."""

    base: str
    now: float
    scope: Scope
    most: int = MOST_ENTRIES
    entries: dict[str, ListingEntry] = field(default_factory=dict)
    more: dict[str, None] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    cursor: str | None = None
    complete: bool = True
    #: what its owner says of the listing's shape, and of whom it may tell: patterns of addresses in `only` and `never`
    options: Mapping[str, Any] = field(default_factory=dict)

    def take(self, address: str, time: str | float | None = None, tag: str | None = None) -> bool:
        """One entry as written; of those that come twice the newest counts. False once nothing more is kept."""
        whole = self.placed(address)
        if whole is None:
            return True
        if not self._wanted(whole):
            self.refused["not wanted"] += 1
            return True
        at, grain = self._time(time)
        before = self.entries.get(whole)
        if before is None and len(self.entries) >= self.most:
            self.refused["too many"] += 1
            self.complete = False
            return False
        if before is not None:
            self.refused["twice"] += 1
            if before.time is not None and (at is None or at <= before.time):
                return True
        self.entries[whole] = ListingEntry(whole, at, tag[:LONGEST] if tag else None, grain)
        return True

    def inner(self, address: str) -> None:
        """Another listing that belongs to this one."""
        whole = self.placed(address)
        if whole is None or whole in self.more:
            return
        if len(self.more) >= MOST_INNER:
            self.refused["too many listings"] += 1
            self.complete = False
        else:
            self.more[whole] = None

    def poll(self) -> ListingPoll:
        """All that was taken."""
        return ListingPoll(
            tuple(self.entries.values()),
            tuple(self.more),
            self.cursor,
            self.complete,
            dict(sorted(self.refused.items())),
        )

    def placed(self, address: str) -> str | None:
        """An address as written, joined to where the listing is; None if it is refused, which is counted."""
        text = address.strip()
        if not text or len(text) > LONGEST:
            self.refused["too long" if text else "not an address"] += 1
            return None
        try:
            whole = text if "://" in text[:40] else urldefrag(urljoin(self.base, text))[0]
        except ValueError:
            self.refused["not an address"] += 1
            return None
        if reason := self.scope.refusal(whole):
            self.refused[reason] += 1
            return None
        return whole

    def _wanted(self, address: str) -> bool:
        only, never = patterns(self.options.get("only")), patterns(self.options.get("never"))
        return (not only or any(fnmatchcase(address, one) for one in only)) and not any(
            fnmatchcase(address, one) for one in never
        )

    def _time(self, time: str | float | None) -> tuple[float | None, float]:
        if time is None or time == "":
            return None, 0.0
        at = float(time) if isinstance(time, int | float) else moment(time)[0]
        if at != at or at < 0.0:
            self.refused["no time"] += 1
            return None, 0.0
        if at > self.now + _AHEAD:
            self.refused["in the future"] += 1
            return None, 0.0
        if not isinstance(time, str):
            return at, 0.0
        return at, next((grain for form, grain in _GRAINS if form.match(time.strip())), 0.0)
