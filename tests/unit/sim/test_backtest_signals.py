"""The backtest with signals: what is shown, what it brings, that noise is learned and that a liar costs little."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.keeper.signals import Signals
from unstale.sim.backtest.learned import learned
from unstale.sim.backtest.listed import listed
from unstale.sim.backtest.polls import measure
from unstale.sim.backtest.run import backtest, signalled
from unstale.sim.backtest.sees import Sees, sees, shown
from unstale.sim.backtest.setting import Setting

DAY = 86_400.0


@pytest.fixture(scope="module")
def fleet() -> Setting:
    """80 Poisson sources of very different pace, over a year."""
    rng = np.random.default_rng(3)
    rates = np.exp(rng.uniform(np.log(1 / 60), np.log(2), 80)) / DAY
    times = [np.sort(rng.uniform(0.0, 365 * DAY, rng.poisson(rate * 365 * DAY))) for rate in rates]
    names = [f"s{i:02}" for i in range(80)]
    trace = Trace.coded(names, np.repeat(np.arange(80), [len(t) for t in times]), np.concatenate(times))
    return Setting(trace, 0.0, 0.4 * 365 * DAY, 365 * DAY, np.ones(80))


@cache
def fresh(setting: Setting, each: float, seen: Sees) -> float:
    row = signalled(setting, each, 1, seen)
    assert row.polls == pytest.approx(row.budget, rel=0.03)
    return row.freshness


@cache
def plain(setting: Setting, each: float) -> float:
    return float(measure(setting, learned(setting, each, 1)).freshness.mean())


def test_signals_are_the_changes_less_the_silent_ones_and_more_the_false_ones(fleet: Setting) -> None:
    changes = len(fleet.trace.times)
    every = shown(fleet, Sees(), 1)
    assert np.sort(every.told_at).tolist() == np.sort(fleet.trace.times).tolist()
    noisy = shown(fleet, Sees(recall=0.8, precision=0.7, delay=60.0), 1)
    true = np.isin(noisy.told_at, fleet.trace.times).sum()
    assert true == pytest.approx(0.8 * changes, rel=0.03)
    assert true / len(noisy.told_at) == pytest.approx(0.7, abs=0.005)
    assert (noisy.shown_at - noisy.told_at == 60.0).all()
    grouped = shown(fleet, Sees(groups=25), 1)
    assert np.diff(grouped.starts).tolist() == [25, 25, 30]
    assert len(shown(fleet, Sees(liar="never"), 1).told_at) == 0


def test_an_exact_listing_halves_staleness_and_more(fleet: Setting) -> None:
    assert 1.0 - fresh(fleet, 1.0, Sees()) < 0.3 * (1.0 - plain(fleet, 1.0))


def test_dear_noisy_partial_and_late_listings_bring_less_but_more_than_none(fleet: Setting) -> None:
    exact, alone = fresh(fleet, 1.0, Sees()), plain(fleet, 1.0)
    for seen in (Sees(cost=10.0), Sees(recall=0.8, precision=0.7), Sees(entries=20), Sees(delay=0.5 * DAY)):
        assert alone + 0.02 < fresh(fleet, 1.0, seen) < exact + 0.002, seen


def test_what_polls_after_a_dear_listing_cost_is_saved_for(fleet: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = signalled(fleet, 0.3, 1, Sees(cost=10.0)).freshness
    monkeypatch.setattr(Signals, "put_aside", lambda *_: 0.0)
    monkeypatch.setattr(Signals, "_look_ahead", lambda _: None)
    assert saved > signalled(fleet, 0.3, 1, Sees(cost=10.0)).freshness + 0.004


def test_nobody_starves_while_a_listing_cannot_be_paid(fleet: Setting) -> None:
    row = signalled(fleet, 0.3, 1, Sees(cost=60.0))
    assert row.polls == pytest.approx(row.budget, rel=0.05)
    assert row.freshness > plain(fleet, 0.3) - 0.02


@pytest.mark.parametrize("each", [0.3, 1.0])
@pytest.mark.parametrize("liar", ["always", "never", "random"])
def test_a_liar_costs_little(fleet: Setting, liar: str, each: float) -> None:
    assert fresh(fleet, each, Sees(liar=liar)) > plain(fleet, each) - 0.01


def test_a_fleet_that_begins_quietly_and_changes_in_bursts_is_no_worse_for_its_listing() -> None:
    """Rates that are believed low at first, then more at once than a look can pay: what is cut short is not demand."""
    rng = np.random.default_rng(5)
    times = []
    for k in range(30):
        begin = rng.uniform(0.05, 0.7) * 1000 * DAY
        starts = np.cumsum(rng.exponential(40 * DAY / (k + 1), 40 * (k + 1))) + begin
        bursts = [start + np.cumsum(rng.exponential(0.2 * DAY, rng.geometric(0.2))) for start in starts]
        whole = np.concatenate(bursts)
        times.append(np.sort(whole[whole < 1000 * DAY]))
    names = [f"s{i:02}" for i in range(30)]
    trace = Trace.coded(names, np.repeat(np.arange(30), [len(t) for t in times]), np.concatenate(times))
    setting = Setting(trace, 0.0, 400 * DAY, 1000 * DAY, np.ones(30))
    for each in (0.3, 1.0):
        assert fresh(setting, each, Sees()) > plain(setting, each) + 0.02


def test_what_polls_say_of_the_last_change_helps(fleet: Setting) -> None:
    polls, listings = listed(fleet, 1.0, 1, Sees(listing=False, modified=True))
    assert len(listings) == 0
    played = measure(fleet, polls)
    assert played.polls == pytest.approx(fleet.allowed(1.0), rel=0.03)
    assert float(played.freshness.mean()) > plain(fleet, 1.0) - 0.005


def test_words_for_what_is_seen() -> None:
    assert sees("bits") is None
    assert sees("modified") == Sees(listing=False, modified=True)
    assert sees("listing", 10.0, "recall=.8", "never") == Sees(cost=10.0, recall=0.8, liar="never")
    assert sees("groups:25") == Sees(groups=25)
    for words in (
        ("sitemap",),
        ("feed:0",),
        ("feed:x",),
        ("bits", 1.0, "recall=.8"),
        ("listing", 0.0),
        ("listing", 1.0, "recall=2"),
        ("listing", 1.0, "noise=1"),
        ("listing", 1.0, None, "sometimes"),
    ):
        with pytest.raises(InputError, match=": "):
            sees(*words)  # type: ignore[arg-type]


def test_a_line_is_added_and_no_other_changes(fleet: Setting) -> None:
    asked = {"polls_per_change": [1.0], "policies": ["unstale", "uniform"], "start": fleet.start, "end": fleet.end}
    without = backtest(fleet.trace, **asked)  # type: ignore[arg-type]
    seen = backtest(fleet.trace, **asked, sees=Sees())  # type: ignore[arg-type]
    assert seen.rows[:2] == without.rows
    assert seen.savings == without.savings
    assert [row.policy for row in seen.rows] == ["unstale", "uniform", "signals"]
