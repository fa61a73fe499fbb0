"""Versions beside each other: pages by their text, JSON by structure, feeds by entries, lines by words."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.patience import SOON
from unstale.html_text import BYTES, html_text, html_title
from unstale.ports import Body
from unstale.service.compared import PAIRS, by_words, compared


def side(rows: list[list[Any]], place: int) -> list[str]:
    """The lines of one side, from its rows."""
    return ["".join(text for _, text in row[place]) for row in rows if row[0] != "@" and row[place] is not None]


LINES = st.lists(st.text(st.characters(exclude_categories=["Cc", "Cs", "Zl", "Zp"]), max_size=30), max_size=12)


@given(LINES, LINES)
def test_rows_hold_both_versions_whole_and_in_order(old: list[str], new: list[str]) -> None:
    lines = [["-", line] for line in old] + [["+", line] for line in new]
    rows = by_words(lines)
    assert (side(rows, 1), side(rows, 2)) == (old, new)
    for row in rows:
        if row[0] == "~":
            kept = ["".join(text for differs, text in row[k] if not differs) for k in (1, 2)]
            assert kept[0] == kept[1], "what is not marked is in both"


def test_lines_that_belong_together_stand_beside_each_other() -> None:
    rows = by_words([["-", "9 trains"], ["-", "gone"], ["+", "entirely new words here"], ["+", "8 trains"], [" ", "x"]])
    assert [row[0] for row in rows] == ["+", "~", "-", " "]
    assert rows[1][1:] == [[[1, "9"], [0, " trains"]], [[1, "8"], [0, " trains"]]]


def test_a_long_difference_takes_a_moment() -> None:
    lines = [one for i in range(1500) for one in (["-", f"a {i} " * 60], ["+", f"b {i} " * 60])]
    begun = time.monotonic()
    rows = by_words(lines)
    assert time.monotonic() - begun < SOON
    assert sum(row[0] == "~" for row in rows) == PAIRS


def test_a_page_is_compared_by_what_is_seen() -> None:
    pages = [f"<p class={i}>Nine</p><script>{i}</script><!-- {i} --><p>to {i}</p>".encode() for i in (1, 2)]
    old, new = (Body(data, "text/html; charset=utf-8") for data in pages)
    found = compared(old, new, "http")
    assert found["lines"] == [[" ", "Nine"], ["-", "to 1"], ["+", "to 2"]]
    assert (found["form"], found["forms"], found["same"]) == ("text", ["text", "source"], False)
    assert len(compared(old, new, "http", "source")["lines"]) > 1
    other = Body(pages[0].replace(b"class=1", b"class=9"), "text/html")
    unseen = compared(old, other, "http", "text")
    assert (unseen["lines"], unseen["same"]) == ([], False)
    assert compared(old, other, "http")["form"] == "source", "what differs is shown where it can be"


def test_records_and_rows_are_named_by_what_names_them() -> None:
    old = Body(b'{"items": [{"id": 1, "price": 9}, {"id": 2, "price": 7}]}', "application/json")
    new = Body(b'{"items": [{"id": 3, "price": 1}, {"id": 1, "price": 8}, {"id": 2, "price": 7}]}', "application/json")
    told = [line for line in compared(old, new, "http")["lines"] if line[0] in "+-"]
    assert told == [["-", "items[id=1].price: 9"], ["+", "items[id=3].price: 1"], ["+", "items[id=1].price: 8"]]
    old, new = (Body(f"station;trains\n{first}Bern;9\n".encode(), "text/csv") for first in ("", "Basel;7\n"))
    assert ["+", "station: Basel · trains: 7"] in compared(old, new, "http")["lines"]
    ragged = Body(b"a,b\n1\n", "text/csv")
    assert compared(ragged, ragged, "http", "rows")["same"]
    deep = Body(b"[" * 900 + b"]" * 900, "application/json")
    assert compared(None, deep, "http")["rows"]


def test_json_is_compared_by_structure() -> None:
    old = Body(b'{"b":1,"a":[1,2]}', "application/json")
    new = Body(b'{"a": [0, 1, 2],\n "b": 1}', "application/json")
    assert [line for line in compared(old, new, "http")["lines"] if line[0] in "+-"] == [["+", "a[]: 0"]]
    broken = Body(b'{"a": ', "application/json")
    assert compared(old, broken, "http")["form"] == "structure"


def test_feeds_are_compared_by_entries() -> None:
    def feed(*titles: str) -> Body:
        items = "".join(f"<item><guid>{t}</guid><title>{t}</title><link>https://a/{t}</link></item>" for t in titles)
        return Body(f"<rss><channel>{items}</channel></rss>".encode(), "application/rss+xml")

    found = compared(feed("b", "a"), feed("c", "b", "a"), "feed")
    assert [line for line in found["lines"] if line[0] in "+-"] == [["+", "c · https://a/c"]]
    assert compared(None, feed("a"), "feed")["lines"] == [[" ", "a · https://a/a"]]


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        (b"a < b <p>c", ["a < b", "c"]),
        (b"<script>never ends", []),
        (b"<!-- never ends", []),
        (b"<title>t</title><p", []),
        (b"<head><title>t</title></head><td>a</td><td>b&nbsp;c</td>", ["a", "b c"]),
        (b"\xff\xfe<p>x", ["\ufffd\ufffd", "x"]),
        (b"<p>1<b>2</b>3\n4</p>", ["123 4"]),
    ],
)
def test_the_text_of_a_page(page: bytes, lines: list[str]) -> None:
    assert html_text(page) == lines


@pytest.mark.parametrize("evil", [b"<", b"<!--", b"<script>", b"<p ", b"&", b"<a<", b"</"])
def test_no_page_takes_long(evil: bytes) -> None:
    begun = time.monotonic()
    html_text(evil * (BYTES // len(evil)))
    html_title(evil * (BYTES // len(evil)))
    assert time.monotonic() - begun < SOON


@given(st.binary(max_size=300))
def test_any_bytes_have_a_text(data: bytes) -> None:
    json.dumps([html_text(data), html_title(data)])
