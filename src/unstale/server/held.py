"""What is kept in memory of copies, so that a request need not make it again: bytes in each coding, and header fields.

Rules of this file:
1. What is kept only saves work: whoever asks says how the source stands (`Head`), and what was made of another
   observation is made anew.
2. Fields that stay the same from one observation to the next are put in order once for each version and coding.
3. Bytes leave only after they were checked against their digest.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import field

from unstale.frozen import dataclass
from unstale.ports import Edition, Head, ReadStore
from unstale.server import encodings, headers
from unstale.server.conditions import OF_THE_BODY, without
from unstale.server.headers import Field

TextField = tuple[str, str]

#: bytes of bodies that are kept in memory
MEMORY = 64 * 2**20
#: a body of more bytes is unpacked and packed beside the loop, so that others need not wait
LARGE = 256 * 1024


class Coded:
    """A body in one coding: its ETag, its bytes, and what is said about them; that as text, of a 200 and of a 304."""

    __slots__ = ("about", "body", "etag", "texts", "texts_304")

    def __init__(self, etag: str, body: bytes, about: list[Field]) -> None:
        self.etag, self.body, self.about = etag, body, about
        self.texts = _texts([*about, (b"content-length", b"%d" % len(body))])
        self.texts_304 = _texts(without(about, *OF_THE_BODY))


@dataclass(slots=True)
class HeldCopy:
    """What is kept in memory of one version of a source."""

    head: Head
    edition: Edition
    times: headers.CopyTimes
    about: list[Field]
    packed: bytes
    #: the fields that stay as long as these times do, as text
    texts: list[TextField]
    codings: dict[str, Coded] = field(default_factory=dict)

    def ready(self, accept: str) -> Coded | None:
        """The body as a client accepts it, if it was made before."""
        return self.codings.get(encodings.choose(accept, self.edition.size, len(self.packed)))

    @property
    def size(self) -> int:
        return len(self.packed) + sum(len(coded.body) for coded in self.codings.values())


class HeldCopies:
    """The newest versions that were asked for lately, as many as fit."""

    def __init__(self, shelf: ReadStore, memory: int = MEMORY) -> None:
        self._shelf, self._memory = shelf, memory
        self._held: OrderedDict[int, HeldCopy] = OrderedDict()
        self._kept = 0

    def of(self, source: int, head: Head) -> HeldCopy | None:
        """The newest version of a source that stands so; None if there is none."""
        held = self._held.get(source)
        if held is not None and (held.head is head or held.head == head):
            self._held.move_to_end(source)
            return held
        (edition,) = self._shelf.editions([(source, head.version)])
        if edition is None:
            return None
        if held is not None and held.edition == edition:
            _stands(held, head)
            return held
        packed = self._shelf.packed(source, head.version)
        if packed is None:
            return None
        self._forget(source)
        about, times = headers.content(source, edition), headers.times(head, edition)
        held = self._held[source] = HeldCopy(head, edition, times, about, packed, _texts(times.fixed))
        self._keep(source, held, 0)
        return held

    def renew(self, heads: Sequence[Head]) -> None:
        """Sources were polled again: what is held of those whose bytes are the same stays, all looked at at once."""
        some = [
            head for head in heads if (held := self._held.get(head.source)) and held.edition.version == head.version
        ]
        editions = self._shelf.editions([(head.source, head.version) for head in some]) if some else []
        for head, edition in zip(some, editions, strict=True):
            held = self._held[head.source]
            if held.edition == edition:
                _stands(held, head)

    async def coded(self, source: int, held: HeldCopy, accept: str) -> Coded:
        """A held copy as a client accepts it."""
        coding = encodings.choose(accept, held.edition.size, len(held.packed))
        found = held.codings.get(coding)
        if found is None:
            before = held.size
            found = held.codings[coding] = await coded(held.packed, held.edition, coding, held.about)
            self._keep(source, held, before)
        return found

    def _keep(self, source: int, held: HeldCopy, before: int) -> None:
        """Count what a source has in memory now, and let go of what nobody asked for longest."""
        if self._held.get(source) is held:
            self._kept += held.size - before
        while self._kept > self._memory and len(self._held) > 1:
            self._forget(next(iter(self._held)))

    def _forget(self, source: int) -> None:
        held = self._held.pop(source, None)
        if held is not None:
            self._kept -= held.size


async def coded(packed: bytes, edition: Edition, coding: str, about: list[Field]) -> Coded:
    """Stored bytes in one coding, checked."""

    def make() -> bytes:
        # Also what goes out packed is unpacked once, to be checked.
        data = encodings.unpack(packed, edition.digest, edition.size)
        return packed if coding == "zstd" else encodings.gzipped(data) if coding == "gzip" else data

    body = await asyncio.to_thread(make) if edition.size > LARGE else make()
    etag = encodings.etag(edition.digest, coding)
    fields = [*about, (b"etag", etag.encode())]
    if coding != "identity":
        fields.append((b"content-encoding", coding.encode()))
    return Coded(etag, body, fields)


def _stands(held: HeldCopy, head: Head) -> None:
    """The same bytes, after another poll."""
    held.head, held.times = head, headers.times(head, held.edition)
    held.texts = _texts(held.times.fixed)


def _texts(fields: Sequence[Field]) -> list[TextField]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in fields]
