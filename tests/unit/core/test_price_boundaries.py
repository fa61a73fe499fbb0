"""The price where spending jumps, and where no number can hold it."""

from __future__ import annotations

import numpy as np
import pytest

from unstale.core.fleet import Fleet
from unstale.core.price import plan
from unstale.core.values import PoissonFreshness
from unstale.errors import InputError


def equal(count: int) -> Fleet:
    """Sources that are all alike, bounded only so that the general solver is asked."""
    return Fleet.of(PoissonFreshness(np.ones(count)), shortest=1e-3)


@pytest.mark.parametrize("budget", [0.011, 0.02, 0.05])
def test_sources_that_tie_share_the_step_so_that_the_budget_is_met(budget: float) -> None:
    """Below about a fortieth of its change rate no source wants to be polled: equal ones leave all at once."""
    made = plan(equal(4), budget)
    assert made.sync_rate.sum() == pytest.approx(budget, rel=1e-9)
    assert np.ptp(made.sync_rate) <= 1e-12 * budget
    # At the limit of the value, 1/change_rate, a poll is worth the same at every long interval.
    assert made.price == pytest.approx(1.0, rel=1e-6)


def test_a_price_too_small_for_a_number_is_said() -> None:
    """At 5e98 polls each of sources that weigh 1e-120, one more is worth about 1e-120/(2·(5e98)²): 2e-318."""
    fleet = Fleet.of(PoissonFreshness(np.ones(2)), weight=[1e-120, 1e-120], shortest=1e-100)
    with pytest.raises(InputError, match=r"budget 1e\+99 gives a poll a price that no number can hold"):
        plan(fleet, 1e99)
