"""What is kept in memory of copies, so that a request need not make it again: bytes in each coding, and header fields.

Rules of this file:
1. What is kept only saves work: whoever asks says how the source stands (`Head`), and what was made of another
   observation is made anew.
2. Fields that stay the same from one observation to the next are put in order once for each of them, and what is said
   of the bytes once for each version and coding.
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
from unstale.server.headers import Field, as_texts
from unstale.server.ranges import Stretch

#: bytes of bodies that are kept in memory
MEMORY = 64 * 2**20
#: a body of more bytes is unpacked and packed beside the loop, so that others need not wait
LARGE = 256 * 1024


class Coded:
    """A body in one coding: its ETag, its bytes, and what is said about them; that as text, of a 200 and of a 304."""

    __slots__ = ("about", "body", "etag", "texts", "texts_304", "whole")

    def __init__(self, etag: str, body: bytes, about: list[Field]) -> None:
        self.etag, self.body, self.about = etag, body, about
        self.texts = as_texts([*about, (b"content-length", b"%d" % len(body))])
        self.texts_304 = as_texts(without(about, *OF_THE_BODY))
        self.whole = Stretch(etag, body, 0, len(body))


@dataclass(slots=True)
class HeldCopy:
    """What is kept in memory of one version of a source."""

    head: Head
    edition: Edition
    times: headers.CopyTimes
    about: list[Field]
    packed: bytes
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

    def at_hand(self, source: int, head: Head) -> HeldCopy | None:
        """The newest version of a source that stands so, if it is in memory."""
        held = self._held.get(source)
        if held is None or not (held.head is head or held.head == head):
            return None
        self._held.move_to_end(source)
        return held

    def of(self, source: int, head: Head) -> HeldCopy | None:
        """The newest version of a source that stands so; None if there is none."""
        held = self.at_hand(source, head)
        if held is None:
            (edition,) = self._shelf.editions([(source, head.version)])
            held = None if edition is None else self._renewed(head, edition)
        return held

    def renew(self, heads: Sequence[Head]) -> None:
        """Sources were polled again: what is held of them is brought up, all looked at at once; who asks for what is
        large waits for it."""
        some = [head for head in heads if head.version and head.source in self._held]
        editions = self._shelf.editions([(head.source, head.version) for head in some]) if some else []
        for head, edition in zip(some, editions, strict=True):
            if edition is not None and edition.size <= LARGE:
                self._renewed(head, edition)

    def _renewed(self, head: Head, edition: Edition) -> HeldCopy | None:
        """What is held of a source that stands so and has this edition; its bytes are read if they are not there."""
        source = head.source
        held = self._held.get(source)
        if held is not None and held.edition == edition:
            # The same bytes, after another poll.
            held.head, held.times = head, headers.times(head, edition)
            return held
        packed = self._shelf.packed(source, edition.version)
        if packed is None:
            return None
        self._forget(source)
        held = HeldCopy(head, edition, headers.times(head, edition), headers.content(source, edition), packed)
        self._held[source] = held
        self._keep(source, held, 0)
        return held

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
