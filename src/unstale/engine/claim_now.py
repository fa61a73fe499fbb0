"""Claims on sources that are to be polled now, whenever they were due."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.ports import Claim, Store


def claim_now(
    store: Store, sources: Sequence[int], now: float, *, lease: float, owner: str
) -> list[tuple[Claim, float]]:
    """Claims on just these sources with the times they were due; those that somebody polls already are left out.

    In one go on the store's thread: they are made due for it.
    """
    standing = store.columns_of(list(sources), 1)
    due = dict(zip(standing.source.tolist(), standing.due.tolist(), strict=True))
    store.set_due(list(due), [0.0] * len(due))
    mine = store.claim(now, len(due), lease=lease, owner=owner, among=list(due))
    busy = [source for source in due if source not in {claim.source for claim in mine}]
    # Of a claimed source the due time counts only if that claim ends unrecorded.
    store.set_due(busy, [due[source] for source in busy])
    return [(claim, due[claim.source]) for claim in mine]
