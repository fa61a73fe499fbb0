"""`unstale lab` refuses what it cannot run before it starts anything; what `unstale get --replicas` says."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from unstale.adapters.replica_client import Freshest, Reading
from unstale.cli.lab import lab
from unstale.cli.replicas import facts_of, line_of, named
from unstale.report.lab import draw


@pytest.mark.parametrize(
    ("args", "sentence"),
    [
        (["ring"], "is not one of 'single', 'cascade', 'peers', 'redundant'"),
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
        (["single", "--plot", "nowhere/lab.png"], "is in no directory"),
        (["single", "--sync-rate", "often"], "often"),
    ],
)
def test_what_cannot_be_run_is_one_sentence(args: list[str], sentence: str) -> None:
    got = CliRunner().invoke(lab, args)
    assert sentence in str(got.exception)


def test_the_figure_shows_theory_and_measurement(tmp_path: Path) -> None:
    path = tmp_path / "lab.svg"
    draw("three in a row", [("replica 1", 0.5, 0.51, 0.01), ("replica 2", 0.25, 0.24, 0.01)], str(path))
    text = path.read_text()
    assert text.startswith("<?xml")
    assert text.count("<path") > 10


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
