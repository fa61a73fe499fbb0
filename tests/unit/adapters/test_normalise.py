"""What does not count is dropped, what does count stays, and no body can make the normaliser fail."""

from __future__ import annotations

import hashlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.normalise import MOST_TAGS, Normaliser, content_hash
from unstale.errors import InputError

PAGE = b"<html><body><p class='clock'>%d</p><h1>News</h1><div class='ad'><div class='ad'>%d</div></div></body></html>"


def test_the_hash_is_sha_256() -> None:
    assert content_hash(b"news") == hashlib.sha256(b"news").hexdigest()


def test_nothing_is_dropped_unless_asked() -> None:
    for media_type in ("text/html", "application/json", ""):
        assert Normaliser()(b' {"a": 1}\n', media_type) == b' {"a": 1}\n'


def test_parts_of_html_are_dropped_by_selector() -> None:
    normalise = Normaliser(selectors=[".clock", "div.ad, div, .ad"])
    one, two = (normalise(PAGE % (i, 2 * i), "Text/HTML; charset=utf-8") for i in (1, 2))
    assert one == two == b"<html><head></head><body><h1>News</h1></body></html>"
    assert normalise((PAGE % (1, 1)).replace(b"News", b"Olds"), "text/html") != one
    assert normalise(PAGE % (1, 2), "text/plain") == PAGE % (1, 2)


@pytest.mark.parametrize("selector", ["*", "html", "body", ":not(x)", "body *, body"])
def test_even_everything_may_be_dropped(selector: str) -> None:
    assert b"News" not in Normaliser(selectors=[selector])(PAGE % (1, 2), "text/html")


@pytest.mark.parametrize("selector", ["div[", "", "p:contains(", "{}"])
def test_a_selector_that_is_none(selector: str) -> None:
    with pytest.raises(InputError, match="selector .* is not CSS: write it like div.clock"):  # noqa: RUF043
        Normaliser(selectors=[selector])


@pytest.mark.parametrize(
    ("pointers", "left"),
    [
        (["/at"], {"a/b": {"~": 1, "x": 2}, "items": [{"id": 1, "n": 5}, {"id": 2}, 7]}),
        (["/a~1b/~0", "/items"], {"at": 9, "a/b": {"x": 2}}),
        (["/items/0", "/at"], {"a/b": {"~": 1, "x": 2}, "items": [{"id": 2}, 7]}),
        (["/items/*/id"], {"at": 9, "a/b": {"~": 1, "x": 2}, "items": [{"n": 5}, {}, 7]}),
        (["/items/*", "/a~1b/*"], {"at": 9, "a/b": {}, "items": []}),
        (
            ["/none", "/items/9", "/items/-", "/items/x/y", "/at/deep"],
            {"at": 9, "a/b": {"~": 1, "x": 2}, "items": [{"id": 1, "n": 5}, {"id": 2}, 7]},
        ),
    ],
)
def test_members_of_json_are_dropped_by_pointer(pointers: list[str], left: object) -> None:
    body = b'{"items": [{"id": 1, "n": 5}, {"id": 2}, 7], "at": 9, "a/b": {"~": 1, "x": 2}}'
    assert json.loads(Normaliser(pointers=pointers)(body, "application/ld+json; charset=utf-8")) == left


def test_order_and_spaces_of_json_do_not_count() -> None:
    normalise = Normaliser(pointers=["/at"])
    assert normalise(b'{"b":1, "a":[1, 2],"at":3}', "application/json") == normalise(
        b'{\n"at":4,"a":[1,2],"b":1}', "text/json"
    )
    assert normalise(b'{"a":[2,1]}', "text/json") != normalise(b'{"a":[1,2]}', "text/json")


@pytest.mark.parametrize("pointer", ["at", "", "*"])
def test_a_pointer_that_is_none(pointer: str) -> None:
    with pytest.raises(InputError, match="must begin with /"):
        Normaliser(pointers=[pointer])


def test_runs_of_spaces_are_one() -> None:
    assert Normaliser(whitespace=True)(b"  a\r\n\t b \n", "text/plain") == b"a b"


@pytest.mark.parametrize("body", [b"{", b"", b"[" * 200_000, b"9" * 10_000, b'"\\ud800"', b"\xff"])
def test_what_is_not_json_stays_as_it_is(body: bytes) -> None:
    got = Normaliser(pointers=["/a"])(body, "application/json")
    assert got == body


def test_deep_html_does_not_take_the_loop_hostage() -> None:
    normalise, deep = Normaliser(selectors=["p"]), b"<div>" * (MOST_TAGS + 1)
    begin = time.process_time()
    assert normalise(deep, "text/html") == deep
    assert normalise(b"<div>" * 5_000 + b"<p>", "text/html") != deep
    assert time.process_time() - begin < 2.0


@given(st.binary(max_size=300), st.sampled_from(["text/html", "application/json", "text/plain"]))
def test_no_body_makes_it_fail(body: bytes, media_type: str) -> None:
    normalise = Normaliser(selectors=["p", "*"], pointers=["/a", "/*/b"], whitespace=True)
    assert normalise(body, media_type) == normalise(body, media_type)


def test_only_what_is_kept_of_html_counts() -> None:
    normalise = Normaliser(keep=["h1", ".ad > .ad"], selectors=[".clock"])
    one, two = (normalise(PAGE % (i, 7), "text/html") for i in (1, 2))
    assert one == two == b'<h1>News</h1>\n<div class="ad">7</div>'
    assert normalise(PAGE % (1, 8), "text/html") != one
    # What was to be kept is gone: that is a change, and the same one at every poll.
    assert normalise(b"<p>sorry", "text/html") == normalise(b"<p>come back later", "text/html") == b""
    with pytest.raises(InputError, match="is not CSS"):
        Normaliser(keep=["div["])


def test_only_what_is_kept_of_json_counts() -> None:
    normalise = Normaliser(keep_pointers=["/items/*/id", "/none"], pointers=["/items/1"])
    assert normalise(
        b'{"at": 9, "items": [{"id": 1, "n": 5}, {"id": 2}, 7, {"id": {"b": 1, "a": 2}}]}', "text/json"
    ) == (b'[[1,{"a":2,"b":1}],[]]')
    with pytest.raises(InputError, match="must begin with /"):
        Normaliser(keep_pointers=["price"])


@given(st.binary())
def test_letters_and_numbers_may_be_ignored_in_any_bytes(body: bytes) -> None:
    one = Normaliser(case=True, digits=True)
    assert one(body, "text/plain") == one(one(body, "text/plain"), "text/plain")
    assert one(b"Price 1,299 EUR " + body, "") == one(b"price 7,5 eur " + body, "")
