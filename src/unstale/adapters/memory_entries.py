"""Entries of feeds in memory: each once, from the first version of the feed that had it to the last."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from unstale.listings.feed_entries import MOST_ENTRIES, ToldEntry
from unstale.ports import KeptEntry

#: by name: the digest of what it said last, and the entry
Known = dict[bytes, tuple[bytes, KeptEntry]]


def keep(known: Known, version: int, at: float, told: Sequence[ToldEntry]) -> None:
    """Take up what a version of a feed tells, and let go what is too many."""
    newest = max((one.number for _, one in known.values()), default=0)
    for i, one in enumerate(told):
        # A feed has its newest entry on top, which gets the highest number.
        fresh = KeptEntry(newest + len(told) - i, one.title, one.link, one.time, at, at, version, version)
        known[one.name] = one.digest, _renewed(*known[one.name], one.digest, fresh) if one.name in known else fresh
    gone = sorted((one.number, name) for name, (_, one) in known.items() if one.last_version < version)
    for _, name in gone[: max(len(known) - MOST_ENTRIES, 0)]:
        del known[name]


def _renewed(was: bytes, old: KeptEntry, digest: bytes, new: KeptEntry) -> KeptEntry:
    return dataclasses.replace(
        new,
        number=old.number,
        first_at=old.first_at,
        first_version=old.first_version,
        edits=old.edits + (was != digest),
        edited_at=new.last_at if was != digest else old.edited_at,
    )
