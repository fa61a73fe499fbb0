"""One table of objectives: what the planner makes of each is what the learner makes of it, by formulas of its own."""

from __future__ import annotations

import math
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import gamma

from unstale.cli.plan import plan as plan_command
from unstale.core.learning.harm import harm_of, harm_value
from unstale.core.learning.learner import Learner
from unstale.core.objectives import OBJECTIVES, SPELLINGS, objective_of
from unstale.core.penalties import Deadline
from unstale.core.points_penalty import Points
from unstale.errors import InputError

EXAMPLES = {
    "freshness": "freshness",
    "age": "age",
    "missed": "missed",
    "lag": "lag",
    "deadline": "deadline:90s",
    "saturating": "saturating:200s",
    "power": "power:2",
    "points": "points:60s=0.2,60s=0.5,300s=1,900s=4",
}
#: penalties that are cut into chords: to within 2 %, and nearly the same 2 % everywhere
CHORDS = {"saturating", "power"}
TIMES = np.array([20.0, 100.0, 350.0, 1000.0, 5000.0])


def test_every_row_has_an_example() -> None:
    assert set(EXAMPLES) == set(OBJECTIVES)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_at_a_known_rate_a_poll_is_worth_what_the_planner_says(kind: str) -> None:
    objective = objective_of(EXAMPLES[kind], day=86_400.0)
    harm = harm_of(objective, 300.0)
    within = 2e-2 if kind in CHORDS else 2e-7
    for rate in (1 / 50.0, 1 / 300.0, 1 / 4000.0):
        planned = objective.value(np.full(len(TIMES), rate)).value(TIMES)
        slope = objective.value(np.full(len(TIMES), rate)).slope(TIMES)
        mine = [harm_value(harm, 1e9, 1e9 / rate, float(t)) for t in TIMES]
        np.testing.assert_allclose([worth for worth, _ in mine], planned, rtol=within)
        if kind not in CHORDS:
            np.testing.assert_allclose([steep for _, steep in mine], slope, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_at_an_uncertain_rate_it_is_worth_the_mean_over_the_belief(kind: str) -> None:
    objective, shape, exposure = objective_of(EXAMPLES[kind], day=86_400.0), 2.5, 700.0
    harm = harm_of(objective, 300.0)
    belief = gamma(shape, scale=1.0 / exposure)
    for t in (150.0, 1000.0):

        def weighed(rate: float, t: float = t) -> float:
            return float(objective.value([rate]).value(np.array([t]))[0]) * float(belief.pdf(rate))

        mean, _ = quad(weighed, 1e-9, belief.ppf(1 - 1e-10), limit=200, epsrel=1e-7)
        worth, slope = harm_value(harm, shape, exposure, t)
        assert worth == pytest.approx(mean, rel=2e-2 if kind in CHORDS else 1e-5)
        ahead, behind = (harm_value(harm, shape, exposure, t + d)[0] for d in (1e-3, -1e-3))
        assert slope == pytest.approx((ahead - behind) / 2e-3, rel=1e-4)


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_a_learner_waits_until_a_poll_is_worth_its_price(kind: str) -> None:
    learner = Learner(3, 300.0, weight=[1.0, 2.0, 5.0], objective=EXAMPLES[kind])
    for k in range(1, 30):
        learner.observe([0, 1, 2], [300.0 * k] * 3, [k % 2 == 0, k % 9 == 0, True])
    price = learner.price_for(6.0, 300.0 * 29, 300.0 * 31, learner.typical_price())
    assert math.isfinite(price)
    waits, columns = learner.waits(price), learner.columns
    inside = (waits > 1.01 * columns.shortest) & (waits < 0.99 * columns.longest)
    assert inside.any()
    cheaper = learner.waits(0.8 * price)
    assert np.all(cheaper[inside] < waits[inside])


@pytest.mark.parametrize("kind", OBJECTIVES)
def test_what_one_learner_keeps_another_one_of_the_same_objective_takes_up(kind: str) -> None:
    from unstale.core.learning.state import kept, restore

    here, other = Learner(2, 300.0, objective=EXAMPLES[kind]), Learner(2, 300.0, objective="power:3")
    here.shared.prior[:] = 2.0, 90.0
    again = Learner(2, 300.0, objective=EXAMPLES[kind])
    assert restore(again, kept(here))
    assert again.shared.prior.tolist() == [2.0, 90.0]
    assert np.array_equal(again.shared.harm.jump, here.shared.harm.jump)
    assert not restore(other, kept(here))


def test_marks_of_the_first_version_still_hold() -> None:
    assert [harm_of(objective_of(name), 1.0).mark for name in ("freshness", "age")] == [0.0, 1.0]
    marks = [harm_of(objective_of(text), 1.0).mark for text in EXAMPLES.values()]
    assert len(set(marks)) == len(marks)


def test_a_deadline_is_a_table_of_one_jump() -> None:
    points, deadline = Points([(90.0, 0.0), (90.0, 1.0)]), Deadline(90.0)
    ages = np.array([0.0, 50.0, 90.0, 91.0, 1e4])
    for name in ("w", "w2", "w3", "v"):
        np.testing.assert_allclose(getattr(points, name)(ages), getattr(deadline, name)(ages), rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("joy", "objective 'joy' is not known: use one of freshness, age, missed"),
        ("age:2", "objective 'age:2' is not known"),
        ("deadline", "objective 'deadline' is not known"),
        ("power:much", "objective 'power:much' needs a number: write power:2"),
        ("points:1h", "objective 'points:1h' needs pairs of age and harm"),
        ("points:2h=1,1h=2", "must be in the order of age"),
        ("points:1h=2,2h=1", "must not do less harm with age"),
        ("points:1h=0", "must do harm at last"),
        ("deadline:soon", "objective 'soon'"),
    ],
)
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        objective_of(text)


def test_the_documentation_and_the_command_name_every_one() -> None:
    (option,) = (one for one in plan_command.params if one.name == "objective")
    page = (Path(__file__).parents[3] / "docs/howto/choose-an-objective.md").read_text("utf-8")
    for kind, row in OBJECTIVES.items():
        assert row.spelling in option.help  # type: ignore[attr-defined]
        assert f"`{kind}" in page
        assert row.spelling in SPELLINGS
