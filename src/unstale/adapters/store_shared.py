"""What stores share: bounds, codes, how bytes are packed, and what follows from how a poll ended."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

import zstandard

from unstale.errors import StoreError, sentence
from unstale.keeper.outcomes import Answer
from unstale.ports import MILLIONTHS, Claim, Entry, Listing, Observation, what_counts

#: seconds for which observations are kept, unless said otherwise
HORIZON = 90 * 86400.0
#: events that are kept for whoever has not been told of them, and their bytes: past either, the oldest go, counted as
#: "untold"; numbers of events have no gaps, so whoever is told sees that some are missing
MOST_EVENTS, MOST_EVENT_BYTES = 250_000, 64_000_000
#: bytes of an event beside its address, and the events after which their bytes are added up again
EVENT_BYTES, WEIGHED = 128, 1_000
#: versions of a source that are kept, and of a feed: so its entries are known long after it has dropped them
VERSIONS, FEED_VERSIONS = 3, 30
#: polls that are looked through for one that was answered
NEWEST = 1000
#: answers as they are stored, and their numbers there
ANSWERS = (Answer.UNCHANGED, Answer.CHANGED, Answer.FAILED)
NUMBER = {answer: i for i, answer in enumerate(ANSWERS)}

#: a belief is checkpointed when a source's polls pass a multiple of this share of the horizon
_STRIDE = 0.25
_LEVEL = 3


class AfterPoll(NamedTuple):
    """What an outcome makes of a source: when it last answered, the latest that a change can have been found, when
    one was found now, and the failures since the last answer."""

    last: float
    bound: float
    found: float | None
    failures: int


def answered(entry: Entry) -> AfterPoll:
    """What an outcome makes of its source.

    After a clock has jumped back, time runs from the new reading: nothing is dated later than the last answer.
    """
    if entry.answer is Answer.FAILED:
        return AfterPoll(entry.claim.last, math.inf, None, entry.claim.failures + 1)
    return AfterPoll(entry.polled_at, entry.polled_at, entry.polled_at if entry.answer is Answer.CHANGED else None, 0)


def elapsed(entry: Entry) -> float | None:
    """Seconds since the answer before, None if there was none."""
    return None if math.isinf(entry.claim.last) else entry.polled_at - entry.claim.last


def stride(horizon: float) -> float:
    """Seconds between two checkpoints of a belief, inf where nothing is ever dropped."""
    return _STRIDE * horizon


def first_in_stretch(entry: Entry, horizon: float) -> bool:
    """Whether a poll is its source's first in a new stretch of time: then the belief before it is checkpointed."""
    length = stride(horizon)
    if math.isinf(length) or not entry.claim.latest:
        return False
    return math.isinf(entry.claim.last) or entry.polled_at // length != entry.claim.last // length


def tally(entries: Sequence[Entry]) -> dict[str, int]:
    """What recording these adds to the counters of a store."""
    answers = [e.answer for e in entries]
    return {
        "recorded": len(entries),
        **{answer.value: answers.count(answer) for answer in ANSWERS},
        "bytes": sum([e.received for e in entries]),
        # A first copy is new to us, and no change.
        "first": [e.claim.version for e in entries if e.answer is Answer.CHANGED].count(0),
        # Nearly all cost the same.
        "spent": sum(round(MILLIONTHS * cost) * n for cost, n in Counter([e.cost for e in entries]).items()),
        "requests": sum([e.requests for e in entries]),
    }


def packed(data: bytes) -> bytes:
    """Bytes as they are stored: one zstd frame that says its size."""
    return zstandard.ZstdCompressor(level=_LEVEL).compress(data)


def unpacked(digest: bytes | None, size: int, frame: bytes) -> bytes | None:
    """The bytes of a frame if they are what was stored, None if they are damaged."""
    if digest is None:
        return None
    try:
        # A damaged header can claim any size, so it is read before room is made for it.
        if zstandard.frame_content_size(frame) != size:
            return None
        data: bytes = zstandard.ZstdDecompressor().decompress(frame)
    except zstandard.ZstdError:
        return None
    return data if sha256(data).digest() == digest else None


def damaged_copy(source: int, version: int) -> StoreError:
    """What is said of a copy whose bytes are no longer what was stored."""
    name = f"{version} of source {source}"
    return StoreError(sentence("copy", name, "is damaged on the disk", "poll the source again or restore a backup"))


def kept_versions(claim: Claim, usual: int) -> int:
    """How many versions of a source are kept where so many are usually."""
    return max(usual, FEED_VERSIONS) if claim.kind == "feed" else usual


def counts_otherwise(listing: Listing, kind: str, options: str | None) -> bool:
    """Whether other things count by a listing than by the one before it, of which kind and options are kept."""
    before = Listing(listing.address, kind, options=json.loads(options) if options else {})
    return what_counts(before) != what_counts(listing)


def contains(text: str) -> str | None:
    r"""The pattern of LIKE for what contains a text, with \ as its escape; None for everything.

    >>> contains("50%_a")
    '%50\\%\\_a%'
    """
    return "%" + re.sub(r"([\\%_])", r"\\\1", text) + "%" if text else None


def observation(
    source: int,
    token: int,
    polled_at: float,
    answer: int,
    elapsed: float | None,
    modified: float | None,
    size: int,
    reason: str | None,
    epoch: int,
    told: float | None,
) -> Observation:
    """What a poll taught, from its row."""
    waited = math.nan if elapsed is None else elapsed
    return Observation(token, source, polled_at, ANSWERS[answer], waited, modified, size, reason or "", epoch, told)
