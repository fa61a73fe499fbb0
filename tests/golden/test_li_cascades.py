"""004: cascades of replicas, and replicas that ask each other."""

import math

import numpy as np

from support.golden import Entry, golden
from unstale.core.processes import Constant, Pareto, Poisson, Process
from unstale.core.replication.cascade import (
    cascade_freshness,
    cascade_residual,
    lasting_freshness,
    lasting_rates,
)
from unstale.core.replication.cooperation import cooperation_limit, cooperative_freshness
from unstale.core.replication.design import best_cooperation, cooperation_for
from unstale.core.replication.redundancy import service_for
from unstale.core.replication.spread import drawn_freshness
from unstale.core.staleness import freshness

CHANGES: dict[str, Process] = {"Exp(2)": Poisson(2.0), "Pareto(3,1)": Pareto(3.0, 1.0)}
POLLS = Poisson(2.0)


@golden(prefix="L4.28.")
def test_freshness_by_depth(entry: Entry) -> None:
    entry.check(cascade_freshness(CHANGES[entry.inputs["U"]], [POLLS] * entry.inputs["depth"]))


@golden("L4.24")
def test_residual_at_depth_two(entry: Entry) -> None:
    entry.check(cascade_residual(entry.inputs["y"], CHANGES[entry.inputs["U"]], [POLLS] * 2))


@golden("L4.29")
def test_each_factor_is_another_replica_s(entry: Entry) -> None:
    chain = [Poisson(3.0), Constant(0.5), Pareto(3.0, 1.0)]
    alone = [freshness(Poisson(1.0), polls) for polls in chain]
    got = cascade_freshness(1.0, chain)
    assert abs(got - math.prod(alone)) < 1e-13
    assert abs(got - alone[-1] ** 3) > 0.01
    entry.check("prod_{k=1}^i p(A_D^{(k)})")


@golden("L4.superlin")
def test_rates_that_keep_freshness(entry: Entry) -> None:
    entry.check(
        {
            "lambda_1..4": lasting_rates(entry.inputs["mu"], 4, entry.inputs["rho"]).tolist(),
            "limit prod (rho=2)": lasting_freshness(2.0),
            "limit prod (rho=3)": lasting_freshness(3.0),
        }
    )


@golden("L4.coop.k0")
def test_without_contacts(entry: Entry) -> None:
    entry.check(cooperative_freshness(1.0, 1.0, 0.0, 10))


@golden("L4.coop.random")
def test_random_peers(entry: Entry) -> None:
    got = {
        str(total): [cooperative_freshness(1.0, 1.0, total / k, 10, k) for k in range(1, 10)]
        for total in entry.inputs["k*nu"]
    }
    entry.check(got)


@golden("L4.coop.nu")
def test_contact_rates(entry: Entry) -> None:
    entry.check([cooperative_freshness(1.0, 1.0, rate, 10) for rate in entry.inputs["nu"]])


@golden("L4.coop.recent")
def test_recent_peers(entry: Entry) -> None:
    rng = np.random.default_rng(1)
    entry.check(
        [
            drawn_freshness(1.0, Poisson(1.0), Poisson(10 / k), 10, k, rng, selection="recent")[0]
            for k in entry.inputs["k"]
        ]
    )


@golden("L4.fig11d")
def test_irregular_contacts(entry: Entry) -> None:
    rng = np.random.default_rng(1)
    shapes = (Constant(1.0), Poisson(1.0), Pareto.from_rate(3.0, 1.0))
    entry.check(
        {
            f"nu={rate}": [drawn_freshness(1.0, Poisson(1.0), c.with_rate(rate), 10, 1, rng)[0] for c in shapes]
            for rate in entry.inputs["nu"]
        }
    )


@golden("L4.Thm6")
def test_limit_of_much_talk(entry: Entry) -> None:
    entry.check(cooperation_limit(1.0, Poisson(1.0), 10))
    entry.check(cooperative_freshness(1.0, 1.0, math.inf, 10))


@golden(prefix="L4.32.")
def test_service_without_cooperation(entry: Entry) -> None:
    got = service_for(1.0, entry.inputs["1-eps"], capacity=entry.inputs["B"], polls="purely-random")
    entry.check({"lambda": got.sync_rate, "R": got.requests})


@golden(prefix="L4.TableI.")
def test_service_with_cooperation(entry: Entry) -> None:
    target, capacity = entry.inputs["1-eps"], entry.inputs["B"]
    best = best_cooperation(1.0, target, capacity)
    alone = service_for(1.0, target, capacity=capacity, polls="purely-random").requests
    entry.check({"m*": best.replicas, "nu": best.peer_rate, "R": best.requests, "ratio_to_eq32": best.requests / alone})


@golden("L4.Fig12")
def test_service_by_number_of_replicas(entry: Entry) -> None:
    served = {m: cooperation_for(1.0, 0.5, 10.0, m).requests for m in (90, 200, 240)}
    best = best_cooperation(1.0, 0.5, 10.0)
    entry.check(
        {
            "m*": best.replicas,
            "R(240)": served[240],
            "ratio(90)": served[90] / 90,
            "ratio(200)": served[200] / 90,
            "max ratio": best.requests / 90,
        }
    )
