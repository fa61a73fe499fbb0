"""The lab against theory: real processes, at least a thousand changes, within five standard errors."""

from __future__ import annotations

import json
import time

import pytest
from click.testing import CliRunner

from unstale.cli.lab import lab


@pytest.mark.parametrize(
    "args",
    [["cascade", "--depth", "3"], ["peers", "--peers", "5"], ["redundant", "--k", "2"]],
    ids=["cascade", "peers", "redundant"],
)
def test_theory_and_measurement_agree(args: list[str]) -> None:
    begun = time.monotonic()
    got = CliRunner().invoke(lab, [*args, "--json"])
    assert got.exit_code == 0, got.output
    found = json.loads(got.output)
    # 1,200 are to be expected, and 1,000 are nearly six standard deviations less.
    assert found["changes"] >= 1000
    for place in found["places"]:
        off = (place["measured"] - place["theory"]) / place["error"]
        assert abs(off) < 5, place
        assert place["error"] < 0.06, "an error that would hide anything"
    assert found["seconds"] < 45
    assert time.monotonic() - begun < 300
