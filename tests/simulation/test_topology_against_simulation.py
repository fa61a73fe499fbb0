"""Every design of a topology keeps its promise: simulated freshness within five standard errors of the target."""

from __future__ import annotations

from functools import cache

import pytest

from support.depth import combined
from unstale.cli.topology import simulated
from unstale.planning.topology import SHAPES, Question, Topology, topology

QUESTIONS = {
    "scarce source": Question("2/h", 20, "100/h", 0.8, "30/h"),
    "ample source": Question("2/h", 6, "100/h", 0.9, "1000/h"),
    "slow machines": Question("1/s", 20, "1/s", 0.9, "100/s"),
    "bursts": Question("pareto:2.5 1/h", 30, "12/h", 0.5, "6/h"),
    "sleep and wake": Question("weibull:0.5 1/h", 12, "20/h", 0.6, "8/h"),
    "almost even": Question("gamma:4 1/h", 12, "40/h", 0.7, "9/h"),
    "deep": Question("1/h", 100, "10/h", 0.4),
}


@cache
def answered(name: str) -> Topology:
    return topology(QUESTIONS[name])


@pytest.mark.parametrize(("name", "shape"), combined(list(QUESTIONS), list(SHAPES)))
def test_what_is_promised_is_seen(name: str, shape: str) -> None:
    design = next(each for each in answered(name).designs if each.shape == shape)
    if not design.feasible:
        assert design.clients == 0
        return
    seen = simulated(design, QUESTIONS[name], seed=3)
    assert 0 < float(seen.error) < 0.01
    assert abs(seen.z(design.freshness)) < 5, f"{seen}, promised {design.freshness}"
