"""The fingerprint of what counts in a body: two copies are the same if it is the same."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from typing import Protocol, runtime_checkable

#: the part of a body that counts, given its media type
Content = Callable[[bytes, str], bytes]


@runtime_checkable
class Selective(Protocol):
    """What counts, where not every change of it is news, or looking for it may take any time."""

    @property
    def unbounded(self) -> bool:
        """Whether even a small body may take long: an expression of somebody's is looked for in it."""

    def fires(self, old: bytes, old_type: str, new: bytes, new_type: str) -> bool:
        """Whether what became of a body is news."""


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


def fires(content: Selective, old: bytes, old_type: str, new: bytes, new_type: str) -> bool:
    """Whether what became of a body is news: `Selective.fires`, to be run where it can be ended."""
    return content.fires(old, old_type, new, new_type)
