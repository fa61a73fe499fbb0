"""Hints: what somebody says of sources becomes a signal, and they become due; and polls that somebody asks for."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.errors import require
from unstale.listings.records import CHANNELS, CollectionMember
from unstale.ports import Store

#: times that a hint is said again where others move due times in the very moment
_AGAIN = 20


def push(store: Store, sources: Sequence[int], by: str, now: float) -> None:
    """Somebody says by a channel that sources have changed: that is written down, and they are due.

    An engine that knows what the channel's word is worth may leave them for later.
    """
    require(by in CHANNELS, "channel", repr(by), "is not known", f"use one of {', '.join(CHANNELS)}")
    store.enlist([CollectionMember(source, source, by, told=now) for source in sources])
    hasten(store, sources, now)


def hasten(store: Store, sources: Sequence[int], now: float) -> None:
    """Make sources due now that are not yet: nobody is made later, and saying it twice is saying it once."""
    polls: dict[int, int] = {}
    for _ in range(_AGAIN):
        # Who was polled meanwhile, planned anew by that, has been heard.
        heads = [one for one in store.heads(list(sources)) if one.latest == polls.setdefault(one.source, one.latest)]
        later = {one.source: one.due for one in heads if one.due > now}
        if not later:
            return
        store.set_due(list(later), [now] * len(later), was=list(later.values()))
