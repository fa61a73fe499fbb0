"""What all workers on a store go by, kept in the store: budget and what it counts, burst, objective, first polls.

Rules of this file:
1. Who is elected changes nothing: a planner goes by what the store keeps, not by the settings file beside it.
2. The file that was changed last has the word, from the start of a worker that reads it; what is said to the store with
   `unstale budget` or over the API outlasts it as before.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace

from unstale.core.checks import number
from unstale.engine.config import EngineConfig
from unstale.errors import InputError
from unstale.frozen import dataclass
from unstale.keeper.costs import POLLS

#: the setting of a store that holds them
TERMS = "terms"


@dataclass(frozen=True, slots=True)
class SharedTerms:
    """What a settings file says of the fleet as a whole, and when that file was last changed.

    >>> terms = SharedTerms.of(EngineConfig(2.0, burst=5.0), changed_at=7.0)
    >>> SharedTerms.read(terms.kept()) == terms, SharedTerms.read(b"nonsense")
    (True, None)
    >>> terms.over(EngineConfig(9.0, owner="another")).budget
    2.0
    """

    budget: float
    burst: float
    objective: str
    first_rate: float
    changed_at: float
    cost_in: str = POLLS

    @staticmethod
    def of(config: EngineConfig, changed_at: float) -> SharedTerms:
        """The terms of one worker's settings."""
        return SharedTerms(
            config.settled, config.burst, config.objective, config.first_rate, changed_at, config.cost_in
        )

    @staticmethod
    def read(value: bytes) -> SharedTerms | None:
        """What a store keeps; None for nothing, and for what makes no sense."""
        try:
            terms = SharedTerms(**json.loads(value))
            number("budget", terms.budget, above=0)
        except (ValueError, TypeError, InputError):
            return None
        return terms

    def kept(self) -> bytes:
        """As a store keeps it."""
        return json.dumps(asdict(self)).encode()

    def same(self, other: SharedTerms) -> bool:
        """Whether another file says the same, whenever it was changed."""
        return replace(self, changed_at=other.changed_at) == other

    def over(self, config: EngineConfig) -> EngineConfig:
        """A worker's own config, its share in the whole taken from the store."""
        return replace(
            config,
            budget=self.budget,
            settled=self.budget,
            burst=self.burst,
            objective=self.objective,
            first_rate=self.first_rate,
            cost_in=self.cost_in,
        )


def agreed(own: SharedTerms, kept: bytes) -> tuple[SharedTerms, bytes | None]:
    """At a worker's start: the terms that hold from now on, and what the store has to keep if that is another."""
    known = SharedTerms.read(kept)
    if known is None or (own.changed_at > known.changed_at and not own.same(known)):
        return own, own.kept()
    return known, None
