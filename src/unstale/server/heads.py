"""How sources stand, read again only when the store has moved, and then for all that are asked for at once.

A query per request costs little, but it lets go of the interpreter, and the server's own thread takes it: two threads
handing it to and fro cost more than all the rest. One query for what was asked for during the last commits avoids that.

A source that somebody asks about is made due at once. That hurries the engine, but changes nothing that the copy is
good for: what was promised after an observation stays promised until the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unstale.ports import Head, Shelf

#: sources that are read together, and those whose promises are remembered
MOST, PROMISES = 2000, 50_000
#: commits for which a source that was asked for is read along with others
LATELY = 32
#: an observation that there is not, and what was promised after it
_NOTHING = -1, 0.0


class Heads:
    """Always as the store stands at the moment of the question; `polled` is told of those polled again."""

    def __init__(self, shelf: Shelf, polled: Callable[[Sequence[Head]], None] = lambda heads: None) -> None:
        self._shelf, self._polled = shelf, polled
        self._mark: bytes | None = None
        #: read under this mark
        self._known: dict[int, Head] = {}
        #: asked for lately, and before
        self._asked: set[int] = set()
        self._asked_before: set[int] = set()
        self._commits = 0
        #: the observation after which each was promised to be good, and until when
        self._promised: dict[int, tuple[int, float]] = {}

    def of(self, source: int) -> Head | None:
        """How a source stands now, None if there is no such source."""
        # The mark is taken first: what is committed while we read makes the next one differ.
        mark = self._shelf.mark()
        if mark is None:
            return self._read([source]).get(source)
        if mark != self._mark:
            again, before = [*self._asked, *(self._asked_before - self._asked)][:MOST], self._known
            self._mark, self._known = mark, self._read(again) if again else {}
            self._commits += 1
            if self._commits % LATELY == 0:
                self._asked_before, self._asked = self._asked, set()
            moved = [head for head in self._known.values() if head.latest != before.get(head.source, head).latest]
            if moved:
                self._polled(moved)
        self._asked.add(source)
        head = self._known.get(source)
        if head is None:
            found = self._read([source])
            self._known |= found
            head = found.get(source)
        return head

    def _read(self, sources: list[int]) -> dict[int, Head]:
        """How sources stand, each with the due time that was promised first after its newest observation, if that is
        later. Of most nothing is new: of those it is what was known."""
        found, promised, before = {}, self._promised, self._known
        for head in self._shelf.heads(sources):
            source, latest, _, _, due, _ = head
            seen, until = promised.get(source, _NOTHING)
            if seen == latest and until > due:
                head = head._replace(due=until)
            elif seen != latest or until != due:
                if len(promised) >= PROMISES:
                    promised.clear()
                promised[source] = latest, due
            known = before.get(source)
            found[source] = head if known is None or known != head else known
        return found
