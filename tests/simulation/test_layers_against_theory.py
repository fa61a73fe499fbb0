"""Layers that combine cascade, cooperation and redundancy: theory, a simulation without it, and the planner."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.processes import Poisson
from unstale.core.replication import cascade_levels, cooperative_freshness
from unstale.core.replication.layers import Layer, asked_freshness, layered_freshness
from unstale.core.replication.redundancy import freshest_freshness
from unstale.planning.combined import combined, layers_of, most_clients
from unstale.planning.question import Question
from unstale.planning.topology import topology
from unstale.sim.layers import simulate_layers

DESIGNS = [
    ([Layer(4, 1.0, 4, 10.0), Layer(12, 5.0)], True),
    ([Layer(3, 2.0), Layer(6, 3.0, 3, 2.0), Layer(12, 6.0)], True),
    ([Layer(3, 2.0), Layer(6, 3.0, 2, 2.0), Layer(12, 6.0)], False),
    ([Layer(2, 8.0), Layer(6, 2.0)], True),
]


@pytest.mark.parametrize(("layers", "even"), DESIGNS)
def test_layers_multiply(layers: list[Layer], even: bool) -> None:
    run = simulate_layers(1.0, layers, even=even, seed=25, horizon=8_000.0)
    assert np.all(np.abs(run.z(layered_freshness(1.0, layers, even=even))) < 5)
    assert np.all(np.asarray(run.error) < 0.01)


def test_one_kind_alone_is_what_the_papers_have() -> None:
    chain = [Layer(1, 2.0), Layer(1, 5.0)]
    assert layered_freshness(1.0, chain) == pytest.approx(cascade_levels(1.0, [2.0, 5.0]), rel=1e-12)
    assert layered_freshness(1.0, [Layer(9, 1.0, 9, 3.0)]) == [cooperative_freshness(1.0, 1.0, 3.0, 9)]
    # who does not talk is independent: the freshest of k has the polls of k
    silent = asked_freshness(1.0, [Layer(6, 2.0, 6, 0.0)], 3)
    assert silent == pytest.approx(freshest_freshness(Poisson(1.0), Poisson(2.0), 3), rel=1e-12)
    assert asked_freshness(1.0, [Layer(6, 2.0, 6, 4.0)], 1) == pytest.approx(cooperative_freshness(1.0, 2.0, 4.0, 6))


@pytest.mark.parametrize(
    ("machines", "capacity", "target", "source"), [(20, 50.0, 0.8, 15.0), (20, 50.0, 0.9, 20.0), (40, 20.0, 0.6, 12.0)]
)
def test_the_combination_is_no_worse_than_its_parts_and_within_the_bound(
    machines: int, capacity: float, target: float, source: float
) -> None:
    question = Question(1.0, machines, capacity, target, source)
    found, best = topology(question), combined(question)
    parts = [design.clients for design in found.designs if design.shape in ("tree", "independent", "cooperation")]
    assert best.clients >= max(parts) * (1 - 1e-9)
    assert best.clients <= most_clients(question) * (1 + 1e-12)
    assert all(design.clients <= most_clients(question) for design in found.designs)
    layers = layers_of(best)
    assert asked_freshness(1.0, layers, best.asked) >= target * (1 - 1e-9)
    assert best.source_polls <= source * (1 + 1e-9)
    # nobody sends and answers more than it can
    for above, below in zip(layers, [*layers[1:], None], strict=True):
        answered = -(-below.machines // above.machines) * below.sync_rate if below else 0.0
        assert above.sync_rate + 2 * above.peer_rate + answered <= capacity * (1 + 1e-9)
    run = simulate_layers(1.0, layers, seed=26, horizon=3_000.0)
    assert abs(run.z(layered_freshness(1.0, layers))[-1]) < 5


def test_a_source_that_answers_little_is_polled_by_machines_that_talk() -> None:
    question = Question(1.0, 6, 200.0, 0.55, 1.6)
    alone = topology(Question(1.0, 6, 200.0, 0.55, 1.6, ["cooperation"])).winner
    assert combined(question).clients >= alone.clients * (1 - 1e-6)


def test_changes_that_are_not_poisson_have_no_such_design() -> None:
    assert "are not Poisson" in combined(Question("pareto:1.5 2/h", 20, "100/h", 0.8)).problem
