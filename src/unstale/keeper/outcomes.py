"""What one poll brought back."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Answer(Enum):
    """The three ways a poll can end."""

    CHANGED = "changed"
    UNCHANGED = "unchanged"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a poll that began at `polled_at` ended.

    `polled_at` is when the source was looked at: intervals run from one look to the next, however long the
    answer took. `last_modified`, where the source tells it, is when its latest change happened.
    """

    answer: Answer
    polled_at: float
    last_modified: float | None = None
