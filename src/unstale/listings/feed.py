"""Feeds as listings: entries are signals about the pages that they link to. A feed shows only its last entries."""

from __future__ import annotations

from unstale.feeds import read_feed
from unstale.listings.packed import unpacked
from unstale.listings.taking import Taker
from unstale.moments import moment


def read_feed_entries(data: bytes, to: Taker) -> None:
    """The first link of each entry, at the latest of its times; RSS, Atom and JSON Feed."""
    for entry in read_feed(unpacked(data), "'listing'", repair=True).entries:
        address = (entry.link or entry.id or ("",))[0]
        times = [(at, text) for text in entry.times if (at := moment(text)[0]) == at]
        if not to.take(address, max(times)[1] if times else None):
            return
