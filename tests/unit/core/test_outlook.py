"""What is believed of copies: against quadrature, and kept over a restart."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy.integrate import quad

from unstale.core.learning.learner import HALF_LIVES, Learner
from unstale.core.learning.outlook import WIDTH, even_freshness, outlook, rates_within
from unstale.core.learning.state import kept, restore, unpacked


@dataclass
class Rows:
    beliefs: np.ndarray
    last: np.ndarray
    found: np.ndarray
    settings: dict[str, bytes] = field(default_factory=dict)


def taught(objective: str = "freshness") -> Learner:
    rng = np.random.default_rng(4)
    learner = Learner(6, 50.0, objective=objective)
    for step in range(1, 40):
        learner.observe(np.arange(6), np.full(6, 60.0 * step), rng.random(6) < np.linspace(0.05, 0.95, 6))
    learner.review()
    return learner


def rows(learner: Learner) -> Rows:
    columns = learner.columns
    return Rows(columns.rows, columns.last, columns.found, {"learner": kept(learner)})


def survival(learner: Learner, i: int, t: float) -> float:
    """The probability that nothing changed for t, from the belief's definition."""
    count, row = len(HALF_LIVES), learner.columns.rows[i]
    standing = row[2 * count : 3 * count] + learner.shared.favour
    weight = np.exp(standing - standing.max())
    shape, exposure = learner.shared.prior[0] + row[:count], learner.shared.prior[1] + row[count : 2 * count]
    return float(weight @ (1 + t / exposure) ** -shape / weight.sum())


def test_freshness_and_age_are_the_survival_and_its_integral() -> None:
    learner = taught()
    seen = outlook(rows(learner), learner.columns.last[0] + 77.0)
    for i in range(6):
        assert seen.fresh[i] == pytest.approx(survival(learner, i, 77.0), rel=1e-12)
        assert seen.age[i] == pytest.approx(quad(lambda t: 1 - survival(learner, i, t), 0, 77.0)[0], rel=1e-9)  # noqa: B023
    assert np.all(np.diff(seen.change_rate) > 0)
    low, high = rates_within(rows(learner), seen.change_rate)
    assert np.all((low < seen.change_rate) & (seen.change_rate < high))
    np.testing.assert_allclose(seen.change_rate, learner.change_rate(), rtol=1e-12)


def test_polling_all_equally_often_is_the_mean_survival() -> None:
    learner = taught()
    weight = np.arange(1.0, 7.0)
    each = [quad(lambda t: survival(learner, i, t), 0, 90.0)[0] / 90.0 for i in range(6)]  # noqa: B023
    assert even_freshness(rows(learner), weight, 90.0) == pytest.approx(np.average(each, weights=weight), rel=1e-9)
    assert even_freshness(rows(learner), np.zeros(6), 90.0) == 0.0


def test_a_source_without_a_copy_is_stale_and_one_just_checked_is_fresh() -> None:
    blank = Rows(np.zeros((2, WIDTH)), np.array([-np.inf, 5.0]), np.array([-np.inf, 5.0]))
    seen = outlook(blank, 5.0)
    assert seen.fresh.tolist() == [0.0, 1.0]
    assert seen.age.tolist() == [np.inf, 0.0]
    # A copy that was checked in the future, by a clock since set back, is as good as checked now.
    assert outlook(blank, 1.0).fresh.tolist() == [0.0, 1.0]


@pytest.mark.parametrize("objective", ["freshness", "age"])
def test_a_restart_changes_nothing(objective: str) -> None:
    learner, other = taught(objective), Learner(6, 50.0, objective=objective)
    assert restore(other, kept(learner))
    assert kept(other) == kept(learner)
    other.columns = learner.columns
    # Waits are solved to a thousandth, from wherever the last search ended.
    np.testing.assert_allclose(other.waits(20.0), learner.waits(20.0), rtol=2e-3)


def test_what_is_no_state_is_refused_and_changes_nothing() -> None:
    learner = Learner(1, 50.0)
    before = kept(learner)
    broken = np.frombuffer(before).copy()
    broken[3] = np.nan
    for bytes_ in (b"", before[:-8], broken.tobytes(), kept(Learner(1, 50.0, objective="age"))):
        assert not restore(learner, bytes_)
    assert kept(learner) == before
    assert unpacked(b"no") is None
