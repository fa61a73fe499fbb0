"""Many machines, one price: how much freshness is lost when each hears of the price late.

Rules of this file:
1. At every moment two fleets with the same change rates and the same budget are compared: one whose every shard knows
   the price of the moment, and one whose shards go on with the price they heard last.
2. The late fleet is held to the budget in two ways. Carried over: what it spends too little or too much is made good
   at another hour, at the price of the moment. Strictly: polls beyond the budget of the moment are thinned, all alike,
   and what is not spent at once is lost. Either way the late fleet is never the fresher one.
3. Each moment counts as its plan would in the long run: what is measured is the price's lateness, and not how
   copies settle after each change.
4. Time is in days.
"""

from __future__ import annotations

import numpy as np

from unstale.core import kernels
from unstale.core.checks import Floats, number
from unstale.core.values import PoissonFreshness
from unstale.errors import require
from unstale.frozen import dataclass
from unstale.sim.statistics import Estimate, batch_means

#: time between two moments, and how exactly the price is known
STEP, PRICED_TO = 1 / 288, 1e-6


@dataclass(frozen=True, slots=True)
class Weather:
    """What moves the price: swings by the day, sources that wander, a budget cut without notice."""

    #: by how much change rates swing over the day, in the logarithm, all over the fleet alike
    rates: float = 0.5
    #: by which share the budget swings over the day, a quarter of a day later
    budget: float = 0.5
    #: the standard deviation of each source's own change rate, in the logarithm, forgotten within a day
    wander: float = 0.3
    #: how often per day the budget is halved, or restored
    cuts: float = 0.0


@dataclass(frozen=True, slots=True)
class ShardRun:
    """What lateness cost, with standard errors over days."""

    #: weighted mean freshness where every shard knows the price
    freshness: Estimate
    #: the share of it that is lost by hearing late, if budget carries over from hour to hour
    lost: Estimate
    #: the share that is lost if the budget holds at every moment
    lost_strictly: Estimate
    #: the share of the budget that late prices leave unspent
    unspent: Estimate
    #: root mean square of log(price used/price of the moment)
    price_error: float


def shard_run(
    shards: int, sources: int, *, stale: float, days: int, rng: np.random.Generator, weather: Weather | None = None
) -> ShardRun:
    """Freshness lost by `shards` of so many `sources` each that hear the fleet's price once every `stale` days.

    lost = 1 − (late freshness + price·(budget − late spending)/Σ weight)/freshness, averaged over time. Shards hear
    the price at different moments, evenly spread, so the one in use is between 0 and `stale` old. A plan is flat about
    its best price: being off by a share e costs about e². Where budget cannot wait, what is not spent is lost: about e.
    Sources have lognormal change rates, about once a day, Pareto weights, and a poll a day on average.

    >>> run = shard_run(20, 50, stale=1 / 24, days=2, rng=np.random.default_rng(1))
    >>> bool(0 < run.lost.value < 0.001), bool(run.price_error > 0.05)
    (True, True)
    """
    require(shards >= 1, "shards", shards, "must be 1 or more", "give the number of machines")
    require(sources >= 1, "sources", sources, "must be 1 or more", "give the sources of one shard")
    require(days >= 2, "days", days, "must be 2 or more", "give at least two, to see a spread")
    steps = round(number("stale", stale, least=0, remedy="give days between two prices, 1/24 for an hour") / STEP)
    world = _World(shards * sources, weather or Weather(), rng)
    hears = np.arange(shards) * steps // shards
    prices: list[float] = []
    wrong = []
    # sums by day: freshness, late freshness both ways, unspent share
    sums = np.zeros((4, days))
    # the first moments are there so that every shard has heard a price
    for step in range(steps + round(days / STEP)):
        prices.append(world.price(prices[-1] if prices else None))
        if step >= steps:
            heard = np.array(prices)[step - (step + hears) % max(steps, 1)]
            day = int((step - steps) * STEP + 1e-9)
            fresh, *_ = world.freshness(prices[-1], np.float64(prices[-1]))
            sums[:, day] += fresh, *world.freshness(prices[-1], np.repeat(heard, sources))
            wrong.append(np.log(heard / prices[-1]))
        world.drift()
    count = np.full(days, round(1 / STEP))
    return ShardRun(
        freshness=batch_means(sums[0], count),
        lost=batch_means(sums[0] - sums[1], sums[0]),
        lost_strictly=batch_means(sums[0] - sums[2], sums[0]),
        unspent=batch_means(sums[3], count),
        price_error=float(np.sqrt(np.mean(np.square(wrong)))),
    )


class _World:
    """Sources that change faster and slower, and a budget that comes and goes."""

    def __init__(self, count: int, weather: Weather, rng: np.random.Generator) -> None:
        self.weather, self.rng = weather, rng
        self.usual = rng.normal(0.0, 1.2, count)
        self.weight = rng.pareto(2.0, count) + 1.0
        self.wander = rng.normal(0.0, weather.wander, count)
        self.time, self.cut = 0.0, False
        self.change_rate = self._rates()

    @property
    def budget(self) -> float:
        swing = 1.0 + self.weather.budget * np.sin(2 * np.pi * (self.time - 0.25))
        return float(len(self.weight) * swing * (0.5 if self.cut else 1.0))

    def price(self, last: float | None) -> float:
        """The price of the moment."""
        return kernels.solve(self.change_rate, self.weight, None, self.budget, rtol=PRICED_TO, start=last).price

    def freshness(self, price: float, used: Floats | np.float64) -> tuple[float, float, float]:
        """Weighted mean freshness at the prices in use, carried over and strictly, and the share of budget left."""
        rate = kernels.rates(1.0, self.change_rate, self.weight / used)
        value, weight = PoissonFreshness(self.change_rate), float(self.weight.sum())
        left = self.budget - float(rate.sum())

        def fresh(stretch: float) -> float:
            with np.errstate(divide="ignore"):
                return 1.0 - float(np.dot(self.weight, value.staleness(stretch / rate))) / weight

        whole = fresh(1.0)
        return (
            whole + price * left / weight,
            whole if left >= 0 else fresh(1.0 - left / self.budget),
            max(left, 0.0) / self.budget,
        )

    def drift(self) -> None:
        """On to the next moment."""
        keep = np.exp(-STEP)
        self.time += STEP
        self.wander *= keep
        self.wander += self.rng.normal(0.0, self.weather.wander * np.sqrt(1.0 - keep**2), len(self.wander))
        self.cut ^= bool(self.rng.random() < self.weather.cuts * STEP)
        self.change_rate = self._rates()

    def _rates(self) -> Floats:
        swing = self.weather.rates * np.sin(2 * np.pi * self.time)
        return np.asarray(np.exp(self.usual + self.wander + swing))
