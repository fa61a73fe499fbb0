"""One other replica, and how things stand with it."""

from __future__ import annotations

import math
from dataclasses import field

from unstale.frozen import dataclass


@dataclass(slots=True)
class Peer:
    """How things stand with one peer. `taken` counts copies that were newer than ours, `confirmed` newer looks."""

    address: str
    contacts: int = 0
    taken: int = 0
    confirmed: int = 0
    failed: int = 0
    doubts: int = 0
    bans: int = 0
    received: int = 0
    in_row: int = 0
    resting: float = -math.inf
    reason: str = ""
    #: as of when everything it holds is known to us
    seen: float = field(default=0.0, repr=False)
