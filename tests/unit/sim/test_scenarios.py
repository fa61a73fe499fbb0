"""The named scenarios: each runs, repeats itself, and shows what it is there to show."""

from __future__ import annotations

import math
import re
from functools import cache

import numpy as np
import pytest
from scipy.linalg import expm

from unstale.errors import InputError
from unstale.sim.changes import Bursty
from unstale.sim.scenarios import SCENARIOS, ScenarioRow, scenario


@cache
def rows(name: str, days: float = 30.0, seed: int = 1) -> dict[str, ScenarioRow]:
    return {row.name: row for row in scenario(name).run(days, seed)}


@pytest.mark.parametrize("name", SCENARIOS)
def test_the_same_seed_repeats_and_another_does_not(name: str) -> None:
    first, again, other = (scenario(name).run(5.0, seed) for seed in (3, 3, 4))
    assert [(r.freshness, r.age) for r in first] == [(r.freshness, r.age) for r in again]
    assert [r.freshness.value for r in first] != [r.freshness.value for r in other]
    for row in first:
        assert 0 <= row.freshness.value <= 1
        assert 0 < row.freshness.error < 0.2


@pytest.mark.parametrize("name", ["five-sources", "news", "heavy-tail", "phase-lock", "bursty", "outage"])
def test_what_is_predicted_is_what_is_simulated(name: str) -> None:
    for row in rows(name).values():
        if row.predicted_freshness is None:
            continue
        assert abs(row.freshness.z(row.predicted_freshness)) < 5
        assert row.predicted_age is not None
        assert abs(row.age.z(row.predicted_age)) < 5
        if row.sources is not None and row.predicted_sources is not None:
            assert np.mean(np.abs(row.sources.z(row.predicted_sources)) > 3) < 0.03


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_way_spends_the_same(name: str) -> None:
    spent = [row.polls for row in rows(name).values()]
    assert max(spent) < 1.05 * min(spent)


def test_five_sources_are_those_of_the_paper() -> None:
    """[000 Table 5 row b]: the best plan of five sources with rates 1 to 5 abandons the fifth."""
    five = rows("five-sources")
    assert five["optimal"].predicted_freshness == pytest.approx(0.373889, abs=1e-6)
    assert five["optimal"].freshness.value > five["proportional"].freshness.value
    assert math.isinf(five["optimal"].age.value)
    assert five["optimal"].predicted_sources[4] == 0


def test_knowing_the_tail_pays() -> None:
    tail = rows("heavy-tail")
    assert tail["knows the tail"].freshness.value > tail["assumes Poisson"].freshness.value + 0.02


def test_in_step_the_average_is_nobody_s_experience() -> None:
    lock = rows("phase-lock")
    assert lock["every hour"].freshness.error > 10 * lock["jittered by 20 %"].freshness.error
    assert lock["jittered by 20 %"].predicted_freshness == pytest.approx(0.5, abs=0.01)
    assert lock["jittered by 20 %"].freshness.value > lock["at random"].freshness.value


def test_bursts_leave_copies_fresher_than_their_rate_lets_expect() -> None:
    for row in rows("bursty").values():
        found = re.fullmatch(r"without bursts, at the same mean rates, ([0-9.]+) % would be fresh", row.note)
        assert found
        assert row.freshness.z(float(found[1]) / 100.0) > 5


def test_bursts_are_to_a_poll_a_mixture_of_two_poisson_laws() -> None:
    """Against the matrix exponential of the switching source, by SciPy."""
    quiet, busy, sleeps, wakes = 0.3, 27.0, 1.8, 0.2
    (slow, fast), (share, rest) = Bursty(quiet, busy, sleeps, wakes).as_poisson()
    leaves = np.array([[-1 / sleeps, 1 / sleeps], [1 / wakes, -1 / wakes]])
    for t in (0.0, 0.01, 0.3, 4.0):
        silent = np.array([sleeps, wakes]) / (sleeps + wakes) @ expm(t * (leaves - np.diag([quiet, busy]))) @ [1, 1]
        assert share * np.exp(-slow * t) + rest * np.exp(-fast * t) == pytest.approx(silent, rel=1e-12)


def test_polls_in_office_hours_pay() -> None:
    weekly = rows("weekly")
    assert weekly["in office hours"].freshness.value > weekly["around the clock"].freshness.value + 0.03


def test_an_outage_costs_its_share() -> None:
    """A tenth of the time, half of the sources: at most 5 % of freshness, and most of that of the fresh ones."""
    outage = rows("outage")
    lost = outage["no outage"].freshness.value - outage["one host down"].freshness.value
    assert 0.015 < lost < 0.05
    assert outage["one host down"].age.value > outage["no outage"].age.value


def test_refusals() -> None:
    with pytest.raises(InputError, match="scenario 'moon' is not known: take one of five-sources, news"):
        scenario("moon")
    with pytest.raises(InputError, match=r"days 0\.0 must be"):
        scenario("news").run(0)
