"""Collections among sources: the option by which a source is one, and how what a poll of it brought is read."""

from __future__ import annotations

import json

from unstale.listings.paged import followed
from unstale.listings.records import ListingPoll
from unstale.ports import Aside, Claim, Fetched

#: how what a collection says is read, as an option of its source
COLLECTION = "collection"


async def parsed(claim: Claim, fetched: Fetched, aside: Aside | None) -> ListingPoll | None:
    """What a poll of a collection says; None of any other source, or without news. InputError if it cannot be read."""
    kind = claim.options.get(COLLECTION) if claim.options else None
    if not kind or fetched.body is None:
        return None
    if claim.kind == "http" and followed(claim.options):
        # Its pages were read on the way, each within bounds and scope.
        return ListingPoll.of_plain(json.loads(bytes(fetched.body)))
    from unstale.listings.readers import read_plain  # who only lists sources reads no collections

    args = (str(kind), fetched.body, fetched.address or claim.address, fetched.polled_at, dict(claim.options))
    return ListingPoll.of_plain(read_plain(*args) if aside is None else await aside.run(read_plain, *args))
