"""Every source equally often: what a budget buys without knowing anything."""

from __future__ import annotations

import numpy as np

from unstale.sim.backtest.polls import Polls, even
from unstale.sim.backtest.setting import Setting


def uniform(setting: Setting, polls_per_change: float, seed: int) -> Polls:
    """The same even interval for all sources; nothing that a poll finds matters."""
    return even(setting, np.full(len(setting), setting.budget(polls_per_change) / len(setting)), seed)
