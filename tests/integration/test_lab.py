"""The lab against theory: real processes, at least a thousand changes, within five standard errors."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner

from unstale.cli.lab import judged, lab
from unstale.cli.lab_experiment import experiment
from unstale.core.replication.layers import Layer
from unstale.lab.setups import Setup


@pytest.mark.parametrize(
    "args",
    [
        ["cascade", "--depth", "3"],
        ["peers", "--peers", "5"],
        ["peers", "--peers", "4", "--both"],
        ["redundant", "--k", "2"],
    ],
    ids=["cascade", "peers", "both", "redundant"],
)
def test_theory_and_measurement_agree(args: list[str]) -> None:
    # A machine that is too busy to poll in time says so, and is asked for less.
    for slower in (1, 4):
        rates = ["--change-rate", f"{45 / slower:g}/min", "--sync-rate", f"{60 / slower:g}/min"]
        got = CliRunner().invoke(lab, [*args, *rates, "--peer-rate", f"{60 / slower:g}/min", "--json"])
        found = json.loads(got.output)
        if found["verdict"] != "late":
            break
    assert (got.exit_code, found["verdict"]) == (0, "agree"), got.output
    assert found["late_seconds"] > 0.0
    # 1,200 are to be expected, and 1,000 are nearly six standard deviations less.
    assert found["changes"] >= 1000
    for place in found["places"]:
        off = (place["measured"] - place["theory"]) / place["error"]
        assert abs(off) < 5, place
        assert place["error"] < 0.06, "an error that would hide anything"


def test_a_design_of_layers_keeps_its_promise_at_the_root_inside_and_at_the_leaves() -> None:
    """One replica at the source, two below it that ask each other, four below these, of which clients ask two."""
    for slower in (1.0, 4.0):
        layers = (Layer(1, 0.9), Layer(2, 0.6, 2, 0.6), Layer(4, 0.7))
        slow = tuple(x._replace(sync_rate=x.sync_rate / slower, peer_rate=x.peer_rate / slower) for x in layers)
        setup = Setup("design", 7, 2, sources=20, changes=300, change_rate=0.3, sync_rate=0.9, layers=layers)
        setup = replace(setup, change_rate=0.3 / slower, sync_rate=0.9 / slower, layers=slow)
        rows, facts = asyncio.run(experiment(setup))
        verdict = judged(setup, rows, facts)
        if verdict != "late":
            break
    assert verdict == "agree", (rows, facts)
    places = ["layer 1, at the source", "layer 2", "layer 3, the leaves", "freshest of 2"]
    assert [row.place for row in rows] == places
    for row in rows:
        assert abs(row.measured.off(row.model)) < 5, row
        assert row.measured.error < 0.06, "an error that would hide anything"
    # depth costs freshness, and asking two of the leaves gives some of it back
    assert rows[0].measured.value > rows[3].measured.value > rows[2].measured.value


def test_the_engines_brain_does_better_than_chance_at_the_same_rate() -> None:
    args = ["single", "--brain", "--json", "--sources", "40", "--changes", "700"]
    for slower in (1, 4):
        rates = ["--change-rate", f"{18 / slower:g}/min", "--sync-rate", f"{24 / slower:g}/min"]
        found = json.loads(CliRunner().invoke(lab, [*args, *rates]).output)
        if found["verdict"] != "late":
            break
    assert found["verdict"] == "brain", found
    place, chance = found["places"][0], 24 / (24 + 18)
    even = 24 / 18 * -math.expm1(-18 / 24)
    assert place["theory"] == pytest.approx(even)
    # even polls are the best that do not know when changes come: nothing beats them but by luck
    assert chance + 3 * place["error"] < place["measured"] < even + 5 * place["error"], place
    # within the budget, but for what it may spend at once in the beginning
    assert found["polls"][0] <= 1.1 * 40 * (24 / 60) / slower * (found["seconds"] + 30 * slower)
