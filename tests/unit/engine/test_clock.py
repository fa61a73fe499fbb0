"""The engine's clock: even between jumps, and with the wall clock after one, in either direction."""

from __future__ import annotations

from unstale.engine.clock import SystemClock


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
    assert (clock.now(), clock.jumped()) == (1010.0 - 3600.0, -3600.0)
    hands.pass_(5.0, jump=3600.0)
    assert (clock.now(), clock.jumped()) == (1015.0, 0.0)
    hands.pass_(1.0, jump=86400.0)
    assert clock.now() == 1016.0 + 86400.0
    # What a time server corrects bit by bit is no jump: durations stay true.
    hands.pass_(1.0, jump=0.5)
    assert clock.now() == 1017.0 + 86400.0
    hands.pass_(1.0, jump=-0.5)
    assert clock.now() == 1018.0 + 86400.0
    assert clock.jumped() == 86400.0
