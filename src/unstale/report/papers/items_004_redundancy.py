"""004, section VII: clients that ask several replicas."""

from __future__ import annotations

from typing import Any

from unstale.core.processes import Constant, Pareto, Poisson, Process
from unstale.core.replication.redundancy import service, service_for
from unstale.report.papers.item import Catalog, Item

REDUNDANCY = Catalog()
_EVEN, _PARETO = Constant(1.0), Pareto.from_rate(3.0, 1.0)
_KINDS: dict[str, Process] = {
    "const": _EVEN,
    "exp": Poisson(1.0),
    "pareto_alpha3": _PARETO,
    "pareto_alpha2": Pareto.from_rate(2.0, 1.0),
}


@REDUNDANCY.computes("L4.TableII.0.1", "L4.TableII.0.3", "L4.TableII.0.5", "L4.TableII.0.7")
def _improvement(item: Item) -> Any:
    """m*/m and R*/R, where the polls of the replicas asked are taken to merge into Poisson polls, as in eq. 35."""
    level, rate, capacity, k = (item.inputs[name] for name in ("1-eps", "mu", "B", "k"))
    many = service_for(rate, level, capacity=capacity, asked=k, polls="purely-random")
    alone = {name: service_for(rate, level, capacity=capacity, polls=polls) for name, polls in _KINDS.items()}
    return {name: [many.replicas / one.replicas, many.requests / one.requests] for name, one in alone.items()}


@REDUNDANCY.computes("L4.TableII.exactk")
def _improvement_exactly(item: Item) -> Any:
    """m*/m with the superposition of just k replicas; it does not depend on the capacity."""

    def ratio(level: float, polls: Process) -> float:
        one, many = (service_for(1.0, level, capacity=1000.0, asked=k, polls=polls) for k in (1, item.inputs["k"]))
        return many.replicas / one.replicas

    return {
        level: {"const": ratio(float(level), _EVEN), "pareto_alpha3": ratio(float(level), _PARETO)}
        for level in ("0.1", "0.5", "0.7")
    }


@REDUNDANCY.computes("L4.34-35")
def _service(item: Item) -> Any:
    capacity, total, k = (item.inputs[name] for name in ("B", "lambda_star", "k"))
    return [
        service(1.0, Poisson(total / asked), replicas=asked * capacity / total, capacity=capacity, asked=asked).requests
        for asked in (1, k)
    ]
