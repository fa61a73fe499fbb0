"""The learner: what a fleet's polls have taught, and when each source is worth its next poll."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from unstale.core.checks import LARGEST, Floats, number, numbers
from unstale.core.learning.bursts import SPANS, Bursts, learned_bursts, no_bursts
from unstale.core.learning.clock import DAYS, HOURS, WEEK, WeekClock, even_clock, learned_clock
from unstale.core.learning.columns import (
    Integers,
    LearnerColumns,
    SharedTiming,
    all_waits,
    expected_cost,
    observe_all,
    rates,
    some_waits,
    weights,
)
from unstale.core.learning.due import due_after_answers, due_after_failures, jittered_cost, rounded
from unstale.core.learning.harm import harm_of, harm_value
from unstale.core.learning.mixture import Shared, scratch, width
from unstale.core.learning.outlay import Outlay, look_again, nothing_known, outlay
from unstale.core.learning.prior import fit_prior, shares, thinned
from unstale.core.learning.reach import SPREAD
from unstale.core.learning.said import said
from unstale.core.learning.siblings import Siblings
from unstale.core.learning.timing import best_waits, even_waits
from unstale.core.learning.urgency import urgencies
from unstale.core.objectives import objective_of
from unstale.core.roots.steps import NEAR, REACH, passes_zero
from unstale.errors import require
from unstale.units import DAY

#: the competing half-lives, in mean intervals of the fleet: from nearly for ever to what the last poll said
HALF_LIVES = (300.0, 30.0, 6.0, 2.0, 0.7)
#: a source is polled at least once in so many mean intervals, even if it is abandoned
EXPLORE = 30.0
#: and at most so many times as often as the mean source
EAGER = 1e-3
#: clock and bursts are used once they have gained this much log likelihood; a week's busiest hour must stand out so
_CREDIT, _CONTRAST = 10.0, 1.15
#: the best waits are found again when some hour's intensity has moved by this much
_MOVED = 0.03
#: what the tallies of clock and bursts keep from one look at the fleet to the next
_KEPT, _KEPT_HOURS = 0.9, 0.97
#: a prior whose mean has moved so far, in logarithms, was a guess: what was judged by it is forgotten
_WRONG = 0.3
#: sources beyond this many are thinned, to look at what they share and to find a price
_ENOUGH, _PRICED = 50_000, 100_000
#: looks at a fleet for one price, each nearer to it, and how far from one to the next, in logarithms
_LOOKS, _STRIDE = 100, 0.7
#: up to so many sources each is counted anew at every price that is tried: of a few, each one matters
_FEW = 2_000


class Learner:
    """What the polls of a fleet have taught, in columns, and the waits that follow at a price.

    Every source has a belief for each of five half-lives, which compete by how well they foretold what polls found;
    the fleet supplies the prior, the half-lives' first weights and the week's profile. Times are seconds; `objective`
    is any of `core.objectives`.

    >>> learner = Learner(2, mean_interval=3600.0)
    >>> for hour in range(1, 41):
    ...     learner.observe([0, 1], [3600.0 * hour] * 2, [True, hour % 8 == 0])
    >>> [round(3600.0 * float(rate), 1) for rate in learner.change_rate()]
    [3.9, 0.2]
    >>> [[round(float(wait) / 3600.0, 1) for wait in learner.waits(price)] for price in (600.0, 1000.0)]
    [[0.6, 1.4], [2.1, 1.9]]
    """

    def __init__(
        self,
        sources: int,
        mean_interval: float,
        *,
        start: float = 0.0,
        weight: ArrayLike = 1.0,
        cost: ArrayLike = 1.0,
        shortest: ArrayLike | None = None,
        longest: ArrayLike | None = None,
        objective: str = "freshness",
        own: bool = False,
    ) -> None:
        """With `own`, columns that are given belong to the learner from then on, and are not copied."""
        scale = number("mean_interval", mean_interval, above=0, most=LARGEST)
        harm = harm_of(objective_of(objective, day=DAY), scale)

        def column(name: str, given: ArrayLike) -> Floats:
            most = LARGEST if name in ("weight", "cost") else None
            x = numbers(name, given, least=0, most=most)
            return x if own and x.shape == (sources,) else np.broadcast_to(x, (sources,)).astype(np.float64)

        soonest = column("shortest", 0.0 if shortest is None else shortest)
        latest = column("longest", EXPLORE * scale if longest is None else longest)

        self.scale, self.objective = scale, objective
        self.columns = LearnerColumns(
            rows=np.zeros((sources, width(len(HALF_LIVES)))),
            last=np.full(sources, start),
            found=np.full(sources, start),
            interval=np.full(sources, scale),
            head_start=np.zeros(sources),
            weight=column("weight", weight),
            cost=column("cost", cost),
            shortest=np.maximum(soonest, EAGER * scale, out=soonest),
            longest=np.minimum(latest, EXPLORE * scale, out=latest),
        )
        self.shared = Shared(np.array([1.0, scale]), scale * np.array(HALF_LIVES), np.zeros(len(HALF_LIVES)), harm)
        self.timing = SharedTiming(
            even_clock(), even_waits(), np.zeros((2, HOURS + DAYS)), no_bursts(scale), np.zeros((2, SPANS)), np.zeros(2)
        )
        #: sources that change together; None: nobody has said who might
        self.siblings: Siblings | None = None
        #: the week for which the waits were found
        self._timed = np.zeros(WEEK)
        self._room = scratch(len(HALF_LIVES))
        #: what finding a price has seen of each source, and what all shared then
        self._known: tuple[Outlay, WeekClock, Bursts, bytes] | None = None
        self._step = -(-sources // _ENOUGH) if sources else 1

    def observe(
        self, rows: ArrayLike, polled_at: ArrayLike, changed: ArrayLike, modified: ArrayLike | None = None
    ) -> None:
        """Learn from polls that were answered; a poll that failed is not told, and the next one covers its time."""
        which = np.asarray(rows, dtype=np.int64)
        require(
            not len(which) or 0 <= which.min() <= which.max() < len(self.columns.last),
            "rows",
            "of another fleet",
            f"must be below {len(self.columns.last)}",
            "give the numbers of sources",
        )
        at, bits = numbers("polled_at", polled_at), np.asarray(changed, dtype=np.bool_)
        told = np.full(len(which), np.nan) if modified is None else np.asarray(modified, dtype=np.float64)
        require(
            which.shape == at.shape == bits.shape == told.shape,
            "polled_at",
            f"of shape {at.shape}",
            f"must have rows' shape {which.shape}",
            "give one of each per poll",
        )
        if self.siblings is None:
            observe_all(which, at, bits, told, self.columns, self.shared, self.timing, self._room)
            return
        before = self.columns.last[which]
        news = self.siblings.judge(which, at, bits, self.columns, self.shared)
        observe_all(which, at, bits, told, self.columns, self.shared, self.timing, self._room)
        self.siblings.tell(which, which[bits], at[bits], before[bits], news[bits], self.columns, self.shared)

    def waits(self, price: float) -> Floats:
        """How long after its last answer each source is due at a price."""
        return all_waits(number("price", price, above=0), self.columns, self.shared, self.timing, self._room)

    def waits_of(self, rows: ArrayLike, price: float) -> Floats:
        """How long after its last answer each of these sources is due at a price."""
        which = np.asarray(rows, dtype=np.int64)
        return some_waits(which, price, self.columns, self.shared, self.timing, self._room)

    def due_after_answers(self, rows: Integers, numbers: Integers, price: float) -> Floats:
        """When these sources are due after their last answers at a price; `numbers` are what jitter tells them by."""
        return due_after_answers(rows, numbers, price, self.columns, self.shared, self.timing, self._room)

    def due_after_failures(
        self, rows: Integers, numbers: Integers, polled_at: Floats, failures: Integers, price: float
    ) -> Floats:
        """When these sources are tried again after so many failures in a row."""
        return due_after_failures(
            rows, numbers, polled_at, failures, price, self.columns, self.shared, self.timing, self._room
        )

    def urgency(self, rows: Integers, late: Floats, price: float) -> Floats:
        """How many times its price a poll of each of these is worth, so many seconds after it fell due."""
        return urgencies(rows, late, price, self.columns, self.shared, self.timing, self._room)

    def change_rate(self) -> Floats:
        """The mean of what is believed of each source's change rate."""
        return rates(self.columns, self.shared, self._room)

    def price_for(
        self,
        cost: float,
        now: float,
        until: float,
        guess: float,
        rows: ArrayLike | None = None,
        ids: Integers | None = None,
    ) -> float:
        """The price at which polls due between now and `until` cost so much: more than that, and less is due.

        Of these rows alone, or of all. What is due is counted source by source, from when each last answered, so that
        the budget is spent evenly whatever the beliefs do: after a price has moved, what fell due at once is not all
        polled at once. With the `ids` of all rows, by which jitter tells sources apart, it is right to the poll.
        """
        which = np.flatnonzero(np.isfinite(self.columns.last)) if rows is None else np.asarray(rows, dtype=np.int64)
        if self.siblings is not None:
            self.siblings.renew(self.columns, self.shared)
        step = -(-len(which) // _PRICED) or 1
        # By themselves: who keeps the rest keeps a number of everybody.
        which = np.ascontiguousarray(which[::step])
        wanted = max(number("cost", cost, least=0), 1e-9) / step
        x, centre, close = math.log(guess), math.log(self.typical_price()), min(0.5 / (step * wanted), 0.1)
        known = self._remembered() if len(which) > _FEW else None
        numbers, jitter = (which, 0.0) if ids is None else (ids[which], SPREAD)

        def excess(x: float) -> float:
            mind = self.columns, self.shared, self.timing, self._room
            if known is not None:
                spent = outlay(which, numbers, jitter, math.exp(x), now, until, self.columns, known)
            elif ids is None:
                spent = expected_cost(which, math.exp(x), now, until, *mind)
            else:
                spent = jittered_cost(which, numbers, math.exp(x), now, until, *mind)
            return math.log(max(spent, 1e-12) / wanted)

        if known is None:
            return rounded(math.exp(passes_zero(excess, x, centre, close)))
        x = min(max(x, centre - REACH), centre + REACH)
        for turn in range(_LOOKS):
            looked = look_again(which, math.exp(x), self.columns, self.shared, self.timing, self._room, known)
            before, x = x, min(max(passes_zero(excess, x, centre, close), x - _STRIDE), x + _STRIDE)
            if abs(x - before) <= NEAR or (turn and not looked):
                break
        return rounded(math.exp(x))

    def _remembered(self) -> Outlay:
        """What price_for knows of sources; nothing, once what they share is another."""
        clock, bursts = self.timing.clock, self.timing.bursts
        if self._known is None or self._known[1].trusted != clock.trusted:
            self._known = nothing_known(len(self.columns.last), clock.trusted), clock, bursts, b""
        elif self._known[1] is not clock or self._known[2] is not bursts:
            # In the same room, which is large.
            self._known = self._known[0], clock, bursts, b""
        shared = self.shared.prior.tobytes() + self.shared.favour.tobytes()
        if self._known[3] != shared:
            self._known[0].last[:] = math.nan
            self._known = (*self._known[:3], shared)
        return self._known[0]

    def typical_price(self) -> float:
        """About what a poll of a mean source is worth after a mean interval: where to begin to look for a price."""
        harm = self.shared.harm
        if harm.scale_free:
            unit = float(self.scale ** (harm.degree + 1.0))
        else:
            after = (harm_value(harm, 1.0, self.scale, length * self.scale)[0] for length in (1.0, 5.0, EXPLORE))
            unit = next((worth for worth in after if worth > 0.0), self.scale)
        # A store may hold weights from before they were limited: what overflows must not become a price.
        weight, cost = (float(np.minimum(c, LARGEST).mean()) for c in (self.columns.weight, self.columns.cost))
        return unit * weight / cost

    def review(self) -> None:
        """Look at the fleet as a whole again: its prior, the half-lives' weights, the clock of its week."""
        # The prior is of a part of them in any case.
        seen = said(self.columns.rows[:: thinned(len(self.columns.rows))], len(HALF_LIVES))
        before = self.shared.prior[0] / self.shared.prior[1]
        fitted = fit_prior(seen, (self.shared.prior[0], self.shared.prior[1]), self.scale)
        self.shared.prior[:] = [rounded(x) for x in fitted]
        if abs(math.log(self.shared.prior[0] / self.shared.prior[1] / before)) > _WRONG:
            # What seemed to be bursts was the prior's error.
            self.timing.silences[:] = self.timing.credit[:] = 0.0
        self.shared.favour[:] = [rounded(x) for x in shares(weights(self.columns, self.shared, self._step, self._room))]
        by_clock, by_bursts = self.timing.credit > _CREDIT
        clock = learned_clock(self.timing.hours, False)
        stands_out = clock.intensity.max() > _CONTRAST * clock.intensity.min()
        clock = clock._replace(trusted=bool(by_clock and stands_out))
        if clock.trusted and self.shared.harm.timed and np.abs(clock.intensity - self._timed).max() > _MOVED:
            self.timing.waits[:] = best_waits(clock.intensity)
            self._timed = clock.intensity
        # What is shared fades from look to look: first impressions are made with a prior that is still a guess.
        for tally, kept in (
            (self.timing.hours, _KEPT_HOURS),
            (self.timing.silences, _KEPT),
            (self.timing.credit, _KEPT),
        ):
            tally *= kept
        bursts = learned_bursts(self.timing.silences, self.scale, bool(by_bursts))
        self.timing = self.timing._replace(clock=clock, bursts=bursts)
        if self.siblings is not None:
            self.siblings.review(self.columns)
