"""Header fields: nothing that comes over the wire makes the parsers fail, and well-formed values come back exactly."""

from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.server.dates import read_date
from unstale.server.proxy.fields import MOST_SECONDS, Fields, directives, http_age, members, seconds, targeted
from unstale.server.proxy.stored import selecting

ANYTHING = st.text(st.characters(max_codepoint=255), max_size=60)


@given(ANYTHING)
def test_no_value_breaks_a_parser(text: str) -> None:
    fields = Fields.of([(name, text) for name in ("age", "cdn-cache-control", "connection", "vary", "accept-language")])
    directives(text)
    targeted(fields)
    fields.end_to_end()
    selecting(["accept-language", "vary"], fields)
    assert http_age(fields) >= 0.0
    assert seconds(text) is None or 0.0 <= (seconds(text) or 0.0) <= MOST_SECONDS
    when = read_date(text)
    assert when is None or abs(when) < 1e12


@given(st.integers(0, 2**33))
def test_dates_come_back(when: int) -> None:
    assert read_date(formatdate(when, usegmt=True)) == when


@pytest.mark.parametrize(
    "text",
    [
        "Thu, 18 Aug 2050 02:01:18 GMT",
        "Thursday, 18-Aug-50 02:01:18 GMT",
        "Thu Aug 18 02:01:18 2050",
        "THU, 18 AUG 2050 02:01:18 gmt",
    ],
)
def test_the_three_formats_are_read_in_any_time_zone(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert read_date(text) == 2_544_400_878.0
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize(
    "text",
    [
        "Thu, 18 Aug 2050 02:01:18 UTC",
        "Thu, 18 Aug 2050 02:01:18 AEST",
        "Thu, 18 Aug 2050 02:01:18 +0000",
        "Thu, 18 Aug 2050 02:01:18",
        "Thu, 18 Aug 50 02:01:18 GMT",
        "Thu 18 Aug 2050 02:01:18 GMT",
        "Thu, 18  Aug  2050 02:01:18 GMT",
        "Thu, 18-Aug-2050 02:01:18 GMT",
        "Thursday, 18-Aug-2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 02.01.18 GMT",
        "Thu, 18 Aug 2050 2:01:18 GMT",
        "Thu, 8 Aug 2050 02:01:18 GMT",
        "Thu Aug 8 02:01:18 2050",
        "Thu, 18 Aug 2050 02:01:18 GMT, Thu, 18 Aug 2050 02:01:18 GMT",
        "Thu, 31 Feb 2050 02:01:18 GMT",
        "Thu, 18 Aug 2050 24:01:18 GMT",
        "Thu, ١٨ Aug 2050 02:01:18 GMT",
        "Thu, 18 Aug 0000 02:01:18 GMT",
        "0",
        "",
    ],
)
def test_nearly_a_date_is_none(text: str) -> None:
    assert read_date(text) is None


@given(st.lists(st.text("abc-", min_size=1, max_size=5), max_size=5))
def test_lists_come_back(names: list[str]) -> None:
    assert members(" ,".join(names)) == names


def test_quotes_hide_commas_and_equals_signs() -> None:
    assert directives(r'a="x\", max-age=9", max-age=60') == {"a": 'x", max-age=9', "max-age": "60"}
    assert directives('a="open, max-age=60') == {"a": '"open, max-age=60'}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('a, b=?0, c=1.5, d="x, y", e=tok;p=1', {"a": None, "c": "1.5", "d": "", "e": "tok"}),
        ("f=(1 2);q, g=?1", {"f": "(1 2)", "g": None}),
        ("max-age=60;x, no-store", {"max-age": "60", "no-store": None}),
        ("Max-Age=60", None),
        ("max-age=", None),
        ("max-age =60", None),
        ("a=é", None),
        ("", None),
        ('a="', None),
    ],
)
def test_targeted_fields_are_structured_or_nothing(text: str, found: dict[str, str | None] | None) -> None:
    assert targeted(Fields.of([("CDN-Cache-Control", text)])) == found
