"""Trying things out for who asks in a browser: one look at something that is not listed, and what would count of it.

Rules of this file:
1. It goes the same way as every poll: the same gate, limits and processes, and nothing of it is recorded.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from unstale.cli.compose import content_of
from unstale.cli.fetchers import Fetchers
from unstale.cli.settings import Settings
from unstale.fingerprint import counted
from unstale.ports import Claim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from unstale.ports import Fetched, Listing


class Trying:
    """Keeps the contract `unstale.server.dashboard.trials.Tries`. Fetchers are made when the first look is wanted."""

    def __init__(self, settings: Settings) -> None:
        self._settings, self._made = settings, None

    _made: Fetchers | None

    async def look(self, listing: Listing) -> Fetched:
        """One look at what would be listed so."""
        return await self._fetchers.look(Claim(0, 0, listing.address, listing.kind, 0.0, listing.options))

    async def counted(self, kind: str, options: Mapping[str, Any], data: bytes, media_type: str) -> str:
        """What would count of a body; InputError if what is said of it cannot be, or takes too long."""
        content = content_of(Claim(0, 0, "", kind, 0.0, options))
        return await self._fetchers.sandbox.run(counted, data, media_type, content)

    async def close(self) -> None:
        """Give back what is held."""
        if self._made is not None:
            await self._made.close()

    @property
    def _fetchers(self) -> Fetchers:
        # Here, because they belong to the loop that runs.
        if self._made is None:
            self._made = Fetchers(self._settings, time.time)
        return self._made
