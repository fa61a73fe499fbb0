"""How far a long poll has come: told while it goes on, kept in the store until it ends, read by whoever asks."""

from __future__ import annotations

import json
from dataclasses import asdict

from unstale.frozen import dataclass

#: what the settings of a store that hold it are called, before the source's number
COPYING = "copying "


@dataclass(frozen=True, slots=True)
class Progress:
    """At `at` so many `rows` were here `of` all, and bytes `received` since `began`; `kept` rows are of earlier polls.

    >>> Progress.read(Progress(12.0, 2.0, 600, 1000, 100, 5000).written())
    Progress(at=12.0, began=2.0, rows=600, of=1000, kept=100, received=5000)
    >>> Progress.read(b"")
    """

    at: float
    began: float
    rows: int
    of: int
    kept: int = 0
    received: int = 0

    @property
    def left(self) -> float:
        """The seconds that the rest takes at the pace until now; infinite before there is one."""
        came = self.rows - self.kept
        return (self.of - self.rows) * (self.at - self.began) / came if came > 0 else float("inf")

    def written(self) -> bytes:
        """As a store keeps it."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def read(value: bytes) -> Progress | None:
        """What a store keeps; None for nothing, and for what is none."""
        try:
            found = json.loads(value) if value else None
            return Progress(**found) if isinstance(found, dict) else None
        except (ValueError, TypeError):
            return None
