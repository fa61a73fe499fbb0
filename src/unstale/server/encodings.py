"""Stored bytes as clients accept them: the stored zstd frame as it is, gzip on demand, or plain."""

from __future__ import annotations

import gzip
from functools import lru_cache
from hashlib import sha256

import zstandard

from unstale.errors import StoreError, sentence

#: what we can send, best first
CODINGS = ("zstd", "gzip", "identity")
#: a coding must save so much to be worth it
WORTH = 0.9


@lru_cache(maxsize=1024)
def accepted(header: str) -> tuple[str, ...]:
    """Our codings in the order a client prefers them, ties in our order; plain is always among them.

    >>> accepted("gzip, deflate, br, zstd"), accepted("gzip;q=0.5, identity;q=0.8"), accepted("")
    (('zstd', 'gzip', 'identity'), ('identity', 'gzip'), ('identity',))
    """
    weights: dict[str, float] = {}
    for item in header.lower().split(",")[:20]:
        coding, _, parameters = item.partition(";")
        name, _, text = parameters.replace(" ", "").partition("=")
        try:
            weights[coding.strip()] = float(text) if name == "q" else 1.0
        except ValueError:
            weights[coding.strip()] = 0.0
    other = weights.get("*", 0.0)
    # Whoever names no weight for plain takes it last; whoever forbids it gets it all the same if nothing else is there.
    each = {c: weights.get(c, 0.0 if c == "identity" and "*" not in weights else other) for c in CODINGS}
    chosen = sorted((c for c in CODINGS if each[c] > 0 or c == "identity"), key=lambda c: -each[c])
    return tuple(chosen)


def choose(header: str, size: int, packed: int) -> str:
    """The coding for a body of `size` bytes that zstd makes `packed`: what hardly shrinks goes out plain."""
    if packed > WORTH * size:
        return "identity"
    return accepted(header)[0]


def unpack(packed: bytes, digest: bytes, size: int) -> bytes:
    """The plain bytes, which are those that were stored, or StoreError."""
    try:
        if zstandard.frame_content_size(packed) == size:
            data: bytes = zstandard.ZstdDecompressor().decompress(packed)
            if sha256(data).digest() == digest:
                return data
    except zstandard.ZstdError:
        pass
    raise StoreError(
        sentence("copy", digest.hex()[:12], "is damaged on the disk", "poll the source again or restore a backup")
    )


def gzipped(data: bytes) -> bytes:
    """The same bytes always: a strong ETag names them."""
    return gzip.compress(data, 6, mtime=0)


def etag(digest: bytes, coding: str) -> str:
    """A strong ETag of the content in one coding.

    >>> etag(bytes(32), "gzip")
    '"00000000000000000000000000000000-gzip"'
    """
    return f'"{digest.hex()[:32]}"' if coding == "identity" else f'"{digest.hex()[:32]}-{coding}"'
