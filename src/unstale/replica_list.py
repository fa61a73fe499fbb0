"""Which replicas polled a source last, newest first: the list that a source hands out [004 sect. VI-A].

Rules of this file:
1. A replica that polls says where it serves, and hears at each poll who polled the same source before it.
2. Names are what strangers wrote: bounded in length and number, and nothing but a scheme, a host and a port.
3. Who has left says so, and is named no more; who left without a word goes once it has not polled for KEPT seconds.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import field

from unstale.frozen import dataclass

#: what a poll says of who polls, and what the answer says of the others
ASKING, RECENT = "Replica-Address", "Replica-Recent"
#: replicas that are named for one source, sources that lists are kept of, and seconds without a poll until one is gone
MOST, SOURCES, KEPT = 32, 100_000, 3600.0

_ADDRESS = re.compile(r"https?://(?:[A-Za-z0-9.-]{1,100}|\[[0-9A-Fa-f:.]{2,50}\])(?::\d{1,5})?")
_MEMBER = re.compile(r'"([^"\\]{1,200})"(;\s*leaving)?')


@dataclass(slots=True)
class ReplicaList:
    """Who polled each source when.

    >>> told = ReplicaList()
    >>> for at, replica in enumerate(["http://a", "http://b", "http://a", "http://c"]):
    ...     heard = told.polled("news", replica, float(at))
    >>> heard, told.polled("law", "http://c", 4.0)
    (['http://a', 'http://b'], [])
    """

    most: int = MOST
    #: for each source its replicas, who polled last at the end
    _polled: dict[Hashable, dict[str, float]] = field(default_factory=dict)

    def polled(self, source: Hashable, replica: str, now: float) -> list[str]:
        """Note a poll; the others who polled that source, newest first."""
        known = self._polled.get(source)
        if known is None:
            if len(self._polled) >= SOURCES:
                del self._polled[next(iter(self._polled))]
            known = self._polled[source] = {}
        known.pop(replica, None)
        while known and (len(known) >= self.most or known[next(iter(known))] < now - KEPT):
            del known[next(iter(known))]
        others = list(reversed(known))
        known[replica] = now
        return others

    def left(self, replica: str) -> None:
        """Name a replica no more, until it polls again."""
        for known in self._polled.values():
            known.pop(replica, None)

    def answer(self, source: Hashable, said: str, now: float) -> str:
        """What goes back in `RECENT` to a poll that came with this in `ASKING`; nothing to who says nothing of use.

        >>> told = ReplicaList()
        >>> told.answer("news", '"http://a:1"', 0.0), told.answer("news", '"http://b:2"', 1.0)
        ('', '"http://a:1"')
        >>> told.answer("news", '"http://a:1"; leaving', 2.0), told.answer("news", '"http://b:2"', 3.0)
        ('', '')
        """
        found = _MEMBER.fullmatch(said.strip())
        if found is None or not _ADDRESS.fullmatch(found[1]):
            return ""
        if found[2]:
            self.left(found[1])
            return ""
        return written(self.polled(source, found[1], now))


def written(replicas: Sequence[str]) -> str:
    """A list of strings, as structured fields write it [RFC 9651]."""
    return ", ".join(f'"{replica}"' for replica in replicas)


def read(text: str) -> list[str]:
    """The replicas that an answer names, newest first; what is no address of a replica is passed over.

    >>> read('"http://a:1", "http://[::1]:8600", "file:///etc", "http://b/path"')
    ['http://a:1', 'http://[::1]:8600']
    """
    names = (found[1] for found in _MEMBER.finditer(text[: 256 * MOST]))
    return [name for name in names if _ADDRESS.fullmatch(name)][:MOST]
