"""What was done since a price was last kept: read off what the store counted, so that no end of a process loses any.

The counters at the time of the last price are kept with it. Whoever keeps the next price, also another process after a
kill, tells everything that was recorded in between; whoever asks before adds what is in no price yet.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from unstale.frozen import dataclass
from unstale.keeper.outcomes import Answer
from unstale.ports import MILLIONTHS

#: the setting that holds the counters as they were when a price was last kept
KEPT = "pulse"


@dataclass(frozen=True, slots=True)
class Done:
    """Polls, first copies, changes found, failures and budget spent; a first copy is new to us, and no change."""

    polls: int = 0
    first: int = 0
    changed: int = 0
    failed: int = 0
    spent: float = 0.0

    def since(self, before: Done) -> Done:
        """What was done after another moment.

        >>> Done(5, 1, 2, 1, 5.0).since(Done(3, 1, 1, 0, 3.0))
        Done(polls=2, first=0, changed=1, failed=1, spent=2.0)
        """
        return Done(
            self.polls - before.polls,
            self.first - before.first,
            self.changed - before.changed,
            self.failed - before.failed,
            max(self.spent - before.spent, 0.0),
        )

    def plain(self) -> dict[str, float]:
        """In plain JSON."""
        return asdict(self)

    @staticmethod
    def read(found: Any) -> Done:
        """What `plain` gave; nothing for what is none."""
        try:
            return Done(**found) if isinstance(found, dict) else Done()
        except TypeError:
            return Done()


def done(counters: Mapping[str, int]) -> Done:
    """What a store has counted since it was made.

    >>> done({"recorded": 3, "changed": 2, "first": 1, "spent": 4_500_000})
    Done(polls=3, first=1, changed=1, failed=0, spent=4.5)
    """
    first = counters.get("first", 0)
    return Done(
        counters.get("recorded", 0),
        first,
        counters.get(Answer.CHANGED.value, 0) - first,
        counters.get(Answer.FAILED.value, 0),
        counters.get("spent", 0) / MILLIONTHS,
    )


def undone(now: Done, kept: bytes, *, priced: bool) -> Done:
    """What was done since a price was last kept: all of it, if none ever was.

    Version 0.1 kept prices without saying so; what was done since its last one is not known.
    """
    try:
        before = json.loads(kept) if kept else None
    except ValueError:
        before = None
    if isinstance(before, dict):
        return now.since(Done.read(before))
    return Done() if priced else now


def kept(now: Done) -> bytes:
    """The counters as they are kept with a price."""
    return json.dumps(now.plain()).encode()
