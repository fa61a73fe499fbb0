"""A short soak: the engine against a site that knows the truth. `make soak` runs an hour of it."""

from __future__ import annotations

import json
import subprocess
import sys

from support.documents import ROOT


def test_true_freshness_is_what_the_plan_promises_and_better_than_even_polls() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "soak.py"), "--minutes", "1", "--no-write"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    told = json.loads(done.stdout.splitlines()[-1])
    # In a minute each source is polled about once after its first copy: little is learned, and much of it by luck.
    assert told["failures"] == 0
    assert told["truth"] > told["even"] - 3.0 * told["noise"]
    # What is believed is too low at first: those are polled that are worth most, and little is known of the others.
    assert abs(told["truth"] - told["believed"]) < 5.0 * told["noise"] + 0.05
    assert told["spent"] <= 1.0
