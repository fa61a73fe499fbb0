"""The budget as a bucket that fills evenly: unspent, it is kept up to the burst; more than is there is not spent."""

from __future__ import annotations

from collections.abc import Sequence

from unstale.core.checks import number
from unstale.keeper.spending import left_over
from unstale.ports import CrewMember


class Bucket:
    """Cost that may be spent now: grows by `rate` per second up to `burst`.

    Over any stretch of time no more than rate·time + burst is spent. Time that runs backward adds nothing, and a
    jump forward adds a burst at most.

    >>> bucket = Bucket(rate=2.0, burst=10.0, now=0.0)
    >>> bucket.level(3.0), bucket.spend(6.0), bucket.level(3.0), bucket.level(1e9)
    (6.0, None, 0.0, 10.0)
    """

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self._level, self._at, self.spent = 0.0, now, 0.0
        self.set(rate, burst)

    def set(self, rate: float, burst: float) -> None:
        """Another budget from the next reading on."""
        self.rate, self.burst = number("rate", rate, least=0), number("burst", burst, above=0)

    def level(self, now: float) -> float:
        """What may be spent at this moment."""
        if now > self._at:
            self._level = min(self._level + (now - self._at) * self.rate, self.burst)
        # Also after a jump back, or nothing would come in until that time is reached again.
        self._at = now
        return self._level

    def shift(self, by: float) -> None:
        """The clock was set: nothing came in by that."""
        self._at += by

    def spend(self, cost: float) -> None:
        """Take out what a poll costs; a negative cost gives it back."""
        self._level -= cost
        self.spent += cost

    def credit(self, more: float) -> None:
        """Put in what is due to us besides."""
        self._level += more

    def wait(self, cost: float, now: float) -> float:
        """Seconds until so much is there."""
        short = min(cost, self.burst) - self.level(now)
        if short <= 0.0:
            return 0.0
        return short / self.rate if self.rate > 0.0 else float("inf")


def spare_of(crew: Sequence[CrewMember], purse: float, cost: float) -> float:
    """What is in workers' buckets and their purse beyond what should be left, where polls usually cost so much.

    With the purse their buckets are one: what runs over in one is another's.
    """
    most, aside = (sum(one.facts.get(name, 0.0) for one in crew) for name in ("most_aside", "aside"))
    burst, rate = sum(one.burst for one in crew), sum(one.share for one in crew)
    left = left_over(max(burst - most, 0.0), rate, cost)
    # What is put aside for polls that listings will bring is not spare.
    return sum(one.level for one in crew) + purse - left - min(aside, burst - left)
