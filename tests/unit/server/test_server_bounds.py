"""What a request's bounds mean, as RFC 9111 5.2.1 has them and as query parameters."""

from __future__ import annotations

import math

import pytest

from unstale.errors import InputError
from unstale.server.bounds import NONE, Bounds, read


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("max-age=30", Bounds(max_age=30.0)),
        ('Max-Age="30", MIN-FRESH=5', Bounds(max_age=30.0, min_fresh=5.0)),
        ("max-stale", Bounds(max_stale=math.inf)),
        ("max-stale=7, no-cache", Bounds(max_stale=7.0, no_cache=True)),
        ("only-if-cached,stale-if-error=60", Bounds(only_if_cached=True, stale_if_error=60.0)),
        ("max-age=abc, max-age=-1, no-store, s-maxage=3, min-fresh", NONE),
    ],
)
def test_of_a_header(header: str, wanted: Bounds) -> None:
    assert read(header, {}) == wanted


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ({"max_age": "30"}, Bounds(max_age=30.0)),
        ({"max_age": "1h30m"}, Bounds(max_age=5400.0)),
        ({"min_version": "3", "no_cache": ""}, Bounds(min_version=3, no_cache=True)),
        ({"no_cache": "0", "max_stale": ""}, Bounds(max_stale=math.inf)),
        ({"version": "2"}, Bounds(version=2)),
    ],
)
def test_of_a_query(query: dict[str, str], wanted: Bounds) -> None:
    assert read("", query) == wanted


def test_the_query_comes_before_the_header() -> None:
    assert read("max-age=5, min-fresh=2", {"max_age": "50"}) == Bounds(max_age=50.0, min_fresh=2.0)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"maxage": "3"}, "parameter 'maxage' is not known: use max_age, min_fresh"),
        ({"max_age": "3 fortnights"}, "unknown unit 'fortnights'"),
        ({"max_age": "-3"}, "must be a finite number at least 0"),
        ({"max_age": "nan"}, "must be a finite number at least 0"),
        ({"version": "0"}, "versions count from 1"),
        ({"min_version": "-1"}, "is not a version"),
        ({"version": "9" * 30}, "is not a version"),
        ({"no_cache": "perhaps"}, "write no_cache or no_cache=0"),
    ],
)
def test_what_cannot_be_read_in_a_query_is_refused(query: dict[str, str], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        read("", query)


@pytest.mark.parametrize(
    ("wish", "met"),
    [
        (Bounds(max_age=40), True),
        (Bounds(max_age=39.9), False),
        (Bounds(min_fresh=20), True),
        (Bounds(min_fresh=21), False),
        (Bounds(max_stale=0), True),
        (Bounds(no_cache=True), False),
        (Bounds(min_version=3), True),
        (Bounds(min_version=4), False),
        (Bounds(max_age=100, min_fresh=30), False),
    ],
)
def test_a_copy_checked_40_s_ago_that_is_due_in_20(wish: Bounds, met: bool) -> None:
    assert (wish.unmet(40.0, 20.0, 3) == "") is met


def test_a_copy_past_its_time() -> None:
    assert Bounds(max_stale=5).unmet(40.0, -5.0, 1) == ""
    assert Bounds(max_stale=5).unmet(40.0, -6.0, 1) == "the copy is stale since 6 s, max-stale allows 5 s"
    assert Bounds(max_age=50).unmet(40.0, -6.0, 1) == ""


def test_a_poll_for_this_request_satisfies_every_bound_on_age() -> None:
    assert Bounds(max_age=0, no_cache=True, max_stale=0).unmet(0.4, -1.0, 1, polled=True) == ""
    assert Bounds(min_version=2).unmet(0.4, 9.0, 1, polled=True)
    assert Bounds(min_fresh=10).unmet(0.4, 9.0, 1, polled=True)
