"""What one poll brought back."""

from __future__ import annotations

import math
from enum import StrEnum

from unstale.frozen import dataclass


class Answer(StrEnum):
    """The three ways a poll can end."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a poll of a source, which began at `polled_at`, ended. Times are seconds since the epoch.

    `source` is its name, as it was added. `answer` is "changed", "unchanged" or "failed". `polled_at` is when the
    source was looked at: intervals run from one look to the next, however long the answer took. `last_modified`,
    where the source tells it, is when its latest change happened; `not_before` until when it asks to be left alone.
    `by_peer` is a look of another's that we were told of: it teaches as ours do, but our own turn stays where it was.
    `followed` is a look at a replica, which will look again at `not_before`: that is the time to ask it again.
    `used` is what the poll has used of the budget, where that is measured; without it, it is what was expected.
    """

    source: int | str
    answer: Answer | str
    polled_at: float
    last_modified: float | None = None
    not_before: float = -math.inf
    by_peer: bool = False
    followed: bool = False
    used: float | None = None
