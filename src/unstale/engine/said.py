"""The budget as an operator last said it: one word in the store, so that whoever asks and whoever polls go by it.

Rules of this file:
1. The last word counts, whichever way it was said: over the API, with `unstale budget`, with `unstale run --budget`.
2. The settings file says something new only if its budget is another one than when the last word was said, and the file
   was changed since: then it is the last word, from the next start on.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Literal

from unstale.frozen import dataclass

#: the setting of a store that holds the last word
BUDGET = "budget"

By = Literal["api", "command", "option"]


@dataclass(frozen=True, slots=True)
class BudgetSaid:
    """A budget in cost per second, who said it and when, and what the settings said at that time (0: not known).

    >>> BudgetSaid.read(BudgetSaid(0.5, "api", 7.0, 0.1).kept())
    BudgetSaid(budget=0.5, by='api', at=7.0, settled=0.1)
    >>> BudgetSaid.read(b"0.25"), BudgetSaid.read(b"")
    (BudgetSaid(budget=0.25, by='api', at=0.0, settled=0.0), None)
    """

    budget: float
    by: By = "api"
    at: float = 0.0
    settled: float = 0.0

    def kept(self) -> bytes:
        """As a store keeps it."""
        return json.dumps(asdict(self)).encode()

    @staticmethod
    def read(value: bytes) -> BudgetSaid | None:
        """What a store keeps; version 0.1 kept a plain number. None for nothing, and for what is no budget."""
        try:
            found = json.loads(value) if value else None
            word = BudgetSaid(**found) if isinstance(found, dict) else BudgetSaid(float(found or "nan"))
            good = math.isfinite(word.budget) and word.budget > 0.0
        except (ValueError, TypeError):
            return None
        return word if good else None

    def outlasts(self, settled: float, changed_at: float) -> bool:
        """Whether it is later than what the settings say, in a file that was changed last at a time.

        >>> word = BudgetSaid(0.5, "api", at=100.0, settled=0.1)
        >>> word.outlasts(0.1, 200.0), word.outlasts(0.2, 50.0), word.outlasts(0.2, 200.0)
        (True, True, False)
        """
        return not (changed_at > self.at and self.settled > 0.0 and settled != self.settled)
