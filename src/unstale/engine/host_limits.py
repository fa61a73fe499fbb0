"""Manners towards hosts: how close polls may follow each other, how many at a time, and when a host wants none.

Rules of this file:
1. A host's slots are given out in order, each at least one spacing after the last: a slot that was promised is kept.
2. What a host asks for (crawl-delay, Retry-After) can only make us slower than the settings say, never faster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from ipaddress import ip_address

from unstale.calendar import Hours, spans
from unstale.engine.host_grants import HostGrant
from unstale.frozen import dataclass
from unstale.ports import RateLimit

WEEK = 7 * 86_400.0
#: seconds for which a host that answers 429 or 503 without a date is left alone, doubled each time up to the last
FIRST_PAUSE, LAST_PAUSE = 30.0, 3600.0
#: seconds between those who come back to a host that was blocked
BREATH = 0.1
#: hosts that are remembered while nothing goes on at them
REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Rules:
    """What the settings grant a host: seconds between the starts of polls, polls at a time, and hours, if not all."""

    spacing: float = 1.0
    concurrency: int = 2
    hours: tuple[Hours, ...] = ()
    #: the share of the host's own quota that is left to others
    leave: float = 0.0


#: our own network is not the public's: nothing is spaced there unless the settings say so
HOME = Rules(0.0, 1_000_000)


@dataclass(slots=True)
class HostState:
    """How things stand at one host."""

    rules: Rules
    slot: float = -math.inf
    active: int = 0
    #: spacing it asked for itself, and the time until which it wants no polls
    asked: float = 0.0
    #: seconds between calls at which what is left of its quota lasts until there is a new one
    paced: float = 0.0
    blocked: float = -math.inf
    refusals: int = 0
    #: the last time that somebody was sent away to come back at
    pile: float = -math.inf

    @property
    def spacing(self) -> float:
        """Seconds between the starts of two polls."""
        return max(self.rules.spacing, self.asked, self.paced)


class HostLimits:
    """Keeps the manners of all hosts; `rules` gives the settings' word for a host, over which `granted` counts.

    >>> host_limits = HostLimits(lambda host: Rules(spacing=2.0, concurrency=1))
    >>> [host_limits.slot("a", 10.0), host_limits.slot("a", 10.0), host_limits.slot("b", 10.0)]
    [10.0, 12.0, 10.0]
    """

    def __init__(
        self, rules: Callable[[str], Rules] | None = None, granted: Mapping[str, HostGrant] | None = None
    ) -> None:
        self._rules, self._granted = rules or usual_rules, granted or {}
        self._hosts: dict[str, HostState] = {}

    def grant(self, granted: Mapping[str, HostGrant]) -> None:
        """From now on this counts over the settings' word; slots that were promised are kept.

        >>> host_limits = HostLimits(lambda host: Rules(spacing=2.0, concurrency=1))
        >>> [host_limits.slot("a", 10.0), host_limits.grant({"a": HostGrant(5.0)}), host_limits.slot("a", 10.0)]
        [10.0, None, 12.0]
        >>> host_limits.slot("a", 10.0), host_limits.host("a").rules.concurrency
        (17.0, 1)
        """
        if granted != self._granted:
            self._granted = granted
            for name, host in list(self._hosts.items()):
                host.rules = self.rules(name)

    def rules(self, name: str) -> Rules:
        """What a host is granted."""
        own, said = self._rules(name), self._granted.get(name)
        if said is None:
            return own
        return replace(own, spacing=said.spacing, concurrency=said.concurrency or own.concurrency)

    def host(self, name: str) -> HostState:
        """The state of a host."""
        known = self._hosts.get(name)
        if known is None:
            if len(self._hosts) >= REMEMBERED:
                self._forget()
            known = self._hosts[name] = HostState(self.rules(name))
        return known

    def slot(self, name: str, now: float, within: float = math.inf) -> float:
        """The time at which the next poll of this host may begin.

        If that is within so many seconds it is taken. If not, the answer is when to ask again: everybody another
        time, one after the other, so that not all come back at once.
        """
        host, at = self.host(name), self.opens_at(name, now)
        if at <= now + within:
            host.slot = at + host.spacing
            return at
        host.pile = max(host.pile, at)
        again = host.pile
        host.pile += max(host.spacing, BREATH)
        return again

    def opens_at(self, name: str, now: float) -> float:
        """The time of the next slot of a host, which nobody takes by asking."""
        host = self.host(name)
        at = max(now, host.blocked, host.slot)
        return at + opens_in(host.rules.hours, at)

    def room(self, name: str, now: float, within: float, line: int) -> int:
        """How many more polls could begin within so many seconds, `line` of them waiting for others to end.

        >>> HostLimits(lambda host: Rules(spacing=2.0, concurrency=1)).room("a", 10.0, within=5.0, line=64)
        3
        """
        host, at = self.host(name), self.opens_at(name, now)
        if at > now + within:
            return 0
        places = max(host.rules.concurrency - host.active, 0) + line
        return places if host.spacing <= 0.0 else min(places, int((now + within - at) / host.spacing) + 1)

    def begin(self, name: str) -> bool:
        """Whether a poll may begin now as far as the number at a time goes; if so it counts as begun."""
        host = self.host(name)
        if host.active >= host.rules.concurrency:
            return False
        host.active += 1
        return True

    def at_once(self, name: str, now: float) -> bool:
        """Whether a poll may begin this moment, and then it has: as `slot` and `begin`, where both are free."""
        host = self.host(name)
        rules = host.rules
        if host.active >= rules.concurrency or host.slot > now or host.blocked > now or rules.hours:
            return False
        host.slot = now + host.spacing
        host.active += 1
        return True

    def end(self, name: str, *, content: bool = False) -> None:
        """A poll has ended; `content` if its answer has nothing to say of how the host wants to be treated."""
        host = self.host(name)
        host.active -= 1
        if content and host.refusals:
            self.heard(name, 0.0, refused=False, retry_after=None, spacing=0.0)

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
        """What an answer says about how the host wants to be treated; `refused` if we asked too much.

        What is left of its quota, without what is others', is spread over the time until there is a new one; a poll
        that took several calls has taken the turns of as many.

        >>> host_limits = HostLimits(lambda host: Rules(0.0, 9, leave=0.2))
        >>> told = RateLimit(left=1600.0, seconds=1800.0, of=5000.0)
        >>> host_limits.heard("a", 0.0, refused=False, retry_after=None, spacing=0.0, rate_limit=told)
        >>> host_limits.host("a").spacing
        3.0
        """
        host = self.host(name)
        host.asked = max(host.asked, spacing)
        if rate_limit is not None:
            ours = rate_limit.left - host.rules.leave * rate_limit.of
            host.paced = rate_limit.seconds / max(ours, 1.0)
            if ours < 1.0:
                host.blocked = max(host.blocked, now + min(rate_limit.seconds, WEEK))
        host.slot += (calls - 1) * host.spacing
        undated = refused and retry_after is None
        pause = min(FIRST_PAUSE * 2.0**host.refusals, LAST_PAUSE) if undated else retry_after
        if pause is not None:
            host.blocked = max(host.blocked, now + pause)
        host.refusals = host.refusals + 1 if refused else 0

    def cap(self, name: str) -> float:
        """The most polls per second that a host's spacing allows."""
        spacing = self.host(name).spacing
        return 1.0 / spacing if spacing > 0.0 else math.inf

    def shift(self, by: float) -> None:
        """The clock was set: what was promised stays as far off as it was."""
        for host in self._hosts.values():
            host.slot, host.blocked, host.pile = host.slot + by, host.blocked + by, host.pile + by

    def busy(self) -> list[tuple[str, HostState]]:
        """The hosts that something is known of."""
        return list(self._hosts.items())

    def _forget(self) -> None:
        for name in [name for name, host in self._hosts.items() if not host.active and host.asked == 0.0][:1000]:
            del self._hosts[name]


def opens_in(hours: tuple[Hours, ...], now: float) -> float:
    """Seconds until polls are allowed, 0 if they are; no hours are all hours.

    >>> from unstale.calendar import parse_hours
    >>> opens_in(parse_hours("22:00-06:00"), 43200.0) / 3600.0
    10.0
    """
    if not hours:
        return 0.0
    ahead = spans(hours, now - 1.0, now + WEEK)
    if bool(ahead.is_open(now)):
        return 0.0
    later = ahead.start[ahead.start > now]
    return float(later[0] - now) if len(later) else WEEK


def usual_rules(host: str) -> Rules:
    """A poll a second and two at a time for a host of the public net; no bounds at home.

    >>> usual_rules("example.org").spacing, usual_rules("127.0.0.1").spacing, usual_rules("").spacing
    (1.0, 0.0, 0.0)
    """
    if not host or host == "localhost" or host.endswith(".localhost"):
        return HOME
    try:
        return HOME if ip_address(host).is_private else Rules()
    except ValueError:
        return Rules()
