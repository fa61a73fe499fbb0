"""The lab against theory: real processes, hundreds of changes, within five standard errors.

How many hundreds, and so how small the errors are, is a matter of time: `make soak` waits for more of them.
"""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import replace

import pytest
from click.testing import CliRunner

from support.depth import soaking
from unstale.cli.lab import judged, lab
from unstale.cli.lab_experiment import experiment
from unstale.core.replication.layers import Layer
from unstale.lab.setups import Setup

#: of the changes that a soak waits for, and how much larger errors may be then
SHARE, WIDER = (1.0, 1.0) if soaking() else (0.3, 1.8)


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
        rates += ["--peer-rate", f"{60 / slower:g}/min", "--changes", f"{400 * SHARE:g}"]
        got = CliRunner().invoke(lab, [*args, "--sources", "30", *rates, "--json"])
        found = json.loads(got.output)
        if found["verdict"] != "late":
            break
    assert (got.exit_code, found["verdict"]) == (0, "agree"), got.output
    assert found["late_seconds"] > 0.0
    # Two thirds of those that are to be expected are many standard deviations less.
    assert found["changes"] >= 0.66 * SHARE * 400
    for place in found["places"]:
        off = (place["measured"] - place["theory"]) / place["error"]
        assert abs(off) < 5, place
        # It is an estimate itself, of few batches: usually a half of this.
        assert place["error"] < 0.1 * WIDER, "an error that would hide anything"


@pytest.mark.parametrize("args", [["--choose", "recent"], ["--leave-rate", "{leave}/min"]], ids=["recent", "leaving"])
def test_peers_that_the_source_lists(args: list[str]) -> None:
    """Nobody is told of anybody but by the source, which lists who polled last; and some leave while others come."""
    # Some must have left.
    share = 1.0 if "--leave-rate" in args else SHARE
    common = ["peers", "--peers", "4", "--sources", "20", "--changes", f"{400 * share:g}", "--json"]
    for slower in (1, 4):
        rates = {"--change-rate": 30, "--sync-rate": 30, "--peer-rate": 120}
        told = [part for name, rate in rates.items() for part in (name, f"{rate / slower:g}/min")]
        more = [arg.format(leave=f"{2 / slower:g}") for arg in args]
        got = CliRunner().invoke(lab, [*common, *told, *more])
        found = json.loads(got.output)
        if found["verdict"] != "late":
            break
    assert (got.exit_code, found["verdict"]) == (0, "agree"), got.output
    (place,) = found["places"]
    assert abs(place["measured"] - place["theory"]) < 5 * place["error"] < 0.45 * WIDER
    assert sum(found["taken_from_peers"]) > 200 * share, "only by the source's lists can they have found each other"
    assert len(found["polls"]) == 4 + found["left"]
    assert (found["left"] > 2) == ("--leave-rate" in args)


def test_a_design_of_layers_keeps_its_promise_at_the_root_inside_and_at_the_leaves() -> None:
    """One replica at the source, two below it that ask each other, four below these, of which clients ask two."""
    for slower in (1.0, 4.0):
        layers = (Layer(1, 0.9), Layer(2, 0.6, 2, 0.6), Layer(4, 0.7))
        slow = tuple(x._replace(sync_rate=x.sync_rate / slower, peer_rate=x.peer_rate / slower) for x in layers)
        setup = Setup(
            "design", 7, 2, sources=20, changes=round(300 * SHARE), change_rate=0.3, sync_rate=0.9, layers=layers
        )
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
        assert row.measured.error < 0.09 * WIDER, "an error that would hide anything"
    # depth costs freshness, and asking two of the leaves gives some of it back
    assert rows[0].measured.value > rows[3].measured.value > rows[2].measured.value


def test_the_engines_brain_does_better_than_chance_at_the_same_rate() -> None:
    args = ["single", "--brain", "--json", "--sources", "40", "--changes", "400"]
    for slower in (1, 4):
        rates = ["--change-rate", f"{18 / slower:g}/min", "--sync-rate", f"{24 / slower:g}/min"]
        found = json.loads(CliRunner().invoke(lab, [*args, *rates]).output)
        if found["verdict"] != "late":
            break
    assert found["verdict"] == "agree", found
    place, chance = found["places"][0], 24 / (24 + 18)
    even = 24 / 18 * -math.expm1(-18 / 24)
    assert place["theory"] == pytest.approx(even)
    # even polls are the best that do not know when changes come: nothing beats them but by luck
    assert chance + 3 * place["error"] < place["measured"] < even + 5 * place["error"], place
    # within the budget, but for what it may spend at once in the beginning
    assert found["polls"][0] <= 1.1 * 40 * (24 / 60) / slower * (found["seconds"] + 30 * slower)


def test_brains_that_follow_each_other_poll_in_step() -> None:
    args = ["cascade", "--depth", "2", "--brain", "--json", "--sources", "30", "--changes", "200"]
    for slower in (1, 2, 4):
        # whoever follows does so in whole seconds: intervals must be longer
        rates = ["--change-rate", f"{6 / slower:g}/min", "--sync-rate", f"{12 / slower:g}/min"]
        found = json.loads(CliRunner().invoke(lab, [*args, *rates]).output)
        if found["verdict"] != "late":
            break
    assert found["verdict"] == "agree", found
    first, second = found["places"]
    assert second["error"] < 0.08
    # two that poll evenly, each at its own times, would lose as much again as the first
    alone = (1 - math.exp(-0.5)) / 0.5
    assert second["measured"] - 3 * second["error"] > alone**2
    assert second["theory"] < first["theory"] == pytest.approx(alone)


def test_brains_that_tell_each_other_do_not_all_poll_at_once() -> None:
    args = ["peers", "--peers", "4", "--brain", "--json", "--sources", "16", "--changes", "200"]
    for slower in (1, 3, 6):
        rates = {"--change-rate": 18, "--sync-rate": 18, "--peer-rate": 72}
        told = [part for name, rate in rates.items() for part in (name, f"{rate / slower:g}/min")]
        found = json.loads(CliRunner().invoke(lab, [*args, *told]).output)
        if found["verdict"] != "late":
            break
    assert found["verdict"] == "agree", found
    (place,) = found["places"]
    assert place["error"] < 0.08
    # even polls in four turns, and contacts: more than chance comes to
    assert place["theory"] == pytest.approx(0.702, abs=0.003)
    assert sum(found["taken_from_peers"]) > 100
