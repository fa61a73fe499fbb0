"""What hosts are granted, as people write it in one line: `shop.example: 5s; api.example: 1s 4`.

Rules of this file:
1. A host is granted seconds between the starts of polls and, where it is said, polls at a time; its hours and its quota
   are the settings file's.
2. What is written can be read, and is the same then.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from unstale.errors import require
from unstale.frozen import dataclass
from unstale.units import DAY, named_parts, parse_duration, plain_number, written_seconds

_LIKE = "write it like shop.example: 5s; api.example: 1s 4"
#: a spacing, and polls at a time, which may be missing
_GRANT = re.compile(r"(?P<spacing>\S(?:.*?\S)?)(?:\s+(?P<concurrency>[0-9]{1,7}))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class HostGrant:
    """Seconds between the starts of polls, and polls at a time; 0: as the settings say."""

    spacing: float
    concurrency: int = 0


def read_grants(text: str) -> dict[str, HostGrant]:
    """What is granted, by host; InputError for what makes no sense.

    >>> read_grants("shop.example: 5s; api.example: 0.5s 4")
    {'shop.example': HostGrant(spacing=5.0, concurrency=0), 'api.example': HostGrant(spacing=0.5, concurrency=4)}
    """
    found: dict[str, HostGrant] = {}
    for part, name, terms in named_parts(text):
        host = name.lower()
        require(host and not re.search(r"\s", host), "hosts", repr(part[:40]), "names no host", _LIKE)
        require(host not in found, "hosts", repr(host[:40]), "is there twice", "say each host once")
        told = _GRANT.fullmatch(terms)
        require(told is not None, "hosts", repr(part[:40]), "grants nothing", _LIKE)
        assert told is not None
        require(plain_number(told["spacing"]) is None, "hosts", repr(part[:40]), "has no unit of time", _LIKE)
        many = told["concurrency"]
        require(many is None or int(many) > 0, "hosts", repr(part[:40]), "lets nobody in", "let one poll at a time")
        seconds = round(parse_duration(told["spacing"], f"hosts.{host[:40]}") * DAY, 6)
        found[host] = HostGrant(seconds, int(many or 0))
    return found


def written_grants(grants: Mapping[str, HostGrant]) -> str:
    """The same in words.

    >>> written_grants({"shop.example": HostGrant(90.0), "api.example": HostGrant(0.5, 4)})
    'shop.example: 90s; api.example: 0.5s 4'
    """
    return "; ".join(
        f"{host}: {written_seconds(one.spacing)}{f' {one.concurrency}' if one.concurrency else ''}"
        for host, one in grants.items()
    )
