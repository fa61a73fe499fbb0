"""What people look sources up by: addresses and titles as two texts, a line for each source; tags and kinds.

Rules of this file:
1. A line is found in milliseconds however many there are: a whole text is searched, not line by line.
2. Tags and kinds are read when they are first asked for, of those sources alone that fulfil everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from unstale.frozen import dataclass
from unstale.ports import ReadStore, tags_of
from unstale.service.own_titles import OwnTitles
from unstale.service.search import Term

Rows = NDArray[np.int64]

#: fleets up to this size have their titles searched with their addresses
TITLED = 5000
#: sources that are read at a time, and as many as there can be
_CHUNK, _ALL = 10_000, 2**62
#: letters of a text that are searched at a time: more no longer fit the processor's cache
_BLOCK = 2**20


@dataclass(frozen=True, slots=True)
class Filed:
    """What a source is filed under."""

    tags: tuple[str, ...]
    kind: str

    def has(self, term: Term) -> bool:
        """Whether a term of a tag or a kind holds."""
        return term.value in self.tags if term.name == "tag" else term.value == self.kind


@dataclass(frozen=True, slots=True)
class Lines:
    """Texts in lower case, one a line, and where each begins."""

    text: bytes
    begin: Rows

    @classmethod
    def of(cls, texts: Iterable[str]) -> Lines:
        """These texts, each on one line.

        >>> Lines.of(["Ab ab", "c", "CAB"]).having(b"ab")
        array([0, 2])
        """
        lines = [text.lower().replace("\n", " ").encode("utf-8", "replace") + b"\n" for text in texts]
        lengths = np.fromiter(map(len, lines), dtype=np.int64, count=len(lines))
        return cls(b"".join(lines), np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)]))

    def having(self, wanted: bytes) -> Rows:
        """The lines that contain this."""
        if not wanted:
            return np.arange(len(self.begin) - 1)
        every, places = np.frombuffer(self.text, dtype=np.uint8), [np.empty(0, dtype=np.int64)]
        for begin in range(0, len(every), _BLOCK):
            block = every[begin : begin + _BLOCK + len(wanted) - 1]
            # Where its first letter is, and then which of these go on as it does.
            at = np.flatnonzero(block[: max(len(block) - len(wanted) + 1, 0)] == wanted[0])
            for place, letter in enumerate(wanted[1:], 1):
                at = at[block[at + place] == letter]
            places.append(at + begin)
        lines = self.begin.searchsorted(np.concatenate(places), side="right") - 1
        return lines[np.diff(lines, prepend=-1) > 0]


@dataclass(frozen=True, slots=True)
class Names:
    """The lines of all sources, and whose they are; `edited` counts the store's edits when they were read."""

    source: Rows
    addresses: Lines
    titles: Lines
    edited: int
    #: those of a small fleet that have no title, their copies none either as far as these were looked at
    bare: tuple[int, ...]
    filed: dict[int, Filed] = field(default_factory=dict)
    #: the sources under tags and kinds that were asked for among many
    indexed: dict[tuple[str, str], Rows] = field(default_factory=dict)

    @classmethod
    def read(cls, store: ReadStore, edited: int, titles: OwnTitles | None = None) -> Names:
        """Those of all sources; of a small fleet titles stand beside the addresses, also those that copies have."""
        told = store.names()
        few = len(told) <= TITLED
        if few and titles is not None:
            told = titles.all(store, told)
        return cls(
            np.array([number for number, _, _ in told], dtype=np.int64),
            Lines.of(f"{address}\t{title}" if few and title else address for _, address, title in told),
            Lines.of(title for _, _, title in told),
            edited,
            tuple(source for source, _, title in told if few and not title),
        )

    def having(self, wanted: bytes) -> Rows:
        """The sources whose address contains this."""
        return self.source[self.addresses.having(wanted)]

    def titled(self, wanted: bytes) -> Rows:
        """The sources whose title contains this."""
        return self.source[self.titles.having(wanted)]

    def under(self, store: ReadStore, term: Term) -> Rows:
        """The sources that are filed under a tag or a kind, of all there are: the store knows, without telling what
        each is filed under."""
        key = term.name, str(term.value)
        if key not in self.indexed:
            tag, kind = (key[1] if term.name == name else None for name in ("tag", "kind"))
            self.indexed[key] = np.array(store.search(tag=tag, kind=kind, limit=_ALL), dtype=np.int64)
        return self.indexed[key]

    def of(self, store: ReadStore, sources: Sequence[int]) -> Mapping[int, Filed]:
        """What these are filed under; read once until the fleet is edited."""
        missing = [source for source in sources if source not in self.filed]
        for begin in range(0, len(missing), _CHUNK):
            for one in store.listings(missing[begin : begin + _CHUNK]):
                self.filed[one.id] = Filed(tuple(tags_of(one.options)), one.kind)
        return self.filed
