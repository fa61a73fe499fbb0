"""`unstale lab` refuses what it cannot run before it starts anything; what `unstale get --replicas` says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from unstale.adapters.replica_client import Freshest, Reading
from unstale.cli import lab as command
from unstale.cli.lab import LabRow, lab
from unstale.cli.lab_design import setup_of
from unstale.cli.replicas import facts_of, line_of, named
from unstale.errors import InfeasibleError
from unstale.lab.measure import MeasuredFreshness
from unstale.lab.setups import Setup, predicted
from unstale.report.lab import draw


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["ring"], "is not one of 'single', 'cascade', 'peers', 'redundant', 'design'"),
        (["redundant", "--brain"], "its theory is of polls by chance"),
        (["cascade", "--both"], "nobody asks each other there"),
        (["single", "--leave-rate", "1/min"], "nobody asks each other there"),
        (["peers", "--choose", "recent", "--both"], "theory has no number for these"),
        (["design"], "`unstale lab design` takes the file of a question"),
        (["single", "site.toml"], "`unstale lab single` takes no file"),
        (["design", "site.toml", "--depth", "3"], "its file says how many there are"),
        (["cascade", "--peers", "3"], "--peers is not for `unstale lab cascade`: it takes --depth"),
        (["single", "--depth", "3"], "--depth is not for `unstale lab single`: it is one replica"),
        (["cascade", "--k", "2"], "nobody has a choice there"),
    ],
)
def test_options_that_do_not_fit_are_usage_errors(args: list[str], sentence: str) -> None:
    got = CliRunner().invoke(lab, args)
    assert got.exit_code == 2
    assert sentence in got.output


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["cascade", "--depth", "40"], "replicas 40 must be at most 16"),
        (["peers", "--k", "5"], "k 5 must be at most 4"),
        (["peers", "--leave-rate", "10/s"], "must let at most 24 replicas leave"),
        (["single", "--plot", "nowhere/lab.png"], "is in no directory"),
        (["single", "--sync-rate", "often"], "often"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(args: list[str], sentence: str) -> None:
    got = CliRunner().invoke(lab, args)
    assert sentence in str(got.exception)


@pytest.mark.parametrize(
    ("measured", "late", "code", "said"),
    [
        (0.51, 0.01, 0, "theory and measurement agree: 1,000 changes and 70 polls, on average 10 ms late, 1.0 % of an"),
        (0.58, 0.01, 1, "theory and measurement differ at replica 1"),
        (0.51, 0.2, 1, "too busy to poll in time, try lower rates"),
    ],
)
def test_what_differs_or_came_too_late_fails(
    measured: float, late: float, code: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ran(setup: Setup) -> tuple[list[LabRow], dict[str, Any]]:
        facts = {
            "changes": 1000,
            "polls": [70],
            "late_seconds": late,
            "taken_from_peers": [0],
            "left": 0,
            "whole_seconds": 3.0,
        }
        return [LabRow("replica 1", 0.5, MeasuredFreshness(measured, 0.01))], facts

    monkeypatch.setattr(command, "experiment", ran)
    got = CliRunner().invoke(lab, ["single", "--sync-rate", "1/s"], env={"COLUMNS": "200"})
    assert got.exit_code == code
    assert said in got.output
    told = CliRunner().invoke(lab, ["single", "--sync-rate", "1/s", "--json"])
    assert told.exit_code == code
    assert (json.loads(told.output)["verdict"] == "agree") == (code == 0)


def test_the_figure_shows_theory_and_measurement(tmp_path: Path) -> None:
    path = tmp_path / "lab.svg"
    draw("three in a row", [("replica 1", 0.5, 0.51, 0.01), ("replica 2", 0.25, 0.24, 0.01)], str(path))
    text = path.read_text()
    assert text.startswith("<?xml")
    assert text.count("<path") > 10


def test_a_design_is_scaled_to_what_this_machine_can_follow(tmp_path: Path) -> None:
    file = tmp_path / "site.toml"
    file.write_text('changes = "2/h"\nmachines = 7\ncapacity = "40/h"\nfreshness = 0.55\nsource_limit = "5/h"\n')
    setup = setup_of(str(file), None, 30, 500, 1)
    assert [layer.machines for layer in setup.layers] == [1, 6]
    # five polls at the source for two changes, and a hundred polls a second in all
    assert setup.layers[0].sync_rate == pytest.approx(2.5 * setup.change_rate, rel=1e-3)
    assert 30 * sum(layer.machines * layer.sync_rate for layer in setup.layers) == pytest.approx(100.0)
    assert list(predicted(setup).values())[-1] == pytest.approx(0.55)
    told = setup_of(str(file), "1/min", 30, 500, 1)
    assert told.change_rate == pytest.approx(1 / 60)
    assert list(predicted(told).values()) == pytest.approx(list(predicted(setup).values()))
    file.write_text(file.read_text().replace("0.55", "0.999"))
    with pytest.raises(InfeasibleError, match=r"freshness 0\.999 is out of reach"):
        setup_of(str(file), None, 30, 500, 1)


def test_replicas_as_people_write_them() -> None:
    assert named("a:1,, https://b ") == ["http://a:1", "https://b"]


def test_what_is_said_of_the_freshest() -> None:
    best = Reading("http://b", 1_763_236_800.0, 3, '"x"', "text/plain", ("root", "b"))
    behind, dead = Reading("http://a", 1_763_236_000.0, 9, '"y"'), Reading("http://c", reason="http://c: no answer")
    found = Freshest(best, b"news", (behind, best, dead), ("http://a",))
    facts = facts_of(found)
    assert (facts["replica"], facts["as_of"], facts["bytes"]) == ("http://b", "2025-11-15T20:00:00.000000Z", 4)
    assert [one["reason"] for one in facts["asked"]] == [None, None, "http://c: no answer"]
    line = line_of(found)
    assert line.startswith("as of ")
    assert line.endswith("from http://b, the freshest of 2; behind and told: http://a; failed: http://c: no answer")
