"""Collections among sources: the option by which a source is one, and how what a poll of it brought is read."""

from __future__ import annotations

import json

from unstale.addresses import host_of
from unstale.errors import InputError, sentence
from unstale.listings.paged import followed
from unstale.listings.records import ListingPoll
from unstale.ports import Aside, Claim, Fetched

#: how what a collection says is read, as an option of its source
COLLECTION = "collection"
#: why entries are refused that are elsewhere
_ELSEWHERE = ("another host", "a private address", "another port")


async def parsed(claim: Claim, fetched: Fetched, aside: Aside | None) -> ListingPoll | None:
    """What a poll of a collection says; None of any other source, or without news. InputError if it cannot be read."""
    kind = claim.options.get(COLLECTION) if claim.options else None
    if not kind or fetched.body is None:
        return None
    if claim.kind == "http" and followed(claim.options):
        # Its pages were read on the way, each within bounds and scope.
        return _heard(claim, fetched, ListingPoll.of_plain(json.loads(bytes(fetched.body))))
    from unstale.listings.readers import read_plain  # who only lists sources reads no collections

    base, options = fetched.address or claim.address, dict(claim.options)
    args = (str(kind), fetched.body, base, fetched.polled_at, options, claim.address)
    plain = read_plain(*args) if aside is None else await aside.run(read_plain, *args)
    return _heard(claim, fetched, ListingPoll.of_plain(plain))


def _heard(claim: Claim, fetched: Fetched, poll: ListingPoll) -> ListingPoll:
    """What was read, if it is not all of elsewhere: such a listing misses nobody, and its owner should know."""
    strange = {reason: poll.refused[reason] for reason in _ELSEWHERE if reason in poll.refused}
    if poll.entries or poll.more or not strange or len(strange) < len(poll.refused):
        return poll
    there = host_of(fetched.address)
    led = f"add it at {there}, where it leads" if there and there != host_of(claim.address) else "give its own address"
    why = ", ".join(f"{count:,} at {reason}" for reason, count in strange.items())
    raise InputError(sentence("listing", f"at {host_of(claim.address)}", f"names nobody there, but {why}", led))
