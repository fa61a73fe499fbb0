"""Units in and out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.core.checks import number
from unstale.errors import InputError
from unstale.units import UNITS, format_duration, format_rate, parse_duration, parse_rate


@pytest.mark.parametrize(
    ("text", "per_day"),
    [
        ("1/day", 1),
        ("3/h", 72),
        ("15m", 96),
        ("2", 2),
        ("1e3/d", 1000),
        ("2 per 5min", 576),
        ("1h30m", 16),
        ("7/week", 1),
        ("1/year", 1 / 365.25),
        (" 4 / hour ", 96),
        (".5/s", 43200),
        (0.25, 0.25),
        ("0", 0),
    ],
)
def test_rates(text: str | float, per_day: float) -> None:
    assert parse_rate(text) == per_day


@pytest.mark.parametrize(
    ("text", "days"), [("36h", 1.5), ("90s", 90 / 86400), ("1d12h", 1.5), ("0.5", 0.5), ("2 weeks", 14)]
)
def test_durations(text: str, days: float) -> None:
    assert parse_duration(text) == days


@pytest.mark.parametrize(
    "text",
    ["", "fast", "1/fortnight", "-1/day", "inf", "nan", "1//day", "3/0h", "1/day/h", "h", "1_000", "٣", "1_0/h", "٣/h"],
)
def test_bad_rates_name_themselves(text: str) -> None:
    with pytest.raises(InputError, match="change_rate"):
        parse_rate(text, "change_rate")


@pytest.mark.parametrize("text", ["1_000", "٣", "1_0/h", "٣/h", "1/1_0h"])
def test_only_plain_digits_are_numbers(text: str) -> None:
    for parse in (parse_rate, parse_duration):
        with pytest.raises(InputError, match=re.escape(repr(text))):
            parse(text)
    if "/" not in text:
        with pytest.raises(InputError, match=f"budget {text!r} must be"):
            number("budget", text)


@given(st.floats(1e-6, 1e9))
def test_formatted_rates_read_back(per_day: float) -> None:
    assert parse_rate(format_rate(per_day).replace(",", "")) == pytest.approx(per_day, rel=6e-3)


@given(st.floats(1e-6, 1e6))
def test_formatted_durations_read_back(days: float) -> None:
    assert parse_duration(format_duration(days).replace(",", "")) == pytest.approx(days, rel=6e-3)


def test_every_unit_is_known_by_every_name() -> None:
    for names, seconds in UNITS.items():
        for name in names:
            assert parse_duration(f"2{name}") == pytest.approx(2 * seconds / 86400)
