"""Theory against simulation for every change process × way of polling × penalty, within five standard errors.

Of each pair of processes every third penalty is tried, in turn, so that every pair of the three meets; `make soak`
tries all of them.
Estimators of infinite variance are recognised by theory and only asked for their order of magnitude.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from support.depth import combined, soaking
from unstale.core import penalties, processes
from unstale.core.custom_penalty import Custom
from unstale.core.penalties import (
    Constant as Indicator,
)
from unstale.core.penalties import Deadline, Decay, Linear, Penalty, Power, Reciprocal, Saturating
from unstale.core.phase import jittered
from unstale.core.processes import (
    Constant,
    Empirical,
    Gamma,
    LogNormal,
    Mixture,
    Pareto,
    Poisson,
    Process,
    Superposition,
    Triangular,
    Uniform,
    Weibull,
)
from unstale.core.staleness import age, consistency, freshness, missed_changes, staleness, update_staleness
from unstale.sim.copy import Sweep, draw, simulate_copy
from unstale.sim.draws import law_of
from unstale.sim.statistics import Estimate, batch_means, finite_variance

CHANGES: list[Process] = [
    Poisson(1.3),
    Constant(0.83),
    Triangular(0.7),
    Uniform(0.2, 1.5),
    Pareto(2.6, 1.5),
    Pareto(1.4, 0.5),
    Weibull(0.6, 0.8),
    Gamma(3.0, 0.3),
    LogNormal.from_rate(0.9, 1.1),
    Empirical([0.3, math.pi, 1.7]),
    Mixture([Poisson(6.0), Pareto(2.5, 2.0)], [0.7, 0.3]),
    Superposition([Constant(1.9), Weibull(0.7, 1.6)]),
]
POLLS: list[Process | Sweep] = [
    Constant(math.sqrt(1.3)),
    Sweep(0.9),
    Triangular(0.9),
    Poisson(0.9),
    jittered(1.1, 0.3),
    Pareto(5.5, 4.0),
    Pareto(2.2, 1.1),
    Weibull(1.7, 1.0),
    Gamma(0.5, 2.2),
    LogNormal.from_rate(0.6, 1.0),
    Empirical([0.5, 1.3, math.e]),
    Mixture([Constant(0.4), Constant(1.9)], [0.5, 0.5]),
    Superposition([Poisson(0.4), Constant(1.7)]),
]
#: each with the power like which it grows
PENALTIES: list[tuple[Penalty, float]] = [
    (Indicator(), 0),
    (Linear(), 1),
    (Power(1.5), 1.5),
    (Saturating(0.5), 0),
    (Decay(2.0), 0),
    (Reciprocal(), 0),
    (Deadline(0.4), 0),
]
#: any other function: integrated number by number, so it is tried on the first tenth of each history
CUSTOM = Custom(lambda x: np.log1p(x))
BATCHES, LENGTH = 40, 800.0 if soaking() else 600.0


def label(thing: object) -> str:
    return repr(thing)[:26]


def law(polls: Process | Sweep) -> Process:
    """The law of single gaps, all that time averages depend on."""
    return Triangular(polls.interval) if isinstance(polls, Sweep) else polls


def agree(name: str, got: Estimate, want: float) -> None:
    if math.isinf(got.error):
        # of an infinite mean a run sees a finite part; with an infinite variance one batch may outweigh all others
        assert 0 < got.value < math.inf, name
        assert math.isinf(want) or want / 30 < got.value < 30 * want, name
    else:
        assert abs(got.z(want)) < 5, f"{name}: {got}, formula {want:.6g}"


def compare(changes: Process, polls: Process | Sweep, seed: int, harms: list[tuple[Penalty, float]]) -> None:
    rng = np.random.default_rng(seed)
    histories = [draw(changes, polls, LENGTH, rng) for _ in range(BATCHES)]
    gaps = law(polls)
    for penalty, power in harms:
        harm = batch_means([h.collected(penalty) / LENGTH for h in histories], finite=finite_variance(gaps.tail, power))
        agree(f"staleness {penalty}", harm, staleness(changes, gaps, penalty))
        every = batch_means(
            [h.collected_by_all(penalty) / LENGTH for h in histories],
            finite=finite_variance(gaps.tail, power + 1),
        )
        agree(f"update staleness {penalty}", every, update_staleness(changes, gaps, penalty))
    part = LENGTH / 10
    harm = batch_means([replace(h, stop=part).collected(CUSTOM) / part for h in histories])
    agree("staleness of a custom penalty", harm, staleness(changes, gaps, CUSTOM))
    fresh = batch_means([1 - h.collected(Indicator()) / LENGTH for h in histories])
    agree("freshness", fresh, freshness(changes, gaps))
    agree("consistency", batch_means([h.within(0.4) / LENGTH for h in histories]), consistency(0.4, changes, gaps))


@pytest.mark.parametrize(("changes", "polls"), combined(CHANGES, POLLS), ids=label)
def test_theory_and_simulation_agree(changes: Process, polls: Process | Sweep) -> None:
    turn = CHANGES.index(changes) + POLLS.index(polls)
    compare(changes, polls, 2, PENALTIES if soaking() else PENALTIES[turn // 2 % 3 :: 3])


COMPILED: list[Process] = [p for p in CHANGES if law_of(p) is not None]
COMPILED_POLLS = [d for d in POLLS if isinstance(d, Sweep) or law_of(d) is not None]


@pytest.mark.parametrize("changes", COMPILED, ids=label)
def test_theory_and_compiled_simulation_agree(changes: Process) -> None:
    for polls in COMPILED_POLLS:
        run, gaps = simulate_copy(changes, polls, polls_count=100_000, seed=3, tau=0.4), law(polls)
        agree(f"freshness {polls}", run.freshness, freshness(changes, gaps))
        agree(f"age {polls}", run.age, age(changes, gaps))
        agree(f"missed changes {polls}", run.missed_changes, missed_changes(changes, gaps))
        assert run.consistency is not None
        agree(f"consistency {polls}", run.consistency, consistency(0.4, changes, gaps))
        stale = 1 - freshness(changes, gaps)
        agree(f"lag {polls}", run.lag, age(changes, gaps) / stale)


def test_the_matrix_leaves_nobody_out() -> None:
    kinds = {t for t in vars(processes).values() if isinstance(t, type) and issubclass(t, Process)} - {Process}
    assert {type(u) for u in CHANGES} == kinds
    assert {type(law(d)) for d in POLLS} == kinds
    harms = {t for t in vars(penalties).values() if isinstance(t, type) and issubclass(t, Penalty)} - {Penalty}
    assert {type(p) for p, _ in PENALTIES} == harms
    assert len(COMPILED) == 9
    assert len(COMPILED_POLLS) == 10


def test_missed_changes_and_age_of_one_pair_by_hand() -> None:
    """An anchor outside the library: Poisson changes and polls of rates 2 and 3."""
    assert age(Poisson(2.0), Poisson(3.0)) == pytest.approx(2 / 15)
    assert missed_changes(Poisson(2.0), Poisson(3.0)) == pytest.approx(2 / 3)
