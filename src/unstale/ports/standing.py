"""How sources stand, as servers ask for it: of one at a request, at a commit of all that were asked for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from unstale.ports.summaries import Head


class Standings(Protocol):
    """Where sources stand, and who stands otherwise than before."""

    def mark(self) -> bytes | None:
        """Other bytes whenever anything was committed, for less than a microsecond; None if that cannot be told."""

    def heads(self, sources: Sequence[int]) -> list[Head]:
        """How sources stand now, those that exist."""

    def heads_unlike(self, told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        """Of sources that stood so: how those stand now that stand otherwise, and those that are gone.

        Whoever asks again after every commit, with what was answered in its place, waits for little more than what
        changed.
        """


def unlike(heads: Iterable[Head], told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
    """The same of all heads as they are now.

    >>> one, two = Head(1, 1, 1, 0.0, 60.0, 0), Head(2, 2, 1, 0.0, 60.0, 0)
    >>> unlike([two._replace(due=90.0)], {1: one, 2: two})
    ([Head(source=2, latest=2, version=1, checked=0.0, due=90.0, failures=0)], [1])
    """
    now = {head.source: head for head in heads}
    return [head for head in now.values() if told[head.source] != head], [one for one in told if one not in now]
