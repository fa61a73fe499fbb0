"""Manners at the hosts of the shards that a worker holds: nobody else polls them, but somebody did before.

Rules of this file:
1. What is spaced is when polls begin, not when they were promised to: a worker that was stopped begins none the sooner.
2. At hosts of shards that were taken over just now a spacing passes first: their last holder may have polled.
3. What hosts ask for is told to the store, for who holds their shards next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

from unstale.engine.host_limits import HostLimits, HostState, Rules
from unstale.ports import HostWord, RateLimit

#: how much later than it has begun a poll's request may go out, in spacings
LATE = 0.05
#: what is added to the settings' spacings, in seconds and in spacings: on a busy machine a request that was looked at
#: in the last moment may still wait for the processor, and must not come too close to the next one
MARGIN, SHARE = 0.05, 0.05


class HeldHostLimits(HostLimits):
    """Host limits that notice when polls begin.

    >>> limits = HeldHostLimits(lambda host: Rules(spacing=2.0, concurrency=1))
    >>> limits.begins("a", 10.0), limits.begins("a", 11.0), limits.begins("a", 12.5), limits.begins("a", 14.0)
    (10.0, 12.15, 12.5, 14.65)
    >>> limits.unbegun("a", 12.5)
    >>> limits.begins("a", 14.0)
    14.0
    >>> limits.unbegun("a", 12.5)
    >>> limits.begins("a", 14.5)
    16.15
    """

    def __init__(self, rules: Callable[[str], Rules] | None = None) -> None:
        super().__init__(rules)
        #: when the last poll of each host has begun, and the one before it
        self._begun: dict[str, tuple[float, float]] = {}
        self._since, self._words = -math.inf, dict[str, HostWord]()
        self._untold: set[str] = set()

    def host(self, name: str) -> HostState:
        """The state of a host."""
        if (known := self._hosts.get(name)) is not None:
            return known
        known = super().host(name)
        if (word := self._words.get(name)) is not None:
            known.asked, known.blocked = word.asked, word.blocked
            known.refusals, known.paced = word.refusals, word.paced
        known.slot = self._since + known.spacing
        return known

    def rules(self, name: str) -> Rules:
        """What a host is granted, and a little more time."""
        own = super().rules(name)
        return replace(own, spacing=(1.0 + SHARE) * own.spacing + MARGIN) if own.spacing > 0.0 else own

    def take_over(self, now: float, words: Sequence[HostWord]) -> None:
        """Shards were taken: of their hosts is known what the store was told."""
        self._since, self._words = now, {word.name: word for word in words}
        for name, host in list(self._hosts.items()):
            if name in self._words and name not in self._untold and not host.active:
                del self._hosts[name]
            else:
                host.slot = max(host.slot, now + host.spacing)

    def begins(self, name: str, now: float) -> float:
        """When the next poll of a host may begin; if that is now, it has."""
        if (spacing := self.host(name).spacing) <= 0.0:
            return now
        last = self._begun.get(name, (-math.inf, -math.inf))[0]
        at = max(last, self._since) + spacing
        if at > now:
            return at
        self._begun[name] = now, last
        self._hosts[name].slot = max(self._hosts[name].slot, now + spacing)
        return now

    def unbegun(self, name: str, at: float) -> None:
        """A poll that has begun then has not after all: its turn is the next one's, unless another has begun since."""
        if name in self._begun and self._begun[name][0] == at:
            self._begun[name] = self._begun[name][1], -math.inf
            self._hosts[name].slot = -math.inf

    def latest(self, name: str, now: float) -> float:
        """The time by which the request of a poll that begins now must have gone out."""
        spacing = self.host(name).spacing
        return now + LATE * spacing if spacing > 0.0 else math.inf

    def heard(
        self,
        name: str,
        now: float,
        *,
        refused: bool,
        retry_after: float | None,
        spacing: float,
        rate_limit: RateLimit | None = None,
        calls: int = 1,
    ) -> None:
        """What an answer says about how the host wants to be treated."""
        host = self.host(name)
        before = host.asked, host.blocked, host.refusals, host.paced
        super().heard(
            name,
            now,
            refused=refused,
            retry_after=retry_after,
            spacing=spacing,
            rate_limit=rate_limit,
            calls=calls,
        )
        if before != (host.asked, host.blocked, host.refusals, host.paced):
            self._untold.add(name)

    def taken(self) -> list[HostWord]:
        """What hosts have asked for since this was asked last."""
        names, self._untold = sorted(self._untold), set()
        states = [(name, self.host(name)) for name in names]
        return [HostWord(name, one.asked, one.blocked, one.refusals, one.paced) for name, one in states]

    def keep(self, words: Sequence[HostWord]) -> None:
        """This could not be told yet."""
        self._untold |= {word.name for word in words}

    def shift(self, by: float) -> None:
        """The clock was set."""
        super().shift(by)
        self._since += by
        self._begun = {name: (last + by, before + by) for name, (last, before) in self._begun.items()}
