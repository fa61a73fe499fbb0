"""What hosts' sources are polled at together, compiled: to the last bit what is found source by source."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet, Rows
from unstale.core.kernels import passes
from unstale.core.kernels.hosts import HostSums
from unstale.core.market import Market
from unstale.core.price import plan
from unstale.core.values import PoissonAge, PoissonFreshness

HOSTS = 40
BOUNDS: list[dict[str, float]] = [{}, {"shortest": 0.5}, {"longest": 3.0}, {"shortest": 0.5, "longest": 3.0}]


def fleet(bounds: dict[str, float], costs: bool = True, scale: float = 1.0) -> Fleet:
    """Sources of which some never change or matter, at hosts of very different size, one without any."""
    rng = np.random.default_rng(3)
    rate, weight = np.exp(2 * rng.standard_normal(3000)), rng.pareto(1.5, 3000)
    rate[::7], weight[3::11] = 0.0, 0.0
    host = np.minimum(rng.geometric(0.1, 3000) - 1, HOSTS - 2)
    terms: dict[str, Any] = {"cost": rng.uniform(0.5, 3.0, 3000)} if costs else {}
    return Fleet.of(PoissonFreshness(scale * rate), weight=weight, host=host, cap=np.ones(HOSTS), **terms, **bounds)


@pytest.fixture(autouse=True)
def loaded() -> None:
    assert passes.warm()


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
@pytest.mark.parametrize("costs", [True, False])
def test_sums_of_hosts_are_those_of_their_sources(bounds: dict[str, float], costs: bool) -> None:
    made = fleet(bounds, costs)
    market = Market(made)
    assert market.sums is not None
    assert made.host is not None
    asked, extra = np.array([3, 0, HOSTS - 1, 17]), np.array([0.2, 0.0, 1.0, 0.05])
    found = market.sums.at(0.01, extra, asked)
    assert found is not None
    surcharge = np.zeros(HOSTS)
    surcharge[asked] = extra
    rates, slopes = market.rates(0.01 * market.cost + surcharge[made.host])
    assert found[0].tolist() == np.bincount(made.host, rates, HOSTS)[asked].tolist()
    assert found[1].tolist() == np.bincount(made.host, slopes, HOSTS)[asked].tolist()
    assert found[0][0] > 0.0 > found[1][0]


def test_where_one_share_needs_the_general_form_all_are_left_to_it() -> None:
    market = Market(fleet({}, scale=1e-60))
    assert market.sums is not None
    assert market.sums.at(1e-30, np.zeros(2), np.array([0, 1])) is None


def test_other_values_and_programs_that_have_not_loaded_the_compiler_go_without(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows, edges = np.arange(2), np.array([0, 2])
    ages = Fleet.of(PoissonAge([1.0, 2.0]), host=[0, 0], cap=[1.0])
    assert HostSums.of(ages, np.ones(2), rows, edges) is None
    random = Fleet.of(PoissonFreshness([1.0, 2.0], "random"), host=[0, 0], cap=[1.0])
    assert HostSums.of(random, np.ones(2), rows, edges) is None
    monkeypatch.delitem(sys.modules, "unstale.core.kernels.numba_pass")
    assert Market(fleet({})).sums is None


@pytest.mark.parametrize(("bounds", "most"), [*zip(BOUNDS, [130, 190, 60, 60], strict=True)], ids=str)
def test_a_plan_is_the_same_with_and_without(
    bounds: dict[str, float], most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And few questions find it: a search that did not know at which levels sources leave asks twice as many."""
    asked: list[int] = []
    at = HostSums.at

    def counted(sums: HostSums, price: float, extra: Floats, hosts: Rows) -> tuple[Floats, Floats] | None:
        asked.append(len(hosts))
        return at(sums, price, extra, hosts)

    monkeypatch.setattr(HostSums, "at", counted)
    made = fleet(bounds)
    needed = np.zeros(3000) if made.least_rate is None else made.least_rate
    caps = 1.0 + 1.1 * np.bincount(made.host, needed, HOSTS) if made.host is not None else None
    made = replace(made, cap=caps)
    budget = 50.0 + 1.1 * made.spending(needed)
    quick = plan(made, budget)
    assert quick.host_price is not None
    assert 5 < np.count_nonzero(quick.host_price) < HOSTS
    # With the last bits of another processor its brackets end elsewhere, and it asks more.
    assert 10 < len(asked) < most * (2 if "support.other_processor" in sys.modules else 1)
    monkeypatch.setattr(HostSums, "of", lambda *_: None)
    slow = plan(made, budget)
    assert quick.price == slow.price
    assert quick.sync_rate.tolist() == slow.sync_rate.tolist()
