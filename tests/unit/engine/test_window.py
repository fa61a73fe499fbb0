"""How many polls are under way: as many as the network needs, and not more than keep the pace."""

from __future__ import annotations

import pytest

from unstale.engine.window import FEW, KEPT, LONGEST, PAUSE, PollWindow

MOST = 8 * FEW


class Network:
    """Polls of which each takes `seconds`, and no more than `pace` a second end, whatever is under way."""

    def __init__(self, seconds: float, pace: float, size: int = MOST) -> None:
        self.seconds, self.pace, self.now, self.ended = seconds, pace, 0.0, 0.0
        self.window = PollWindow(MOST)
        self.window.size = size
        self.sizes: list[int] = []

    def run(self, seconds: float, *, full: bool = True) -> Network:
        """Let turns pass; the sizes of the window in each."""
        self.sizes = []
        for _ in range(round(seconds / 0.05)):
            self.now += 0.05
            self.ended += 0.05 * min(self.pace, self.window.size / self.seconds)
            self.window.turn(int(self.ended), self.now, full=full)
            self.sizes.append(self.window.size)
        return self


def test_where_we_are_the_slow_ones_few_are_under_way_soon() -> None:
    """As on loopback: a thousand end between two turns, which is less than four for each that is under way."""
    network = Network(seconds=1e-3, pace=20_000.0)
    assert network.run(3.0).sizes[-1] == FEW
    assert network.run(60.0).sizes == [FEW] * 1200


def test_where_the_network_is_waited_for_as_many_as_may_be_are_under_way_nearly_always() -> None:
    network = Network(seconds=0.04, pace=1e9)
    network.run(600.0)
    below = [size for size in network.sizes if size < MOST]
    assert below, "half as many were tried"
    assert min(below) == MOST // 2
    assert len(below) < 0.02 * len(network.sizes)
    # Trials that fail come later and later.
    assert network.run(LONGEST).sizes.count(MOST // 2) < 25


def test_a_network_that_gets_slow_is_waited_for_by_more_again() -> None:
    network = Network(seconds=1e-3, pace=20_000.0)
    network.run(3.0)
    network.seconds = 0.5
    assert network.run(3.0).sizes[-1] == MOST


@pytest.mark.parametrize(("share", "size"), [(KEPT + 0.02, FEW), (KEPT - 0.02, 2 * FEW)])
def test_half_as_many_are_kept_if_polls_end_nearly_as_fast(share: float, size: int) -> None:
    network = Network(seconds=1e-3, pace=8_000.0, size=2 * FEW)
    while network.window.size > FEW:
        network.run(0.05)
    network.pace *= share
    network.run(1.0)
    assert network.sizes[-1] == size


def test_nothing_is_tried_where_nobody_waits() -> None:
    assert set(Network(seconds=1e-3, pace=8_000.0).run(30.0, full=False).sizes) == {MOST}


def test_a_clock_that_is_set_back_ends_no_trials_for_ever() -> None:
    network = Network(seconds=0.04, pace=1e9).run(60.0)
    network.now -= 1e6
    network.seconds, network.pace = 1e-3, 20_000.0
    assert network.run(LONGEST).sizes[-1] == FEW
    assert PAUSE < LONGEST
