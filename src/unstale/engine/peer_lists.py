"""Which replicas poll what we poll, as whoever we poll names them: of each source, newest first [004 sect. VI-A]."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

#: sources whose lists are remembered
SOURCES = 100_000


class PeerLists:
    """The list that came with the last poll of each source.

    >>> lists = PeerLists()
    >>> lists.heard("news", ["http://b", "http://a"]), lists.heard("law", ["http://a"]), lists.heard("news", ["http://a"])
    ([], [], ['http://b'])
    >>> {replica: sorted(sources) for replica, sources in lists.recent(1).items()}
    {'http://a': ['law', 'news']}
    """

    def __init__(self) -> None:
        self._lists: dict[str, tuple[str, ...]] = {}
        #: how many lists name whom
        self._named: Counter[str] = Counter()

    def heard(self, source: str, replicas: Sequence[str]) -> list[str]:
        """Note who else polls a source; whom no list names any more."""
        before, now = self._lists.pop(source, ()), tuple(dict.fromkeys(replicas))
        if len(self._lists) < SOURCES:
            self._lists[source] = now
            self._named.update(now)
        self._named.subtract(before)
        gone = [replica for replica in before if not self._named[replica]]
        for replica in gone:
            del self._named[replica]
        return gone

    def recent(self, count: int) -> dict[str, set[str]]:
        """The replicas among the first `count` of a list, each with the sources of these lists."""
        found: dict[str, set[str]] = {}
        for source, replicas in self._lists.items():
            for replica in replicas[:count]:
                found.setdefault(replica, set()).add(source)
        return found
