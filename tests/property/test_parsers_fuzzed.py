"""Parsers that strangers feed take or refuse whatever they get: what was found before, and mutations of it."""

from __future__ import annotations

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.documents import ROOT

sys.path.insert(0, str(ROOT / "tests/fuzz"))
from parsers import PARSERS

CORPUS = ROOT / "tests/fuzz/corpus"
#: pieces that break parsers: of markup, numbers, texts, lengths
PIECES = [
    b"\0",
    b"\xff\xfe",
    b"<",
    b"&#0;",
    b"]]>",
    b'"',
    b"\\",
    b"\r\n\r\n",
    b"%00",
    b"1e400",
    b"NaN",
    b"-1",
    b"9" * 400,
]
PIECES += ["٣".encode(), "①".encode(), "\u202e".encode(), b"[" * 300, b"<a>" * 300, b"(" * 300, b",", b";", b"=", b"/"]


def seeds(name: str) -> list[bytes]:
    """The inputs that are kept for a parser."""
    return [path.read_bytes() for path in sorted((CORPUS / name).iterdir())]


def test_every_parser_has_a_small_corpus() -> None:
    assert {path.name for path in CORPUS.iterdir()} == set(PARSERS)
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 100_000
    assert len(PARSERS) >= 15


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_what_is_kept_is_taken_or_refused(name: str) -> None:
    for data in seeds(name):
        PARSERS[name](data)


@st.composite
def mutated(draw: st.DrawFn, name: str) -> bytes:
    """An input of the corpus with pieces cut out, repeated, put in or overwritten."""
    data = draw(st.sampled_from(seeds(name)))
    for _ in range(draw(st.integers(1, 4))):
        begin = draw(st.integers(0, len(data)))
        end = draw(st.integers(begin, min(len(data), begin + 20)))
        piece = draw(st.sampled_from(PIECES) | st.binary(max_size=8) | st.just(data[begin:end] * 50))
        data = data[:begin] + piece + data[end:]
    return data[:20_000]


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_mutations_are_taken_or_refused(name: str) -> None:
    @settings(deadline=None, suppress_health_check=list(HealthCheck))
    @given(mutated(name))
    def attempt(data: bytes) -> None:
        PARSERS[name](data)

    attempt()
