"""Collections in the one brain: signals move due times, trust is earned, and a listing that lies costs little."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from unstale.core.signals.columns import collection_columns
from unstale.core.signals.trust import pace_of
from unstale.errors import InputError
from unstale.keeper.outcomes import Outcome
from unstale.keeper.scheduler import Scheduler

MEMBERS, HOURS = 60, 3600.0


class World:
    """Members that change at random, and a sitemap that tells when, or lies, or is silent, or dies."""

    def __init__(self, seed: int, days: float, kind: str = "honest") -> None:
        rng = np.random.default_rng(seed)
        self.end, self.kind = days * 24 * HOURS, kind
        rates = np.exp(rng.uniform(np.log(0.05), np.log(1.0), MEMBERS)) / (24 * HOURS)
        self.changes = [np.sort(rng.uniform(0, self.end, rng.poisson(rate * self.end))) for rate in rates]
        self.rate = float(rates.sum())
        self.lies = [np.sort(rng.uniform(0, self.end, len(times))) for times in self.changes]
        self.copied, self.listed = np.full(MEMBERS, math.nan), 0.0

    def poll(self, member: int, now: float) -> str:
        times, before = self.changes[member], self.copied[member]
        self.copied[member] = now
        found = np.searchsorted(times, now) > (0 if math.isnan(before) else np.searchsorted(times, before))
        return "changed" if found or math.isnan(before) else "unchanged"

    def listing(self, now: float) -> dict[str, float] | None:
        """What has changed since the last listing; None if it cannot be had."""
        since, self.listed = self.listed, now
        if self.kind == "dead" and now > 0.3 * self.end:
            return None
        if self.kind == "silent":
            return {}
        told = self.lies if self.kind == "random" else self.changes
        shown = {}
        for member, times in enumerate(told):
            until = int(np.searchsorted(times, now))
            if until and times[until - 1] > since:
                shown[f"m{member}"] = float(times[until - 1])
        return {f"m{i}": now for i in range(MEMBERS)} if self.kind == "always" else shown


def played(
    kind: str,
    collected: bool = True,
    days: float = 40.0,
    lying: bool = False,
    seed: int = 5,
    objective: str = "freshness",
) -> tuple[float, float, Scheduler]:
    """Staleness, or mean age in days, over the last 60 % of the time, what was spent then, and the scheduler.

    With `lying`, another collection, which lies, has told of all members before.
    """
    world = World(seed, days, kind)
    budget = world.rate
    scheduler = Scheduler(budget, objective=objective)
    names = [f"m{i}" for i in range(MEMBERS)]
    scheduler.add(names, 0.0)
    liar = World(seed, days, "random")
    if lying:
        scheduler.add("lies", 0.0)
        scheduler.collect("lies", names, 0.0)
    if collected:
        scheduler.add("sitemap", 0.0)
        scheduler.collect("sitemap", names, 0.0)
    begin, polls, spent = 0.4 * world.end, [[0.0] for _ in range(MEMBERS)], 0.0
    now = 0.0
    while now < world.end:
        for source in scheduler.take(now):
            if source in ("sitemap", "lies"):
                told = (liar if source == "lies" else world).listing(now)
                scheduler.record(Outcome(source, "failed" if told is None else "changed", now))
                if told is not None:
                    scheduler.listing(source, now, told)
            else:
                member = int(str(source)[1:])
                scheduler.record(Outcome(source, world.poll(member, now), now))
                polls[member].append(now)
        if now < begin:
            spent = scheduler.spent
        now += max(scheduler.wait(now), 1500.0)
    harm = _age if objective == "age" else _stale
    stale = [harm(world.changes[i], np.array(polls[i]), begin, world.end) for i in range(MEMBERS)]
    return float(np.mean(stale)), (scheduler.spent - spent) / (budget * (world.end - begin)), scheduler


def _stale(changes: np.ndarray, polls: np.ndarray, begin: float, end: float) -> float:
    """Share of [begin, end) in which a copy was not what its source was: from the first change until the next poll."""
    bounds = np.append(polls, end)
    first = np.append(changes, math.inf)[np.searchsorted(changes, bounds[:-1], side="right")]
    return float(np.maximum(bounds[1:] - np.maximum(first, begin), 0.0).sum()) / (end - begin)


def _age(changes: np.ndarray, polls: np.ndarray, begin: float, end: float) -> float:
    """Mean age of a copy in [begin, end), in days: since the first change that it lacks."""
    bounds = np.append(polls, end)
    first = np.append(changes, math.inf)[np.searchsorted(changes, bounds[:-1], side="right")]
    old, young = np.maximum(bounds[1:] - first, 0.0), np.clip(np.maximum(bounds[:-1], begin) - first, 0.0, None)
    counted = np.where(bounds[1:] > begin, old**2 - np.minimum(young, old) ** 2, 0.0)
    return float(counted.sum()) / 2.0 / (end - begin) / (24 * HOURS)


@pytest.mark.parametrize("objective", ["age", "missed"])
def test_signals_serve_age_and_nobody_is_listened_to_where_their_worth_is_unknown(objective: str) -> None:
    alone, _, _ = played("honest", collected=False, objective=objective)
    told, spent, scheduler = played("honest", objective=objective)
    assert spent <= 1.02
    assert scheduler.worth("sitemap").trusted
    assert scheduler.worth("sitemap").used == (objective == "age")
    if objective == "age":
        assert told < 0.5 * alone
    else:
        assert told == pytest.approx(alone, abs=0.05)


@pytest.fixture(scope="module")
def plain() -> float:
    stale, spent, _ = played("honest", collected=False)
    assert spent == pytest.approx(1.0, abs=0.03)
    return stale


@pytest.fixture(scope="module")
def plain_in_two(plain: float) -> float:
    """The same in the mean of two worlds."""
    return (plain + played("honest", collected=False, seed=6)[0]) / 2


def test_an_honest_listing_takes_most_of_the_staleness_away(plain: float) -> None:
    stale, spent, scheduler = played("honest")
    assert spent <= 1.02
    worth = scheduler.worth("sitemap")
    assert worth.trusted
    assert worth.used
    assert worth.precision > 0.9
    # Exact signals keep members as fresh as polls of all of them at every listing would, of which most find nothing.
    listings = 1.0 / worth.interval
    assert 0.5 * (MEMBERS - 1) * listings < worth.saved < (MEMBERS - 1) * listings
    assert stale < 0.35 * plain


@pytest.mark.parametrize("kind", ["random", "silent", "always", "dead"])
def test_a_listing_that_lies_or_dies_costs_little_but_its_polls(plain_in_two: float, kind: str) -> None:
    stale, spent, scheduler = played(kind)
    other, _, _ = played(kind, seed=6)
    assert spent <= 1.02
    # Polls at other times alone make a hundredth of difference in either world.
    assert (stale + other) / 2 < plain_in_two + 0.025
    assert kind == "dead" or not scheduler.worth("sitemap").used
    assert kind == "dead" or scheduler.worth("sitemap").saved == 0.0


def test_what_it_knows_of_collections_is_saved() -> None:
    _, _, scheduler = played("honest", days=6.0)
    again = Scheduler.load(scheduler.save())
    # What the last plan made of single members is not kept, for the next one makes it anew.
    mine, theirs = (replace(one.worth("sitemap"), saved=0.0) for one in (again, scheduler))
    assert mine == theirs
    assert again.worth("sitemap").saved == pytest.approx(scheduler.worth("sitemap").saved, rel=0.3)


@pytest.mark.parametrize("seed", [5, 6])
def test_a_source_goes_by_the_best_of_its_collections(plain: float, seed: int) -> None:
    """The first one told of it lies; the second one is trusted, and its members are polled by what it says.

    What the liar says of its members is no lie of the second one, which would lose its good name by it.
    """
    stale, spent, scheduler = played("honest", lying=True, seed=seed)
    assert spent <= 1.02
    assert not scheduler.worth("lies").used
    assert scheduler.worth("sitemap").used
    assert scheduler.worth("lies").members == scheduler.worth("sitemap").members == MEMBERS
    assert scheduler.worth("sitemap").precision > 0.97
    assert stale < 0.43 * plain


def test_a_collection_that_finds_members_is_looked_at_oftener_and_not_without_end() -> None:
    scheduler = Scheduler("100/h")
    scheduler.add(["sitemap", *(f"m{i}" for i in range(20))], 0.0)
    scheduler.collect("sitemap", [f"m{i}" for i in range(20)], 0.0)
    scheduler.take(0.0)
    collected = scheduler.collected
    assert collected is not None
    row, price = scheduler.names.row("sitemap"), scheduler.price
    before = float(collected.intervals()[0])
    collected.finds(row, 0.2, 3600.0)
    # What a look must bring is the price; a tenth of a member in half an hour is not worth it sooner than that.
    alone = math.sqrt(2.0 * price / (0.2 / 3600.0))
    wanted = 1.0 / math.sqrt(before**-2 + alone**-2)
    least = 1.0 / (0.05 * 100.0 / 3600.0)
    assert float(collected.intervals()[0]) == pytest.approx(max(wanted, min(before, least)))
    assert float(collected.intervals()[0]) <= before
    collected.finds(row, 1e9, 1.0)
    assert float(collected.intervals()[0]) == pytest.approx(min(before, least))


def test_a_feed_that_runs_over_speaks_oftener_than_it_is_heard() -> None:
    """Twenty entries that tell of twenty seconds of a hundred are one a second, not one in five."""
    feed = collection_columns(np.ones(1), np.full(1, 20.0), 0.0)
    assert pace_of(0, feed) == 0.0
    feed.came[:], feed.within[:], feed.missed[:] = 20.0, 100.0, 80.0
    assert pace_of(0, feed) == 1.0


def test_who_is_no_collection_is_told_so() -> None:
    scheduler = Scheduler("1/h")
    scheduler.add("page", 0.0)
    with pytest.raises(InputError, match=r"^collection 'page' is none: say so with Scheduler\.collect$"):
        scheduler.worth("page")
