"""Unpacking gzip and xz within a bound, however much a stranger has packed into it."""

from __future__ import annotations

import lzma
import zlib

from unstale.errors import InputError, sentence

#: what a packed listing may unpack to: the sitemap protocol's own limit
MOST_BYTES = 50 * 2**20
#: what unpacking xz may hold of what was unpacked: its strongest setting needs half of it
_MEMORY = 2**27


def unpacked(data: bytes, most: int = MOST_BYTES) -> bytes:
    """The bytes themselves, or what gzip or xz packed into them; more than `most` is refused before it is all unpacked.

    >>> import gzip
    >>> unpacked(gzip.compress(b"<urlset/>")), unpacked(b"<urlset/>")
    (b'<urlset/>', b'<urlset/>')
    """
    if data.startswith(b"\xfd7zXZ\0"):
        return _of_xz(data, most)
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


def _of_xz(data: bytes, most: int) -> bytes:
    stream = lzma.LZMADecompressor(memlimit=_MEMORY)
    try:
        out = stream.decompress(data, most + 1)
    except lzma.LZMAError as error:
        raise InputError(sentence("listing", "packed by xz", f"is broken ({error})", "fetch it again")) from None
    if len(out) > most:
        raise InputError(sentence("listing", "packed by xz", f"unpacks to more than {most} bytes", "split it"))
    if not stream.eof:
        raise InputError(sentence("listing", "packed by xz", "ends too early", "fetch it again"))
    return out
