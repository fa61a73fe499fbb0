"""Jobs for a sandbox that use up something; they import nothing heavy, for they are done in its processes."""

from __future__ import annotations

import os
import time


def spin(seconds: float) -> float:
    """Use CPU time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass
    return seconds


def grow(mebibytes: int) -> int:
    """Use memory."""
    return len(bytes(mebibytes << 20))


def sleep(seconds: float) -> None:
    """Use nothing but time."""
    time.sleep(seconds)


def told(name: str) -> str | None:
    """What the environment says."""
    return os.environ.get(name)
