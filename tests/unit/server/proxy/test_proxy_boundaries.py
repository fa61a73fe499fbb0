"""The cache's rules just on and just beyond their bounds: who changes a comparison is found out here."""

from __future__ import annotations

import pytest

from unstale.server.proxy import rules
from unstale.server.proxy.fields import Fields, directives
from unstale.server.proxy.rules import Use
from unstale.server.proxy.stored import Stored

BEGIN, TICK = 1_700_000_000.0, 0.001


def stored(control: str, **headers: str) -> Stored:
    """Taken at BEGIN, fresh as these directives say."""
    fields = Fields.of([("Cache-Control", control), *((n.replace("_", "-"), v) for n, v in headers.items())])
    kept = rules.to_store("http://a/", 200, Fields(), fields, asked_at=BEGIN, taken_at=BEGIN)
    assert kept is not None
    return kept


def use(control: str, wish: str, age: float) -> Use:
    return rules.use(stored(control), directives(wish), BEGIN + age)


@pytest.mark.parametrize(
    ("control", "wish", "last", "then"),
    [
        ("max-age=60", "", 60.0 - TICK, Use.ASK),
        ("s-maxage=60, max-age=5", "", 60.0 - TICK, Use.ASK),
        ("max-age=60", "max-age=30", 30.0, Use.ASK),
        ("max-age=60", "max-age=0", 0.0, Use.ASK),
        ("max-age=60", "min-fresh=10", 50.0, Use.ASK),
        ("max-age=60", "min-fresh=0", 60.0 - TICK, Use.ASK),
        ("max-age=60", "max-age=30, min-fresh=50", 10.0, Use.ASK),
        ("max-age=60", "max-stale=5", 65.0, Use.ASK),
        ("max-age=60", "max-stale=0", 60.0, Use.ASK),
        ("max-age=60, max-stale=9", "", 60.0 - TICK, Use.ASK),
        ("max-age=60, must-revalidate", "max-stale=5", 60.0 - TICK, Use.ASK),
        ("max-age=60, proxy-revalidate", "max-stale", 60.0 - TICK, Use.ASK),
        ("max-age=60, stale-while-revalidate=10", "", 60.0 - TICK, Use.ANSWER_AND_ASK),
    ],
)
def test_the_last_moment_at_which_it_answers(control: str, wish: str, last: float, then: Use) -> None:
    assert use(control, wish, last) is Use.ANSWER
    assert use(control, wish, last + TICK) is then


def test_stale_while_revalidate_ends() -> None:
    control = "max-age=60, stale-while-revalidate=10"
    assert use(control, "", 70.0 - TICK) is Use.ANSWER_AND_ASK
    assert use(control, "", 70.0) is Use.ASK
    assert use(control, "max-age=65", 65.0) is Use.ANSWER_AND_ASK
    assert use(control, "max-age=65", 65.0 + TICK) is Use.ASK


@pytest.mark.parametrize("wish", ["no-cache", "no-store", "no-store, max-stale", "no-cache, max-age=99", "max-age=x"])
def test_what_is_never_answered_from_the_stock(wish: str) -> None:
    assert use("max-age=60", wish, 1.0) is Use.ASK


def test_no_cache_of_the_response_always_asks_unless_it_names_fields() -> None:
    kept = stored("max-age=60, no-cache", etag='"1"')
    assert rules.use(kept, {}, BEGIN) is Use.ASK
    assert use('max-age=60, no-cache="a"', "", 1.0) is Use.ANSWER


@pytest.mark.parametrize(
    ("status", "control", "asked", "kept"),
    [
        (200, "max-age=60", "", True),
        (200, "no-store", "", False),
        (200, "no-store, max-age=60", "", False),
        (200, "max-age=60, NO-STORE", "", False),
        (200, "public, no-store", "", False),
        (200, "max-age=60", "no-store", False),
        (200, "max-age=60, must-understand, no-store", "", True),
        (299, "max-age=60, must-understand, no-store", "", False),
        (299, "max-age=60", "", True),
        (299, "", "", False),
        (200, "private, max-age=60", "", False),
        (200, 'private="a", max-age=60', "", True),
        (304, "max-age=60", "", False),
        (199, "max-age=60", "", False),
    ],
)
def test_what_may_be_stored(status: int, control: str, asked: str, kept: bool) -> None:
    request = Fields.of([("Cache-Control", asked)] if asked else [])
    assert rules.storable(status, request, Fields.of([("Cache-Control", control)])) is kept


@pytest.mark.parametrize(
    ("control", "wish", "last"),
    [
        ("max-age=60", "", 60.0 + rules.STANDS_IN),
        ("max-age=60, stale-if-error=10", "", 70.0),
        ("max-age=60", "stale-if-error=10", 70.0),
        ("max-age=60, stale-if-error=20", "stale-if-error=10", 70.0),
        ("max-age=60, stale-if-error=0", "", 60.0),
        ("max-age=60", "max-age=1, stale-if-error=10", 70.0),
    ],
)
def test_the_last_moment_at_which_it_stands_in(control: str, wish: str, last: float) -> None:
    assert rules.stands_in(stored(control), directives(wish), BEGIN + last)
    assert not rules.stands_in(stored(control), directives(wish), BEGIN + last + TICK)


@pytest.mark.parametrize("wish", ["no-cache", "no-store", "max-age=99999", "min-fresh=0"])
def test_who_gives_a_bound_hears_of_a_failing_origin(wish: str) -> None:
    assert not rules.stands_in(stored("max-age=60"), directives(wish), BEGIN + 61.0)


def test_a_guess_is_a_tenth_and_a_day_at_most() -> None:
    from unstale.server.dates import as_date

    def guessed(since: float) -> float:
        fields = Fields.of([("Date", as_date(BEGIN)), ("Last-Modified", as_date(BEGIN - since))])
        return rules.lifetime(200, fields, {}, BEGIN)

    assert guessed(1_000.0) == 100.0
    assert guessed(10 * 86_400.0) == guessed(11 * 86_400.0) == 86_400.0
    assert guessed(10 * 86_400.0 - 10.0) == 86_399.0
    assert guessed(-5.0) == 0.0
