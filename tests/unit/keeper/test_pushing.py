"""Pushed signals in the one brain: a true word takes staleness away, and whoever lies is soon hardly followed."""

from __future__ import annotations

import math

import numpy as np
import pytest

from unstale.errors import InputError
from unstale.keeper.outcomes import Outcome
from unstale.keeper.scheduler import Scheduler

SOURCES, DAY, DAYS = 60, 86_400.0, 40.0
END, BEGIN = DAYS * DAY, 0.4 * DAYS * DAY
_RNG = np.random.default_rng(5)
RATES = np.exp(_RNG.uniform(np.log(0.05), np.log(1.0), SOURCES)) / DAY
CHANGES = [np.sort(_RNG.uniform(0, END, _RNG.poisson(rate * END))) for rate in RATES]
BUDGET = float(RATES.sum())


def said(kind: str) -> list[tuple[float, int]]:
    """Who is said to have changed, and when: half of all changes; or five times as much at random, or nothing."""
    rng = np.random.default_rng(11)
    if kind == "none":
        return []
    if kind == "lies":
        times = [rng.uniform(0, END, 5 * len(CHANGES[i])) for i in range(SOURCES)]
    else:
        times = [CHANGES[i][rng.random(len(CHANGES[i])) < 0.5] for i in range(SOURCES)]
    return sorted((float(t), i) for i in range(SOURCES) for t in times[i])


def played(kind: str) -> tuple[float, float, Scheduler]:
    """Staleness in the time that counts, what was spent of the budget then, and the scheduler."""
    scheduler, words = Scheduler(BUDGET), said(kind)
    scheduler.add(range(SOURCES), 0.0)
    polls: list[list[float]] = [[0.0] for _ in range(SOURCES)]
    now = spent = 0.0
    while now < END:
        while words and words[0][0] <= now:
            scheduler.pushed("webhook", [words.pop(0)[1]], now)
        for source in scheduler.take(now):
            i, last = int(source), polls[int(source)][-1]
            found = len(polls[i]) == 1 or np.searchsorted(CHANGES[i], now) > np.searchsorted(CHANGES[i], last)
            scheduler.record(Outcome(source, "changed" if found else "unchanged", now))
            polls[i].append(now)
        spent = scheduler.spent if now < BEGIN else spent
        now += max(min(scheduler.wait(now), words[0][0] - now if words else math.inf), 600.0)
    stale = [_stale(CHANGES[i], np.array(polls[i])) for i in range(SOURCES)]
    return float(np.mean(stale)), (scheduler.spent - spent) / (BUDGET * (END - BEGIN)), scheduler


def _stale(changes: np.ndarray, polls: np.ndarray) -> float:
    bounds = np.append(polls, END)
    first = np.append(changes, math.inf)[np.searchsorted(changes, bounds[:-1], side="right")]
    return float(np.maximum(bounds[1:] - np.maximum(first, BEGIN), 0.0).sum()) / (END - BEGIN)


@pytest.fixture(scope="module")
def plain() -> float:
    stale, spent, scheduler = played("none")
    assert spent == pytest.approx(1.0, abs=0.03)
    assert scheduler.collected is None
    return stale


def test_a_true_word_takes_staleness_away(plain: float) -> None:
    stale, spent, scheduler = played("half")
    worth = scheduler.worth("webhook")
    assert worth.trusted
    assert worth.used
    assert worth.precision > 0.9
    assert 0.3 < worth.silence < 0.7
    assert spent == pytest.approx(1.0, abs=0.03)
    assert stale < 0.75 * plain


def test_whoever_lies_costs_at_most_a_hundredth(plain: float) -> None:
    stale, spent, scheduler = played("lies")
    worth = scheduler.worth("webhook")
    assert not worth.used
    assert not worth.new
    assert spent <= 1.02
    assert stale < plain + 0.01


def test_what_is_known_of_a_channel_is_saved() -> None:
    scheduler = Scheduler("24/day")
    scheduler.add(["news", "law"], now=0.0)
    for source in scheduler.take(3 * 3600.0):
        scheduler.record(Outcome(source, "changed", polled_at=3 * 3600.0))
    scheduler.pushed("websub", ["news"], now=4 * 3600.0)
    assert scheduler.due_of("news") == 4 * 3600.0
    again = Scheduler.load(scheduler.save())
    assert again.worth("websub") == scheduler.worth("websub")
    again.record(Outcome("news", "changed", polled_at=5 * 3600.0))
    assert again.worth("websub").precision > scheduler.worth("websub").precision


def test_a_channel_must_be_known() -> None:
    scheduler = Scheduler("24/day")
    scheduler.add("news", now=0.0)
    with pytest.raises(InputError, match="use one of hint, websub, webhook"):
        scheduler.pushed("rumour", ["news"], now=0.0)
