"""Plans with collections: golden values, every small plan tried, and every refusal in a sentence."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import unstale
from unstale.cli.plan import plan as command
from unstale.core.fleet import Fleet
from unstale.core.gamma2 import p2_inverse
from unstale.core.signals.answers import CollectionTable
from unstale.core.signals.bits import bit_freshness
from unstale.core.signals.collected_market import CollectedFleet
from unstale.core.signals.plan import CollectedPlan, least_collected, plan_collected
from unstale.core.values import PoissonFreshness
from unstale.errors import InfeasibleError, InputError

RATE, WEIGHT = [0.2, 0.5, 1.0, 2.0, 8.0], [1.0, 1.0, 2.0, 1.0, 1.0]
FLEET: dict[str, list[Any]] = {"id": list("abcde"), "change_rate": RATE, "weight": WEIGHT, "collection": ["s"] * 5}


def table(*rows: tuple[float, float, float, float, float]) -> CollectionTable:
    return CollectionTable(*(np.array(column) for column in zip(*rows, strict=True)))


EXACT = (1.0, 0.0, np.inf, 1.0, 1.0)


def made(member: list[int], rows: CollectionTable, budget: float) -> CollectedPlan:
    fleet = Fleet.of(PoissonFreshness(RATE), weight=WEIGHT)
    return plan_collected(CollectedFleet(fleet, np.array(member, np.intp), rows), budget)


def nine(x: float) -> object:
    return pytest.approx(x, rel=5e-9)


def test_golden_values_with_and_without_the_collection() -> None:
    got = made([0] * 5, table(EXACT), 4.0)
    assert got.price == nine(0.377524247)
    assert 1 / got.listing_rate[0] == nine(0.652001658)
    assert got.weighted_freshness == nine(3.81892551)
    assert got.spent == pytest.approx(4.0, rel=1e-12)
    assert got.gap < 1e-12
    alone = made([-1] * 5, table(EXACT), 4.0)
    assert (alone.price, alone.weighted_freshness) == (nine(0.269105071), nine(3.51663615))
    plain = unstale.plan(rates=RATE, weights=WEIGHT, budget=4)
    assert alone.sync_rate == pytest.approx(plain.sync_rate, rel=1e-9)


def test_no_interval_and_no_blind_polls_do_better() -> None:
    """Brute force: at a fixed listing interval and number of blind polls each, the best division of the budget."""
    rate, budget, cost = np.array([0.3, 1.5]), 3.0, 2.0
    got = plan_collected(
        CollectedFleet(Fleet.of(PoissonFreshness(rate)), np.zeros(2, np.intp), table((cost, 0.0, np.inf, 1.0, 1.0))),
        budget,
    )
    best = 0.0
    for span in np.geomspace(0.2, 20.0, 120):
        left = (budget - cost / span) * span
        # each member: n blind polls evenly spaced before a last stretch, then a poll if it changed
        options = []
        for r in rate:
            own = [(0.0, 0.0)]
            for n in range(12):
                for last in np.linspace(0.05, 1.0, 60) * span if n else [span]:
                    s = (span - last) / n if n else 0.0
                    fresh = n * -np.expm1(-r * s) / r + -np.expm1(-r * last) / r
                    own.append((n - np.expm1(-r * last), fresh))
            options.append(own)
        pairs = [(p + q, f + g) for p, f in options[0] for q, g in options[1][:: max(len(options[1]) // 150, 1)]]
        best = max([best, *(f / span for p, f in pairs if p <= left)])
    assert best <= got.weighted_freshness + 1e-9
    assert best > got.weighted_freshness - 0.02
    assert got.gap < 1e-9


def test_a_window_with_blind_polls_is_the_best_by_dynamic_programming() -> None:
    """One member, rare listings: value iteration on a grid of ages within a window finds no better plan."""
    rate, due, span, steps = 1.0, 0.2, 4.0, 800
    step = span / steps
    # value[k, a]: the best of the rest of the window at time k·step with a copy that is a·step old
    value = np.zeros(steps + 1)
    ages = np.arange(steps + 1) * step
    value = -due * -np.expm1(-rate * ages)  # at the listing a changed member is polled
    fresh = np.exp(-rate * ages) * -np.expm1(-rate * step) / rate
    for _ in range(steps):
        stay = fresh[:-1] + value[1:]
        poll = fresh[0] + value[1] - due
        value = np.append(np.maximum(stay, poll), poll)
    from unstale.core.signals.exact import window

    assert value[0] == pytest.approx(float(window(span, rate, 1.0, due).value), abs=2e-4)


def test_lone_sources_and_collections_share_one_price() -> None:
    got = made([0, 0, 0, -1, -1], table(EXACT), 4.0)
    assert got.gap < 1e-12
    assert got.spent == pytest.approx(4.0, rel=1e-12)
    # the lone source's interval is that of its own price
    plain = unstale.plan(rates=RATE[3:4], weights=WEIGHT[3:4], budget=float(got.sync_rate[3]))
    assert plain.price == pytest.approx(got.price, rel=1e-6)


def test_more_budget_is_never_worse_and_jumps_are_mixed() -> None:
    plans = [made([0, 0, -1, 1, 1], table(EXACT, (30.0, 0.0, np.inf, 1.0, 1.0)), b) for b in (0.5, 1.0, 2.0, 5.0, 50.0)]
    assert all(p.spent == pytest.approx(p.budget, rel=1e-9) for p in plans)
    assert all(a.weighted_freshness < b.weighted_freshness and a.price >= b.price for a, b in pairwise(plans))
    assert all(p.gap < 1e-6 for p in plans)


def test_bounds_of_a_collection_hold() -> None:
    rare = made([0] * 5, table((1.0, 2.0, np.inf, 1.0, 1.0)), 4.0)
    assert rare.listing_rate[0] <= 0.5 + 1e-12
    often = made([0] * 5, table((1.0, 0.0, 0.3, 1.0, 1.0)), 4.0)
    assert often.listing_rate[0] >= 1 / 0.3 - 1e-12
    assert max(rare.weighted_freshness, often.weighted_freshness) < made([0] * 5, table(EXACT), 4.0).weighted_freshness
    with pytest.raises(InfeasibleError, match="raise it to 10"):
        made([0] * 5, table((1.0, 0.0, 0.1, 1.0, 1.0)), 4.0)


def test_noisy_signals_bring_less_and_the_bound_still_holds() -> None:
    exact = made([0] * 5, table((0.1, 0.0, np.inf, 1.0, 1.0)), 4.0)
    noisy = made([0] * 5, table((0.1, 0.0, np.inf, 0.8, 0.7)), 4.0)
    worthless = made([0] * 5, table((0.1, 0.0, np.inf, 0.0, 0.5)), 4.0)
    assert worthless.weighted_freshness < noisy.weighted_freshness < exact.weighted_freshness
    assert worthless.listing_rate[0] == 0.0
    assert 0.0 < noisy.gap < 0.1
    # members bring at least what is promised: what bits bring, exactly, or plain polling
    for rate, weight in zip(RATE[:4], WEIGHT[:4], strict=True):
        due, span, i = noisy.price / weight, 1 / float(noisy.listing_rate[0]), RATE.index(rate)
        promised = noisy.freshness[i] - due * noisy.sync_rate[i]
        plain = float(np.exp(-p2_inverse(np.array(due * rate))))
        assert promised <= max(bit_freshness(span, due, rate, 0.8, 0.7), plain) + 1e-9


def test_a_plan_in_simulation() -> None:
    """Members change at random; the plan's listing and its polls keep them as fresh as it says."""
    got = made([0] * 5, table(EXACT), 4.0)
    rng, span, windows = np.random.default_rng(5), 1 / float(got.listing_rate[0]), 40_000
    for i, rate in enumerate(RATE):
        if got.sync_rate[i] == 0:
            continue
        first = rng.exponential(1 / rate, windows)
        fresh, polled = np.minimum(first, span) / span, (first < span) / span
        for sample, want in ((fresh, got.freshness[i]), (polled, got.sync_rate[i])):
            assert abs(sample.mean() - want) < 5 * sample.std() / np.sqrt(windows)


def test_the_least_budget_for_a_target() -> None:
    fleet = Fleet.of(PoissonFreshness(RATE), weight=WEIGHT)
    problem = CollectedFleet(fleet, np.zeros(5, np.intp), table(EXACT))
    assert least_collected(problem, 3.81892551 / 6).spent == pytest.approx(4.0, rel=1e-7)


def test_hosts_are_asked_no_more_than_they_allow_and_the_bound_says_so() -> None:
    """Two hosts with a sitemap each, one of them with a cap: its sitemap counts too, and nothing better is possible."""
    fleet = {"id": list("abcdefgh"), "change_rate": [0.2, 0.5, 1.0, 2.0] * 2, "collection": ["s"] * 4 + ["t"] * 4}
    fleet["host"] = ["x"] * 4 + ["y"] * 4
    told = {"id": ["s", "t"], "cost": [1, 1]}
    free = unstale.plan(fleet, collections=told, budget=8)
    capped = unstale.plan(fleet, collections=told, budget=8, host_cap={"x": 2.0})
    assert float(free.sync_rate[:4].sum() + free.plan.listing_rate[0]) > 3.0
    assert float(capped.sync_rate[:4].sum() + capped.plan.listing_rate[0]) == pytest.approx(2.0, abs=1e-5)
    assert float(capped.sync_rate[4:].sum() + capped.plan.listing_rate[1]) == pytest.approx(6.0, abs=1e-5)
    assert capped.plan.surcharge[1] == 0.0 < capped.plan.surcharge[0]
    # The bound holds for every policy that keeps the cap, and is below what is possible without one.
    assert capped.plan.weighted_freshness <= capped.plan.bound + 1e-9 < free.plan.weighted_freshness
    assert capped.plan.gap < 1e-5
    wide = unstale.plan(fleet, collections=told, budget=8, host_cap={"x": 100.0})
    assert wide.sync_rate.tolist() == pytest.approx(free.sync_rate.tolist(), rel=1e-6)


def test_tables_in_and_tables_out() -> None:
    fleet = {**FLEET, "id": [*FLEET["id"], "f"], "change_rate": [*RATE, 1.0], "weight": [*WEIGHT, 1.0]}
    got = unstale.plan(
        fleet | {"collection": ["s"] * 5 + [None]}, collections={"id": ["s"], "cost": [1]}, budget="5/day"
    )
    assert got.table().column_names[-4:] == ["sync_rate", "interval", "freshness", "abandoned"]
    assert got.listing_table().column("members").to_pylist() == [5]
    summary = got.summary()
    assert summary["freshness"] > summary["freshness_without_collections"] > summary["freshness_uniform"]
    assert summary["gap"] < 1e-9
    assert got.explain("s").startswith("s is polled every 14.5 h")
    assert "when s, polled every 14.5 h, says so" in got.explain("a")
    assert got.explain("f").startswith("f is polled every 1.23 days")
    assert got.explain("e").startswith("e is not polled")


@pytest.mark.parametrize(
    ("change", "collections", "message"),
    [
        ({}, {"id": ["t"]}, "row 1: collection 's' is not in the table of collections"),
        ({}, {"id": ["s", "s"]}, "stands in row 1 too"),
        ({}, {"id": ["s"], "cost": [0]}, "cost 0 must be a finite number above 0"),
        ({}, {"id": ["s"], "recall": [1.5]}, "at most 1"),
        ({}, {"id": ["s"], "min_interval": ["2d"], "max_interval": ["1d"]}, "must not exceed max_interval"),
        ({}, {"name": ["s"]}, "without a column id"),
        ({"max_interval": [1.0] * 5}, {"id": ["s"]}, "is set on a member of a collection"),
        ({"process": ["pareto:3"] * 5}, {"id": ["s"]}, "Poisson"),
    ],
)
def test_what_cannot_be_planned_is_refused(change: dict[str, Any], collections: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        unstale.plan(FLEET | change, collections=collections, budget=4)


def test_the_command(tmp_path: Path) -> None:
    fleet, listings = tmp_path / "fleet.csv", tmp_path / "collections.csv"
    rows = zip("abcde", RATE, WEIGHT, strict=True)
    fleet.write_text("id,change_rate,weight,collection\n" + "".join(f"{i},{r},{w},s\n" for i, r, w in rows))
    listings.write_text("id,cost\ns,1\n")
    asked = [str(fleet), "--collections", str(listings), "--budget", "4/day"]
    done = CliRunner().invoke(command, [*asked, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["price"] == nine(0.377524247)
    shown = CliRunner().invoke(command, asked)
    assert "15.6 h" in shown.output
    # Also where there are 80 columns: no number is cut.
    assert "…" not in shown.output
    # the column alone changes nothing
    plain = CliRunner().invoke(command, [str(fleet), "--budget", "4/day", "--json"])
    assert json.loads(plain.stdout)["price"] == nine(0.269105071)
