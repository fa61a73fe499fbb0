"""What a replica says of a copy: as of when it is, how it came there, when to ask again; and why not to take it."""

from __future__ import annotations

import re
from collections.abc import Mapping

from unstale.adapters.retry_headers import http_date
from unstale.frozen import dataclass

#: characters of a field that are read, and replicas that a copy may have come through
LONGEST, MOST_HOPS = 4096, 16
#: seconds by which another machine's clock may be ahead of ours
SKEW = 5.0

_AS_OF = re.compile(r"(?:^|,\s*)as-of=@(\d{1,12})(?:;ms=(\d{1,3}))?(?=[;,\s]|$)")
_GAP = re.compile(r"(?:^|,\s*)gap=(\d{1,10})(?=[;,\s]|$)")
_VERSION = re.compile(r"(?:^|,\s*)version=(\d{1,15})(?=[;,\s]|$)")
# One member of a list of tokens or strings with parameters [RFC 9651 3.1]; only its name is kept.
_MEMBER = re.compile(
    r'\s*([A-Za-z*][A-Za-z0-9:/!#$%&\'*+.^_`|~-]{0,99}|"(?:[ !#-+\x2d-\[\]-~]){0,99}")'
    r'((?:\s*;\s*[a-z*][a-z0-9_.*-]*(?:=(?:"(?:[^"\\]|\\.)*"|[^",;\s]*))?)*)\s*(?:,|$)'
)


@dataclass(frozen=True, slots=True)
class CopyStatus:
    """As of when a copy was equal to its source, its version there, when that replica looks again, and its way here.

    `via` has the names of replicas as they are written, nearest to the source first, the one that answered last. `gap`
    are the seconds between two changes that the nearest believes in, 0 if it does not say.
    """

    as_of: float
    version: int
    expires: float
    via: tuple[str, ...]
    gap: int = 0

    @property
    def way(self) -> str:
        """How the copy came, as it is kept with it: the names, and what the nearest believes."""
        first, *rest = self.via or ("",)
        return ", ".join([f"{first};gap={self.gap}" if self.gap and first else first, *rest])


def read_status(headers: Mapping[str, str]) -> CopyStatus | None:
    """The status in a reply's headers, None if no replica speaks so.

    >>> status = "as-of=@1763236800;ms=250, version=3, hops=2, gap=60"
    >>> found = read_status({"replica-status": status, "cache-status": "a; hit, b; hit"})
    >>> found.as_of, found.version, found.via, found.way
    (1763236800.25, 3, ('a', 'b'), 'a;gap=60, b')
    """
    told = headers.get("replica-status", "")[:LONGEST]
    at, version, gap = _AS_OF.search(told), _VERSION.search(told), _GAP.search(told)
    if at is None:
        return None
    expires = http_date(headers.get("expires"))
    return CopyStatus(
        int(at[1]) + int(at[2] or 0) / 1000.0,
        int(version[1]) if version else 0,
        -float("inf") if expires is None else expires,
        _names(headers.get("cache-status", "")[:LONGEST]),
        int(gap[1]) if gap else 0,
    )


def doubt(status: CopyStatus, since: float, now: float, name: str) -> str:
    """Why a copy with this status is not taken, empty if it may be; `since` is what we know, `name` who we are.

    >>> doubt(CopyStatus(90.0, 1, 120.0, ("a",)), since=100.0, now=110.0, name="b")
    'its copy is 10 s older than ours'
    """
    if status.as_of > now + SKEW:
        return f"its copy is {status.as_of - now:.0f} s from the future: compare the clocks of both machines"
    # What it serves is cut to a millisecond, what we hold need not be.
    if status.as_of < since - 0.001:
        return f"its copy is {since - status.as_of:.3g} s older than ours"
    if name and name in (hop.strip('"') for hop in status.via):
        return "its copy came through this replica: replicas follow each other in a circle"
    if len(status.via) > MOST_HOPS:
        return f"its copy came through more than {MOST_HOPS} replicas: follow one nearer to the source"
    return ""


def _names(text: str) -> tuple[str, ...]:
    names, at = [], 0
    while at < len(text) and (found := _MEMBER.match(text, at)) and found.end() > at:
        names.append(found[1])
        at = found.end()
    return tuple(names)
