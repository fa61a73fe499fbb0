"""Header fields of copies, as bytes: two clocks (checked, changed), and a lifetime that every measured cache honours.

Rules of this file:
1. `Date` is when the copy was last known equal to its source (as-of), `Expires` when it is due, `Age` counts from
   as-of. No max-age: nginx and most client caches ignore Age beside it, and would keep a copy past its life.
2. A 304 carries what the 200 would, so that revalidating advances the client's clocks.
3. What a source sent is content: its media type is passed on only if it is well-formed, its address never.
"""

from __future__ import annotations

import math
import mimetypes
import re
from collections.abc import Sequence

from unstale.frozen import dataclass
from unstale.ports import Edition, Head
from unstale.server.dates import as_date, read_date

Field = tuple[bytes, bytes]
TextField = tuple[str, str]

#: types that a browser can only show; everything else is offered as a file, or it could run as ours
PASSIVE = frozenset(
    ["text/plain", "text/csv", "application/json", "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif"]
)
#: stale-if-error, in intervals: an outage of ours as long as this need not become one of theirs
OUTAGE = 10
#: seconds beyond which no lifetime is promised, and an eternity for HTTP
YEAR = 31_536_000
SAFE: tuple[Field, ...] = (
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"content-security-policy", b"default-src 'none'; form-action 'none'; sandbox"),
    (b"server", b"unstale"),
)

_MEDIA_TYPE = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+([ \t]*;[\t\x20-\x7e]*)?")
_GAP = re.compile(r";gap=(\d+)$")
_NAME = re.compile(r"[A-Za-z*][A-Za-z0-9:/!#$%&'*+.^_`|~-]*")


def modified(edition: Edition) -> float:
    """When this version was last modified: as the source says, if that can be true, else when we took it.

    A source that stamps new content with a time before we took the old one would turn If-Modified-Since into a lie.
    """
    claim = read_date(edition.last_modified) if edition.last_modified else None
    if claim is not None and math.floor(edition.before) < claim <= edition.taken_at:
        return claim
    return edition.taken_at


def _last_modified(edition: Edition, latest: float) -> list[TextField]:
    """Last-Modified, at most `latest`; none of a version that came within the second of the one before it.

    By their dates nobody could tell the two apart, and who holds the other would be told that it is still good.
    """
    when = math.floor(min(modified(edition), latest))
    return [("last-modified", as_date(when))] if when > math.floor(edition.before) else []


@dataclass(frozen=True, slots=True)
class Believed:
    """How likely a copy is still fresh, by whose belief, and the seconds between two changes that it is believed by."""

    fresh: float
    gap: float
    by: str

    def at(self, age: float) -> Believed:
        """The same belief, of a copy that was checked so long ago.

        >>> Believed(1.0, 100.0, "lisbon").at(100.0).fresh.__round__(3)
        0.368
        """
        return Believed(math.exp(-max(age, 0.0) / max(self.gap, 1.0)), self.gap, self.by)

    def said(self) -> str:
        """The members of Replica-Status that tell it."""
        return f"fresh={self.fresh:.3f};by={_in_field(self.by)}, gap={int(self.gap)}"


def nearest(edition: Edition) -> Believed | None:
    """What the replica nearest to the source said it believes, when this version came; None if we poll it ourselves."""
    found = _GAP.search(edition.via.partition(", ")[0]) if edition.via else None
    return None if found is None else Believed(1.0, float(found[1]), names(edition.via)[0])


@dataclass(frozen=True, slots=True)
class CopyTimes:
    """What a copy says about itself from one observation to the next; `at` adds what moves with the clock."""

    checked: float
    expires: float
    fixed: tuple[TextField, ...]
    status: str
    #: members of Cache-Status that come before ours
    before: str = ""
    #: what whoever is nearest to the source believes of it, if we are not
    nearest: Believed | None = None

    def at(self, now: float, own: Believed, detail: bytes = b"") -> list[Field]:
        """The fields at `now`. `detail` warns a client that gets a copy which does not meet the bounds that it gave."""
        age, cache_status, replica_status = self.moving(now, own, own.said())
        told = f"{cache_status}; detail={detail.decode()}" if detail else cache_status
        return as_bytes([*self.fixed, ("age", age), ("cache-status", told), ("replica-status", replica_status)])

    def moving(self, now: float, own: Believed, told: str) -> tuple[str, str, str]:
        """Age, Cache-Status and Replica-Status at `now`, `own` being what we believe, `told` the same as it is said:
        how long ago it was checked, what is left, how likely it is still fresh."""
        age = now - self.checked
        # Whoever polls the source itself knows most of it: what it believes is passed along, in its name.
        said = told if self.nearest is None else self.nearest.at(age).said()
        return (
            f"{int(age)}" if age > 0.0 else "0",
            f"{self.before}{own.by}; hit; ttl={math.floor(self.expires - now)}",
            f"{self.status}, {said}",
        )


def expires_at(head: Head) -> float:
    """Until when a copy is promised to be good: until we look again. While its source fails no promise is made: the
    next try comes late, and says nothing of how long the copy lasts."""
    return head.checked if head.failures else min(head.due, head.checked + YEAR)


def times(head: Head, edition: Edition) -> CopyTimes:
    """Dates, lifetime and origin of a copy; how long it may be used while we fail follows from the interval."""
    checked, window = head.checked, int(min(max(head.due - head.checked, 0.0), YEAR))
    expires = expires_at(head)
    fixed = (
        ("date", as_date(checked)),
        ("expires", as_date(expires)),
        ("cache-control", f"stale-while-revalidate={window}, stale-if-error={min(window * OUTAGE, YEAR)}"),
        *_last_modified(edition, checked),
        ("vary", "accept-encoding"),
    )
    path = [_in_field(name) for name in names(edition.via)]
    # Through other replicas `checked` is when the first of them looked: the time at the root travels unchanged.
    # Structured fields date in whole seconds, too coarse to tell which of two replicas is ahead.
    at, taken = int(checked), int(edition.taken_at)
    status = (
        f"as-of=@{at};ms={int(1000.0 * (checked % 1.0))}, checked=@{at}, changed=@{taken}, "
        f"version={edition.version}, hops={len(path) + 1}"
    )
    if head.failures:
        status += f", failures={head.failures}"
    return CopyTimes(checked, expires, fixed, status, "".join(f"{hop}; hit, " for hop in path), nearest(edition))


def kept(edition: Edition, now: float, name: bytes) -> list[Field]:
    """What a named version says about itself: it never changes."""
    return [
        (b"date", as_date(now).encode()),
        (b"cache-control", b"max-age=%d, immutable" % YEAR),
        *as_bytes(_last_modified(edition, math.inf)),
        (b"vary", b"accept-encoding"),
        (b"cache-status", name + b"; hit"),
        (
            b"replica-status",
            b"changed=@%d, version=%d, hops=%d" % (edition.taken_at, edition.version, len(names(edition.via)) + 1),
        ),
    ]


def as_bytes(fields: Sequence[TextField]) -> list[Field]:
    """Fields as ASGI takes them."""
    return [(name.encode(), value.encode("latin-1")) for name, value in fields]


def as_texts(fields: Sequence[Field]) -> list[TextField]:
    """Fields as RSGI takes them."""
    return [(name.decode(), value.decode("latin-1")) for name, value in fields]


def names(via: str) -> list[str]:
    """The names of the replicas that a version came through, without what is kept beside them.

    >>> names("lisbon;gap=7200, porto")
    ['lisbon', 'porto']
    """
    return [_GAP.sub("", hop) for hop in via.split(", ") if hop]


def _in_field(name: str) -> str:
    """A name as its bytes are sent."""
    return name if name.isascii() else name.encode().decode("latin-1")


def well_formed(media_type: str) -> bool:
    """Whether a media type can be sent as it was stored: nothing in it can end the field."""
    return _MEDIA_TYPE.fullmatch(media_type) is not None


def content(source: int, edition: Edition) -> list[Field]:
    """What the bytes are, and that they are nobody's script."""
    media_type = edition.media_type if well_formed(edition.media_type) else "application/octet-stream"
    essence = media_type.partition(";")[0].strip().lower()
    fields = [(b"content-type", media_type.encode()), (b"accept-ranges", b"bytes"), *SAFE]
    if essence not in PASSIVE:
        suffix = mimetypes.guess_extension(essence) or ".bin"
        fields.append(
            (b"content-disposition", f'attachment; filename="copy-{source}-{edition.version}{suffix}"'.encode())
        )
    return fields


def matches(listed: str, etag: str, *, strongly: bool = False) -> bool:
    """Whether If-None-Match, or strongly If-Match, names this ETag, which is a strong one.

    >>> matches('"a", W/"b"', '"b"'), matches("*", '"b"'), matches('"ab"', '"b"')
    (True, True, False)
    >>> matches('W/"b"', '"b"', strongly=True)
    False
    """
    if listed == etag or listed.strip() == "*":
        return True
    tags = (tag.strip() for tag in listed.split(","))
    return any((tag if strongly else tag.removeprefix("W/")) == etag for tag in tags)


def structured_name(name: str) -> bytes:
    """A name as a structured field writes it [RFC 9651]: a token if it can be one, else a string.

    >>> structured_name("unstale"), structured_name("replica 7")
    (b'unstale', b'"replica 7"')
    """
    if _NAME.fullmatch(name):
        return name.encode()
    text = "".join(c for c in name if " " <= c <= "~").replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'.encode()
