"""Plans for age, and of sources in several collections: dynamic programming, brute force, simulation, and bounds."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad

import unstale
from unstale.core.gamma2 import p2_inverse
from unstale.core.signals.age import known_age
from unstale.core.signals.aged_told import ToldAge, solved
from unstale.core.signals.overlapping import looked_after, most_left
from unstale.errors import InputError

RATE, WEIGHT = [0.2, 0.5, 1.0, 2.0, 8.0], [1.0, 1.0, 2.0, 1.0, 1.0]
FLEET: dict[str, list[Any]] = {"id": list("abcde"), "change_rate": RATE, "weight": WEIGHT, "collection": ["s"] * 5}
NESTED = FLEET | {"collection": ["s", "s", "s;t", "s;t", "s;t"]}


def test_told_age_at_its_ends() -> None:
    share = np.array([1e-3, 0.1, 0.5, 3.0])
    told = ToldAge(share)
    assert told.cost(np.full(4, 1e-9)).tolist() == pytest.approx(known_age(1.0, share).tolist())
    assert told.polls(np.full(4, 1e-9)).tolist() == pytest.approx((1 / np.sqrt(1 + 2 * share)).tolist(), rel=1e-5)
    plain = unstale.plan(rates=[1.0], budget=0.8, objective="age")
    alone = ToldAge(np.array([plain.price])).cost(np.array([np.inf]))
    assert float(alone[0]) == pytest.approx(float(plain.age[0]) + plain.price * 0.8, rel=1e-6)


def test_told_age_between_its_points_is_what_dynamic_programming_finds() -> None:
    share, span = np.array([0.013, 0.2, 0.7, 4.0]), np.array([0.2, 0.6, 1.7, 2.6])
    assert ToldAge(share).cost(span).tolist() == pytest.approx(solved(span, share, 20).tolist(), rel=0.01)


def test_a_copy_known_to_be_stale_is_polled_when_it_is_old_enough() -> None:
    """Listings closer than the best age of told copies are as good as pushed signals: simulated, polled at that age."""
    rate, due, span = 1.0, 0.5, 0.3
    age = float(known_age(rate, due))
    rng, n = np.random.default_rng(3), 60_000
    gap = rng.exponential(1 / rate, n)
    length, area = gap + age, np.full(n, age * age / 2)
    cost = (area + due) - float(ToldAge(np.array([due])).cost(np.array([span]))[0]) * length
    assert abs(cost.mean()) < 5 * cost.std() / np.sqrt(n)


def test_a_plan_for_age_beats_plain_polling_and_every_other_interval() -> None:
    got = unstale.plan(FLEET, collections={"id": ["s"], "cost": [1]}, budget=4, objective="age")
    summary = got.summary()
    assert summary["age"] < 0.9 * summary["age_without_collections"] < 0.9 * summary["age_uniform"]
    assert summary["spent"] == pytest.approx(4.0, rel=1e-6)
    assert -1e-6 < summary["age"] - summary["bound"] < 1e-4
    assert got.price == pytest.approx(0.511651, rel=1e-3)
    assert float(got.listing_interval[0]) == pytest.approx(0.9805, rel=5e-3)
    assert got.table().column_names[-4:] == ["sync_rate", "interval", "age", "abandoned"]
    # at its price no other interval costs less, and members cost what dynamic programming says
    rate, weight = np.array(RATE), np.array(WEIGHT)
    share = got.price * rate**2 / weight

    def cost(span: float) -> float:
        return float((weight * ToldAge(share).cost(rate * span) / rate).sum()) + got.price / span

    best = cost(float(got.listing_interval[0]))
    assert all(cost(float(span)) >= best - 1e-9 for span in np.geomspace(0.1, 10, 60))
    exact = solved(rate[:3] * float(got.listing_interval[0]), share[:3], 20) / rate[:3]
    assert (got.age + got.price / weight * got.sync_rate)[:3].tolist() == pytest.approx(exact.tolist(), rel=0.01)


@pytest.mark.parametrize("looks", [(2.0, 0.5), (1.0, 1.0), (0.3, 4.0, 1.5)])
def test_looks_of_several_collections_against_an_integral_and_a_simulation(looks: tuple[float, ...]) -> None:
    rate, looked = 1.3, float(looked_after(np.array([1.3]), np.array([looks]))[0])
    told = 1 - quad(lambda u: rate * np.exp(-rate * u) * np.prod([1 - u * r for r in looks]), 0, 1 / max(looks))[0]
    assert looked == pytest.approx(told, rel=1e-9)
    rng, n = np.random.default_rng(8), 40_000
    since = np.min([rng.uniform(0, 1 / r, n) for r in looks], axis=0)
    fresh = rng.exponential(1 / rate, n) > since
    assert abs(fresh.mean() - looked) < 5 * fresh.std() / np.sqrt(n)


def test_a_plan_with_overlapping_collections_by_brute_force() -> None:
    """A sitemap of all and a cheap one of the fast: every pair of intervals on a grid, and the bound above them."""
    got = unstale.plan(NESTED, collections={"id": ["s", "t"], "cost": [1, 0.1]}, budget=4)
    one = unstale.plan(FLEET, collections={"id": ["s"], "cost": [1]}, budget=4)
    assert got.plan.weighted_freshness > one.plan.weighted_freshness + 0.2
    assert got.plan.spent == pytest.approx(4.0, rel=1e-6)
    assert 0.0 <= got.plan.gap < 0.006
    rate, weight, price = np.array(RATE), np.array(WEIGHT), got.price
    plain = np.where(price * rate < weight, np.exp(-p2_inverse(np.minimum(price * rate / weight, 0.9))), 0.0)
    best = 0.0
    for s, t in product(np.geomspace(0.5, 5, 25), np.geomspace(0.1, 2, 25)):
        looks = np.column_stack([np.full(5, 1 / s), np.where(np.arange(5) > 1, 1 / t, 0.0)])
        left = np.maximum((weight - price * rate) * looked_after(rate, looks), weight * plain)
        best = max(best, float(left.sum()) - price * (1 / s + 0.1 / t))
    have = got.plan.weighted_freshness - price * 4.0
    assert have - 0.01 < best <= have + 1e-6
    assert "when s, polled every 1.51 days, or t, polled every 6.54 h, says so" in got.explain("c")
    assert got.listing_table().column("members").to_pylist() == [5, 3]


def test_one_collection_written_as_several_changes_nothing() -> None:
    told = {"id": ["s", "t"], "cost": [1, 50]}
    got, one = (unstale.plan(fleet, collections=told, budget=4) for fleet in (NESTED, FLEET))
    assert got.plan.listing_rate[1] == 0.0
    assert got.sync_rate.tolist() == pytest.approx(one.sync_rate.tolist(), rel=1e-5)
    assert got.plan.weighted_freshness <= got.plan.bound


def test_the_bound_of_one_member_is_what_even_looks_bring() -> None:
    rate, due, look = np.array([1.0]), np.array([0.2]), np.array([0.02])
    spans = np.geomspace(0.01, 10, 4000)
    best = max((0.8 * -np.expm1(-spans) - 0.02) / spans)
    assert float(most_left(rate, np.ones(1), due, look)[0]) == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(
    ("fleet", "collections", "asked", "message"),
    [
        (NESTED, {"id": ["s"]}, {}, "row 3: collection 't' is not in the table"),
        (NESTED, {"id": ["s", "t"]}, {"objective": "age"}, "in several collections is planned for freshness"),
        (NESTED, {"id": ["s", "t"], "recall": [1, 0.5]}, {}, "sources of one collection each"),
        (FLEET, {"id": ["s"], "precision": [0.5]}, {"objective": "age"}, "below 1 is planned for freshness"),
        (FLEET, {"id": ["s"]}, {"objective": "missed"}, "planned for freshness or age"),
        (FLEET | {"host": ["x"] * 5}, {"id": ["s"]}, {"objective": "age", "host_cap": 3.0}, "without caps of hosts"),
    ],
)
def test_what_cannot_be_planned_is_refused(
    fleet: dict[str, Any], collections: dict[str, Any], asked: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        unstale.plan(fleet, collections=collections, budget=4, **asked)
