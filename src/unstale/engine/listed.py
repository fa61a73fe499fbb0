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
#: why entries are refused that are elsewhere, and what is counted of those that are what they should be
_ELSEWHERE = frozenset({"another host", "a private address", "another port"})
_WANTED = frozenset({"not wanted", "twice", "no time", "in the future"})


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
    """What was read, if it is anything: a listing of which nothing can be taken misses nobody, and its owner should
    know. Of pages that link to others there are many that link to nobody here."""
    wrong = poll.refused and _WANTED.isdisjoint(poll.refused)
    if poll.entries or poll.more or not wrong or claim.options.get(COLLECTION) == "links":
        return poll
    here, there = host_of(claim.address), host_of(fetched.address)
    why = ", ".join(f"{count:,} {reason}" for reason, count in poll.refused.items())
    remedy = "say how it is read with --listing, or its shape with --option member"
    if _ELSEWHERE.issuperset(poll.refused):
        remedy = f"add it at {there}, where it leads" if there and there != here else "add one that is at their host"
    raise InputError(
        sentence("listing", f"at {here}" if here else "as polled", f"names nobody to be taken ({why})", remedy)
    )
