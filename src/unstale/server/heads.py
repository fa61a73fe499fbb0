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
#: commits for which a source that was asked for is read along with others: one that is left out costs as much as
#: hundreds that are read along, if it was polled meanwhile
LATELY = 256
#: an observation that there is not, and what was promised after it
_NOTHING = -1, 0.0


class Heads:
    """Always as the store stands at the moment of the question; `polled` is told of those polled again."""

    def __init__(self, shelf: Shelf, polled: Callable[[Sequence[Head]], None] = lambda heads: None) -> None:
        self._shelf, self._polled = shelf, polled
        self._mark: bytes | None = None
        #: read under this mark: as the store has it, and as it was promised
        self._known: dict[int, tuple[Head, Head]] = {}
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
            self._known, _ = self._read([source])
        elif mark != self._mark:
            again = [*self._asked, *(self._asked_before - self._asked)][:MOST]
            self._mark, (self._known, moved) = mark, self._read(again) if again else ({}, [])
            self._commits += 1
            if self._commits % LATELY == 0:
                self._asked_before, self._asked = self._asked, set()
            if moved:
                self._polled(moved)
        self._asked.add(source)
        known = self._known.get(source)
        if known is None:
            self._known |= self._read([source])[0]
            known = self._known.get(source)
        return None if known is None else known[1]

    def _read(self, sources: list[int]) -> tuple[dict[int, tuple[Head, Head]], list[Head]]:
        """How sources stand, and those of them that were polled since they were read last.

        Of most nothing is new: of those it is what was known.
        """
        found, moved, before = dict[int, tuple[Head, Head]](), list[Head](), self._known
        for head in self._shelf.heads(sources):
            source = head[0]
            known = before.get(source)
            if known is None or known[0] != head:
                promised = self._promise(head)
                if known is not None and known[0].latest != head.latest:
                    moved.append(promised)
                known = head, promised
            found[source] = known
        return found, moved

    def _promise(self, head: Head) -> Head:
        """The same with the due time that was promised first after its newest observation, if that is later."""
        seen, until = self._promised.get(head.source, _NOTHING)
        if seen == head.latest and until > head.due:
            return head._replace(due=until)
        if seen != head.latest or until != head.due:
            if len(self._promised) >= PROMISES:
                self._promised.clear()
            self._promised[head.source] = head.latest, head.due
        return head
