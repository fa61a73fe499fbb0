"""Cascades of whatever is drawn: heavy tails, steep starts, mixes with histories; none fails to converge."""

from __future__ import annotations

import numpy as np
import pytest

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
from unstale.core.replication.cascade import cascade_freshness, cascade_levels


def drawn(rng: np.random.Generator, deep: bool = True) -> Process:
    rate, kind = float(np.exp(rng.normal(0, 1.2))), int(rng.integers(12 if deep else 10))
    if kind == 10:
        return Superposition([drawn(rng, False) for _ in range(2)])
    if kind == 11:
        return Mixture([drawn(rng, False), drawn(rng, False)], [0.3, 0.7])
    made: list[Process] = [
        Poisson(1.0),
        Pareto(float(rng.uniform(1.1, 4)), 1.0),
        Weibull(float(rng.uniform(0.3, 3)), 1.0),
        Weibull(0.3, 1.0),
        Gamma(float(rng.uniform(0.3, 5)), 1.0),
        LogNormal(1.0, float(rng.uniform(0.3, 2))),
        Uniform(0.2, float(rng.uniform(0.5, 3))),
        Constant(1.0),
        Triangular(1.0),
        Empirical(rng.lognormal(0, 1, int(rng.integers(3, 9)))),
    ]
    return made[kind].with_rate(rate)


@pytest.mark.parametrize("seed", [*range(8), 9, 37])
def test_any_mix_has_a_freshness_that_falls_with_depth(seed: int) -> None:
    rng = np.random.default_rng([25, seed])
    for _ in range(5):
        changes, chain = drawn(rng), [drawn(rng) for _ in range(int(rng.integers(1, 4)))]
        levels = cascade_levels(changes, chain)
        assert all(0.0 < below <= above * (1 + 1e-9) for above, below in zip([1.0, *levels], levels, strict=False))
        assert cascade_freshness(changes, chain) == pytest.approx(levels[-1], rel=1e-9)


@pytest.mark.parametrize("alpha", [1.05, 2.0, 3.2, 3.8, 6.0, 40.0])
def test_a_tail_that_underflows_far_out(alpha: float) -> None:
    exact = [cascade_freshness(Pareto(alpha, 1.0), [Poisson(2.0), Poisson(rate)]) for rate in (2.0, 3.0)]
    # taken in the order given, where the freshness alone is computed in the order that suits it
    swapped = cascade_levels(Pareto(alpha, 1.0), [Poisson(3.0), Poisson(2.0)])[-1]
    assert exact[1] == pytest.approx(swapped, rel=1e-10)
    assert exact[0] < exact[1]


def test_a_history_of_many_gaps_below_steep_polls() -> None:
    steep, smooth = LogNormal(1.0, 2.0), Gamma(0.5, 1.0)
    gaps = np.random.default_rng(3).lognormal(0, 1, 38)
    one, two = (cascade_levels(Empirical(gaps), chain)[-1] for chain in ([steep, smooth], [smooth, steep]))
    assert one == pytest.approx(two, rel=1e-9)


def test_what_is_dear_to_compute_is_not_computed_again_for_every_age(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, survival = [0], Superposition.survival

    def counted(self: Superposition, x: object) -> object:
        asked[0] += np.size(x)
        return survival(self, x)  # type: ignore[arg-type]

    monkeypatch.setattr(Superposition, "survival", counted)
    both = Superposition([Pareto(3.8, 4.3), Gamma(0.3, 5.1)])
    levels = cascade_levels(Constant(10.9), [Weibull(0.3, 0.02), both, both, Uniform(0.05, 0.6)])
    assert levels[-1] < levels[-2]
    # once per integral it would be millions
    assert asked[0] < 50_000


def test_a_mix_of_a_history_and_bursts_is_written_down_too(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, survival = [0], Gamma.age_survival

    def counted(self: Gamma, x: object) -> object:
        asked[0] += np.size(x)
        return survival(self, x)  # type: ignore[arg-type]

    monkeypatch.setattr(Gamma, "age_survival", counted)
    rng = np.random.default_rng([25, 347])
    changes, chain = drawn(rng), [drawn(rng) for _ in range(int(rng.integers(1, 5)))]
    # the one in 450 that took over 10 s: incomplete gammas for every age of every poll, millions of them
    assert cascade_freshness(changes, chain) == pytest.approx(cascade_levels(changes, chain)[-1], rel=1e-10)
    assert 0 < asked[0] < 50_000
