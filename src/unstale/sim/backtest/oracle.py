"""The exact optimum for rates that nobody can know: those of the time that is yet to come."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.core.fleet import Fleet
from unstale.core.objectives import objective_of
from unstale.core.price import plan
from unstale.sim.backtest.polls import Polls, even
from unstale.sim.backtest.setting import Setting
from unstale.units import DAY

#: changes that a source without any is taken to have: what it had before the split must be copied once
SILENT = 0.5


def oracle(setting: Setting, polls_per_change: float, seed: int) -> Polls:
    """Even polls at the best rates for the true average change rates of the time that counts.

    Best among polls that do not react: a policy that sees bursts and the time of day can do better.
    """
    return even(setting, oracle_rates(setting, polls_per_change), seed)


def oracle_rates(setting: Setting, polls_per_change: float) -> Floats:
    """The oracle's sync rates, per second."""
    changes = setting.trace.between(setting.split, setting.end).counts()
    rate = np.maximum(changes, SILENT) / setting.counted
    fleet = Fleet.of(objective_of(setting.objective, day=DAY).value(rate), weight=setting.weight)
    return plan(fleet, setting.budget(polls_per_change)).sync_rate
