"""The engine in virtual time, by the short names that tests use."""

from __future__ import annotations

from unstale.cli.virtual_engine import run_virtually
from unstale.sim.virtual import START, VirtualClock
from unstale.sim.virtual import VirtualWorld as World

__all__ = ["START", "VirtualClock", "World", "run_virtually"]
