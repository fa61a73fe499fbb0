"""The backtest: measured against a walk through every event, rules against what is known of them on Poisson sources."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import gammaincinv

from unstale.core.trace import Trace
from unstale.errors import InputError
from unstale.sim.backtest import run as runs
from unstale.sim.backtest.matched import factor, matched
from unstale.sim.backtest.oracle import oracle, oracle_rates
from unstale.sim.backtest.polls import Polls, even, measure
from unstale.sim.backtest.rules import RULES
from unstale.sim.backtest.run import POLICIES, backtest
from unstale.sim.backtest.setting import Setting
from unstale.sim.backtest.uniform import uniform

HOUR, DAY = 3600.0, 86_400.0


def trace_of(times: list[np.ndarray]) -> Trace:
    names = [f"s{i:04}" for i in range(len(times))]
    return Trace.coded(names, np.repeat(np.arange(len(times)), [len(t) for t in times]), np.concatenate(times))


def poisson(rates: np.ndarray, end: float, seed: int = 1) -> Setting:
    """Sources that change at random in [0, end), however often."""
    rng = np.random.default_rng(seed)
    trace = trace_of([rng.uniform(0.0, end, rng.poisson(rate * end)) for rate in rates])
    return Setting(trace, 0.0, 0.4 * end, end, np.ones(len(trace)))


@pytest.fixture(scope="module")
def fleet() -> Setting:
    """300 Poisson sources of very different pace, over a year."""
    rates = np.exp(np.random.default_rng(3).uniform(np.log(1 / 60), np.log(6), 300)) / DAY
    return poisson(rates, 365 * DAY)


# --- the setting


def test_the_window_holds_the_first_and_the_last_change_and_sources_with_five() -> None:
    trace = trace_of([np.arange(6.0), np.arange(4.0), np.array([1.0, 2.0, 3.0, 4.0, 10.0])])
    setting = Setting.of(trace, weights=[1.0, 2.0, 3.0])
    assert setting.trace.names == ("s0000", "s0002")
    assert setting.trace.counts().tolist() == [6, 5]
    assert setting.weight.tolist() == [1.0, 3.0]
    assert (setting.start, setting.end) == (0.0, np.nextafter(10.0, 11.0))
    assert setting.split == pytest.approx(4.0)
    # 11 changes in 10 s, two polls for each, 6 s of which count
    assert setting.budget(2.0) == pytest.approx(2.2)
    assert setting.allowed(2.0) == pytest.approx(13.2)


def test_a_given_window_leaves_out_its_end() -> None:
    setting = Setting.of(trace_of([np.arange(20.0), np.arange(100.0, 108.0)]), start=2.0, end=12.0)
    assert setting.trace.names == ("s0000",)
    assert setting.trace.times.tolist() == list(range(2, 12))


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    trace = trace_of([np.arange(float(n)) for n in range(1, 100)])
    few = [Setting.of(trace, at_most=10, seed=seed) for seed in (1, 1, 2)]
    assert len(few[0]) == 10
    assert few[0].trace.counts().min() >= 5
    assert few[0].trace.names == few[1].trace.names != few[2].trace.names
    assert len(Setting.of(trace, at_most=1000)) == 95


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": 9.0, "end": 3.0}, "start 1970-01-01 must be before the end"),
        ({"start": 5.0, "end": 8.0}, "no source with 5 changes: its most active one has 3"),
        ({"objective": "lug"}, "objective 'lug' is not known"),
        ({"weights": [1.0, 2.0]}, "weight of shape"),
        ({"weights": [0.0]}, "weight 0 is that of all sources"),
        ({"weights": [-1.0]}, "at least 0"),
    ],
)
def test_what_cannot_be_replayed_is_one_sentence(options: dict[str, object], says: str) -> None:
    with pytest.raises(InputError, match=says):
        Setting.of(trace_of([np.arange(10.0)]), **options)  # type: ignore[arg-type]


# --- measuring


def walked(setting: Setting, changes: list[float], polls: list[float]) -> tuple[float, float]:
    """Freshness and mean age of one copy, event by event, in plain Python."""
    events = sorted([(t, 0) for t in changes] + [(t, 1) for t in polls] + [(setting.end, 2)])
    fresh = age = 0.0
    last, since = setting.start, None
    for t, kind in events:
        low, high = max(last, setting.split), max(min(t, setting.end), setting.split)
        if since is None:
            fresh += high - low
        else:
            age += ((high - since) ** 2 - (low - since) ** 2) / 2
        if kind == 0 and since is None and t > setting.start:
            since = t
        if kind == 1:
            since = None
        last = t
    return fresh / setting.counted, age / setting.counted


def test_measuring_agrees_with_a_walk_through_every_event() -> None:
    rng = np.random.default_rng(7)
    changes = [np.unique(rng.integers(0, 400, n)).astype(float) for n in rng.integers(5, 60, 40)]
    # whole seconds, so that many polls come at the very time of a change
    polls = [np.sort(rng.integers(0, 401, n)).astype(float) for n in rng.integers(0, 80, 40)]
    trace = trace_of(changes)
    setting = Setting(trace, 0.0, 160.0, 400.0, np.ones(40))
    starts = np.concatenate([[0], np.cumsum([len(p) for p in polls])])
    played = measure(setting, Polls(starts, np.concatenate(polls)))
    for i in range(40):
        want = walked(setting, trace.changes(i).tolist(), polls[i].tolist())
        assert (played.freshness[i], played.age[i]) == pytest.approx(want, abs=1e-9)
    assert played.polls == sum(int(np.sum((p >= 160) & (p <= 400))) for p in polls)


def test_a_copy_that_is_never_polled_is_as_old_as_its_first_change() -> None:
    setting = Setting.of(trace_of([np.array([2.0, 3.0, 4.0, 5.0, 6.0])]), start=0.0, end=10.0)
    played = measure(setting, Polls(np.array([0, 0]), np.empty(0)))
    # from 4 to 10 its age goes from 2 to 8
    assert (played.freshness[0], played.age[0], played.polls) == (0.0, 5.0, 0)


def test_even_polls_are_even_and_as_many_as_promised(fleet: Setting) -> None:
    rates = np.geomspace(1 / (400 * DAY), 1 / HOUR, len(fleet))
    rates[5] = 0.0
    polls = even(fleet, rates, seed=1)
    assert np.diff(polls.starts)[5] == 0
    assert polls.counted(fleet) == pytest.approx(rates.sum() * fleet.counted, abs=3)
    for i in (0, 100, 299):
        times = polls.times[polls.starts[i] : polls.starts[i + 1]]
        assert np.all((times >= fleet.start) & (times <= fleet.end))
        assert np.diff(times) == pytest.approx(1 / rates[i])
        # no room for one more at either end
        assert times[:1] - 1 / rates[i] < fleet.start
        assert times[-1:] + 1 / rates[i] > fleet.end


def test_uniform_polls_reach_the_freshness_of_theory(fleet: Setting) -> None:
    same = poisson(np.full(400, 1 / DAY), 100 * DAY)
    played = measure(same, uniform(same, 1.0, 1))
    # r changes between two polls: (1 - e^-r)/r, and an age of (1/2 - 1/r + (1 - e^-r)/r²) intervals [000 Table 2]
    r = len(same.trace.times) / len(same) / 100
    error = played.freshness.std() / 20, played.age.std() / 20
    assert played.freshness.mean() == pytest.approx(-math.expm1(-1 / r) * r, abs=5 * error[0])
    assert played.age.mean() == pytest.approx(DAY / r * (0.5 - r + r * r * -math.expm1(-1 / r)), abs=5 * error[1])


# --- the oracle


def test_the_oracle_meets_the_optimality_condition(fleet: Setting) -> None:
    """At one price every rate is that of the closed form; written down again with scipy alone."""
    rate = np.maximum(fleet.trace.between(fleet.split, fleet.end).counts(), 0.5) / fleet.counted

    def rates(price: float) -> np.ndarray:
        wanted = price * rate
        return np.where(wanted < 1, rate / gammaincinv(2, np.minimum(wanted, 1 - 1e-16)), 0.0)

    price = brentq(lambda p: rates(p).sum() - fleet.budget(0.3), 1e-9 / rate.max(), 1 / rate.min(), xtol=1e-12)
    got = oracle_rates(fleet, 0.3)
    assert got == pytest.approx(rates(price), rel=1e-5, abs=1e-14)
    assert np.any(got == 0)
    assert oracle(fleet, 0.3, 1).counted(fleet) == pytest.approx(fleet.allowed(0.3), rel=0.002)


def test_a_source_that_falls_silent_is_copied_once_more() -> None:
    busy = [np.linspace(0.5, 999.5, 200) for _ in range(5)]
    setting = Setting.of(trace_of([*busy, np.linspace(1.0, 300.0, 50)]), start=0.0, end=1000.0)
    got = oracle_rates(setting, 1.0)
    assert 0 < got[-1] < got[0]


def test_the_oracle_aims_at_what_it_is_asked_for(fleet: Setting) -> None:
    trace = fleet.trace
    fresh, old = (Setting.of(trace, objective=name, start=0.0, end=fleet.end) for name in ("freshness", "age"))
    assert np.all(oracle_rates(old, 0.3) > 0)
    by_fresh, by_age = (measure(s, oracle(s, 0.3, 1)) for s in (fresh, old))
    assert by_fresh.freshness.mean() > by_age.freshness.mean()
    assert by_age.age.mean() < 0.2 * by_fresh.age.mean()
    # nobody reads a source of weight 0, so nobody polls it
    weights = np.where(np.arange(len(trace)) < 5, 0.0, 1.0)
    weighted = Setting.of(trace, weights=weights, start=0.0, end=fleet.end)
    assert np.all(oracle_rates(weighted, 3.0)[weighted.weight == 0] == 0)


# --- the rules of other software


def intervals(name: str, changes: np.ndarray, end: float, stretch: float = 1.0) -> np.ndarray:
    """Waits between the polls of one source, in seconds."""
    setting = Setting(trace_of([changes]), 0.0, 0.4 * end, end, np.ones(1))
    return np.diff(RULES[name].polls(setting, stretch, 1).times)


def test_stormcrawler_counts_whole_minutes() -> None:
    always = intervals("stormcrawler", np.arange(30.0, 20 * DAY, 60.0), 20 * DAY)
    assert (always[:14] / 60).round(6).tolist() == [750, 405, 232, 146, 103, 81, 70, 65, 62, 61, 60, 60, 60, 60]
    never = intervals("stormcrawler", np.array([1e9]), 300 * DAY)
    assert (never[:9] / 60).round(6).tolist() == [2160, 3240, 4860, 7290, 10935, 16402, 20160, 20160, 20160]


def test_nutch_and_heritrix_step_between_their_bounds() -> None:
    never = intervals("nutch", np.array([1e12]), 2000 * DAY) / DAY
    assert never[:5] == pytest.approx([42, 58.8, 82.32, 90, 90])
    always = intervals("heritrix", np.arange(30.0, 40 * DAY, 60.0), 40 * DAY) / HOUR
    assert always[:9] == pytest.approx([24 / 1.5**k for k in range(1, 8)] + [1, 1])


def test_feed_readers_look_at_the_entries_of_a_week_or_a_month() -> None:
    every_six_hours = np.arange(0.0, 60 * DAY, 6 * HOUR)
    assert intervals("miniflux", every_six_hours, 60 * DAY)[-50:] == pytest.approx(np.full(50, 6 * HOUR))
    assert intervals("miniflux", every_six_hours, 60 * DAY, 2.5)[-20:] == pytest.approx(np.full(20, 15 * HOUR))
    # 4 entries a day: 45 minutes and up to a quarter of 0 to 45 more
    waits = intervals("newsblur", every_six_hours, 60 * DAY)[-500:] / 60
    assert waits.min() >= 45
    assert waits.max() <= 45 + 45 / 4
    assert set((4 * (waits - 45)).round(6)) == set(range(46))
    # an entry every other day: 360 minutes times one half
    waits = intervals("newsblur", np.arange(0.0, 100 * DAY, 2 * DAY), 100 * DAY)[-100:] / 60
    assert waits.min() == pytest.approx(180, abs=2)


def test_limd_shortens_its_interval_by_how_late_it_was() -> None:
    silent = intervals("limd", np.array([1e12]), 60 * DAY) / HOUR
    assert silent[:3] == pytest.approx([1.2, 1.44, 1.728])
    assert silent[-1] == pytest.approx(60)
    changes = np.array([30 * DAY])
    setting = Setting(trace_of([changes]), 0.0, 0.0, 60 * DAY, np.ones(1))
    times = RULES["limd"].polls(setting, 1.0, 1).times
    found = int(np.searchsorted(times, changes[0]))
    late = (times[found] - changes[0]) / HOUR
    assert late > 1
    assert (times[found + 1] - times[found]) / HOUR == pytest.approx(max(60 / late, 1))


#: on one Poisson source, far from all bounds: mean polls per change, with the rules' own constants
NATIVE = [
    ("nutch", 1 / DAY, 0.99),
    ("stormcrawler", 1 / (7 * DAY), 1.9),
    ("heritrix", 1 / DAY, 1.28),
    ("limd", 1 / DAY, 5.4),
    ("limd", 1 / (7 * DAY), 12.0),
    ("miniflux", 1 / HOUR, 0.77),
    ("miniflux", 1 / (7 * DAY), 7.9),
    ("newsblur", 1 / (7 * DAY), 37.3),
    ("proportional", 1 / DAY, 1.0),
]


@pytest.mark.parametrize(("name", "rate", "want"), NATIVE)
def test_polls_per_change_on_poisson_sources(name: str, rate: float, want: float) -> None:
    setting = poisson(np.full(20, rate), 1000 / rate)
    polls = RULES[name].polls(setting, 1.0, 1)
    changes = len(setting.trace.between(setting.split, setting.end).times)
    # 12,000 changes count: one standard error is below 1 %, and the known values have two digits
    assert polls.counted(setting) / changes == pytest.approx(want, rel=0.05)


@pytest.mark.parametrize(("name", "faster", "slower"), [("nutch", 0.8, 1.4), ("heritrix", 1 / 1.5, 1.5)])
def test_stepping_rules_settle_where_their_steps_cancel(name: str, faster: float, slower: float) -> None:
    """In the long run the logarithm of the interval goes nowhere, so a known share of the polls finds a change."""
    setting = poisson(np.full(20, 1 / DAY), 1000 * DAY)
    polls = RULES[name].polls(setting, 1.0, 1)
    hits, late = 0, 0
    for i in range(len(setting)):
        times = polls.times[polls.starts[i] : polls.starts[i + 1]]
        seen = np.searchsorted(setting.trace.changes(i), times, side="right")
        counts = times[1:] >= setting.split
        hits += int(np.sum((np.diff(seen) > 0) & counts))
        late += int(np.sum(counts))
    share = math.log(slower) / (math.log(slower) - math.log(faster))
    assert hits / late == pytest.approx(share, abs=0.005)


@pytest.mark.parametrize("name", RULES)
@pytest.mark.parametrize("each", [0.3, 1.0, 3.0])
def test_rules_spend_the_budget(fleet: Setting, name: str, each: float) -> None:
    polls = matched(name, fleet, each, 1)
    assert polls.counted(fleet) == pytest.approx(fleet.allowed(each), rel=0.005)
    assert np.all(np.diff(polls.starts) >= 0)
    inside = np.ones(len(polls.times), dtype=bool)
    inside[polls.starts[1:-1][polls.starts[1:-1] < len(inside)]] = False
    assert np.all(np.diff(polls.times)[inside[1:]] > 0)


def test_a_rule_that_ignores_the_outcome_scales_with_the_factor(fleet: Setting) -> None:
    """miniflux beyond its longest interval is uniform, and the factor is known."""
    slow = poisson(np.full(50, 1 / (100 * DAY)), 3650 * DAY)
    per_source = slow.budget(1.0) / 50
    assert factor(RULES["miniflux"], slow, 1.0, 1) == pytest.approx(1 / per_source / DAY, rel=0.02)


def test_rules_run_without_numba() -> None:
    """Plain Python takes the same decisions, poll by poll."""
    code = (
        "import sys\nif len(sys.argv) > 1: sys.modules['numba'] = None\n"
        "import numpy as np\nfrom unstale.core.trace import Trace\nfrom unstale.sim.backtest.rules import RULES\n"
        "from unstale.sim.backtest.setting import Setting\n"
        "times = np.cumsum(np.random.default_rng(1).exponential(86400.0, 40))\n"
        "setting = Setting.of(Trace.of(['a'] * 20 + ['b'] * 20, times))\n"
        "for name, rule in RULES.items():\n"
        "    polls = rule.polls(setting, 2.0, 1)\n    print(name, polls.starts, polls.times.sum())\n"
    )
    said = [
        subprocess.run([sys.executable, "-c", code, *bare], capture_output=True, text=True, check=True).stdout
        for bare in ((), ("bare",))
    ]
    assert len(said[0].splitlines()) == len(RULES)
    assert said[0] == said[1]


# --- the run


def test_rows_are_weighted_means_with_standard_errors_over_sources(fleet: Setting) -> None:
    weights = np.arange(len(fleet), dtype=float)
    played = backtest(fleet.trace, [1.0], ["uniform", "limd"], weights=weights, start=0.0, end=fleet.end, seed=4)
    assert [row.policy for row in played.rows] == ["uniform", "limd"]
    setting = played.setting
    seen = measure(setting, uniform(setting, 1.0, 4))
    row, w = played.rows[0], setting.weight / setting.weight.sum()
    mean = w @ seen.freshness
    n = len(setting)
    assert row.freshness == pytest.approx(mean)
    assert row.freshness_se == pytest.approx(math.sqrt(n / (n - 1) * np.sum((w * (seen.freshness - mean)) ** 2)))
    assert row.age == pytest.approx(w @ seen.age)
    assert (row.polls, row.budget) == (seen.polls, setting.allowed(1.0))
    assert all(row.matched for row in played.rows)
    assert not played.savings


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_the_saving_is_found_between_budgets(fleet: Setting, objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy that gets a quarter more polls than it is given does with a fifth less."""
    monkeypatch.setitem(POLICIES, runs.OURS, lambda setting, each, seed: uniform(setting, 1.25 * each, seed))
    played = backtest(fleet.trace, (0.3, 3.0), [runs.OURS, "oracle", "uniform", "proportional"], objective)
    assert [saving.rival for saving in played.savings] == ["uniform", "uniform"]
    assert [saving.share for saving in played.savings] == pytest.approx([0.2, 0.2], abs=0.02)
    assert not any(row.matched for row in played.of(runs.OURS))


def test_a_policy_that_is_worse_needs_more_polls(fleet: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, runs.OURS, lambda setting, each, seed: uniform(setting, 0.5 * each, seed))
    played = backtest(fleet.trace, (1.0,), [runs.OURS, "uniform"])
    assert played.savings[0].share == pytest.approx(-1.0, abs=0.05)
    monkeypatch.setitem(POLICIES, runs.OURS, lambda setting, each, seed: uniform(setting, 1e-3, seed))
    hopeless = backtest(fleet.trace, (1.0,), [runs.OURS, "uniform"])
    assert math.isnan(hopeless.savings[0].share)


def test_the_same_seed_gives_the_same_rows(fleet: Setting) -> None:
    few = fleet.trace.take(range(40))
    one, two, other = (backtest(few, [1.0], ["uniform", "newsblur"], seed=seed).rows for seed in (1, 1, 2))
    assert one == two
    assert one != other


def test_an_unknown_policy_is_one_sentence(fleet: Setting) -> None:
    with pytest.raises(InputError, match="policy 'random' is unknown: take some of unstale, oracle, uniform, nutch"):
        backtest(fleet.trace, policies=["random"])
    with pytest.raises(InputError, match=r"polls_per_change 0\.0 must be a finite number above 0"):
        backtest(fleet.trace, [0.0], ["uniform"])
    with pytest.raises(InputError, match="polls_per_change"):
        backtest(fleet.trace, [], ["uniform"])
