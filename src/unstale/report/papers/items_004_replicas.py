"""004, sections V and VI: cascades of replicas, and replicas that ask each other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from unstale.core.processes import Constant, Pareto, Poisson, Process
from unstale.core.replication.cascade import cascade_freshness, cascade_residual, lasting_freshness, lasting_rates
from unstale.core.replication.cooperation import cooperation_limit, cooperative_freshness
from unstale.core.replication.design import best_cooperation, cooperation_for
from unstale.core.replication.redundancy import service_for
from unstale.core.replication.spread import Selection, drawn_freshness
from unstale.core.staleness import freshness
from unstale.report.papers.item import Catalog, Item, Simulate, SimulatedMean

REPLICAS = Catalog()
#: the settings of Figure 9
CHANGES: dict[str, Process] = {"Exp(2)": Poisson(2.0), "Pareto(3,1)": Pareto(3.0, 1.0)}
POLLS = Poisson(2.0)
#: contacts of Figure 11(d), to be given a rate
CONTACTS: tuple[Process, ...] = (Constant(1.0), Poisson(1.0), Pareto.from_rate(3.0, 1.0))


@REPLICAS.computes("L4.28.*")
def _by_depth(item: Item) -> Any:
    return cascade_freshness(CHANGES[item.inputs["U"]], [POLLS] * item.inputs["depth"])


@REPLICAS.simulates("L4.28.*")
def _simulated_by_depth(item: Item, simulate: Simulate) -> Any:
    return followed(CHANGES[item.inputs["U"]], POLLS, item.inputs["depth"], item.number)


@REPLICAS.computes("L4.24")
def _residual(item: Item) -> Any:
    return cascade_residual(item.inputs["y"], CHANGES[item.inputs["U"]], [POLLS] * 2)


@REPLICAS.computes("L4.29")
def _product(item: Item) -> Any:
    """With unlike replicas only the product over all of them is right, and not a power of the last."""
    chain = [Poisson(3.0), Constant(0.5), Pareto(3.0, 1.0)]
    alone = [float(freshness(Poisson(1.0), polls)) for polls in chain]
    got = cascade_freshness(1.0, chain)
    return abs(got - math.prod(alone)) < 1e-13 and abs(got - alone[-1] ** 3) > 0.01


@REPLICAS.computes("L4.superlin")
def _lasting(item: Item) -> Any:
    return {
        "lambda_1..4": lasting_rates(item.inputs["mu"], 4, item.inputs["rho"]).tolist(),
        "limit prod (rho=2)": lasting_freshness(2.0),
        "limit prod (rho=3)": lasting_freshness(3.0),
    }


@REPLICAS.computes("L4.coop.k0")
def _alone(item: Item) -> Any:
    return cooperative_freshness(1.0, 1.0, 0.0, 10)


@REPLICAS.computes("L4.coop.random")
def _random(item: Item) -> Any:
    return {
        str(total): [cooperative_freshness(1.0, 1.0, total / k, 10, k) for k in range(1, 10)]
        for total in item.inputs["k*nu"]
    }


@REPLICAS.simulates("L4.coop.random")
def _simulated_random(item: Item, simulate: Simulate) -> Any:
    rng = np.random.default_rng(item.number)
    return {
        str(total): [drawn(Poisson(total / k), k, rng) if k in (1, 2, 5, 9) else None for k in range(1, 10)]
        for total in item.inputs["k*nu"]
    }


@REPLICAS.computes("L4.coop.nu")
def _by_contact_rate(item: Item) -> Any:
    return [cooperative_freshness(1.0, 1.0, rate, 10) for rate in item.inputs["nu"]]


@REPLICAS.simulates("L4.coop.nu")
def _simulated_by_contact_rate(item: Item, simulate: Simulate) -> Any:
    rng = np.random.default_rng(item.number)
    return [drawn(Poisson(rate), 1, rng) for rate in item.inputs["nu"]]


@REPLICAS.computes("L4.coop.recent")
def _recent(item: Item) -> Any:
    rng = np.random.default_rng(item.number)
    return [drawn(Poisson(10 / k), k, rng, "recent").value for k in item.inputs["k"]]


@REPLICAS.computes("L4.fig11d")
def _irregular_contacts(item: Item) -> Any:
    rng = np.random.default_rng(item.number)
    return {
        f"nu={rate}": [drawn(contacts.with_rate(rate), 1, rng).value for contacts in CONTACTS]
        for rate in item.inputs["nu"]
    }


@REPLICAS.computes("L4.Thm6")
def _limit(item: Item) -> Any:
    return cooperation_limit(item.inputs["mu"], Poisson(item.inputs["lambda"]), item.inputs["m"])


def _independent(item: Item) -> Any:
    return service_for(item.inputs["mu"], item.inputs["1-eps"], capacity=item.inputs["B"], polls="purely-random")


@REPLICAS.computes("L4.32.*")
def _without_cooperation(item: Item) -> Any:
    found = _independent(item)
    return {"lambda": found.sync_rate, "R": found.requests}


@REPLICAS.computes("L4.TableI.*")
def _with_cooperation(item: Item) -> Any:
    best = best_cooperation(item.inputs["mu"], item.inputs["1-eps"], item.inputs["B"])
    return {
        "m*": best.replicas,
        "nu": best.peer_rate,
        "R": best.requests,
        "ratio_to_eq32": best.requests / _independent(item).requests,
    }


@REPLICAS.computes("L4.Fig12")
def _by_replicas(item: Item) -> Any:
    rate, target, capacity = item.inputs["mu"], 1.0 - item.inputs["eps"], item.inputs["B"]
    alone = service_for(rate, target, capacity=capacity, polls="purely-random").requests
    best = best_cooperation(rate, target, capacity)
    served = {m: cooperation_for(rate, target, capacity, m).requests for m in (90, 200, 240)}
    return {
        "m*": best.replicas,
        "R(240)": served[240],
        "ratio(90)": served[90] / alone,
        "ratio(200)": served[200] / alone,
        "max ratio": best.requests / alone,
    }


def drawn(
    contacts: Process, peers: int, rng: np.random.Generator, selection: Selection = "random", runs: int = 20_000
) -> SimulatedMean:
    """Ten replicas with one change and one poll of the source each per unit of time, as in Figure 11."""
    return SimulatedMean(*drawn_freshness(1.0, Poisson(1.0), contacts, 10, peers, rng, selection=selection, runs=runs))


def followed(changes: Process, polls: Process, depth: int, seed: int, paths: int = 32) -> SimulatedMean:
    """Freshness at a depth: what is held is followed up the chain, from poll to poll, to a time at the source."""
    rng = np.random.default_rng(seed)
    shares = []
    for _ in range(paths):
        seen = now = np.linspace(200.0, 4000.0, 20_000)
        for _ in range(depth):
            polled = polls.sample_path(rng, 4000.0)
            seen = polled[np.maximum(np.searchsorted(polled, seen, side="right") - 1, 0)]
        changed = changes.sample_path(rng, 4000.0)
        before, after = (np.searchsorted(changed, times, side="right") for times in (seen, now))
        shares.append(np.mean(before == after))
    return SimulatedMean(float(np.mean(shares)), float(np.std(shares, ddof=1)) / math.sqrt(paths))
