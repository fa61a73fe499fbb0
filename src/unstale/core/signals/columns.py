"""What is kept of collections and of their members, in columns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from unstale.core.checks import Floats
from unstale.core.learning.columns import Bits


class MemberColumns(NamedTuple):
    """What is kept of each member besides its belief: 40 bytes.

    `told` is when its last signal says that it changed, `signals` how many listings have signalled it since its copy,
    `uncovered` its collection's uncovered time when the copy was taken, `check` how long after `told` to look again.
    `heard` is how many listings have signalled it in all, `hits` of `tries` polls after a signal found a change.
    `rate`, `level` and `spacing` are what the last look at the price made of it: the believed rate, the doubt at which
    a poll pays, the distance of blind polls (0: none).
    """

    told: Floats
    check: Floats
    uncovered: Floats
    hits: Floats
    tries: Floats
    rate: Floats
    level: Floats
    spacing: Floats
    signals: np.ndarray
    heard: np.ndarray


class CollectionColumns(NamedTuple):
    """What is kept of each collection. Times are seconds; `entries` is 0 for a listing that shows all its members.

    `since` is when it was first listened to, `asof` the last listing, `due` the next, `interval` between them;
    `uncovered` the time that no listing told of. `silent` of `watched` expected changes came without a signal; `late`
    is how long after a change it may be told.
    """

    cost: Floats
    entries: Floats
    since: Floats
    asof: Floats
    due: Floats
    interval: Floats
    uncovered: Floats
    hits: Floats
    tries: Floats
    silent: Floats
    watched: Floats
    credit: Floats
    #: changes that polls of members found, and that their beliefs without signals foretold, faded
    found: Floats
    expected: Floats
    #: and that how often they were signalled foretold; by how much that has done better than beliefs, in logarithms
    counted: Floats
    often: Floats
    #: polls of members that taught something of it; infinite once trust was lost
    lessons: Floats
    late: Floats
    #: share of its members that the last listings signalled, and that beliefs foretold, faded
    spoken: Floats
    foretold: Floats
    #: entries that came, and the time in which they did, faded
    came: Floats
    within: Floats
    #: of that time, what no listing told of, for entries had scrolled out
    missed: Floats
    #: what the members were worth that it found, and the time in which it did, faded
    joined: Floats
    over: Floats
    #: what polls that wait for its listings will cost per second, and those listings themselves
    told_cost: Floats
    trusted: Bits
    used: Bits
    #: whether its signals come by themselves, and what polls that follow them may still cost while it is not trusted
    push: Bits
    allowed: Floats


def member_columns(count: int, start: float) -> MemberColumns:
    """Members without a signal."""

    def small(value: float = 0.0) -> np.ndarray:
        return np.full(count, value, np.float32)

    return MemberColumns(
        np.full(count, -np.inf),
        small(),
        small(),
        small(),
        small(),
        small(),
        small(1.0),
        small(),
        np.zeros(count, np.int16),
        np.zeros(count, np.uint16),
    )


def collection_columns(cost: Floats, entries: Floats, start: float, push: Bits | None = None) -> CollectionColumns:
    """Collections that nobody has polled; those that `push` cannot be."""
    count = len(cost)

    def column(value: float = 0.0) -> Floats:
        return np.full(count, value)

    return CollectionColumns(
        cost=np.asarray(cost, np.float64),
        entries=np.asarray(entries, np.float64),
        since=column(start),
        asof=column(start),
        due=column(start),
        interval=column(np.inf),
        uncovered=column(),
        hits=column(),
        tries=column(),
        silent=column(),
        watched=column(),
        credit=column(),
        found=column(),
        expected=column(),
        counted=column(),
        often=column(),
        lessons=column(),
        late=column(),
        spoken=column(),
        foretold=column(),
        came=column(),
        within=column(),
        missed=column(),
        joined=column(),
        over=column(),
        told_cost=column(),
        trusted=np.zeros(count, np.bool_),
        used=np.zeros(count, np.bool_),
        push=np.zeros(count, np.bool_) if push is None else push,
        allowed=column(),
    )
