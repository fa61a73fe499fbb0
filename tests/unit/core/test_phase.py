"""Phase lock, seen in deterministic sequences of polls, and what jitter costs."""

import math

import numpy as np
import pytest

from unstale.core.penalties import Constant as Indicator
from unstale.core.penalties import Deadline, Linear, Penalty, Power, Saturating
from unstale.core.phase import jitter, jitter_cost, jittered, locked_staleness, phase_locked
from unstale.core.processes import Constant, Empirical, Pareto, Poisson, Process, Triangular, Uniform, Weibull
from unstale.core.staleness import missed_changes, staleness, update_staleness
from unstale.errors import InputError

CHANGES = [
    *(Poisson(rate) for rate in (0.05, 1.0, 40.0)),
    *(Constant(gap) for gap in (1.0, 0.97, 3.0)),
    *(Pareto(1.3, 1.0), Uniform(0.8, 1.1), Weibull(0.5, 1.0), Triangular(0.5)),
]


@pytest.mark.parametrize(
    ("gap", "interval", "locked"),
    [
        (1.0, 1.0, True),
        (3600.0, 86400.0, True),
        (0.1, 0.3, True),
        (5.0, math.pi, False),
        (1.0, 2**0.5, False),
        (1.0, 1.0 + 1e-6, False),
        (1e-200, 1e200, False),
        (1e200, 1e200 / 3, True),
    ],
)
def test_two_even_processes(gap: float, interval: float, locked: bool) -> None:
    assert phase_locked(Constant(gap), Constant(interval)) is locked


def test_only_lattices_lock() -> None:
    for polls in (Poisson(1.0), Uniform(0.9, 1.1), Pareto(3.0, 1.0), jittered(1.0)):
        assert not phase_locked(Constant(1.0), polls)
        assert not phase_locked(polls, Constant(1.0))
    assert phase_locked(Empirical([1.0, 2.0]), Constant(0.5)) == (Empirical([1.0, 2.0]).span is not None)


@pytest.mark.parametrize(("gap", "interval"), [(1.0, 1.0), (3.0, 2.0), (2.0, 3.0), (1.0, 4.0), (5.0, 1.0), (0.3, 0.7)])
def test_locked_staleness_against_the_sequence_itself(gap: float, interval: float) -> None:
    low, high = locked_staleness(Constant(gap), Constant(interval))
    shares = []
    for phase in np.linspace(1e-9, 1 - 1e-9, 4001) * gap:
        polls = phase + np.arange(2100) * interval
        wait = gap - polls % gap
        shares.append(np.maximum(interval - wait, 0.0).mean() / interval)
    assert min(shares) == pytest.approx(low, abs=2e-3)
    assert max(shares) == pytest.approx(high, abs=2e-3)
    # over all phases the average is the one that independence gives
    average = staleness(Constant(gap), Constant(interval), Indicator())
    assert np.mean(shares) == pytest.approx(average, abs=2e-3)
    assert low <= average <= high


def test_without_lock_there_is_one_value() -> None:
    low, high = locked_staleness(Constant(5.0), Constant(math.pi))
    assert low == high == pytest.approx(math.pi / 10, rel=1e-15)


def test_jitter_keeps_the_mean_and_the_bounds() -> None:
    rng = np.random.default_rng(5)
    draws = jitter(np.full(1_000_000, 10.0), rng, 0.2)
    assert draws.min() >= 8.0
    assert draws.max() <= 12.0
    assert abs(draws.mean() - 10.0) < 5 * 2.0 / math.sqrt(3) / 1000
    assert draws.var() == pytest.approx(4.0 / 3.0, rel=0.01)
    assert isinstance(jitter(3.0, rng), float)
    assert jitter(3.0, rng, 0.0) == 3.0
    assert jitter([1.0, np.inf], rng)[1] == np.inf
    assert jittered(10.0, 0.2).mean == pytest.approx(10.0, rel=1e-15)
    assert jittered(10.0, 0.2).span is None
    with pytest.raises(InputError, match=r"spread 1.5 must be"):
        jitter(1.0, rng, 1.5)
    with pytest.raises(InputError, match=r"interval 0.0 must be"):
        jitter(0.0, rng)


@pytest.mark.parametrize("spread", [0.01, 0.05, 0.3, 1.0])
def test_the_cost_of_jitter_is_bounded_for_every_change_process(spread: float) -> None:
    even, polls = Constant(1.0), jittered(1.0, spread)
    for changes in CHANGES:
        for penalty in (Indicator(), Linear()):
            before, after = staleness(changes, even, penalty), staleness(changes, polls, penalty)
            assert before * (1 - 1e-9) <= after <= before * jitter_cost(spread, penalty.degree) * (1 + 1e-9)


def test_the_cost_of_jitter_for_steeper_penalties() -> None:
    polls = jittered(1.0, 0.3)
    for changes in (Poisson(1.0), Constant(0.97), Pareto(1.3, 1.0)):
        for p in (0.5, 2.0):
            before, after = staleness(changes, 1.0, Power(p)), staleness(changes, polls, Power(p))
            assert before <= after <= before * jitter_cost(0.3, p)


def test_the_bound_is_reached_by_the_update_penalty_and_by_rare_changes() -> None:
    for spread in (0.05, 0.5):
        polls = jittered(1.0, spread)
        assert missed_changes(2.0, polls) / missed_changes(2.0, 1.0) == pytest.approx(1 + spread**2 / 3, rel=1e-12)
        for p in (1.0, 2.0):
            ratio = update_staleness(2.0, polls, Power(p)) / update_staleness(2.0, 1.0, Power(p))
            assert ratio == pytest.approx(jitter_cost(spread, p), rel=1e-11)
        rare = staleness(1e-9, polls, Indicator()) / staleness(1e-9, 1.0, Indicator())
        assert rare == pytest.approx(jitter_cost(spread), rel=1e-8)
    assert jitter_cost(0.0) == 1.0
    assert jitter_cost(1.0, 0.0) == pytest.approx(4 / 3)
    assert jitter_cost(1e-9, 1.0) - 1 == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("penalty", [Deadline(1.0), Deadline(0.9), Saturating(0.3)], ids=repr)
def test_the_cost_of_jitter_for_bounded_penalties(penalty: Penalty) -> None:
    for spread in (0.05, 0.5):
        polls = jittered(1.0, spread)
        for changes in (Poisson(0.3), Poisson(1e4), Constant(0.97), Pareto(1.3, 1.0)):
            rise = staleness(changes, polls, penalty) - staleness(
                changes, 1.0 if not isinstance(changes, Process) else Constant(1.0), penalty
            )
            assert -1e-12 <= rise <= spread / 4 + 1e-12
    assert staleness(1e9, jittered(1.0, 0.4), Deadline(1.0)) == pytest.approx(0.1, rel=1e-6)


def test_jitter_unlocks() -> None:
    """Against a source that changes evenly, even polls stay at their phase; jittered ones see the average."""
    rng = np.random.default_rng(6)
    polls = 0.999 + np.arange(50_000.0)
    wait = 1.0 - polls % 1.0
    assert np.maximum(1.0 - wait, 0.0).mean() > 0.99
    gaps = jitter(np.ones(400_000), rng, 0.05)
    wait = 1.0 - np.cumsum(gaps) % 1.0
    following = np.append(gaps[1:], 1.0)
    stale = np.maximum(following - wait, 0.0).sum() / gaps.sum()
    # phases forget each other after about 1/(spread²/3) polls
    error = 0.3 / math.sqrt(gaps.size * 0.05**2 / 3)
    assert abs(stale - staleness(Constant(1.0), jittered(1.0), Indicator())) < 5 * error
