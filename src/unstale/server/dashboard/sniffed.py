"""Small pictures of strangers: what they are is read off their first bytes, and whatever else they say is not asked.

Rules of this file:
1. Nothing is decoded here. A picture that says it is larger than an icon is none: browsers would decode it.
2. Drawings (SVG) are documents, and documents are no pictures.
"""

from __future__ import annotations

import struct

#: pixels of a side, and pictures in one file of icons
SIDE, MANY = 1024, 64
_PNG = b"\x89PNG\r\n\x1a\n"


def picture_type(data: bytes) -> str | None:
    """The media type of a small picture, or None: PNG, GIF, JPEG, WebP and Windows icons.

    >>> picture_type(b"GIF89a" + bytes([16, 0, 16, 0]) + bytes(20)), picture_type(b"<svg onload=x>")
    ('image/gif', None)
    """
    for kind, size_of in _KINDS.items():
        try:
            sides = size_of(data)
        except (struct.error, IndexError):
            continue
        if sides and all(0 < side <= SIDE for side in sides):
            return kind
    return None


def _png(data: bytes) -> tuple[int, ...]:
    if not data.startswith(_PNG + b"\x00\x00\x00\rIHDR"):
        return ()
    return struct.unpack_from(">II", data, 16)


def _gif(data: bytes) -> tuple[int, ...]:
    return struct.unpack_from("<HH", data, 6) if data[:6] in (b"GIF87a", b"GIF89a") else ()


def _jpeg(data: bytes) -> tuple[int, ...]:
    if not data.startswith(b"\xff\xd8\xff"):
        return ()
    at = 2
    # Segments up to the frame's, which has the size.
    while data[at] == 0xFF:
        mark, length = data[at + 1], int(struct.unpack_from(">H", data, at + 2)[0])
        if 0xC0 <= mark <= 0xCF and mark not in (0xC4, 0xC8, 0xCC):
            return struct.unpack_from(">HH", data, at + 5)
        at += 2 + length
    return ()


def _webp(data: bytes) -> tuple[int, ...]:
    if data[:4] != b"RIFF" or data[8:12] != b"WEBP":
        return ()
    if data[12:16] == b"VP8X":
        return tuple(1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27) if len(data) >= 30)
    if data[12:16] == b"VP8L" and data[20] == 0x2F:
        bits = int(struct.unpack_from("<I", data, 21)[0])
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if data[12:16] == b"VP8 " and data[23:26] == b"\x9d\x01\x2a":
        return tuple(side & 0x3FFF for side in struct.unpack_from("<HH", data, 26))
    return ()


def _icon(data: bytes) -> tuple[int, ...]:
    """Every picture in it, by what it says itself: the directory's word has one byte."""
    zero, one, count = struct.unpack_from("<HHH", data)
    if (zero, one) != (0, 1) or not 0 < count <= MANY:
        return ()
    sides: list[int] = []
    for place in range(count):
        length, at = struct.unpack_from("<II", data, 6 + 16 * place + 8)
        inner = data[at : at + length]
        if inner.startswith(_PNG):
            sides += _png(inner) or (0,)
        elif inner[:4] == struct.pack("<I", 40):
            # A bitmap and its mask, one above the other.
            width, height = struct.unpack_from("<ii", inner, 4)
            sides += (width, abs(height) // 2)
        else:
            sides.append(0)
    return tuple(sides)


_KINDS = {"image/png": _png, "image/gif": _gif, "image/jpeg": _jpeg, "image/webp": _webp, "image/x-icon": _icon}
