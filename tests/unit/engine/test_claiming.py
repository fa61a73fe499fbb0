"""Choosing whom to claim: those whose hosts have room, and nobody else is put in order for it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from unstale.engine.claiming import Claiming
from unstale.engine.host_limits import HostLimits, Rules


def test_a_crowd_at_a_host_without_room_is_not_put_in_order() -> None:
    limits, ordered = HostLimits(lambda host: Rules(0.0, 9)), list[int]()
    limits.host("shut").blocked = 1e9

    def foremost(rows: Any, now: float, most: int) -> Any:
        ordered.append(len(rows))
        return rows[:most]

    hosts = np.array([0] * 100 + [1, 1, 2])
    scheduler = SimpleNamespace(due_at=np.zeros(103), host=hosts, foremost=foremost)
    config = SimpleNamespace(hosts=("shut", "open", ""))
    fleet: Any = SimpleNamespace(scheduler=scheduler, taken=np.zeros(103, np.bool_), config=config)
    nothing: Any = SimpleNamespace(now=lambda: 10.0)
    claiming = Claiming(nothing, fleet, nothing, limits, nothing, lambda: 0)
    assert claiming._choose(10.0, 50).tolist() == [100, 101, 102]
    assert ordered == [3]
    # It is looked at again when the host may have room.
    assert claiming._free_at == 1e9 - claiming._hold
