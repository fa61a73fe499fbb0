"""What a shared cache may serve and keep, at the very second where the answer turns [RFC 9111 sections 3, 4.2, 5.2]."""

from __future__ import annotations

import pytest

from unstale.server.proxy.fields import Fields, directives
from unstale.server.proxy.rules import Use, stands_in, storable, use
from unstale.server.proxy.stored import Stored

TAKEN = 1000.0


def kept(lifetime: float, control: str = "") -> Stored:
    """A response that came new at `TAKEN`."""
    return Stored("http://a.example/", 200, Fields(), b"x", TAKEN, 0.0, lifetime, directives(control))


@pytest.mark.parametrize(
    ("wish", "age", "expected"),
    [
        # Fresh for 60 seconds: its age must not be above max-age, and not above 60.
        ("max-age=30", 30.0, Use.ANSWER),
        ("max-age=30", 30.5, Use.ASK),
        ("max-age=0", 0.0, Use.ANSWER),
        # What is left must not be below min-fresh.
        ("min-fresh=20", 40.0, Use.ANSWER),
        ("min-fresh=20", 40.5, Use.ASK),
        # Fresh as long as its lifetime exceeds its age: not in the second in which they are equal.
        ("", 59.5, Use.ANSWER),
        ("", 60.0, Use.ASK),
        # How long it has been stale must not be above max-stale.
        ("max-stale=10", 70.0, Use.ANSWER),
        ("max-stale=10", 70.5, Use.ASK),
        ("max-stale", 9e9, Use.ANSWER),
        # Who wants nothing stored is not served from what is.
        ("no-store", 0.0, Use.ASK),
        ("no-cache", 0.0, Use.ASK),
    ],
)
def test_a_copy_of_sixty_seconds(wish: str, age: float, expected: Use) -> None:
    assert use(kept(60.0), directives(wish), TAKEN + age) is expected


@pytest.mark.parametrize(
    ("age", "expected"), [(59.5, Use.ANSWER), (60.0, Use.ANSWER_AND_ASK), (69.5, Use.ANSWER_AND_ASK), (70.0, Use.ASK)]
)
def test_a_copy_that_may_be_served_while_it_is_confirmed(age: float, expected: Use) -> None:
    assert use(kept(60.0, "stale-while-revalidate=10"), {}, TAKEN + age) is expected


@pytest.mark.parametrize("strict", ["must-revalidate", "proxy-revalidate", "s-maxage=60"])
def test_a_strict_copy_is_never_served_stale(strict: str) -> None:
    assert use(kept(60.0, strict), {"max-stale": None}, TAKEN + 59.5) is Use.ANSWER
    assert use(kept(60.0, strict), {"max-stale": None}, TAKEN + 60.0) is Use.ASK


def test_a_copy_stands_in_for_a_failing_origin_up_to_the_second_it_was_granted() -> None:
    assert stands_in(kept(60.0, "stale-if-error=10"), {}, TAKEN + 70.0)
    assert not stands_in(kept(60.0, "stale-if-error=10"), {}, TAKEN + 70.5)


@pytest.mark.parametrize(
    ("asked", "told", "may"),
    [
        ("", "max-age=60", True),
        ("no-store", "max-age=60", False),
        ("", "max-age=60, no-store", False),
        # Who understands the status may store in spite of no-store [RFC 9111 section 5.2.2.3].
        ("", "max-age=60, no-store, must-understand", True),
        ("", "max-age=60, private", False),
    ],
)
def test_what_may_be_kept(asked: str, told: str, may: bool) -> None:
    request = Fields.of([("Cache-Control", asked)]) if asked else Fields()
    assert storable(200, request, Fields.of([("Cache-Control", told)])) is may
