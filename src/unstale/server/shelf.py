"""Whoever can have a source polled for the server. What it asks of a store is in `unstale.ports`."""

from __future__ import annotations

from typing import Protocol

from unstale.ports import Head


class Asker(Protocol):
    """Has a source polled once, within the budget."""

    async def ask(self, source: int, deadline: float) -> Head | None:
        """How it stands after the first poll that ended since the call, answered or not; None if none did in time."""

    async def hint(self, source: int) -> None:
        """Make it due now, and do not wait."""
