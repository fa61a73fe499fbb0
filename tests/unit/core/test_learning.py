"""The learner: half-lives that compete, the fleet's prior, its week and its bursts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, optimize

from unstale.core.evidence import Evidence
from unstale.core.learning import bursts as bursting
from unstale.core.learning import clock as weekly
from unstale.core.learning import mixture, timing
from unstale.core.learning.gamma import freshness_value
from unstale.core.learning.learner import EXPLORE, HALF_LIVES, Learner
from unstale.core.learning.prior import fit_prior
from unstale.errors import InputError

DAY, HOUR = 86_400.0, 3_600.0


def poll_evenly(learner: Learner, rate: np.ndarray, polls: int, interval: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = np.arange(len(rate))
    for n in range(1, polls + 1):
        learner.observe(rows, np.full(len(rate), n * interval), rng.random(len(rate)) < -np.expm1(-rate * interval))


def test_rates_are_learned_and_steady_sources_trust_the_longest_memory() -> None:
    rate = np.repeat([0.1, 0.5, 2.0], 200) / DAY
    learner = Learner(600, DAY)
    for _ in range(3):
        poll_evenly(learner, rate, 100, DAY, seed=3)
        learner.columns.last[:] = 0.0
        learner.review()
    learned = learner.change_rate().reshape(3, 200)
    error = learned.std(axis=1) / math.sqrt(200)
    # The shrinkage of a prior is a few percent after 300 polls; a rate of 2 a day is seen through its bit only.
    assert np.all(np.abs(learned.mean(axis=1) * DAY - [0.1, 0.5, 2.0]) < 5 * error * DAY + [0.01, 0.02, 0.2])
    assert int(np.argmax(learner.shared.favour)) == 0


def test_a_source_that_has_changed_its_ways_is_believed_soon() -> None:
    learner = Learner(2, DAY)
    for n in range(1, 201):
        learner.observe([0, 1], [n * DAY] * 2, [n % 10 == 0, n > 190])
    steady, burst = learner.change_rate() * DAY
    assert burst > 5 * steady


def test_the_interval_solves_the_mean_value_of_the_beliefs() -> None:
    """Against scipy's root of the weighted values, each the integral of P(changed by t) − P(changed by s)."""
    learner = Learner(1, DAY)
    rng = np.random.default_rng(5)
    for n in range(1, 30):
        learner.observe([0], [n * DAY], [bool(rng.random() < 0.4)])
    at = mixture.scratch(len(HALF_LIVES))
    mixture.gather(learner.columns.rows[0], learner.shared, at)

    def stale(t: float) -> float:
        return float(1.0 - np.sum(at.weight * (at.exposure / (at.exposure + t)) ** at.shape))

    def value(t: float) -> float:
        return t * stale(t) - integrate.quad(stale, 0.0, t, epsrel=1e-11)[0]

    for price in (0.05 * DAY, 0.3 * DAY, DAY):
        exact = optimize.brentq(lambda t, p=price: value(t) - p, 1.0, EXPLORE * DAY)
        assert float(learner.waits(price)[0]) == pytest.approx(exact, rel=2e-3)


def test_what_is_unknown_is_not_abandoned_and_what_is_abandoned_is_looked_at() -> None:
    learner = Learner(2, DAY)
    for n in range(1, 400):
        learner.observe([0], [n * DAY], [True])
    price = 0.9 * DAY
    fast, unknown = learner.waits(price)
    assert fast == EXPLORE * DAY
    assert unknown < EXPLORE * DAY
    # A source known to change once a day is worth at most a day; one that may do so is worth more.
    known = freshness_value(1e6, 1e6 * DAY, EXPLORE * DAY)[0]
    assert known < DAY * 1.001
    assert freshness_value(1.0, DAY, EXPLORE * DAY)[0] > 2 * known


def test_a_date_teaches_more_than_a_bit() -> None:
    """Told that the last change was a minute ago at every daily poll, a source is known as fast; a bit cannot say."""
    bits, dates = Learner(1, DAY), Learner(1, DAY)
    for n in range(1, 41):
        bits.observe([0], [n * DAY], [True])
        dates.observe([0], [n * DAY], [True], [n * DAY - 60.0])
    # 40 changes in a day of prior and 40 minutes of evidence: about 0.027 a minute, less what has faded.
    assert 0.015 < dates.change_rate()[0] * 60.0 < 0.028
    assert bits.change_rate()[0] * 60.0 < 0.01


def test_the_price_spends_what_is_asked() -> None:
    rng = np.random.default_rng(7)
    rate = rng.gamma(0.7, 1.0, 400) / DAY
    learner = Learner(400, DAY)
    poll_evenly(learner, rate, 40, DAY, seed=8)
    learner.columns.last[:] += DAY * rng.random(400)
    now, until = 40.6 * DAY, 41.1 * DAY
    price = learner.price_for(200.0, now, until, learner.typical_price())
    due = np.maximum(learner.columns.last + learner.waits(price), now)
    soon = due < until
    expected = soon.sum() + np.floor((until - due[soon]) / learner.columns.interval[soon]).sum()
    assert expected == pytest.approx(200.0, abs=2.0)


def test_who_only_waits_for_its_jitter_stands_for_no_poll() -> None:
    """Polled almost at once and looked at a moment ahead: the next polls are those whose jittered times come."""
    learner, ids = Learner(400, 20.0), np.arange(1, 401)
    poll_evenly(learner, np.full(400, 1 / 60.0), 10, 20.0, seed=3)
    learner.columns.last[:] = 200.0 + np.random.default_rng(4).random(400)
    now, price, polled = 225.0, learner.typical_price(), 0
    for _ in range(15):
        price = learner.price_for(20.0, now, now + 1.0, price, ids=ids)
        due = learner.due_after_answers(np.arange(400), ids, price)
        soon = np.flatnonzero(due < now + 1.0)
        learner.columns.last[soon] = np.maximum(due[soon], now)
        polled, now = polled + len(soon), now + 1.0
    assert polled == pytest.approx(300.0, abs=8.0)


def test_a_prior_is_the_law_of_the_fleet() -> None:
    rng = np.random.default_rng(2)
    rate = rng.gamma(0.4, 1 / 2.0, 5000)
    counts, none = rng.poisson(rate * 30.0).astype(float), np.zeros(5000)
    shape, exposure = fit_prior(Evidence(counts, np.full(5000, 30.0), none, none + 1.0), (1.0, 1.0), 1.0)
    assert shape == pytest.approx(0.4, rel=0.08)
    assert exposure == pytest.approx(2.0, rel=0.12)


def test_the_clock_reads_the_integral_of_the_intensity() -> None:
    tally = np.ones((2, 31)) * 500.0
    tally[0, :24] *= 1.0 + 0.6 * np.sin(np.arange(24) / 24 * 2 * np.pi)
    clock = weekly.learned_clock(tally, True)
    assert clock.intensity.mean() == pytest.approx(1.0)
    start, end = 3 * DAY + 4321.0, 17 * DAY + 777.0
    grid = np.linspace(start, end, 2_000_001)
    place = ((grid / HOUR) % weekly.WEEK).astype(int)
    sampled = np.trapezoid(clock.intensity[place], grid)
    assert weekly.reading(clock, end) - weekly.reading(clock, start) == pytest.approx(sampled, rel=1e-6)


def test_a_daily_profile_is_learned_from_bits_and_trusted() -> None:
    """Changes four times as likely by day: hours from polls every five hours, which see a bit each."""
    rng = np.random.default_rng(11)
    learner = Learner(40, 5 * HOUR)
    intensity = np.where((np.arange(24) >= 8) & (np.arange(24) < 20), 1.6, 0.4)
    rate = 4.0 / DAY
    before = np.concatenate([[0.0], np.cumsum(intensity)])

    def passed(t: np.ndarray) -> np.ndarray:
        hours = t / HOUR
        hour = np.floor(hours % 24).astype(int)
        return (np.floor(hours / 24) * 24 + before[hour] + (hours % 24 - hour) * intensity[hour]) * HOUR

    last = np.zeros(40)
    for n in range(1, 800):
        at = n * 5 * HOUR + HOUR * rng.random(40)
        learner.observe(np.arange(40), at, rng.random(40) < -np.expm1(-rate * (passed(at) - passed(last))))
        last = at
        if n % 40 == 0:
            learner.review()
    clock = learner.timing.clock
    assert clock.trusted
    found = clock.intensity.reshape(7, 24).mean(axis=0)
    assert found[9:19].mean() / found[np.r_[21:24, 0:7]].mean() > 2.5
    assert not Learner(1, DAY).timing.clock.trusted


def test_an_even_fleet_keeps_an_even_clock_and_no_bursts() -> None:
    learner = Learner(100, 6 * HOUR)
    for seed in range(8):
        poll_evenly(learner, np.full(100, 2.0 / DAY), 100, 6 * HOUR, seed)
        learner.review()
        learner.columns.last[:] = learner.columns.found[:] = 0.0
    assert not learner.timing.clock.trusted
    assert np.all(np.abs(learner.timing.bursts.factor[:4] - 1.0) < 0.2)


def test_bursts_have_a_factor_above_one() -> None:
    """A change is three times as likely right after a poll that found one, whatever the source's rate."""
    rng = np.random.default_rng(6)
    learner = Learner(300, DAY)
    burst = np.zeros(300, dtype=bool)
    for n in range(1, 161):
        burst = rng.random(300) < np.where(burst, 0.45, 0.15)
        learner.observe(np.arange(300), np.full(300, n * DAY), burst)
        if n % 4 == 0:
            learner.review()
    assert learner.timing.bursts.factor[0] > 1.15
    assert learner.timing.bursts.factor[0] > learner.timing.bursts.factor[3]
    assert bursting.span(learner.timing.bursts, 0.0) == 0


def test_waits_of_an_even_week_are_the_even_intervals() -> None:
    waits = timing.best_waits(np.ones(weekly.WEEK))
    # Waits are whole hours and are met to one while there are up to two changes in them; beyond that the value is flat.
    hours = np.exp(np.linspace(math.log(4.0), math.log(504.0), 9))
    assert np.all(np.abs(waits[:5] - 1.0) * hours[:, None] < 1.0 + 0.02 * hours[:, None])


def test_waits_on_a_busy_day_beat_even_polls() -> None:
    """The average cost of the waits, played out hour by hour, against the best even interval at the same price."""
    intensity = np.tile(np.where((np.arange(24) >= 8) & (np.arange(24) < 20), 1.8, 0.2), 7)
    waits = timing.best_waits(intensity)
    for i, j in ((2, 2), (3, 3), (4, 3)):
        changes = math.exp(math.log(0.15) + i * (math.log(8.0) - math.log(0.15)) / 6)
        length = math.exp(math.log(4.0) + j * (math.log(504.0) - math.log(4.0)) / 8)
        rate, price = changes / length, (1 - (1 + changes) * math.exp(-changes)) * length / changes

        def average(wait: object, rate: float = rate, price: float = price) -> float:
            cost, time, place = 0.0, 0, 0
            for _ in range(600):
                k = int(wait(place))  # type: ignore[operator]
                passed = np.concatenate([[0.0], np.cumsum(rate * intensity[(place + np.arange(k)) % 168])])
                cost += np.trapezoid(-np.expm1(-passed)) + price
                time, place = time + k, (place + k) % 168
            return cost / time

        timed = average(lambda place, i=i, j=j, length=length: round(waits[i, j, place] * length))
        best_even = min(average(lambda _, k=k: k) for k in range(max(int(length / 2), 1), int(2 * length)))
        # Even polls at multiples of a day may sit at the best hour by luck; waits are never worse than that.
        assert timed <= best_even * 1.002


def test_polls_of_another_fleet_are_refused() -> None:
    learner = Learner(2, DAY)
    with pytest.raises(InputError, match="rows of another fleet must be below 2"):
        learner.observe([2], [DAY], [True])
    with pytest.raises(InputError, match="polled_at of shape"):
        learner.observe([0, 1], [DAY], [True])
    with pytest.raises(InputError, match="objective 'joy' is not known"):
        Learner(2, DAY, objective="joy")
