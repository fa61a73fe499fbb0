"""Manners: slots keep their distance, hosts that want to be left alone are."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import pytest

from unstale.addresses import host_of
from unstale.calendar import parse_hours
from unstale.engine.held_host_limits import HeldHostLimits
from unstale.engine.host_limits import BREATH, FIRST_PAUSE, LAST_PAUSE, HostLimits, Rules, usual_rules
from unstale.ports import HostWord, RateLimit


def spaced(spacing: float = 2.0, concurrency: int = 2) -> HostLimits:
    return HostLimits(lambda host: Rules(spacing, concurrency))


def test_slots_of_one_host_keep_their_distance_and_hosts_do_not_wait_for_each_other() -> None:
    host_limits = spaced()
    assert [host_limits.slot("a", 0.0) for _ in range(4)] == [0.0, 2.0, 4.0, 6.0]
    assert host_limits.slot("b", 0.0) == 0.0
    assert host_limits.slot("a", 100.0) == 100.0


def test_who_is_sent_away_comes_back_at_a_time_of_its_own_and_is_served_then() -> None:
    host_limits = spaced()
    times = [host_limits.slot("a", 0.0, within=2.0) for _ in range(6)]
    assert times == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    # Only the first two were taken: the third, back at its time, may begin.
    assert host_limits.slot("a", 4.0, within=2.0) == 4.0


def test_no_more_at_a_time_than_the_rules_say() -> None:
    host_limits = spaced(concurrency=2)
    assert [host_limits.begin("a") for _ in range(3)] == [True, True, False]
    host_limits.end("a")
    assert host_limits.begin("a")


def test_a_host_that_refuses_is_left_alone_longer_each_time() -> None:
    host_limits = spaced(spacing=0.0)
    for expected in (FIRST_PAUSE, 2 * FIRST_PAUSE, 4 * FIRST_PAUSE):
        now = host_limits.host("a").blocked if host_limits.host("a").blocked > 0 else 0.0
        host_limits.heard("a", now, refused=True, retry_after=None, spacing=0.0)
        assert host_limits.slot("a", now) == now + expected
    for _ in range(20):
        host_limits.heard("a", 0.0, refused=True, retry_after=None, spacing=0.0)
    assert host_limits.slot("a", 0.0) <= LAST_PAUSE + 7 * FIRST_PAUSE
    host_limits.heard("a", 0.0, refused=False, retry_after=None, spacing=0.0)
    assert host_limits.host("a").refusals == 0


def test_what_a_host_asks_for_makes_us_slower_and_never_faster() -> None:
    host_limits = spaced(spacing=2.0)
    host_limits.heard("a", 0.0, refused=False, retry_after=None, spacing=5.0)
    host_limits.heard("a", 0.0, refused=False, retry_after=None, spacing=1.0)
    assert host_limits.cap("a") == pytest.approx(0.2)
    host_limits.heard("a", 0.0, refused=False, retry_after=30.0, spacing=0.0)
    assert host_limits.slot("a", 0.0, within=1.0) == 30.0
    assert host_limits.slot("a", 0.0, within=1.0) == 30.0 + max(5.0, BREATH)


def test_hosts_of_addresses() -> None:
    assert host_of("HTTPS://User@Example.ORG:444/x?y") == "example.org"
    assert host_of("http://[::1]/") == "::1"
    assert usual_rules("10.0.0.7").spacing == 0.0
    assert usual_rules("news.example").concurrency == 2


def test_who_holds_the_shard_next_is_told_what_a_host_has_asked_for() -> None:
    limits, told = HeldHostLimits(lambda host: Rules(0.0, 9)), RateLimit(left=20.0, seconds=60.0, of=100.0)
    limits.heard("a", 10.0, refused=True, retry_after=None, spacing=0.0, rate_limit=told)
    # Nothing was asked for here, and nobody was refused: there is nothing to tell.
    limits.heard("b", 11.0, refused=False, retry_after=None, spacing=0.0)
    words = limits.taken()
    assert words == [HostWord("a", 0.0, 40.0, 1, 3.0)]
    assert limits.taken() == []
    limits.keep(words)
    assert limits.taken() == words
    other = HeldHostLimits(lambda host: Rules(1.0, 9))
    assert other.begins("c", 20.0) == 20.0
    other.take_over(20.5, words)
    # Whoever held them before may have polled in the last moment, and what a host has said still holds.
    assert [other.slot("a", 21.0), other.begins("a", 21.0)] == [40.0, 23.5]
    assert [other.slot("c", 21.0), other.begins("c", 21.0)] == pytest.approx([21.6, 21.6])
    assert other.begins("c", 21.7) == 21.7


def test_a_worker_that_was_stopped_begins_one_poll_of_a_host_when_it_goes_on() -> None:
    limits = HeldHostLimits(lambda host: Rules(1.0, 9))
    assert [limits.slot("a", 10.0), limits.slot("a", 10.0)] == pytest.approx([10.0, 11.1])
    assert limits.begins("a", 15.0) == 15.0
    assert limits.latest("a", 15.0) == pytest.approx(15.055)
    assert [limits.begins("a", 15.0), limits.begins("a", 16.05)] == pytest.approx([16.1, 16.1])


@pytest.mark.parametrize("limits", [HostLimits, HeldHostLimits])
def test_at_once_is_slot_and_begin_where_both_are_free(limits: type[HostLimits]) -> None:
    now = 1000.0
    for spacing, active, slot, blocked, hours in product(
        (0.0, 2.0), (0, 1, 2), (-math.inf, 999.0, now, 1001.0), (-math.inf, now, 1001.0), ("", "00:00-00:10")
    ):
        rules = Rules(spacing, 2, parse_hours(hours) if hours else ())
        quick, slow = limits(lambda host, rules=rules: rules), limits(lambda host, rules=rules: rules)
        for one in (quick, slow):
            host = one.host("a")
            host.active, host.slot, host.blocked = active, slot, blocked
        before = replace(quick.host("a"))
        if quick.at_once("a", now):
            assert slow.slot("a", now) == now
            assert slow.begin("a")
            assert quick.host("a") == slow.host("a")
        else:
            # Nothing was promised to anybody.
            assert quick.host("a") == before
            assert hours or slow.slot("a", now) > now or not slow.begin("a")


def test_an_answer_with_nothing_to_say_ends_a_row_of_refusals() -> None:
    for limits in (HostLimits(), HeldHostLimits()):
        assert limits.begin("a")
        limits.heard("a", 0.0, refused=True, retry_after=None, spacing=0.0)
        limits.end("a", content=True)
        assert (limits.host("a").refusals, limits.host("a").active) == (0, 0)
        # What workers say to each other of hosts tells of it.
        assert not isinstance(limits, HeldHostLimits) or [word.refusals for word in limits.taken()] == [0]
