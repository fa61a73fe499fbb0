"""Tables that are being copied now: how far, how much, and how long it will still take."""

from __future__ import annotations

from collections.abc import Mapping

from unstale.frozen import dataclass
from unstale.ports import COPYING, Listing, Progress, ReadStore
from unstale.service.words import span

#: seconds after which nothing was heard of a copy: it ended and could not say so. Rows that are all here take longer,
#: for they are put in place in one step, of which nothing is heard
SILENT, PLACING = 60.0, 1800.0


@dataclass(frozen=True, slots=True)
class CopyingView:
    """One table under way."""

    listing: Listing
    progress: Progress

    @property
    def share(self) -> float:
        """The share of its rows that is here."""
        return self.progress.rows / self.progress.of

    @property
    def sentence(self) -> str:
        """How far it is, in words."""
        done = self.progress
        kept = f" ({done.kept:,} of them kept from a poll before)" if done.kept else ""
        came = f"{done.rows:,} of {done.of:,} rows{kept}, {done.received / 1e6:,.1f} MB"
        if done.rows >= done.of:
            return f"being copied: {came}; all of it is here and is put in place"
        left = span(done.left) if done.left < float("inf") else "an unknown time"
        return f"being copied: {came}, about {left} left"


def copying(store: ReadStore, settings: Mapping[str, bytes], now: float, running: bool | None) -> list[CopyingView]:
    """What is under way, by what polls wrote down; nothing where none are made."""
    if running is False:
        return []
    found: dict[int, Progress] = {}
    for name, value in settings.items():
        said = Progress.read(value) if name.startswith(COPYING) else None
        if said is not None and now - said.at <= (PLACING if said.rows >= said.of else SILENT):
            found[int(name.removeprefix(COPYING))] = said
    return [CopyingView(one, found[one.id]) for one in store.listings(sorted(found))] if found else []
