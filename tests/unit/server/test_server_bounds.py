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
    assert (wish.unmet(140.0, 100.0, 20.0, 3) == "") is met


def test_a_copy_past_its_time() -> None:
    assert Bounds(max_stale=5).unmet(140.0, 100.0, -5.0, 1) == ""
    assert Bounds(max_stale=5).unmet(140.0, 100.0, -6.0, 1) == "the copy is stale since 6 s, max-stale allows 5 s"
    assert Bounds(max_age=50).unmet(140.0, 100.0, -6.0, 1) == ""


def test_a_poll_for_this_request_satisfies_every_bound_on_age() -> None:
    strict = Bounds(max_age=0, no_cache=True)
    assert strict.unmet(100.4, 100.0, 9.0, 1, waited=0.5) == ""
    assert Bounds(min_version=2).unmet(100.4, 100.0, 9.0, 1, waited=0.5)
    assert Bounds(min_fresh=10).unmet(100.4, 100.0, 9.0, 1, waited=0.5)


@pytest.mark.parametrize("wish", [Bounds(no_cache=True), Bounds(max_age=1), Bounds(max_age=124), Bounds(max_age=0)])
def test_a_poll_that_brought_an_old_copy_is_no_excuse(wish: Bounds) -> None:
    """Through other replicas a poll shows what the source was when the first of them looked."""
    assert wish.unmet(1000.0, 875.0, 60.0, 1, waited=0.5)


@pytest.mark.parametrize(
    ("as_of", "waited", "met"),
    [(100.0, 0.0, True), (99.0, 0.0, True), (98.9, 0.0, False), (98.9, None, False), (99.5, None, False)],
)
def test_as_young_as_it_can_be_within_a_second(as_of: float, waited: float | None, met: bool) -> None:
    assert (Bounds(no_cache=True).unmet(100.0, as_of, 60.0, 1, waited) == "") is met


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT5M", 300.0),
        ("P1D", 86_400.0),
        ("PT1H30M", 5_400.0),
        ("P1W", 604_800.0),
        ("P1DT12H", 129_600.0),
        ("PT0.5S", 0.5),
        ("1h30m", 5_400.0),
        ("90", 90.0),
    ],
)
def test_durations_as_others_write_them(text: str, seconds: float) -> None:
    assert read("", {"max_staleness": text}) == Bounds(max_age=seconds)


@pytest.mark.parametrize("text", ["P", "PT", "P1", "P1H", "PT1D", "-PT5M", "P1DT"])
def test_what_only_looks_like_a_duration(text: str) -> None:
    with pytest.raises(InputError):
        read("", {"max_age": text})


@pytest.mark.parametrize(
    "text",
    [
        "1763236800",
        "1.7632368e9",
        "1763236800.00000000000",
        "@1763236800",
        "2025-11-15T20:00:00Z",
        "2025-11-15T21:00:00 01:00",
        "2025-11-15T20:00:00",
    ],
)
def test_moments(text: str) -> None:
    wish = read("", {"min_as_of": text})
    assert wish == Bounds(min_as_of=1_763_236_800.0)
    assert wish.unmet(1e10, 1_763_236_800.0, 0.0, 1) == ""
    assert wish.unmet(1e10, 1_763_236_799.0, 0.0, 1, waited=9.0) == "the copy is 1 s older than min_as_of asks for"


def test_a_moment_with_an_exponent() -> None:
    """As a program writes the smallest number that the API's document allows."""
    assert read("", {"min_as_of": "2.2250738585072014e-308"}).min_as_of == 2.2250738585072014e-308


@pytest.mark.parametrize("text", ["1e400", "1e12", "1e-4000", "١", "nan", "-1"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(InputError, match="is not a moment"):
        read("", {"min_as_of": text})


def test_what_is_said_twice_is_refused() -> None:
    with pytest.raises(InputError, match="mean the same"):
        read("", {"max_age": "5", "max_staleness": "6"})
    with pytest.raises(InputError, match="is not a moment"):
        read("", {"min_as_of": "yesterday"})
