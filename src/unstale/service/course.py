"""How a fleet went: its prices in as many points as somebody can look at."""

from __future__ import annotations

import math
from collections.abc import Sequence

from unstale.ports import Price
from unstale.service.records import PricePoint


def gathered(prices: Sequence[Price], points: int) -> list[PricePoint]:
    """A history in at most so many points: each tells its last price, its mean freshness, and what was done in it."""
    size = max(-(-len(prices) // points), 1)
    return [
        PricePoint(
            some[-1].at,
            some[-1].price,
            some[-1].budget,
            min(math.fsum(one.fresh for one in some) / len(some), 1.0),
            _mean_even(some),
            sum(one.polls for one in some),
            sum(one.changed for one in some),
            sum(one.failed for one in some),
            max(math.fsum(one.spent for one in some), 0.0),
        )
        for some in (prices[i : i + size] for i in range(0, len(prices), size))
    ]


def _mean_even(some: Sequence[Price]) -> float:
    """A price that was kept before enough was learned tells no even freshness, but 0."""
    known = [one.even for one in some if one.even > 0.0]
    return min(math.fsum(known) / len(known), 1.0) if known else math.nan
