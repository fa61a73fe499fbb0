"""Bounds by which most searches for an interval need not ask what a poll is worth at its ends."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.learning.harm import harm_of
from unstale.core.learning.mixture import Shared, _surely_below, _surely_reaches, scratch, value
from unstale.core.objectives import objective_of
from unstale.units import DAY


@pytest.mark.parametrize("objective", ["freshness", "age", "missed", "lag", "deadline:1", "power:0.5", "saturating:1"])
def test_what_is_said_for_certain_is_so(objective: str) -> None:
    rng, at = np.random.default_rng(3), scratch(5)
    shared = Shared(np.array([1.0, DAY]), np.ones(5), np.zeros(5), harm_of(objective_of(objective, day=DAY), DAY))
    said = np.zeros(2)
    for _ in range(400):
        at.shape[:] = 10 ** rng.uniform(-1, 3, 5)
        at.exposure[:] = at.shape * 10 ** rng.uniform(3, 6, 5)
        at.weight[:] = rng.dirichlet(np.full(5, 0.3))
        elapsed = float(10 ** rng.uniform(3, 7))
        here = value(at, shared, elapsed)[0]
        # Right at the value as well as far from it.
        for worth in (here, here * (1 + 1e-7 * rng.normal()), here * float(10 ** rng.uniform(-1, 1))):
            above, below = _surely_reaches(at, shared, elapsed, worth), _surely_below(at, shared, elapsed, worth)
            assert not above or here > worth
            assert not below or here < worth
            said += above, below
    # And that is often.
    assert said.min() > 3
