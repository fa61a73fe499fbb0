"""`unstale explain`: why a source is polled as it is, in one sentence, and the numbers behind it."""

from __future__ import annotations

import json
import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from unstale.cli.choose import find_source
from unstale.cli.reading import BeliefPart, ago, iso, reading, span
from unstale.cli.settings import Settings, load, settings_options
from unstale.cli.show import console, finite
from unstale.keeper.outcomes import Answer
from unstale.units import DAY, format_rate

if TYPE_CHECKING:
    from unstale.core.learning.outlook import Outlook
    from unstale.engine.config import EngineConfig
    from unstale.keeper.scheduler import Scheduler
    from unstale.ports import FleetColumns, Listing, Observation

#: polls that are shown, and sources that tell what another price would cost
_SHOWN, _ENOUGH = 5, 20_000
#: weights are sought up to this many times the present one
_MOST = 1e6


@dataclass(frozen=True, slots=True)
class Case:
    """Everything an explanation rests on. Times are seconds since the epoch, lengths seconds, rates per second."""

    now: float
    listing: Listing
    standing: FleetColumns
    scheduler: Scheduler
    row: int
    seen: Outlook
    polls: list[Observation]
    #: the wait at today's price, and why it is not longer or shorter: price, shortest, eager, longest or abandoned
    interval: float
    bound: str
    surcharge: float
    budget: float

    @property
    def last(self) -> float:
        """When the source last answered."""
        return float(self.standing.last[self.row])


@click.command()
@click.argument("source")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object; times in UTC, lengths in seconds.")
@settings_options
def explain(source: str, as_json: bool, config: str | None, store: str | None) -> None:
    """Why a source is polled as often as it is, and what would change that.

    SOURCE is an address, a part of one that no other source has, or an id.
    """
    settings = load(config, store=store)
    with reading(settings) as replica:
        number = find_source(replica, source)
        case = _case(settings, replica, number)
    twice = _twice(case)
    if as_json:
        click.echo(json.dumps(finite(_document(case, twice))))
    else:
        _print(case, twice)


def sentence_of(case: Case) -> str:
    """The one sentence: how often it is polled, and because of what."""
    listing, failures = case.listing, int(case.standing.failures[case.row])
    if listing.paused:
        return f"not polled: it is paused, `unstale resume {listing.id}` takes it up again"
    if failures:
        times = "failed" if failures == 1 else f"failed {failures:,} times in a row"
        reason = f" ({case.polls[0].reason})" if case.polls and case.polls[0].reason else ""
        never = ", and it has never answered" if math.isinf(case.last) else ""
        return f"polled again {_next(case)}: its last poll {times}{reason}{never}; each failure doubles the wait"
    if math.isinf(case.last):
        return f"polled {_next(case)} for the first time: nothing is known of it yet"
    rate, low, high = (float(x[0]) for x in (case.seen.change_rate, case.seen.low, case.seen.high))
    changes = f"it changes about every {span(1.0 / rate)} (between {span(1.0 / high)} and {span(1.0 / low)})"
    weighs = f"weighs {listing.weight:g}"
    every = span(case.interval)
    if case.bound == "shortest":
        return f"polled every {every}: that is its min-interval; {changes}, {weighs}, and a poll would pay sooner"
    if case.bound == "eager":
        return f"polled every {every}: no source is polled more than 1,000 times as often as the mean one; {changes}"
    if case.bound == "longest":
        return f"polled every {every}: that is its max-interval; {changes}, {weighs}, and alone a poll would pay later"
    if case.bound == "abandoned":
        return (
            f"abandoned at today's price, but looked at every {every} in case its habits change: {changes}, "
            f"{weighs}, and no poll pays within that time"
        )
    dearer = f", {case.surcharge:.2g} times as dear at its host, whose cap binds," if case.surcharge > 1.01 else ""
    return f"polled every {every}: {changes}, {weighs}, and at today's price{dearer} a poll pays after {every}"


def _case(settings: Settings, replica: Any, source: int) -> Case:
    from unstale.cli.compose import config_of, rules_of
    from unstale.core.learning.learner import EAGER, EXPLORE
    from unstale.core.learning.outlook import WIDTH, outlook
    from unstale.engine.config import scheduler_of
    from unstale.engine.host_limits import HostLimits

    now = time.time()
    standing = replica.fleet(WIDTH)
    config = config_of(settings).amended(standing.settings)
    host_limits = HostLimits(rules_of(settings))
    scheduler, _ = scheduler_of(standing, config, now, host_limits)
    (listing,) = replica.listings([source])
    row = int(np.searchsorted(standing.source, source))
    part = BeliefPart(standing.beliefs[[row]], standing.last[[row]], standing.found[[row]], standing.settings)
    surcharge = _surcharge(scheduler, config, row, now)
    columns, scale = scheduler.learner.columns, scheduler.learner.scale
    columns.weight[row] /= surcharge
    wait = float(scheduler.learner.waits_of([row], scheduler.price)[0])
    columns.weight[row] *= surcharge
    bound = "price"
    if wait >= columns.longest[row]:
        bound = "longest" if listing.longest <= EXPLORE * scale else "abandoned"
    elif wait <= columns.shortest[row]:
        bound = "shortest" if listing.shortest >= EAGER * scale else "eager"
    return Case(
        now,
        listing,
        standing,
        scheduler,
        row,
        outlook(part, now),
        replica.observations(source, _SHOWN),
        wait,
        bound,
        surcharge,
        config.budget,
    )


def _surcharge(scheduler: Scheduler, config: EngineConfig, row: int, now: float) -> float:
    """How many times as dear a poll is at this source's host, because its cap binds; 1 if it does not."""
    from unstale.engine.config import next_look

    host = int(scheduler.host[row])
    if not math.isfinite(scheduler.cap[host]):
        return 1.0
    price = scheduler.price
    # Only this host is asked about, and the price of all stays what was published.
    scheduler.cap[np.arange(len(scheduler.cap)) != host] = math.inf
    until = now + next_look(scheduler, config.rate)
    scheduler.plan(config.rate * (until - now), now, until)
    surcharge, scheduler.price = float(scheduler.surcharge[host]), price
    scheduler.learner.columns.weight[:] = scheduler.weight
    return surcharge


def _twice(case: Case) -> tuple[float, float]:
    """The weight at which the source would be polled twice as often, and the budget; NaN where neither would do it."""
    asleep = case.listing.paused or math.isinf(case.last) or case.standing.failures[case.row] > 0
    if asleep or case.bound not in ("price", "abandoned") or case.listing.weight <= 0.0:
        return math.nan, math.nan
    learner, row, wanted = case.scheduler.learner, case.row, 0.5 * case.interval
    if wanted < learner.columns.shortest[row]:
        return math.nan, math.nan

    def wait(factor: float) -> float:
        """Being so many times as heavy is the same as a price so many times lower."""
        return float(learner.waits_of([row], case.scheduler.price * case.surcharge / factor)[0])

    low, high = 1.0, _MOST
    if wait(high) > wanted:
        return math.nan, math.nan
    while high > 1.0005 * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if wait(middle) > wanted else (low, middle)
    budget = math.nan if case.surcharge > 1.01 else case.budget * _spent(case, high) / _spent(case, 1.0)
    return case.listing.weight * high, budget


def _spent(case: Case, factor: float) -> float:
    """What the fleet would cost per second at a price so many times lower."""
    rows = np.flatnonzero(~case.scheduler.paused)
    rows = rows[:: -(-len(rows) // _ENOUGH) or 1]
    waits = case.scheduler.learner.waits_of(rows, case.scheduler.price / factor)
    return float((case.scheduler.learner.columns.cost[rows] / waits).sum())


def _half_life(case: Case) -> float:
    """How far back the favoured belief looks, in seconds."""
    shared = case.scheduler.learner.shared
    count = len(shared.half_lives)
    row = case.standing.beliefs[case.row]
    return float(shared.half_lives[int(np.argmax(row[2 * count : 3 * count] + shared.favour))])


def _next(case: Case) -> str:
    due = float(case.standing.due[case.row])
    return "now" if due <= case.now else ago(due, case.now)


def _print(case: Case, twice: tuple[float, float]) -> None:
    from rich.table import Table

    out = console()
    out.print(case.listing.address, style="bold", highlight=False, markup=False, soft_wrap=True)
    out.print(f"{sentence_of(case)}.", highlight=False, markup=False, soft_wrap=True)
    out.print()
    table = Table.grid(padding=(0, 2))
    rate, low, high = (float(x[0]) for x in (case.seen.change_rate, case.seen.low, case.seen.high))
    table.add_row(
        "changes",
        format_rate(DAY * rate),
        f"between {format_rate(DAY * low)} and {format_rate(DAY * high)} with probability 0.9",
    )
    table.add_row("memory", span(_half_life(case)), "is the half-life of evidence that has foretold its polls best")
    fresh, age = float(case.seen.fresh[0]), float(case.seen.age[0])
    table.add_row(
        "copy",
        f"{100 * fresh:.0f} % fresh" if math.isfinite(age) else "none",
        f"expected age {span(age)}" if math.isfinite(age) else "",
    )
    price = case.standing.price
    table.add_row(
        "price",
        f"{case.scheduler.price:.4g}",
        f"published {ago(price.at, case.now)}" if price else "a guess until an engine publishes one",
    )
    if case.surcharge > 1.01:
        table.add_row("surcharge", f"× {case.surcharge:.3g}", f"the cap of {case.listing.host} binds")
    table.add_row("next poll", "paused" if case.listing.paused else _next(case), "")
    for k, poll in enumerate(case.polls):
        elapsed = f" after {span(poll.elapsed)}" if math.isfinite(poll.elapsed) else ""
        words = f"{poll.answer.value}{elapsed}{': ' + poll.reason if poll.answer is Answer.FAILED else ''}"
        table.add_row("last polls" if k == 0 else "", ago(poll.polled_at, case.now), words)
    weight, budget = twice
    if math.isfinite(weight):
        table.add_row("twice as often", f"weight {weight:.3g}", f"would do it, instead of {case.listing.weight:g}")
        if math.isfinite(budget):
            table.add_row(
                "",
                format_rate(DAY * budget),
                f"as budget of all would too, instead of {format_rate(DAY * case.budget)}",
            )
    out.print(table, highlight=False)


def _document(case: Case, twice: tuple[float, float]) -> dict[str, Any]:
    one, seen, row = case.listing, case.seen, case.row
    return {
        "id": one.id,
        "address": one.address,
        "sentence": sentence_of(case),
        "weight": one.weight,
        "cost": one.cost,
        "interval": case.interval,
        "bound": case.bound,
        "change_rate": float(seen.change_rate[0]),
        "change_rate_low": float(seen.low[0]),
        "change_rate_high": float(seen.high[0]),
        "half_life": _half_life(case),
        "fresh": float(seen.fresh[0]),
        "age": float(seen.age[0]),
        "price": case.scheduler.price,
        "surcharge": case.surcharge,
        "checked_at": iso(case.last),
        "due_at": iso(float(case.standing.due[row])),
        "failures": int(case.standing.failures[row]),
        "paused": one.paused,
        "twice": {"weight": twice[0], "budget_per_day": DAY * twice[1]},
    }
