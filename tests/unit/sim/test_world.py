"""Worlds: each source draws what its law promises, from streams of its own."""

import numpy as np
import pytest

from unstale.core.processes import Constant, Poisson, WeeklyPoisson
from unstale.errors import InputError
from unstale.sim.changes import Bursty, Drifting, Recorded, SelfExciting, Still, change_times
from unstale.sim.world import Host, Shock, World


def counts(changes: object, horizon: float, runs: int = 300) -> np.ndarray:
    rng = np.random.default_rng(7)
    return np.array([len(change_times(changes, rng, horizon)) for _ in range(runs)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "changes",
    [
        Drifting(3.0, step=7.0, volatility=0.0),
        Bursty(1.0, 9.0, quiet_time=3.0, busy_time=1.0),
        SelfExciting(3.0, offspring=0.5, delay=0.2),
        WeeklyPoisson(3.0, [1.0, 3.0, 0.0], week=10.0),
    ],
    ids=lambda c: type(c).__name__,
)
def test_streams_have_their_rate_from_the_first_moment_on(changes: object) -> None:
    for horizon in (2.0, 60.0):
        n = counts(changes, horizon, 600)
        if isinstance(changes, WeeklyPoisson):
            assert changes.cumulative(60.0) == pytest.approx(180.0)
            expected = float(changes.cumulative(horizon))
        else:
            expected = 3.0 * horizon
        assert abs(n.mean() - expected) < 5 * n.std(ddof=1) / np.sqrt(len(n))


@pytest.mark.parametrize(
    "changes",
    [Drifting(3.0, 1.0, 0.3), Bursty(0.0, 9.0, 3.0, 1.0), SelfExciting(3.0, 0.5, 0.2), Recorded([5.0, 0.5, 20.0])],
    ids=lambda c: type(c).__name__,
)
def test_times_ascend_and_stay_inside(changes: object) -> None:
    times = change_times(changes, np.random.default_rng(1), 10.0)  # type: ignore[arg-type]
    assert np.all(np.diff(times) >= 0)
    assert times[0] >= 0
    assert times[-1] <= 10.0


def test_dispersion_of_counts() -> None:
    """Variance over mean of the counts in a long time: 1/(1 − offspring)² for the self-exciting stream, and for
    the switching one 1 + 2·p·q·(busy − quiet)²·T/rate, p, q the shares of the stays, 1/T their rates added.
    """
    n = counts(SelfExciting(3.0, 0.5, 0.05), 200.0, 1500)
    assert n.var() / n.mean() == pytest.approx(4.0, rel=0.2)
    n = counts(Bursty(1.0, 9.0, 3.0, 1.0), 300.0, 1500)
    exact = 1 + 2 * 0.75 * 0.25 * 64 * (1 / (1 / 3.0 + 1 / 1.0)) / 3.0
    assert n.var() / n.mean() == pytest.approx(exact, rel=0.2)


def test_drift_moves_the_rate() -> None:
    """After k steps the logarithm of the rate has standard deviation volatility·√k: E[rate] grows by e^(σ²k/2)."""
    rng = np.random.default_rng(3)
    drifting = Drifting(50.0, step=1.0, volatility=0.3)
    late = np.array([np.sum(drifting.sample_path(rng, 10.0) >= 9.0) for _ in range(3000)])
    expected = 50.0 * np.exp(0.09 * 9 / 2)
    assert abs(late.mean() - expected) < 5 * late.std() / np.sqrt(len(late))


def test_common_shocks_correlate_sources() -> None:
    """Shocks of rate r, joined with chance p by two sources: cov of their counts is r·p²·T, mean r·p·T."""
    world = World([Still(), Still(), Still()], shocks=[Shock(Poisson(2.0), rows=[0, 2], chance=0.5)])
    n = np.array([[len(c) for c in world.draw(seed, 50.0).changes] for seed in range(600)])
    assert np.all(n[:, 1] == 0)
    se = n[:, [0, 2]].std(axis=0) / np.sqrt(len(n))
    assert np.all(np.abs(n[:, [0, 2]].mean(axis=0) - 50.0) < 5 * se)
    assert np.cov(n[:, 0], n[:, 2])[0, 1] == pytest.approx(2.0 * 0.25 * 50.0, rel=0.25)


def test_requests_come_by_weight() -> None:
    drawn = World([Still(), Still()], weight=[1.0, 3.0], requests=2.0).draw(1, 5000.0)
    assert len(drawn.requests[0]) == pytest.approx(10_000, abs=5 * 100)
    assert len(drawn.requests[1]) == pytest.approx(30_000, abs=5 * 174)
    recorded = World([Still()], requests=[[5.0, 1.0, 9.0]]).draw(1, 6.0)
    assert recorded.requests[0].tolist() == [1.0, 5.0]


def test_a_key_names_the_streams_of_a_source() -> None:
    a = World([Poisson(1.0), Poisson(2.0)]).draw(5, 100.0)
    b = World([Poisson(2.0), Poisson(1.0)], key=[1, 0]).draw(5, 100.0)
    np.testing.assert_array_equal(a.changes[0], b.changes[1])
    np.testing.assert_array_equal(a.changes[1], b.changes[0])
    assert not np.array_equal(a.changes[0], World([Poisson(1.0)]).draw(6, 100.0).changes[0])
    # the first source of a smaller world lives through the same
    np.testing.assert_array_equal(a.changes[0], World([Poisson(1.0)]).draw(5, 100.0).changes[0])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: World([]), "changes .* must describe at least one source"),
        (lambda: World([3.0]), r"changes\[0\] 3.0 must draw times: give Poisson"),
        (lambda: World([Constant(1.0)], weight=[1, 2]), "weight of shape"),
        (lambda: World([Constant(1.0)], weight=0), "weight of every source 0"),
        (lambda: World([Constant(1.0)], failure=1.5), "failure 1.5 must be"),
        (lambda: World([Constant(1.0)], delay=-1), "delay -1.0 must be"),
        (lambda: World([Constant(1.0)], host=[0]), "host .* must be whole numbers that name rows"),
        (lambda: World([Constant(1.0)] * 2, key=[3, 3]), "key of two sources must differ"),
        (lambda: World([Constant(1.0)], requests=[[1], [2]]), "requests of 2 sources must be of 1"),
        (lambda: Host(concurrency=0), "concurrency 0.0 must be"),
        (lambda: Host(outages=[(3.0, 2.0)]), "must not end before it starts"),
        (lambda: SelfExciting(1.0, 1.0, 1.0), "offspring 1.0 must be"),
        (lambda: Recorded([-1.0]), r"times\[0\] -1.0 must be"),
    ],
)
def test_what_a_world_refuses(build: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        build()  # type: ignore[operator]
