"""The backtest: every policy on the same changes with the same polls, and what ours saves."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

from numpy.typing import ArrayLike

from unstale.core.trace import Trace
from unstale.errors import require
from unstale.frozen import dataclass
from unstale.sim.backtest.matched import TOLERANCE, matched
from unstale.sim.backtest.oracle import oracle
from unstale.sim.backtest.polls import Played, Policy, Polls, measure
from unstale.sim.backtest.rules import RULES
from unstale.sim.backtest.sees import Sees
from unstale.sim.backtest.setting import Setting
from unstale.sim.backtest.uniform import uniform
from unstale.sim.statistics import batch_means

OURS, ORACLE, SIGNALS = "unstale", "oracle", "signals"
#: budgets beyond those asked for: how far to look for the one that suffices, in steps of this factor
_STEP, _FURTHEST = 1.6, 6


def _learned(setting: Setting, polls_per_change: float, seed: int) -> Polls:
    from unstale.sim.backtest.learned import learned

    return learned(setting, polls_per_change, seed)


POLICIES: dict[str, Policy] = {
    OURS: _learned,
    ORACLE: oracle,
    "uniform": uniform,
    **{name: partial(matched, name) for name in RULES},
}


@dataclass(frozen=True, slots=True)
class BacktestRow:
    """What one policy achieved at one budget: weighted means over sources, with standard errors; age in seconds.

    `penalty` is what the objective counts, in seconds where it has a unit: 1 − freshness, the age, or another.
    `polls` are those made in the time that counts, `budget` those allowed.
    """

    policy: str
    polls_per_change: float
    freshness: float
    freshness_se: float
    age: float
    age_se: float
    penalty: float
    penalty_se: float
    polls: int
    budget: float

    @property
    def matched(self) -> bool:
        """Whether it spent what it was allowed: within 0.5 %, or less than two polls away."""
        return abs(self.polls - self.budget) < max(TOLERANCE * self.budget, 2.0)


@dataclass(frozen=True, slots=True)
class Saving:
    """How many polls per change ours needs to do as well as the best of the others at one budget; NaN: not found."""

    polls_per_change: float
    rival: str
    needed: float

    @property
    def share(self) -> float:
        """Share of polls saved, negative if ours needs more."""
        return 1.0 - self.needed / self.polls_per_change


@dataclass(frozen=True, slots=True, eq=False)
class Backtest:
    """Rows by policy and budget, what ours saves at each budget, and the setting they were played in."""

    setting: Setting
    rows: tuple[BacktestRow, ...]
    savings: tuple[Saving, ...]

    def of(self, policy: str) -> list[BacktestRow]:
        """The rows of one policy, in the order of the budgets."""
        return [row for row in self.rows if row.policy == policy]


def backtest(
    trace: Trace,
    polls_per_change: Sequence[float] = (0.3, 1.0, 3.0),
    policies: Sequence[str] | None = None,
    objective: str = "freshness",
    weights: ArrayLike | None = None,
    start: float | None = None,
    end: float | None = None,
    seed: int = 1,
    at_most: int | None = None,
    done: Callable[[str], None] | None = None,
    sees: Sees | None = None,
) -> Backtest:
    """Replay a trace against policies that spend the same polls and see only what their polls show.

    The first 40 % of the window is for learning; polls, freshness and age count over the rest. `policies` are names
    of POLICIES, all if not told. Savings compare ours with the best of the others, the oracle left aside because it
    knows the future. `at_most` takes a random sample of the sources; `done` is told each policy before it is played.
    With `sees`, ours is played once more, as SIGNALS: it sees besides what that says, and pays for listing polls.
    """
    names = list(POLICIES if policies is None else dict.fromkeys(policies))
    for name in names:
        require(name in POLICIES, "policy", repr(name), "is unknown", f"take some of {', '.join(POLICIES)}")
    budgets = sorted(set(polls_per_change))
    require(budgets and names, "polls_per_change" if names else "policies", "()", "must have one at least", "add one")
    setting = Setting.of(trace, weights=weights, objective=objective, start=start, end=end, at_most=at_most, seed=seed)
    for each in budgets:
        setting.budget(each)
    tell = done or (lambda _: None)
    rows = []
    for name in names:
        for each in budgets:
            tell(name)
            rows.append(trial(setting, name, each, seed))
    if sees is not None:
        for each in budgets:
            tell(SIGNALS)
            rows.append(signalled(setting, each, seed, sees))
    savings: list[Saving] = []
    rivals = [row for row in rows if row.policy not in (OURS, ORACLE, SIGNALS)]
    if OURS in names and rivals:
        tell("comparing")
        ours = {row.polls_per_change: _goodness(row, objective) for row in rows if row.policy == OURS}
        for each in budgets:
            best = max((r for r in rivals if r.polls_per_change == each), key=lambda r: _goodness(r, objective))
            needed = _needed(setting, ours, _goodness(best, objective), each, seed)
            savings.append(Saving(each, best.policy, needed))
    return Backtest(setting, tuple(rows), tuple(savings))


def trial(setting: Setting, policy: str, polls_per_change: float, seed: int) -> BacktestRow:
    """One policy at one budget."""
    played = measure(setting, POLICIES[policy](setting, polls_per_change, seed))
    return _row(setting, policy, polls_per_change, played, played.polls)


def signalled(setting: Setting, polls_per_change: float, seed: int, sees: Sees) -> BacktestRow:
    """Ours with signals at one budget; listing polls count as polls, at what they cost."""
    from unstale.sim.backtest.listed import listed

    polls, listings = listed(setting, polls_per_change, seed, sees)
    counted = (listings[:, 0] >= setting.split) & (listings[:, 0] <= setting.end)
    played = measure(setting, polls)
    return _row(setting, SIGNALS, polls_per_change, played, round(played.polls + float(listings[counted, 1].sum())))


def _row(setting: Setting, policy: str, polls_per_change: float, played: Played, polls: int) -> BacktestRow:
    fresh, old, harm = (
        batch_means(setting.weight * x, setting.weight) for x in (played.freshness, played.age, played.penalty)
    )
    return BacktestRow(
        policy,
        polls_per_change,
        float(fresh.value),
        float(fresh.error),
        float(old.value),
        float(old.error),
        float(harm.value),
        float(harm.error),
        polls,
        setting.allowed(polls_per_change),
    )


def _goodness(row: BacktestRow, objective: str) -> float:
    """What the objective wants more of; penalties in logarithms, in which their curves are nearly straight."""
    return row.freshness if objective == "freshness" else -math.log(max(row.penalty, 1e-9))


def _needed(setting: Setting, ours: dict[float, float], goal: float, near: float, seed: int) -> float:
    """Polls per change at which our curve meets `goal`, straight in log polls between budgets that are played.

    `ours` receives the budgets that had to be played besides.
    """

    def play(each: float) -> float:
        ours[each] = _goodness(trial(setting, OURS, each, seed), setting.objective)
        return ours[each]

    down = ours[near] >= goal
    for _ in range(_FURTHEST):
        before, each = near, near / _STEP if down else near * _STEP
        if (play(each) >= goal) != down:
            share = (goal - ours[before]) / (ours[each] - ours[before])
            return float(before * (each / before) ** share)
        near = each
    return math.nan
