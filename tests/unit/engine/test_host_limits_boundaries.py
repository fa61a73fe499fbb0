"""Manners towards hosts at the very second where the answer turns."""

from __future__ import annotations

import pytest

from unstale.engine.host_limits import BREATH, HostLimits, Rules


def test_a_slot_at_the_very_end_of_the_time_is_taken() -> None:
    limits = HostLimits(lambda host: Rules(spacing=2.0))
    assert limits.slot("a", 0.0, within=0.0) == 0.0
    assert limits.slot("a", 0.0, within=2.0) == 2.0
    # It was taken, so the next one is a spacing later, and beyond the time: that one is not.
    assert limits.slot("a", 0.0, within=3.9) == 4.0
    assert limits.slot("a", 4.0, within=0.0) == 4.0


def test_those_who_come_back_to_an_unspaced_host_come_one_after_the_other() -> None:
    limits = HostLimits(lambda host: Rules(spacing=0.0))
    limits.heard("a", 0.0, refused=True, retry_after=10.0, spacing=0.0)
    back = [limits.slot("a", 0.0, within=1.0) for _ in range(4)]
    assert back == pytest.approx([10.0, 10.0 + BREATH, 10.0 + 2 * BREATH, 10.0 + 3 * BREATH])


def test_a_shorter_retry_after_does_not_overwrite_a_longer_one() -> None:
    limits = HostLimits(lambda host: Rules(spacing=0.0))
    limits.heard("a", 0.0, refused=True, retry_after=100.0, spacing=0.0)
    limits.heard("a", 10.0, refused=True, retry_after=5.0, spacing=0.0)
    assert limits.slot("a", 20.0) == 100.0
    limits.heard("a", 20.0, refused=True, retry_after=90.0, spacing=0.0)
    assert limits.slot("a", 20.0) == 110.0
