"""Who is told of changes: what is asked of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from unstale.ports import Event


class Sink(Protocol):
    """Someone who is told of changes. Promises: `tell` never raises for what the other side does, and ends in time."""

    @property
    def name(self) -> str:
        """Who it is, the same after every start; it shows no secret."""

    @property
    def batch(self) -> int:
        """How many events one call of `tell` may get."""

    @property
    def width(self) -> int:
        """How many calls of `tell` may be under way at a time, each with one event; with 1, all come in order."""

    async def tell(self, events: Sequence[Event]) -> tuple[int, str]:
        """Tell of these in order; how many were taken, from the first on, and why not the next."""

    async def close(self) -> None:
        """Give back what is held."""


@runtime_checkable
class Patient(Protocol):
    """A sink that is told at some hours alone; in between everything waits in the store."""

    def until(self, now: float) -> float:
        """When it may be told: now, or later."""
