"""Unpacking gzip within a bound, however much a stranger has packed into it."""

from __future__ import annotations

import zlib

from unstale.errors import InputError, sentence

#: what a packed listing may unpack to: the sitemap protocol's own limit
MOST_BYTES = 50 * 2**20


def unpacked(data: bytes, most: int = MOST_BYTES) -> bytes:
    """The bytes themselves, or what gzip packed into them; more than `most` is refused before it is all unpacked.

    >>> import gzip
    >>> unpacked(gzip.compress(b"<urlset/>")), unpacked(b"<urlset/>")
    (b'<urlset/>', b'<urlset/>')
    """
    if not data.startswith(b"\x1f\x8b"):
        if len(data) > most:
            raise InputError(sentence("listing", f"of {len(data)} bytes", f"must have at most {most}", "split it"))
        return data
    out = bytearray()
    rest = data
    while rest.startswith(b"\x1f\x8b"):
        stream = zlib.decompressobj(wbits=31)
        try:
            out += stream.decompress(rest, most + 1 - len(out))
        except zlib.error as error:
            raise InputError(sentence("listing", "packed by gzip", f"is broken ({error})", "fetch it again")) from None
        if len(out) > most:
            raise InputError(sentence("listing", "packed by gzip", f"unpacks to more than {most} bytes", "split it"))
        if not stream.eof:
            raise InputError(sentence("listing", "packed by gzip", "ends too early", "fetch it again"))
        rest = stream.unused_data
    return bytes(out)
