"""The fingerprint of what counts in a body: two copies are the same if it is the same."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256

#: the part of a body that counts, given its media type
Content = Callable[[bytes, str], bytes]


def fingerprint(body: bytes, media_type: str, content: Content | None) -> str:
    """The SHA-256 of what counts, in hexadecimal; without `content` all of the body does.

    >>> fingerprint(b"abc", "", None) == fingerprint(b"abc 12:00", "", lambda body, kind: body[:3])
    True
    """
    return sha256(body if content is None else content(body, media_type)).hexdigest()


def counted(body: bytes, media_type: str, content: Content | None) -> str:
    """What counts, as text.

    >>> counted(b"abc 12:00", "", lambda body, kind: body[:3])
    'abc'
    """
    return (body if content is None else content(body, media_type)).decode("utf-8", "replace")
