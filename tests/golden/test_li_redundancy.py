"""004 section VII and 003 sections VI-C, D: several replicas asked at once, fleets of classes, independence."""

import math

from support.golden import Entry, golden
from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Linear
from unstale.core.price import least_budget, plan
from unstale.core.processes import Constant, Pareto, Poisson, Process
from unstale.core.replication.balance import independence_cost
from unstale.core.replication.redundancy import service, service_for
from unstale.study.aggregation import classes

DAY = 86_400


def replicas(entry: Entry, level: float, polls: Process, *, exact: bool = False) -> list[float]:
    """Table II: replicas and requests with redundancy over those without; many replicas merge into Poisson polls."""
    k, capacity, rate = entry.inputs["k"], entry.inputs.get("B", 1000.0), entry.inputs.get("mu", 1.0)
    one = service_for(rate, level, capacity=capacity, polls=polls)
    many = service_for(rate, level, capacity=capacity, asked=k, polls=polls if exact else "purely-random")
    return [many.replicas / one.replicas, many.requests / one.requests]


@golden("L4.TableII.0.1", "L4.TableII.0.3", "L4.TableII.0.5", "L4.TableII.0.7")
def test_what_redundancy_gains(entry: Entry) -> None:
    kinds = {"const": Constant(1.0), "exp": Poisson(1.0), "pareto_alpha3": Pareto(3.0, 2.0)}
    kinds["pareto_alpha2"] = Pareto(2.0, 1.0)
    entry.check({name: replicas(entry, entry.inputs["1-eps"], polls) for name, polls in kinds.items()})


@golden("L4.TableII.exactk")
def test_what_redundancy_gains_with_twenty_replicas_exactly(entry: Entry) -> None:
    kinds = {"const": Constant(1.0), "pareto_alpha3": Pareto(3.0, 2.0)}
    entry.check(
        {
            level: {name: replicas(entry, float(level), polls, exact=True)[0] for name, polls in kinds.items()}
            for level in ("0.1", "0.5", "0.7")
        }
    )


@golden("L4.34-35")
def test_service_rate(entry: Entry) -> None:
    k, capacity, total = entry.inputs["k"], entry.inputs["B"], entry.inputs["lambda_star"]
    one = service(1.0, Poisson(total), replicas=capacity / total, capacity=capacity)
    each = total / k
    many = service(1.0, Poisson(each), replicas=capacity / each, capacity=capacity, asked=k)
    entry.check([one.requests, many.requests])
    # eq. 35: Poisson changes of rate 1 are fresh half of the time at a merged rate of 1
    assert math.isclose(
        service_for(1.0, 0.5, capacity=capacity, asked=k, polls="purely-random").requests,
        many.requests,
        rel_tol=1e-12,
    )


@golden("L3.VI-D.bw")
def test_polls_that_independence_needs_for_the_same_penalty(entry: Entry) -> None:
    """Six times the penalty is √6 times the polls: 100–145 % more, not 100–500 %."""
    entry.check([independence_cost(1.0, 1.0, math.inf, w, summed=True).polls for w in (Indicator(), Linear())])


@golden("L3.Lambda2")
def test_polls_a_second_for_one_missed_change_each(entry: Entry) -> None:
    """ω = 1, weights that follow the rates: E[rate] alone matters [003 eq. 74]."""
    web = classes([entry.inputs["E[mu]/day"]], [entry.inputs["M"]], objective="missed")
    entry.check(least_budget(web, 1.0).spent / DAY)


@golden("L3.Lambda1")
def test_what_the_printed_polls_imply(entry: Entry) -> None:
    """99 k polls a second, equal weights: M·E[√rate]²/(2ω) [003 eq. 73]; E[√rate] itself is not printed."""
    unit = classes([1.0], [entry.inputs["M"]], objective="missed")
    implied = 1.0 / plan(unit, 99e3 * DAY).fleet_staleness
    entry.check({"implied E[sqrt mu]^2 per day": implied, "ratio L2/L1": 8 / implied})
