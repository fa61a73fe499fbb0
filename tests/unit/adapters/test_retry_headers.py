"""Waits that sources ask for, sane and insane."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.retry_headers import HEADERS, http_date, retry_after, wait

NOW = 1714557600.0  # Wed, 01 May 2024 10:00:00 GMT


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120.0),
        (" 7 ", 7.0),
        ("0", 1.0),
        ("99999999999999999999", 86_400.0),
        ("9" * 5000, 86_400.0),
        ("Wed, 01 May 2024 10:05:00 GMT", 300.0),
        ("Wednesday, 01-May-24 10:05:00 GMT", 300.0),
        ("Wed, 01 May 2024 12:05:00 +0200", 300.0),
        ("Mon, 01 Jan 1990 00:00:00 GMT", 1.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400.0),
        ("-5", None),
        ("1.5", None),
        ("nan", None),
        ("inf", None),
        ("1e3", None),
        ("1_000", None),
        ("\u0663", None),
        ("", None),
        (None, None),
        ("soon", None),
    ],
)
def test_retry_after(text: str | None, seconds: float | None) -> None:
    assert retry_after(text, NOW) == seconds


@pytest.mark.parametrize(
    ("status", "headers", "seconds"),
    [
        (503, {"retry-after": "9"}, 9.0),
        (302, {"retry-after": "9"}, 9.0),
        (200, {"retry-after": "9"}, None),
        (404, {"retry-after": "9"}, None),
        # by the source's own clock, which is an hour behind ours
        (429, {"date": "Wed, 01 May 2024 09:00:00 GMT", "retry-after": "Wed, 01 May 2024 09:01:00 GMT"}, 60.0),
        (200, {"ratelimit-remaining": "0", "ratelimit-reset": "50"}, 50.0),
        (200, {"ratelimit-remaining": "3", "ratelimit-reset": "50"}, None),
        (200, {"ratelimit-reset": "50"}, None),
        (200, {"ratelimit": "limit=100, remaining=0, reset=40"}, 40.0),
        (200, {"ratelimit": '"default";r=0;t=30'}, 30.0),
        (200, {"ratelimit": '"default";r=5;t=30'}, None),
        (200, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{NOW + 90:.0f}"}, 90.0),
        (200, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "90"}, 90.0),
        (429, {"retry-after": "5", "ratelimit": "r=0;t=30"}, 30.0),
        (429, {}, None),
    ],
)
def test_wait(status: int, headers: dict[str, str], seconds: float | None) -> None:
    assert wait(status, headers, NOW) == seconds


@given(st.integers(100, 599), st.dictionaries(st.sampled_from(sorted(HEADERS)), st.text(max_size=30)))
def test_whatever_is_written_is_a_bounded_wait_or_none(status: int, headers: dict[str, str]) -> None:
    seconds = wait(status, headers, NOW)
    assert seconds is None or 1.0 <= seconds <= 86_400.0


@given(st.text(max_size=40))
def test_any_text_is_a_date_or_none(text: str) -> None:
    when = http_date(text)
    assert when is None or abs(when) < 1e12
