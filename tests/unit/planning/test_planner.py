"""`unstale.plan`: the same answer from arrays, pandas, polars and Arrow; and every refusal names its row."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import unstale
from unstale.errors import InfeasibleError, InputError

COLUMNS: dict[str, list[Any]] = {
    "id": ["a", "b", "c", "d"],
    "change_rate": [1.0, 2.0, 5.0, 0.1],
    "weight": [1.0, 2.0, 1.0, 3.0],
    "cost": [1.0, 1.0, 0.5, 2.0],
}


@pytest.mark.parametrize("library", ["builtins.dict", "pandas.DataFrame", "polars.DataFrame", "pyarrow.table"])
def test_any_frame_gives_the_same_plan(library: str) -> None:
    # Imported here: every process that runs tests reads this file, and one of them runs this test.
    module, _, name = library.partition(".")
    made = unstale.plan(getattr(import_module(module), name)(COLUMNS), budget=3)
    arrays = unstale.plan(
        rates=COLUMNS["change_rate"], weights=COLUMNS["weight"], costs=COLUMNS["cost"], budget="3/day"
    )
    assert made.sync_rate.tolist() == arrays.sync_rate.tolist()
    assert made.spent == pytest.approx(3)
    assert made.certificate.worst < 1e-9
    table = made.table()
    added = ["sync_rate", "interval", "freshness", "age", "abandoned"]
    assert table.column_names == [*COLUMNS, *added]
    assert table.column("id").to_pylist() == COLUMNS["id"]


def test_a_table_in_pieces_gives_the_same_plan() -> None:
    """As files bring it: batch after batch, a batch cut out of a longer one, and gaps that are filled."""
    whole = pa.table(COLUMNS | {"weight": [None, 2.0, 1.0, 3.0], "change_rate": [1.0, 2.0, 500.0, 0.1]})
    pieces = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 3)])
    assert pieces.column("cost").num_chunks > 1
    ours, theirs = (unstale.plan(table, budget=3).table() for table in (pieces, whole))
    assert ours.equals(theirs)
    assert ours.column("abandoned").to_pylist() == [False, False, True, False]
    assert ours.column("interval").to_pylist()[2] == float("inf")
    assert ours.column("weight").to_pylist() == [None, 2.0, 1.0, 3.0]


def test_five_sources_of_the_first_paper() -> None:
    summary = unstale.plan(rates=[1, 2, 3, 4, 5], budget=5).summary()
    assert summary["price"] == pytest.approx(0.216431826102, abs=1e-11)
    assert summary["freshness"] == pytest.approx(0.373888699274, abs=1e-11)
    assert summary["freshness_uniform"] == pytest.approx(0.365052812393, abs=1e-11)
    assert summary["freshness_proportional"] == pytest.approx(0.316737643877, abs=1e-11)
    assert summary["abandoned"] == 1


def test_units_mix_freely() -> None:
    one = unstale.plan({"id": [1, 2], "change_rate": ["3/h", "2"], "min_interval": ["15m", ""]}, budget="100/day")
    two = unstale.plan(rates=[72.0, 2.0], min_interval=[15 / 1440, 0.0], budget=100)
    assert one.sync_rate == pytest.approx(two.sync_rate)


def test_freshness_and_age_are_those_of_the_process_not_of_poisson() -> None:
    made = unstale.plan({"id": ["p"], "change_rate": [2.0], "process": ["pareto:3"]}, budget=2)
    assert made.freshness[0] == pytest.approx(2 / 3)  # 003, Figure 4(a): 33 % stale
    assert made.age[0] == pytest.approx(0.0609302162163)  # 003, Figure 7(a)


def test_counts_stand_for_rates() -> None:
    counted = {"id": ["a", "b"], "changes": [9, 0], "observed": ["30d", "30d"], "polls": [10, 30]}
    rates = unstale.plan(counted, budget=1).sources.change_rate
    assert rates == pytest.approx([-np.log(1.5 / 11) / 3, -np.log(30.5 / 31)])
    seen = unstale.plan({"id": ["a"], "changes": [9], "observed": [30]}, budget=1)
    assert seen.sources.change_rate == pytest.approx([9.5 / 30])


def test_target_finds_the_least_budget() -> None:
    made = unstale.plan(rates=[1, 2, 3], target=0.9)
    assert made.fleet_freshness == pytest.approx(0.9)
    assert unstale.plan(rates=[1, 2, 3], budget=made.spent).fleet_freshness == pytest.approx(0.9)
    aged = unstale.plan(rates=[1, 2, 3], target=0.05, objective="age")
    assert aged.plan.fleet_staleness == pytest.approx(0.05)


@pytest.mark.parametrize("objective", ["freshness", "age", "missed", "lag", "deadline:6h", "saturating:1d", "power:2"])
def test_every_objective_is_optimal_and_meets_its_budget(objective: str) -> None:
    made = unstale.plan(rates=[0.1, 1, 2, 7], weights=[1, 2, 3, 1], budget=4, objective=objective)
    assert made.certificate.worst < 1e-9
    assert made.spent == pytest.approx(4)


def test_host_caps_hold_for_all_or_by_name() -> None:
    fleet = {"id": list("abcd"), "change_rate": [5, 5, 5, 5], "host": ["x", "x", "y", None]}
    made = unstale.plan(fleet, budget=40, host_cap={"x": 2, "*": "5/day"})
    assert made.sync_rate[:2].sum() == pytest.approx(2)
    assert made.sync_rate[2:] == pytest.approx([5, 5])
    assert made.price == 0
    with pytest.raises(InputError, match="host_cap 'z' names no host"):
        unstale.plan(fleet, budget=1, host_cap={"z": 1})


def test_explanations_name_the_reason() -> None:
    fleet = {
        "id": ["free", "slow", "fast", "dead", "lost", "busy"],
        "change_rate": [1.0, 1.0, 1.0, 0.0, 500.0, 1.0],
        "max_interval": [None, 0.1, None, None, None, None],
        "min_interval": [None, None, 10.0, None, None, None],
        "host": ["h1", "h2", "h3", "h4", "h5", "h6"],
    }
    made = unstale.plan(fleet, budget=13, host_cap={"h6": 0.5})
    assert "at today's price a poll pays after" in made.explain("free")
    assert "max_interval asks for it" in made.explain("slow")
    assert "min_interval forbids more" in made.explain("fast")
    assert made.explain("dead") == "dead is not polled: it never changes."
    assert "is abandoned" in made.explain("lost")
    assert "surcharge of its busy host h6" in made.explain("busy")
    with pytest.raises(InputError, match="id 'nobody' is not in the table"):
        made.explain("nobody")


def test_curve_rises_and_passes_through_the_plan() -> None:
    made = unstale.plan(rates=[1, 2, 3, 40], budget=5)
    budgets, fresh = made.curve(points=9)
    assert np.all(np.diff(fresh) > 0)
    assert fresh[4] == pytest.approx(made.fleet_freshness)
    assert budgets[4] == pytest.approx(5)


@pytest.mark.parametrize(
    ("fleet", "sentence"),
    [
        ({"id": ["a"]}, "column 'change_rate' is missing: the table has: id"),
        ({"change_rate": [1]}, "column 'id' is missing"),
        ({"id": [], "change_rate": []}, "table with 0 rows has no sources"),
        ({"id": ["a", "b", "a"], "change_rate": [1, 2, 3]}, "row 3: id 'a' stands in row 1 too"),
        ({"id": ["a", None], "change_rate": [1, 2]}, "row 2: id is missing"),
        (
            {"id": ["a", "b"], "change_rate": [1, -2]},
            r"row 2 \(id 'b'\): change_rate -2 must be a finite number at least 0",
        ),
        ({"id": ["a", "b"], "change_rate": [1.0, np.inf]}, r"row 2 \(id 'b'\): change_rate inf must be"),
        ({"id": ["a", "b"], "change_rate": [1.0, None]}, r"row 2 \(id 'b'\) change_rate is missing"),
        (
            {"id": ["a", "b"], "change_rate": ["1/day", "3/eon"]},
            r"row 2 \(id 'b'\): change_rate '3/eon' has the unknown unit",
        ),
        ({"id": ["a"], "change_rate": [1], "weight": [-1]}, r"row 1 \(id 'a'\): weight -1 must be"),
        ({"id": ["a"], "change_rate": [1], "weight": ["big"]}, r"row 1 \(id 'a'\): weight 'big' must be a number"),
        ({"id": ["a"], "change_rate": [1], "cost": [0]}, r"row 1 \(id 'a'\): cost 0 must be a finite number above 0"),
        ({"id": ["a"], "change_rate": [1], "max_interval": [0]}, r"row 1 \(id 'a'\): max_interval 0 must be"),
        ({"id": ["a"], "change_rate": [1], "process": ["levy"]}, "process 'levy' is not known"),
        ({"id": ["a"], "change_rate": [1], "process": ["pareto:0.5"]}, "alpha 0.5 must be a finite number above 1"),
        ({"id": ["a"], "change_rate": [True]}, "column change_rate of type bool must hold numbers"),
        ({"id": ["a"], "changes": [5], "observed": [1], "polls": [2]}, r"changes 5 must be at most polls"),
        (42, "fleet of type int is not a table"),
    ],
)
def test_bad_tables_are_refused_with_their_row(fleet: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        unstale.plan(fleet, budget=1)


def test_nan_in_an_array_is_refused_with_its_row() -> None:
    with pytest.raises(InputError, match=r"row 2 \(id 1\)"):
        unstale.plan(rates=[1.0, np.nan], budget=1)


def test_tiny_weights_neither_break_nor_win() -> None:
    made = unstale.plan(rates=[1.0, 1.0], weights=[1e-320, 1.0], budget=1)
    assert made.sync_rate.tolist() == [0.0, pytest.approx(1.0)]


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({}, "budget None or target must be given, and not both"),
        ({"budget": 1, "target": 0.5}, "budget 1 or target must be given"),
        ({"budget": "lots"}, "budget 'lots' is not a rate"),
        ({"target": 1.5}, "target freshness 1.5 must be between 0 and 1"),
        ({"budget": 1, "objective": "speed"}, "objective 'speed' is not known"),
        ({"budget": 1, "order": "chaos"}, "order 'chaos'"),
        ({"budget": 1, "host_cap": 3}, "host_cap 3 needs a host"),
    ],
)
def test_bad_questions_are_refused(asked: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        unstale.plan(rates=[1.0], **asked)


def test_floors_beyond_the_budget_name_the_least_budget() -> None:
    with pytest.raises(InfeasibleError, match="raise it to 4") as caught:
        unstale.plan(rates=[1.0, 1.0], max_interval=0.5, budget=1)
    assert caught.value.least_budget == 4
