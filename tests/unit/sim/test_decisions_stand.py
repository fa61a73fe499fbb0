"""What the scheduler decides, poll by poll, in small worlds: checksums say whether what is faster decides the same.

Worlds are made of fractions, not drawn, and a due time has 26 binary digits, so any machine finds these.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import pytest

from unstale.core.learning import compiled
from unstale.sim.changes import Recorded
from unstale.sim.loop import run
from unstale.sim.policies import ScheduledPolicy
from unstale.sim.world import Host, World

SOURCES, HORIZON = 60, 15.0
RATE = (1.0 + np.arange(SOURCES) % 13) / 4.0


def world(**rest: Any) -> World:
    """Sources that change at uneven times, of different weights and costs."""
    changes = []
    for i, rate in enumerate(RATE.tolist()):
        count = int(rate * HORIZON)
        changes.append(Recorded(np.sort((np.arange(count) * 0.6180339887 + i * 0.3819660113) % 1.0) ** 2 * HORIZON))
    weight, cost = 1.0 + np.arange(SOURCES) % 5, 1.0 + np.arange(SOURCES) % 3 / 2.0
    return World(changes, weight=weight, cost=cost, **rest)


#: how a fleet is polled, how often, and a checksum of who was polled when
CASES: dict[str, tuple[ScheduledPolicy, World, int, int]] = {
    "known rates": (ScheduledPolicy(0.3, RATE), world(), 1_400, 1_208_361_843),
    "known rates, by age": (ScheduledPolicy(0.3, RATE, objective="age"), world(), 1_133, 3_057_027_136),
    "known rates, a deadline": (ScheduledPolicy(0.3, RATE, objective="deadline:0.00001"), world(), 857, 1_461_217_968),
    "known rates, bounds and failures": (
        ScheduledPolicy(0.4, RATE, shortest=0.1, longest=2.0),
        world(failure=0.1, delay=0.01),
        1_175,
        2_314_856_531,
    ),
    "learned": (ScheduledPolicy(0.3, mean_interval=0.5), world(), 1_406, 2_227_183_432),
    "learned, by age": (
        ScheduledPolicy(0.3, mean_interval=0.5, objective="age"),
        world(failure=0.05),
        1_179,
        3_262_464_255,
    ),
    "learned, at hosts with limits": (
        ScheduledPolicy(0.3, mean_interval=0.5, surcharge=[0.1, 0.0]),
        world(host=np.arange(SOURCES) % 3 - 1, hosts=[Host(concurrency=1), Host(spacing=0.01)], delay=0.01),
        1_326,
        3_368_925_809,
    ),
}


@pytest.mark.parametrize("way", ["machine code", "NumPy"])
@pytest.mark.parametrize("case", CASES)
def test_polls_are_those_of_before(case: str, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled._Way, "loaded", compiled._Way.numba and way == "machine code")
    monkeypatch.setattr(compiled._Way, "left", np.inf)
    policy, fleet, polls, checksum = CASES[case]
    log = run(fleet, policy, HORIZON, seed=1).log
    told = np.rint(log.started * 1e6).astype("<i8").tobytes() + log.source.astype("<i8").tobytes()
    assert (len(log.source), zlib.crc32(told)) == (polls, checksum)
