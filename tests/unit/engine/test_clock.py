"""The engine's clock: even between jumps, and with the wall clock after one, in either direction."""

from __future__ import annotations

import time

import pytest

from unstale.engine.clock import SharedClock, SystemClock, jumps_of


class Hands:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.wall, self.steady = 1000.0, 50.0

    def pass_(self, seconds: float, jump: float = 0.0) -> None:
        self.wall += seconds + jump
        self.steady += seconds


def test_it_runs_with_time_and_follows_jumps_in_both_directions() -> None:
    hands = Hands()
    clock = SystemClock(lambda: hands.wall, lambda: hands.steady)
    assert clock.now() == 1000.0
    hands.pass_(5.0)
    assert clock.now() == 1005.0
    hands.pass_(5.0, jump=-3600.0)
    # Not before whoever takes turns is ready for it.
    assert (clock.now(), clock.jumped()) == (1010.0, 0.0)
    clock.follow()
    assert (clock.now(), clock.jumped()) == (1010.0 - 3600.0, -3600.0)
    hands.pass_(5.0, jump=3600.0)
    clock.follow()
    assert (clock.now(), clock.jumped()) == (1015.0, 0.0)
    hands.pass_(1.0, jump=86400.0)
    clock.follow()
    assert clock.now() == 1016.0 + 86400.0
    # What a time server corrects bit by bit is no jump: durations stay true.
    hands.pass_(1.0, jump=0.5)
    clock.follow()
    assert clock.now() == 1017.0 + 86400.0
    hands.pass_(1.0, jump=-0.5)
    clock.follow()
    assert clock.now() == 1018.0 + 86400.0
    assert clock.jumped() == 86400.0


def test_a_shared_clock_does_not_look_at_the_machine_s_own(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = [50.0]
    clock = SharedClock(lambda: steady[0])
    clock.heard(asked=50.0, told=9_000.0, answered=50.0)
    monkeypatch.setattr(time, "time", lambda: 1e9)
    steady[0] = 60.0
    assert (clock.now(), clock.jumped()) == (9_010.0, 0.0)
    assert jumps_of(clock)() == 0.0


def test_a_slow_answer_moves_a_shared_clock_only_as_far_as_is_certain() -> None:
    steady = [0.0]
    clock = SharedClock(lambda: steady[0])
    clock.heard(asked=0.0, told=100.0, answered=0.0)
    clock.heard(asked=10.0, told=113.0, answered=18.0)
    assert clock.now() == 100.0, "by then it was between 110 and 118 here"
    clock.heard(asked=20.0, told=125.0, answered=21.0)
    clock.follow()
    assert clock.now() == 104.0
    assert clock.jumped() == 4.0
