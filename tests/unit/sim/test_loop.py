"""The event loop: order, limits, failures, and that the same seed gives the same run."""

import numpy as np
import pytest

from unstale.core.phase import SPREAD
from unstale.core.processes import Pareto, Poisson, Uniform
from unstale.errors import InputError
from unstale.keeper import Answer, Outcome
from unstale.sim.changes import Bursty, Recorded, SelfExciting, Still
from unstale.sim.loop import run
from unstale.sim.measure import Log, Measured
from unstale.sim.policies import OpenLoop, Policy, Rngs, ScheduledPolicy, Timetable
from unstale.sim.rounds import joined
from unstale.sim.world import Host, Shock, World


class Listening(Timetable):
    """A timetable that remembers what it was told."""

    def start(self, world: World, horizon: float, rngs: Rngs) -> list[float]:
        self.heard: list[tuple[Outcome, float]] = []
        return list(super().start(world, horizon, rngs))

    def next(self, source: int, outcome: Outcome, now: float, rng: np.random.Generator) -> float:
        self.heard.append((outcome, now))
        return super().next(source, outcome, now, rng)


def test_a_trace_told_poll_by_poll() -> None:
    """Changes at 1, 2 and 7; polls at 0.5, 3, 5 and 7: none yet, two at once, nothing new, one at that moment."""
    policy = Listening([0.5, 3.0, 5.0, 7.0], [0] * 4)
    ran = run(World([Recorded([1.0, 2.0, 7.0])], delay=0.25), policy, 10.0)
    assert [(o.answer, o.polled_at, o.last_modified, now) for o, now in policy.heard] == [
        (Answer.UNCHANGED, 0.5, None, 0.75),
        (Answer.CHANGED, 3.0, 2.0, 3.25),
        (Answer.UNCHANGED, 5.0, 2.0, 5.25),
        (Answer.CHANGED, 7.0, 7.0, 7.25),
    ]
    assert ran.log.arrived.tolist() == [0.75, 3.25, 5.25, 7.25]


def test_a_failure_loses_what_the_poll_would_have_seen() -> None:
    policy = Listening([1.5, 3.0], [0, 0])
    world = World([Recorded([1.0])], host=[0], hosts=[Host(outages=[(1.0, 2.0)])])
    ran = run(world, policy, 10.0)
    assert [o.answer for o, _ in policy.heard] == [Answer.FAILED, Answer.CHANGED]
    assert ran.freshness.fleet.value == pytest.approx(0.8)
    assert (ran.polls.tolist(), ran.failures.tolist(), ran.spent) == ([2], [1], 0.2)


def everything(order: list[int], seed: int = 1) -> tuple[World, Policy]:
    """A world with all that can be drawn, its sources in any order."""
    changes = [Poisson(1.0), Pareto(3.0, 2.0), Bursty(0.1, 5.0, 8.0, 2.0), SelfExciting(1.0, 0.4, 0.3)]
    shock = Shock(Poisson(0.2), rows=[order.index(0), order.index(2)], chance=0.7)
    world = World(
        [changes[i] for i in order],
        weight=np.array([1.0, 2.0, 3.0, 4.0])[order],
        requests=0.5,
        failure=np.array([0.0, 0.1, 0.2, 0.3])[order],
        delay=Uniform(0.0, 0.2),
        shocks=[shock],
        key=order,
    )
    return world, ScheduledPolicy(0.1, np.array([1.0, 1.1, 1.2, 1.3])[order])


def values(ran: Measured) -> np.ndarray:
    measures = (ran.freshness, ran.age, ran.missed, ran.lag, ran.request_freshness)
    return np.array([*(m.source.value for m in measures), ran.polls, ran.failures])


def test_the_same_seed_gives_the_same_run_to_the_last_bit() -> None:
    first, again = (run(*everything([0, 1, 2, 3]), 200.0, 10.0, seed=9) for _ in range(2))
    for name in ("source", "started", "arrived", "answered"):
        np.testing.assert_array_equal(getattr(first.log, name), getattr(again.log, name))
    np.testing.assert_array_equal(values(first), values(again))
    other = run(*everything([0, 1, 2, 3]), 200.0, 10.0, seed=10)
    assert np.all(values(first)[:4] != values(other)[:4])


def test_a_policy_can_run_again() -> None:
    world, policy = everything([0, 1, 2, 3])
    np.testing.assert_array_equal(values(run(world, policy, 50.0)), values(run(world, policy, 50.0)))


def test_sources_in_another_order_live_through_the_same() -> None:
    order = [2, 0, 3, 1]
    straight = values(run(*everything([0, 1, 2, 3]), 200.0, 10.0, seed=9))
    shuffled = values(run(*everything(order), 200.0, 10.0, seed=9))
    np.testing.assert_array_equal(straight[:, order], shuffled)


def test_policies_meet_the_same_world() -> None:
    """Changes do not depend on who polls: differences between policies are the policies' own."""
    world, _ = everything([0, 1, 2, 3])
    alone = np.concatenate(world.draw(4, 100.0).changes)
    for policy in (OpenLoop(1.0), OpenLoop(3.0, "random"), ScheduledPolicy(0.2, 1.0)):
        np.testing.assert_array_equal(run(world, policy, 100.0, seed=4)._changed, alone)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_a_host_s_limits_are_never_broken(concurrency: int) -> None:
    rng = np.random.default_rng(5)
    n, spacing = 40, 0.03
    host = rng.integers(0, 2, n)
    hosts = [Host(concurrency, spacing), Host()]
    world = World([Still()] * n, delay=Uniform(0.0, 0.3), host=host, hosts=hosts)
    ran = run(world, OpenLoop(1.0, "purely-random"), 200.0)
    limited = host[ran.log.source] == 0
    started, arrived = ran.log.started[limited], ran.log.arrived[limited]
    assert np.diff(started).min() >= spacing - 1e-12
    busy = np.arange(1, len(started) + 1) - np.searchsorted(np.sort(arrived), started, side="right")
    assert busy.max() == concurrency
    if concurrency == 1:
        # twenty sources at rate 1, 0.15 per poll: the host works all the time and does what it can
        assert np.sum(arrived - started) / 200.0 == pytest.approx(1.0, abs=0.05)
    # one poll of a source at a time
    for i in range(n):
        mine = ran.log.source == i
        assert np.all(ran.log.started[mine][1:] >= ran.log.arrived[mine][:-1])


def test_polls_wait_in_the_order_in_which_they_were_due() -> None:
    world = World([Still()] * 3, delay=1.0, host=0, hosts=[Host(concurrency=1)])
    ran = run(world, Timetable([0.0, 0.2, 0.1], [2, 0, 1]), 10.0)
    assert ran.log.source.tolist() == [2, 1, 0]
    assert ran.log.started.tolist() == [0.0, 1.0, 2.0]


def test_no_poll_starts_after_the_end() -> None:
    world = World([Still()] * 5, host=0, hosts=[Host(spacing=1.0)])
    ran = run(world, Timetable([0.0] * 5, range(5)), 2.5)
    assert ran.log.started.tolist() == [0.0, 1.0, 2.0]


def test_the_keeper_backs_off_in_an_outage_and_comes_back() -> None:
    """Interval 1 by its bounds' middle; an outage of 200: 1 + 2 + 4 + … + 64 + 64 + 64 give 8 or 9 polls, not 200."""
    price = 0.2642411176571153  # P(2, 1): a source of rate 1 is polled every 1
    world = World([Poisson(1.0)] * 50, host=0, hosts=[Host(outages=[(100.0, 300.0)])])
    policy = ScheduledPolicy(price, 1.0)
    log = run(world, policy, 600.0, seed=2).log
    down = (log.started >= 100.0) & (log.started < 300.0)
    assert not log.answered[down].any()
    assert log.answered[~down].all()
    per_source = np.bincount(log.source[down], minlength=50)
    # at least 1 + Σ 3·2^k within 200 and at most 1 + Σ 2^k: the spread of a backed-off interval is half of it
    assert per_source.min() >= 6
    assert per_source.max() <= 13
    for i in range(50):
        mine = log.started[log.source == i]
        back = mine[mine >= 300.0]
        # back within 1.5·64 intervals of the end, then at its own pace again
        assert back[0] < 300.0 + 96.0
        np.testing.assert_allclose(np.diff(back), 1.0, atol=SPREAD + 1e-12)
        assert policy.scheduler.failures[i] == 0


def test_failures_at_random_are_counted_and_paid() -> None:
    world = World([Still()] * 4, failure=[0.0, 0.3, 0.5, 1.0], cost=[1.0, 2.0, 3.0, 4.0])
    ran = run(world, OpenLoop(5.0), 2000.0)
    assert ran.polls.tolist() == [10_000] * 4
    assert ran.failures[[0, 3]].tolist() == [0, 10_000]
    for i, p in ((1, 0.3), (2, 0.5)):
        assert abs(ran.failures[i] - 10_000 * p) < 5 * np.sqrt(10_000 * p * (1 - p))
    assert ran.spent == pytest.approx(5.0 * 10.0, rel=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"horizon": 0.0}, "horizon 0.0 must be"),
        ({"horizon": 5.0, "warmup": 5.0}, "warmup 5.0 must be below the horizon 5.0"),
        ({"horizon": 5.0, "batches": 1}, "batches 1.0 must be"),
        ({"horizon": 5.0, "seed": 0.5}, "seed 0.5 must be a whole number"),
        ({"horizon": 5.0, "seed": -1}, "seed -1 must be"),
    ],
)
def test_what_a_run_refuses(options: dict[str, float], message: str) -> None:
    with pytest.raises(InputError, match=message):
        run(World([Still()]), OpenLoop(1.0), **options)  # type: ignore[arg-type]


class OneByOne:
    """A policy as one that has to be told every poll in the order of time."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def start(self, world: World, horizon: float, rngs: Rngs) -> list[float]:
        return list(self._policy.start(world, horizon, rngs))

    def next(self, source: int, outcome: Outcome, now: float, rng: np.random.Generator) -> float:
        return self._policy.next(source, outcome, now, rng)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("hosts", [False, True])
def test_rounds_of_polls_are_the_polls_of_the_event_loop_to_the_last_bit(known: bool, hosts: bool) -> None:
    rates = np.random.default_rng(3).lognormal(0.0, 1.0, 12)
    where = np.where(np.arange(12) % 3 == 0, 0, -1) if hosts else np.full(12, -1)
    world = World(
        [Poisson(rate) for rate in rates],
        weight=np.arange(1.0, 13.0),
        failure=[0.0, 0.2, 0.5] * 4,
        delay=Poisson(20.0) if hosts else 0.01,
        host=where,
        hosts=[Host(spacing=0.05)],
        key=np.arange(12)[::-1],
    )

    def polled(hide: bool) -> Log:
        policy: Policy = ScheduledPolicy(0.3, rates if known else None, mean_interval=0.5)
        return run(world, OneByOne(policy) if hide else policy, 40.0, seed=5).log

    ours, theirs = joined([polled(False)]), joined([polled(True)])
    assert len(ours.source) > 300
    for name in Log.__slots__:
        assert getattr(ours, name).tolist() == getattr(theirs, name).tolist()
