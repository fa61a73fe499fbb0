"""What the engine asks of the world outside: what time it is, what a source says, what another replica holds.

Rules of this file:
1. A contract has at most eight methods; what every keeper of it promises is in its docstring and in one contract test.
2. Times are seconds since the epoch. Nothing here knows a technology.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import ParamSpec, Protocol, TypeVar, runtime_checkable

from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports.progress import Progress

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class Request:
    """One look at a source: where it is, what we hold of it, and how much it may cost.

    `etag` and `last_modified` are the validators that came with the copy we hold, as the source wrote them.
    `limit` bounds the decoded body in bytes, `seconds` the whole poll, redirects included. What goes out later than
    `begin_by` would come too close to another poll of its host.
    """

    address: str
    etag: str | None = None
    last_modified: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    #: what the source's owner says about how to look at it, as listed
    options: Mapping[str, object] = field(default_factory=dict)
    limit: int = 16 * 2**20
    seconds: float = 30.0
    #: when the copy we hold was last known equal to its source; nothing older may take its place
    since: float = -math.inf
    begin_by: float = math.inf
    #: the SHA-256 of the body we hold, where all of it counts: the same one need not be brought again
    digest: bytes | None = None
    #: what is said to a source that must be asked by POST; empty: it is looked at by GET
    content: bytes = b""
    #: who hears how far a long poll is, now and then, from whatever thread
    hear: Callable[[Progress], None] | None = None


@dataclass(frozen=True, slots=True)
class RateLimit:
    """What a host says that may still be asked of it: `left` calls within so many `seconds`, `of` so many in all.

    `of` is 0 where that is not told.
    """

    left: float
    seconds: float
    of: float = 0.0


@dataclass(frozen=True, slots=True)
class Fetched:
    """What came back. `body` is there only if the source sent one; whether it differs from the copy is not judged here.

    A failure has a `reason` in one sentence and the `status` the source gave, if any. `retry_after` is a wait in
    seconds that the source asked for, with whatever answer.
    `changed_at` are the times of changes that the source itself tells (entries of a feed, Last-Modified), rising.
    Through a cache or another replica `polled_at` is when its copy was known equal to the source, and before
    `not_before` it has nothing new; `via` are the replicas it came through, nearest to the source first.
    """

    answer: Answer
    polled_at: float
    body: bytes | None = None
    media_type: str = ""
    etag: str | None = None
    last_modified: str | None = None
    changed_at: tuple[float, ...] = ()
    reason: str = ""
    retry_after: float | None = None
    status: int = 0
    #: where the body came from after redirects, and how many bytes crossed the network
    address: str = ""
    received: int = 0
    #: the pause between polls that the host asks for, in seconds
    spacing: float = 0.0
    via: str = ""
    not_before: float = -math.inf
    #: requests that were sent for it, redirects and robots.txt included, or statements that a database was asked
    requests: int = 1
    #: what the host says that it may still be asked, and the calls that its quota was asked for
    rate_limit: RateLimit | None = None
    calls: int = 1
    #: rows of tables, or records, that were read
    rows: int = 0


class Clock(Protocol):
    """What time it is, and waiting until it is later. `now` goes back only when the machine's clock was set back."""

    def now(self) -> float:
        """Seconds since the epoch."""

    async def sleep(self, seconds: float) -> None:
        """Let so many seconds pass."""


class Fetcher(Protocol):
    """Looks at sources of some kind, many at a time.

    Promises: `fetch` never raises for anything a source does, it answers FAILED with a reason; it returns within
    `request.seconds` (and a moment); it never holds more than `request.limit` decoded bytes; it never connects to
    an address that the settings do not allow, on any hop; credentials never cross origins; an answer "not modified"
    is UNCHANGED without a body, anything with a body is CHANGED for the caller to compare. One that asks hosts over a
    network may look at its clock just before it does and raise TooLateError: nothing was asked then.
    """

    async def fetch(self, request: Request) -> Fetched:
        """Look once."""

    async def close(self) -> None:
        """Give back connections; what is in flight ends as FAILED."""


#: hears what came back, or the fault of ours that ended a look
Ended = Callable[[Fetched | Exception], None]
#: ends a look without a word; nothing, once it has ended
CallOff = Callable[[], object]


@runtime_checkable
class QuickFetcher(Fetcher, Protocol):
    """A fetcher that can be asked without waiting for it: a task for every look would cost as much as the look.

    Promises what a `Fetcher` does. `ended` is called once, in a later turn of the event loop, unless the look was
    called off before.
    """

    def begin(self, request: Request, ended: Ended) -> CallOff | None:
        """Begin to look; None, and nothing was done, if this look has to be awaited: then `fetch` it."""


class Aside(Protocol):
    """Runs what may take too long, or too much, on what strangers wrote.

    Promises: `run` ends in time, whatever the arguments hold, and nothing but who called it waits for it; what cannot
    be done within the limits raises InputError with a reason in one sentence.
    """

    async def run(self, work: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
        """What a function of a module gives for these arguments, in plain JSON."""

    async def close(self) -> None:
        """End what is under way."""


@dataclass(frozen=True, slots=True)
class Digest:
    """What another replica says it holds: address, as of when, and SHA-256 of each copy, one portion of it.

    `now` is the time there (0: not told), `further` where the next portion begins (None: this was the last). A digest
    that could not be had has a `reason`; `false` marks one that must not be believed.
    """

    rows: tuple[tuple[str, float, bytes], ...] = ()
    now: float = 0.0
    further: int | None = None
    received: int = 0
    reason: str = ""
    false: bool = False


class Peering(Protocol):
    """Asks other replicas. Promises what a `Fetcher` does: bounded in time and size, gated, never raising."""

    async def digest(self, peer: str, since: float, after: int, back: str = "") -> Digest:
        """What a replica holds that is as of `since` or later, from the portion that begins behind `after`.

        `back` is where we are: a replica that has us among its peers asks us in turn.
        """

    async def copy(self, peer: str, source: str, since: float) -> Fetched:
        """A replica's copy of a source, unless it is older than `since`."""
