"""The engine's clock: forward with the wall, never back."""

from __future__ import annotations

from unstale.engine.clock import SystemClock


class Hands:
    """Two clocks that a test moves."""

    def __init__(self) -> None:
        self.wall, self.steady = 1000.0, 50.0

    def pass_(self, seconds: float, jump: float = 0.0) -> None:
        self.wall += seconds + jump
        self.steady += seconds


def test_it_runs_with_time_and_follows_jumps_forward_only() -> None:
    hands = Hands()
    clock = SystemClock(lambda: hands.wall, lambda: hands.steady)
    assert clock.now() == 1000.0
    hands.pass_(5.0)
    assert clock.now() == 1005.0
    hands.pass_(5.0, jump=-3600.0)
    assert clock.now() == 1010.0
    hands.pass_(5.0, jump=3600.0)
    assert clock.now() == 1015.0
    hands.pass_(1.0, jump=86400.0)
    assert clock.now() == 1016.0 + 86400.0
    hands.pass_(1.0, jump=0.5)
    assert 86400.0 + 1017.0 <= clock.now() <= 86400.0 + 1018.0
