"""Hints: sources that have probably changed become due."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.ports import Store


def hasten(store: Store, sources: Sequence[int], now: float) -> None:
    """Make sources due now that are not yet: a hint never makes one later, and saying it twice is saying it once."""
    standing = store.columns_of(list(sources), 1)
    later = {
        source: due for source, due in zip(standing.source.tolist(), standing.due.tolist(), strict=True) if due > now
    }
    if later:
        store.set_due(list(later), [now] * len(later), was=list(later.values()))
