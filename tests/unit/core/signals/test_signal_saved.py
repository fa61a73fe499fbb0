"""Polls that a collection saves: the inverse of freshness under even polls, against the search that others use."""

from __future__ import annotations

import numpy as np
import pytest

from unstale import sync_rate_for
from unstale.core.signals.saved import polls_for


@pytest.mark.parametrize("fresh", [0.05, 0.5, 0.9, 0.999])
def test_polls_for_a_freshness_are_those_of_the_search(fresh: float) -> None:
    assert float(polls_for(3.0, fresh)) == pytest.approx(sync_rate_for(3.0, freshness=fresh), rel=1e-9)


def test_exact_signals_are_worth_polls_of_all_at_every_listing() -> None:
    x = np.array([1e-6, 1.9e-5, 2.1e-5, 1e-2, 1.0, 30.0])
    assert polls_for(x, -np.expm1(-x) / x) == pytest.approx(np.ones(6), rel=1e-7)
    assert float(polls_for(1.0, 0.0)) == 0.0
