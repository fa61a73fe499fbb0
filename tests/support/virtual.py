"""The engine in virtual time, by the short names that tests use."""

from __future__ import annotations

from unstale.adapters.memory_store import MemoryStore
from unstale.cli.virtual_engine import run_virtually
from unstale.sim.virtual import START, VirtualClock
from unstale.sim.virtual import VirtualWorld as World

__all__ = ["START", "Shared", "VirtualClock", "World", "run_virtually"]


class Shared(MemoryStore):
    """A store in memory to which others write, and that says so."""

    written = 0

    def moved(self) -> int | None:
        return self.written
