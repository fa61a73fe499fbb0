"""Content codings undone piece by piece: bounded in what they hold, and only whole when their own end was seen.

Rules of this file:
1. A coded body says itself where it ends (the trailer of gzip, the last block of brotli and zstd). Without that end it
   was cut, whatever its length says.
2. However small a piece, never more is unpacked than there is room for: what is packed a thousandfold is given up. It
   comes out in small pieces, so that nobody has to hold all of it.
3. Several gzip members or zstd frames in a row are one body, as their formats say.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import brotli
import zstandard

#: what a request offers, and how many codings around each other are undone
OFFERED, MOST = "gzip, br, zstd", 3
#: bytes that are unpacked at a time, about
_STEP = 1 << 16
#: bytes of zstd that are unpacked at a time: each four of them can be a block of 128 KiB [RFC 8878 3.1.1.2]
_LITTLE = 64
#: bytes of a window that a sender may ask for [RFC 9659]
_WINDOW = 1 << 23


class BrokenCoding(Exception):
    """The bytes are not what their coding says."""


class TooMuch(Exception):
    """There is more than there is room for; `found` is what there was room for."""

    def __init__(self, found: bytes = b"") -> None:
        super().__init__()
        self.found = found


class _Layer(Protocol):
    """One coding."""

    @property
    def whole(self) -> bool:
        """Whether the end was seen, and nothing began behind it."""

    def unpack(self, data: bytes) -> Iterator[bytes]:
        """What these bytes unpack to, in small pieces, none before it is asked for; BrokenCoding."""


class Decoder:
    """Undoes the codings of one body, the last one first.

    >>> decoder = Decoder(["gzip"])
    >>> decoder.feed(zlib.compress(b"news", wbits=31)[:9], 100), decoder.whole
    (b'', False)
    """

    __slots__ = ("_layers",)

    def __init__(self, codings: Sequence[str]) -> None:
        unknown = [coding for coding in codings if coding not in _LAYERS]
        if unknown or len(codings) > MOST:
            raise BrokenCoding
        self._layers = [_LAYERS[coding]() for coding in reversed(codings)]

    @property
    def whole(self) -> bool:
        """Whether every coding has ended."""
        return all(layer.whole for layer in self._layers)

    def unpack(self, data: bytes, room: int) -> Iterator[bytes]:
        """What these bytes unpack to, piece by piece: at most `room` of them, then TooMuch."""
        found = iter([data])
        for layer in self._layers:
            found = _bounded(layer, found, room)
        return found

    def feed(self, data: bytes, room: int) -> bytes:
        """The same at once; a TooMuch tells all that there was room for."""
        found = bytearray()
        try:
            for piece in self.unpack(data, room):
                found += piece
        except TooMuch as error:
            raise TooMuch(bytes(found + error.found)) from None
        return bytes(found)


def _bounded(layer: _Layer, data: Iterator[bytes], room: int) -> Iterator[bytes]:
    """What a layer makes of all these pieces, as long as there is room."""
    for packed in data:
        for piece in layer.unpack(packed):
            if len(piece) > room:
                raise TooMuch(piece[:room])
            room -= len(piece)
            yield piece


def codings_of(text: str) -> list[str]:
    """The codings that a Content-Encoding names, in the order in which they were put around the body.

    >>> codings_of("X-Gzip, identity"), codings_of("")
    (['x-gzip'], [])
    """
    names = (name.strip().lower() for name in text.split(","))
    return [name for name in names if name and name != "identity"]


def whole(body: bytes, text: str, room: int) -> bool:
    """Whether a body that is coded as Content-Encoding says has its end; true of codings that we do not know.

    >>> whole(zlib.compress(b"news", wbits=31), "gzip", 9), whole(b"news", "gzip", 9), whole(b"news", "pack200", 9)
    (True, False, True)
    """
    codings = codings_of(text)
    if not codings or any(coding not in _LAYERS for coding in codings):
        return True
    try:
        decoder = Decoder(codings)
        decoder.feed(body, room)
    except (BrokenCoding, TooMuch):
        return False
    return decoder.whole


class _Zlib:
    """gzip, one member after the other, or deflate, with its wrapping or (as some send it) without."""

    __slots__ = ("_bits", "_members", "_unpacker")

    def __init__(self, bits: int) -> None:
        self._bits, self._members = bits, 0
        self._unpacker = zlib.decompressobj(wbits=bits) if bits else None

    @property
    def whole(self) -> bool:
        return self._members > 0 and (self._unpacker is None or self._unpacker.eof)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._unpacker is None or self._unpacker.eof:
                # Zeros pad what was on a tape; anything else must be another member, and only gzip has those.
                data = data.lstrip(b"\0") if self._members else data
                if not data:
                    break
                if self._members and self._bits != 31:
                    raise BrokenCoding
                self._unpacker = zlib.decompressobj(wbits=self._bits or _wrapping(data))
            try:
                found = self._unpacker.decompress(data, _STEP)
            except zlib.error:
                raise BrokenCoding from None
            self._members += self._unpacker.eof
            data = self._unpacker.unused_data if self._unpacker.eof else self._unpacker.unconsumed_tail
            if found:
                yield found


def _wrapping(data: bytes) -> int:
    """The window bits by which zlib reads a deflate stream that begins so."""
    return 15 if data[0] & 0x0F == 8 and (len(data) < 2 or (data[0] << 8 | data[1]) % 31 == 0) else -15


class _Brotli:
    __slots__ = ("_unpacker",)

    def __init__(self) -> None:
        self._unpacker = brotli.Decompressor()

    @property
    def whole(self) -> bool:
        return bool(self._unpacker.is_finished())

    def unpack(self, data: bytes) -> Iterator[bytes]:
        if data and self._unpacker.is_finished():
            raise BrokenCoding
        try:
            while found := self._unpacker.process(data, output_buffer_limit=_STEP):
                data = b""
                yield found
        except brotli.error:
            raise BrokenCoding from None


class _Zstd:
    __slots__ = ("_frames", "_unpacker")

    def __init__(self) -> None:
        self._frames = 0
        self._begin()

    def _begin(self) -> None:
        self._unpacker = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()

    @property
    def whole(self) -> bool:
        return self._frames > 0 and bool(self._unpacker.eof)

    def unpack(self, data: bytes) -> Iterator[bytes]:
        at = 0
        while at < len(data):
            if self._unpacker.eof:
                self._begin()
            piece = data[at : at + _LITTLE]
            at += len(piece)
            try:
                found = self._unpacker.decompress(piece)
            except zstandard.ZstdError:
                raise BrokenCoding from None
            if self._unpacker.eof:
                self._frames += 1
                at -= len(self._unpacker.unused_data)
            if found:
                yield found


_LAYERS: dict[str, Callable[[], _Layer]] = {
    "gzip": lambda: _Zlib(31),
    "x-gzip": lambda: _Zlib(31),
    "deflate": lambda: _Zlib(0),
    "br": _Brotli,
    "zstd": _Zstd,
}
