"""Large JSON piece by piece is what it is as a whole: of any document, and of what is none."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters import large_json, normalise
from unstale.adapters.large_json import in_one_spelling
from unstale.adapters.normalise import Normaliser

_NAMES = st.sampled_from(["now", "items", "a", 'quoted "', "é", "b,]", ""])
_SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
DOCUMENTS = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(_NAMES, inner, max_size=5) | st.lists(_SCALARS),
    max_leaves=40,
)
POINTERS = st.lists(st.lists(st.sampled_from(["now", "items", "a", "*"]), min_size=1, max_size=5), max_size=3)


def whole(text: bytes, pointers: list[list[str]]) -> bytes:
    """As it is done with small documents."""
    value: Any = json.loads(text)
    for steps in pointers:
        normalise._remove(value, steps)
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


@pytest.fixture(autouse=True, scope="module")
def narrow() -> Iterator[None]:
    """So little is looked at together that most of these documents are large."""
    usual, large_json.WINDOW = large_json.WINDOW, 8
    yield
    large_json.WINDOW = usual


@given(DOCUMENTS, POINTERS, st.sampled_from([None, 1]), st.sampled_from(["utf-8", "utf-16", "utf-8-sig"]))
def test_any_document_is_spelt_as_the_library_spells_it(
    document: object, pointers: list[list[str]], indent: int | None, encoding: str
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=False).encode(encoding, "surrogatepass")
    assert in_one_spelling(text, pointers) == whole(text, pointers)


@given(DOCUMENTS, st.data())
def test_what_is_no_json_is_refused_like_the_library_refuses_it(document: object, data: st.DataObject) -> None:
    text = json.dumps(document, indent=data.draw(st.sampled_from([None, 1]))).encode()
    at = data.draw(st.integers(0, len(text) - 1))
    broken = text[:at] + data.draw(st.sampled_from([b"", b",", b"]", b"}", b'"', b"1", b" "])) + text[at + 1 :]
    try:
        expected = whole(broken, [])
    except ValueError:
        with pytest.raises((ValueError, RecursionError)):
            in_one_spelling(broken, [])
        return
    assert in_one_spelling(broken, []) == expected


def test_of_two_members_of_one_name_the_last_counts() -> None:
    assert in_one_spelling(b'{"a": 1, "a": 2}', []) == b'{"a":2}'
    assert in_one_spelling(b'{"a": 1, "b": 1, "a": 2}', [["a"]]) == b'{"b":1}'


def test_large_documents_count_as_before_whatever_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    text = json.dumps({"now": 1, "items": [{"id": n, "views": [n, "x"], "seen": n} for n in range(50)]}).encode()
    for pointers in (["/now"], ["/items/*/seen"], ["/items/3"], ["/items/*/views/0"], ["/items/*"]):
        monkeypatch.setattr(normalise, "LARGE", len(text))
        small = Normaliser(pointers=pointers)(text, "application/json")
        monkeypatch.setattr(normalise, "LARGE", 0)
        assert Normaliser(pointers=pointers)(text, "application/json") == small
