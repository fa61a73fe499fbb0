"""Simulated systems of replicas: what can be said exactly, and that bad input is refused."""

import numpy as np
import pytest

from unstale.core.processes import Constant, Empirical, Pareto, Poisson
from unstale.core.replication.cascade import cascade_levels
from unstale.core.replication.cooperation import cooperative_freshness
from unstale.errors import InputError
from unstale.sim.copy import simulate_copy
from unstale.sim.replication import simulate_cascade, simulate_cooperation


def test_a_cascade_agrees_with_theory_at_every_depth() -> None:
    changes, polls = Pareto(3.0, 1.0), [Poisson(2.0), Constant(0.4), Pareto(3.0, 1.0)]
    run = simulate_cascade(changes, polls, horizon=20_000, seed=3)
    assert np.all(np.abs(run.freshness.z(cascade_levels(changes, polls))) < 5)
    assert np.all(np.asarray(run.freshness.error) < 0.01)
    # the first one is a copy like any other
    copy = simulate_copy(changes, polls[0], horizon=20_000, seed=4).freshness
    first = np.asarray(run.freshness.value)[0]
    assert abs(first - copy.value) < 5 * np.hypot(np.asarray(run.freshness.error)[0], copy.error)


def test_events_come_at_their_rates() -> None:
    run = simulate_cascade(Poisson(2.0), [Poisson(3.0), Constant(0.25)], horizon=10_000, seed=1)
    assert abs(run.changes - 20_000) < 5 * np.sqrt(20_000)
    assert abs(run.polls - 70_000) < 5 * np.sqrt(30_000) + 64
    together = simulate_cooperation(Poisson(2.0), Constant(0.5), Constant(0.25), 4, horizon=1_000, seed=1)
    # even events: one for each interval, but for the ends of the batches
    assert abs(together.polls - 8_000) < 5 * np.sqrt(4 * 64)
    assert abs(together.contacts - 16_000) < 5 * np.sqrt(4 * 64)


def test_cooperation_agrees_with_the_chain() -> None:
    run = simulate_cooperation(Poisson(1.0), Poisson(0.5), Poisson(4.0), 5, 2, horizon=20_000, seed=2)
    assert abs(run.freshness.z(cooperative_freshness(1.0, 0.5, 4.0, 5, 2))) < 5
    assert run.freshness.error < 0.003


def test_the_same_seed_gives_the_same_run() -> None:
    one, two, other = (
        simulate_cooperation(Poisson(1.0), Poisson(1.0), Poisson(1.0), 3, selection="recent", horizon=500, seed=s)
        for s in (5, 5, 6)
    )
    assert one == two
    assert one != other


def test_bad_input_is_refused_in_one_sentence() -> None:
    with pytest.raises(InputError, match="Empirical"):
        simulate_cascade(Poisson(1.0), [Empirical([1.0, 2.0])])
    with pytest.raises(InputError, match="must name one replica"):
        simulate_cascade(Poisson(1.0), [])
    with pytest.raises(InputError, match="nobody to ask"):
        simulate_cooperation(Poisson(1.0), Poisson(1.0), Poisson(1.0), 1)
    with pytest.raises(InputError, match="none twice"):
        simulate_cooperation(Poisson(1.0), Poisson(1.0), Poisson(1.0), 3, 3)
    with pytest.raises(InputError, match="batches"):
        simulate_cascade(Poisson(1.0), [Poisson(1.0)], batches=1)
