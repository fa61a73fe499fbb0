"""How sources stand, looked at again only when the store has moved, and then all that are asked for at once.

A query per request costs little, but it lets go of the interpreter, and the server's own thread takes it: two threads
handing it to and fro cost more than all the rest. One question for what was asked for during the last commits avoids
that, and the store answers it with those alone who stand otherwise.

A source that somebody asks about is made due at once. That hurries the engine, but changes nothing that the copy is
good for: what was promised after an observation stays promised until the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from unstale.ports import Head, Standings

#: sources that are looked at together, and those whose promises are remembered
MOST, PROMISES = 4000, 50_000
#: commits for which a source that was asked for is looked at along with others: one that is left out costs as much as
#: hundreds that are looked at along, if it was polled meanwhile
LATELY = 256
#: an observation that there is not, and what was promised after it
_NOTHING = -1, 0.0


class Heads:
    """Always as the store stands at the moment of the question; `polled` is told of those polled again."""

    def __init__(self, shelf: Standings, polled: Callable[[Sequence[Head]], None] = lambda heads: None) -> None:
        self._shelf, self._polled = shelf, polled
        self._mark: bytes | None = None
        #: under this mark: as the store has it, and as it was promised
        self._told: dict[int, Head] = {}
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
            self._mark, self._told, self._known = None, {}, {}
            return self._read(source)
        if mark != self._mark:
            self._look(mark)
        self._asked.add(source)
        return self._known.get(source) or self._read(source)

    def _read(self, source: int) -> Head | None:
        for head in self._shelf.heads([source]):
            return self._keep(head)
        return None

    def _look(self, mark: bytes) -> None:
        """Look at all that were asked for lately, and tell of those that were polled since."""
        if (self._commits + 1) % LATELY == 0 or len(self._told) > MOST:
            self._let_go()
        others, gone = self._shelf.heads_unlike(self._told) if self._told else ([], [])
        self._mark, moved = mark, list[Head]()
        self._commits += 1
        for source in gone:
            del self._told[source], self._known[source]
        for head in others:
            polled = self._told[head.source].latest != head.latest
            promised = self._keep(head)
            if polled:
                moved.append(promised)
        if moved:
            self._polled(moved)

    def _let_go(self) -> None:
        """Look no more at who was not asked for lately."""
        again = [*self._asked, *(self._asked_before - self._asked)][:MOST]
        self._told = {source: self._told[source] for source in again if source in self._told}
        self._known = {source: self._known[source] for source in self._told}
        self._asked_before, self._asked = self._asked, set()

    def _keep(self, head: Head) -> Head:
        promised = self._known[head.source] = self._promise(head)
        self._told[head.source] = head
        return promised

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
