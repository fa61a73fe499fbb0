"""The rules of other software as policies, each with its own constants and the interval it starts with."""

from __future__ import annotations

import numpy as np

from unstale.core.checks import Floats
from unstale.frozen import dataclass
from unstale.sim.backtest import rule_kernels as kernels
from unstale.sim.backtest.polls import Polls
from unstale.sim.backtest.setting import Setting
from unstale.sim.draws import word

_DAY = 86_400.0


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: its number in the kernel, and the interval it starts with, in seconds."""

    code: int
    first: float

    def play(self, setting: Setting, factor: float, seed: int, most: int) -> tuple[int, np.ndarray]:
        """Polls that count when all intervals are `factor` times as long, and all polls of each source, added up.

        Beyond `most` polls in all it stops counting.
        """
        ends = np.zeros(len(setting) + 1, dtype=np.int64)
        return self._run(setting, factor, seed, most, ends, np.empty(0)), ends

    def polls(self, setting: Setting, factor: float, seed: int) -> Polls:
        """When it polls, if all its intervals are `factor` times as long."""
        never = np.iinfo(np.int64).max - 1
        _, ends = self.play(setting, factor, seed, never)
        times = np.empty(ends[-1])
        self._run(setting, factor, seed, never, ends, times)
        return Polls(ends, times)

    def _run(self, setting: Setting, factor: float, seed: int, most: int, ends: np.ndarray, times: Floats) -> int:
        trace = setting.trace
        return kernels.play(
            self.code,
            self.first,
            factor,
            word(seed),
            trace.starts,
            trace.times,
            setting.start,
            setting.split,
            setting.end,
            most,
            ends,
            times,
        )


RULES: dict[str, Rule] = {
    "nutch": Rule(kernels.NUTCH, 30 * _DAY),
    "stormcrawler": Rule(kernels.STORMCRAWLER, _DAY),
    "heritrix": Rule(kernels.HERITRIX, _DAY),
    "miniflux": Rule(kernels.MINIFLUX, _DAY),
    "limd": Rule(kernels.LIMD, _DAY / 24),
    "newsblur": Rule(kernels.NEWSBLUR, _DAY / 6),
    "proportional": Rule(kernels.PROPORTIONAL, _DAY),
}
