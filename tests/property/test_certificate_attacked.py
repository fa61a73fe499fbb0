"""Ten thousand corrupted plans: each constraint, each multiplier, each row; the certificate refuses all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.penalties import Constant
from unstale.core.plan import Plan
from unstale.core.price import least_budget, plan
from unstale.core.processes import Pareto
from unstale.core.values import PoissonAge, PoissonDeadline, PoissonFreshness, ProcessValue, SummedLag, Value

ATTACKS, OPTIMAL = 10_000, 1e-9
NONSENSE = (np.nan, np.inf, -np.inf, -1.0)
#: that much too much, or too little
OFF = (0.0, 0.5, 0.999, 1.001, 2.0, 1e6)


def optima(rng: np.random.Generator) -> Iterator[Plan]:
    """Plans at which something of everything binds, over and over: budget, caps, bounds, abandonment."""
    while True:
        n = int(rng.integers(6, 14))
        rate = rng.lognormal(0, 0.8, n)
        values: list[Value] = [
            PoissonFreshness(rate),
            PoissonAge(rate),
            SummedLag(rate),
            PoissonDeadline(rate, 0.2),
            ProcessValue(Pareto(2.5, 1.0), rate, Constant()),
        ]
        value = values[int(rng.integers(len(values)))]
        n = len(value)
        bounds = {} if rng.random() < 0.4 else {"shortest": rng.uniform(0.05, 0.7, n), "longest": rng.uniform(1, 5, n)}
        caps = (
            {} if rng.random() < 0.4 else {"host": rng.integers(0, 3, n), "cap": np.array([1.5, 4.0, np.inf]) * n / 6}
        )
        fleet = Fleet.of(value, weight=rng.lognormal(0, 0.5, n), cost=rng.uniform(0.5, 2, n), **bounds, **caps)
        yield plan(fleet, float(rng.uniform(2.5, 4.5)) * n)
        if not bounds:
            yield least_budget(fleet, float(rng.uniform(0.3, 0.6)) * plan(fleet, 1.0).fleet_staleness)


def moved(made: Plan) -> Floats:
    """The sources that are free to move: a change of what they are worth changes the optimum."""
    low = 0.0 if made.fleet.least_rate is None else made.fleet.least_rate
    high = np.inf if made.fleet.most_rate is None else made.fleet.most_rate
    return np.flatnonzero((made.sync_rate > low) & (made.sync_rate < high))


def attacks(made: Plan) -> Iterator[tuple[str, Plan]]:
    """What is no optimum any more."""
    fleet, rate, inner = made.fleet, made.sync_rate, moved(made)
    ones = np.ones(len(rate))

    def at(column: Floats, i: int, value: float) -> Floats:
        return np.concatenate([column[:i], [value], column[i + 1 :]])

    for i in range(len(rate)):
        for bad in NONSENSE:
            yield f"rate[{i}] = {bad}", replace(made, sync_rate=at(rate, i, bad))
        if made.price > 0:
            wrong = [rate[i] * f for f in OFF if rate[i] * f != rate[i]] + [rate[i] + 1.0]
            yield from ((f"rate[{i}] = {f}", replace(made, sync_rate=at(rate, i, f))) for f in wrong)
        for name, bad in [("weight", np.nan), ("cost", np.nan), ("cost", np.inf), ("weight", np.inf)]:
            column = getattr(fleet, name)
            yield f"{name}[{i}] = {bad}", replace(made, fleet=replace(fleet, **{name: at(column, i, bad)}))
        if rate[i] > 0:
            yield f"most_rate[{i}]", replace(made, fleet=replace(fleet, most_rate=at(np.inf * ones, i, 0.9 * rate[i])))
        for name, factor in (("least_rate", 1.1), ("least_rate", np.nan), ("most_rate", np.nan)):
            bound = at(0.0 * ones if name == "least_rate" else np.inf * ones, i, factor * rate[i] + 0.1 * factor)
            yield f"{name}[{i}]", replace(made, fleet=replace(fleet, **{name: bound}))
    for i in inner if made.price > 0 else []:
        for f in (0.99, 1.01, 3.0):
            assert fleet.weight is not None
            assert fleet.cost is not None
            yield (
                f"weight[{i}] x {f}",
                replace(made, fleet=replace(fleet, weight=at(fleet.weight, i, fleet.weight[i] * f))),
            )
            yield f"cost[{i}] x {f}", replace(made, fleet=replace(fleet, cost=at(fleet.cost, i, fleet.cost[i] * f)))
    if len(inner) > 1 and made.price > 0:
        # moved from one source to another, so that exactly as much is spent
        i, j = inner[:2]
        step = 0.01 * min(rate[i] * fleet.cost[i], rate[j] * fleet.cost[j])
        swapped = at(at(rate, i, rate[i] + step / fleet.cost[i]), j, rate[j] - step / fleet.cost[j])
        yield "moved within the budget", replace(made, sync_rate=swapped)
    for bad in (np.nan, -np.inf, -1.0, *(f * made.price for f in OFF if made.price > 0), np.inf):
        yield f"price = {bad}", replace(made, price=float(bad))
    for bad in (np.nan, -1.0, 0.5 * made.spent, *((f * made.budget for f in OFF) if made.price > 0 else ())):
        yield f"budget = {bad}", replace(made, budget=float(bad))
    yield "a row too few", replace(made, sync_rate=rate[:-1])
    yield "a row too many", replace(made, sync_rate=np.append(rate, 0.0))
    if fleet.cap is None:
        yield "a surcharge without a cap", replace(made, host_price=np.ones(2))
        return
    assert fleet.host is not None
    extra = np.zeros(len(fleet.cap)) if made.host_price is None else made.host_price
    used = np.bincount(fleet.host, rate, len(fleet.cap))
    for h in range(len(fleet.cap)):
        for bad in NONSENSE:
            yield f"surcharge[{h}] = {bad}", replace(made, host_price=at(extra, h, bad))
        slack = used[h] < 0.999 * fleet.cap[h]
        if slack:
            yield f"surcharge[{h}] for nothing", replace(made, host_price=at(extra, h, made.price + 1.0))
        elif np.any(fleet.host[inner] == h) and extra[h] > 0:
            yield from ((f"surcharge[{h}] x {f}", replace(made, host_price=at(extra, h, extra[h] * f))) for f in OFF)
            yield "no surcharge", replace(made, host_price=None)
        if used[h] > 0:
            for f in (1 / 3, 0.999, np.nan):
                cap = at(fleet.cap, h, used[h] * f)
                yield f"cap[{h}] x {f}", replace(made, fleet=replace(fleet, cap=cap))
                yield f"cap[{h}] x {f}, unasked", replace(made, fleet=replace(fleet, cap=cap), host_price=None)


def test_ten_thousand_corrupted_plans_are_all_caught() -> None:
    rng, tried, passed, kinds = np.random.default_rng(25), 0, [], set()
    with np.errstate(all="ignore"):
        for made in optima(rng):
            assert made.certificate.worst <= OPTIMAL, made
            for name, bad in islice(attacks(made), ATTACKS - tried):
                tried += 1
                kinds.add(name.split("[")[0].split(" =")[0])
                if not bad.certificate.worst > OPTIMAL:
                    passed.append((name, bad))
            if tried >= ATTACKS:
                break
    assert passed == []
    constraints = {"rate", "least_rate", "most_rate", "budget", "cap", "a row too few", "a row too many"}
    assert kinds >= constraints | {"price", "surcharge", "weight", "cost", "moved within the budget"}


def test_an_unbounded_plan_put_on_a_fleet_with_bounds_or_a_cap() -> None:
    value = PoissonFreshness([1.0, 2.0, 5.0])
    free = plan(Fleet.of(value), 6.0)
    third = Fleet.of(value, host=[0, 0, 0], cap=[2.0])
    assert Plan(third, 6.0, free.price, None, free.sync_rate).certificate.hosts == pytest.approx(2.0)
    bounded = Fleet.of(value, shortest=1.0)
    assert Plan(bounded, 6.0, free.price, None, free.sync_rate).certificate.at_bounds > 0.5
    assert Plan(Fleet.of(value), 6.0, np.nan, None, free.sync_rate).certificate.worst == np.inf


def test_an_infinite_price_only_where_nothing_more_may_be_spent() -> None:
    """Nothing to spend and age without end: no finite number says what the first poll would be worth."""
    fleet = Fleet.of(PoissonAge([1.0, 2.0]))
    shut = plan(fleet, 0.0)
    assert (shut.price, shut.certificate.worst) == (np.inf, 0.0)
    assert Plan(fleet, 1.0, np.inf, None, np.zeros(2)).certificate.worst > 0.5
    assert Plan(fleet, 1.0, np.inf, None, np.array([0.5, 0.5])).certificate.worst > 0.5
