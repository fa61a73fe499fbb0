"""The lab against theory: real processes, at least a thousand changes, within five standard errors."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from unstale.cli.lab import lab


@pytest.mark.parametrize(
    "args",
    [["cascade", "--depth", "3"], ["peers", "--peers", "5"], ["redundant", "--k", "2"]],
    ids=["cascade", "peers", "redundant"],
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
