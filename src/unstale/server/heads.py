"""How sources stand, read again only when the store has moved, and then for all that are asked for at once.

A query per request costs little, but it lets go of the interpreter, and the server's own thread takes it: two threads
handing it to and fro cost more than all the rest. One query for what was asked for since the last commit avoids that.
"""

from __future__ import annotations

from unstale.ports import Head, Shelf

#: sources that are read together
MOST = 2000


class Heads:
    """Always as the store stands at the moment of the question."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._mark: bytes | None = None
        #: read under this mark
        self._known: dict[int, Head] = {}
        self._asked: set[int] = set()

    def of(self, source: int) -> Head | None:
        """How a source stands now, None if there is no such source."""
        # The mark is taken first: what is committed while we read makes the next one differ.
        mark = self._shelf.mark()
        if mark is None:
            return self._read([source]).get(source)
        if mark != self._mark:
            again = list(self._asked)[:MOST]
            self._mark, self._known, self._asked = mark, self._read(again) if again else {}, set()
        self._asked.add(source)
        head = self._known.get(source)
        if head is None:
            found = self._read([source])
            self._known |= found
            head = found.get(source)
        return head

    def _read(self, sources: list[int]) -> dict[int, Head]:
        return {head.source: head for head in self._shelf.heads(sources)}
