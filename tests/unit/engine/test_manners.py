"""Manners: slots keep their distance, hosts that want to be left alone are."""

from __future__ import annotations

import pytest

from unstale.addresses import host_of
from unstale.engine.manners import BREATH, FIRST_PAUSE, LAST_PAUSE, Manners, Rules, usual_rules


def spaced(spacing: float = 2.0, concurrency: int = 2) -> Manners:
    return Manners(lambda host: Rules(spacing, concurrency))


def test_slots_of_one_host_keep_their_distance_and_hosts_do_not_wait_for_each_other() -> None:
    manners = spaced()
    assert [manners.slot("a", 0.0) for _ in range(4)] == [0.0, 2.0, 4.0, 6.0]
    assert manners.slot("b", 0.0) == 0.0
    assert manners.slot("a", 100.0) == 100.0


def test_who_is_sent_away_comes_back_at_a_time_of_its_own_and_is_served_then() -> None:
    manners = spaced()
    times = [manners.slot("a", 0.0, within=2.0) for _ in range(6)]
    assert times == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    # Only the first two were taken: the third, back at its time, may begin.
    assert manners.slot("a", 4.0, within=2.0) == 4.0


def test_no_more_at_a_time_than_the_rules_say() -> None:
    manners = spaced(concurrency=2)
    assert [manners.begin("a") for _ in range(3)] == [True, True, False]
    manners.end("a")
    assert manners.begin("a")


def test_a_host_that_refuses_is_left_alone_longer_each_time() -> None:
    manners = spaced(spacing=0.0)
    for expected in (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE):
        now = manners.host("a").blocked if manners.host("a").blocked > 0 else 0.0
        manners.heard("a", now, refused=True, retry_after=None, spacing=0.0)
        assert manners.slot("a", now) == now + expected
    for _ in range(20):
        manners.heard("a", 0.0, refused=True, retry_after=None, spacing=0.0)
    assert manners.slot("a", 0.0) <= LAST_PAUSE + 7 * FIRST_PAUSE
    manners.heard("a", 0.0, refused=False, retry_after=None, spacing=0.0)
    assert manners.host("a").refusals == 0


def test_what_a_host_asks_for_makes_us_slower_and_never_faster() -> None:
    manners = spaced(spacing=2.0)
    manners.heard("a", 0.0, refused=False, retry_after=None, spacing=5.0)
    manners.heard("a", 0.0, refused=False, retry_after=None, spacing=1.0)
    assert manners.cap("a") == pytest.approx(0.2)
    manners.heard("a", 0.0, refused=False, retry_after=30.0, spacing=0.0)
    assert manners.slot("a", 0.0, within=1.0) == 30.0
    assert manners.slot("a", 0.0, within=1.0) == 30.0 + max(5.0, BREATH)


def test_hosts_of_addresses() -> None:
    assert host_of("HTTPS://User@Example.ORG:444/x?y") == "example.org"
    assert host_of("http://[::1]/") == "::1"
    assert usual_rules("10.0.0.7").spacing == 0.0
    assert usual_rules("news.example").concurrency == 2
