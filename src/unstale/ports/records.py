"""What goes in and out of stores: frozen records and columns. Times are seconds since the epoch."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.kinds import SHAPE

#: the setting that holds the learner's shared state; every state it has had is kept while observations need it
LEARNER = "learner"
#: the setting that names the unit in which polls were found to cost what they do; in another one nothing is known
COST_IN = "cost_in"
#: the name of a setting and its value
Setting = tuple[str, bytes]
#: a store counts in whole numbers: what polls cost is counted in millionths
MILLIONTHS = 1_000_000


@dataclass(frozen=True, slots=True)
class Listing:
    """A source as its owner lists it. `options` is plain JSON; secrets in it are names of the environment, `$TOKEN`.

    `id` and `added_at` (None: in no store yet) are the store's: what is given there is not looked at.
    """

    address: str
    kind: str = "http"
    weight: float = 1.0
    cost: float = 1.0
    #: the group that shares a cap
    host: str = ""
    shortest: float = 0.0
    longest: float = math.inf
    options: Mapping[str, object] = field(default_factory=dict)
    paused: bool = False
    id: int = 0
    added_at: float | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to poll a source once, and what a poll needs. `token` grows from claim to claim and never comes back.

    `last` is when the source last answered (-inf: never), `failures` how many polls failed since, `latest` the token
    of its newest observation (0: none). `etag`, `last_modified` and `fingerprint` are those of the newest copy. Where
    others poll the same hosts, the poll must have begun at `begin_by`, or the claim goes back.
    """

    source: int
    token: int
    address: str
    kind: str
    due: float
    options: Mapping[str, object] = field(default_factory=dict)
    last: float = -math.inf
    failures: int = 0
    latest: int = 0
    version: int = 0
    etag: str | None = None
    last_modified: str | None = None
    fingerprint: bytes | None = None
    begin_by: float = math.inf
    #: where the store keeps it, which concerns nobody else
    slot: int = field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Body:
    """What a poll brought, to be kept as a copy; `fingerprint` is what the next poll compares."""

    data: bytes
    media_type: str = ""
    etag: str | None = None
    last_modified: str | None = None
    fingerprint: bytes | None = None
    #: where it came from after redirects
    address: str = ""
    #: the replicas it came through, nearest to the source first, as names of a structured field; empty: none
    via: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """How a claimed poll ended, and everything that follows from it: recorded whole or not at all.

    `belief` is the learner's row after this poll, float64 in the machine's order; None leaves the one that is there.
    """

    claim: Claim
    answer: Answer
    polled_at: float
    due: float
    belief: bytes | None = None
    #: when the source says it last changed
    modified: float | None = None
    received: int = 0
    reason: str = ""
    body: Body | None = None
    #: what it took from the budget, and the requests it took: redirects and robots.txt are requests too
    cost: float = 1.0
    requests: int = 1
    #: when the signal that made us poll said that it changed, if the belief was taught by it
    told: float | None = None
    #: what polls of it are expected to cost from now on; None: what was expected before
    learned: float | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """One poll as it was recorded; `elapsed` is the time since the answer before it, NaN if there was none.

    `epoch` numbers the learner's shared state that was in force, 0 before any: under it, replaying gives the same.
    `told` is when a signal said that it changed, where the belief was taught by it: unchanged until then.
    """

    token: int
    source: int
    polled_at: float
    answer: Answer
    elapsed: float
    modified: float | None
    received: int
    reason: str
    epoch: int = 0
    told: float | None = None


@dataclass(frozen=True, slots=True)
class Copy:
    """One kept version of a source, its bytes checked against their SHA-256. Versions count from 1."""

    source: int
    version: int
    taken_at: float
    digest: bytes
    body: Body


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a poll that was published at a time, and the budget it was found for.

    Beside it, how things stood: the expected freshness of the fleet, and what it would be if all were polled equally
    often; and what was done since the price before: polls, changes found, failures, budget spent.
    """

    at: float
    price: float
    budget: float
    fresh: float = 0.0
    even: float = 0.0
    polls: int = 0
    changed: int = 0
    failed: int = 0
    spent: float = 0.0


@dataclass(frozen=True, slots=True)
class Event:
    """A new version of a source, to be told to those who asked; numbers rise in the order of recording."""

    number: int
    source: int
    address: str
    version: int
    at: float
    digest: bytes
    #: what is told besides, where it is known: its title and tags, lines that were taken away (-) and added (+),
    #: whether there is more than these, and where the difference can be seen
    title: str = ""
    tags: tuple[str, ...] = ()
    lines: tuple[tuple[str, str], ...] = ()
    more: bool = False
    link: str = ""

    @property
    def first(self) -> bool:
        """Whether it is the first copy: nothing was there that changed."""
        return self.version == 1


#: options that say what a collection's listing means
_READ = ("collection", "only", "never", "depth", "most_members", "elsewhere", *SHAPE)


def what_counts(listing: Listing) -> tuple[object, ...]:
    """What is said of a source about what counts as a change of it, and of a collection about how it is read: copies
    are judged anew, and collections read anew, when it is another.

    >>> what_counts(Listing("https://example.org/", options={"tags": ["news"], "normalise": {}}))
    ('http', None, None, None)
    """
    said = listing.options
    read = [said.get(name) for name in _READ] if said.get("collection") else ()
    return listing.kind, *(said.get(name) or None for name in ("normalise", "triggers", "picture")), *read


def tags_of(options: Mapping[str, object]) -> list[str]:
    """The tags of a source.

    >>> tags_of({"tags": "news"}), tags_of({})
    (['news'], [])
    """
    tags = options.get("tags") or ()
    return [str(tag) for tag in tags] if isinstance(tags, list | tuple) else [str(tags)]


def number_of(options: Mapping[str, object], name: str, usual: float) -> float:
    """A source's own word for a number, which `add` has checked; what is usual where it says none.

    >>> number_of({"depth": "2"}, "depth", 1.0), number_of({}, "depth", 1.0)
    (2.0, 1.0)
    """
    told = options.get(name)
    return usual if told is None else float(str(told))


def widened(belief: bytes | None, width: int) -> bytes:
    """A belief as `width` floats: zeros follow one that an older version kept with fewer, and are all there is of none.

    >>> len(widened(bytes(120), 19)), widened(None, 1) == bytes(8)
    (152, True)
    """
    size = 8 * width
    return bytes(size) if belief is None or len(belief) > size else belief.ljust(size, b"\0")
