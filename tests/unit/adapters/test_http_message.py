"""Answers of HTTP/1 out of bytes: the same whatever the pieces they come in, whole only with their end."""

from __future__ import annotations

import httptools
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.cuts import CUTS, PACKED, WHOLE
from unstale.adapters.http_message import MOST_HEAD, AnswerReader, Broken


def read(said: bytes, method: str = "GET", size: int = 2**20, *, closed: bool = True) -> tuple[AnswerReader, bytes]:
    reader, body = AnswerReader(method), b""
    for at in range(0, len(said), size):
        reader.feed(said[at : at + size])
        body += b"".join(reader.pieces)
        reader.pieces.clear()
    if closed:
        reader.close()
    return reader, body


class Other:
    """What llhttp, the parser of Node.js, makes of the same bytes."""

    def __init__(self) -> None:
        self.status, self.body, self.ended = 0, b"", False
        self.lines: list[tuple[str, str]] = []
        self.behind: list[tuple[str, str]] = []
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, said: bytes) -> None:
        self._parser.feed_data(said)

    def on_header(self, name: bytes, value: bytes) -> None:
        known = self.behind if self.status else self.lines
        known.append((name.decode().lower(), value.strip().decode("latin-1")))

    def on_headers_complete(self) -> None:
        self.status = self._parser.get_status_code()

    def on_body(self, body: bytes) -> None:
        self.body += body

    def on_message_complete(self) -> None:
        self.ended = True


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("size", [1, 7, 2**20])
def test_whole_answers_are_what_another_parser_reads(name: str, size: int) -> None:
    other = Other()
    other.feed(WHOLE[name])
    reader, body = read(WHOLE[name], size=size)
    assert (reader.status, reader.lines, body) == (other.status, other.lines, other.body)
    assert reader.trailers == other.behind
    assert reader.whole


def test_nothing_that_is_cut_is_whole() -> None:
    """But for codings, whose end is not a matter of the wire."""
    found = []
    for name, said in CUTS.items():
        if not any(f"{coding} " in name for coding in (*PACKED, "gzip", "zstd")):
            for size in (1, 64, 2**20):
                try:
                    read(said, size=size)
                    found.append(name)
                except Broken:
                    continue
    assert found == []


chunks = st.lists(st.binary(min_size=1, max_size=50), max_size=6)


@settings(max_examples=200, deadline=None)
@given(chunks, st.integers(1, 40), st.booleans())
def test_chunks_in_any_pieces(parts: list[bytes], size: int, trailed: bool) -> None:
    behind = b"X-Sum: 1\r\n" if trailed else b""
    said = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    said += b"".join(b"%x;a=b\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n" + behind + b"\r\n"
    reader, body = read(said, size=size, closed=False)
    assert body == b"".join(parts)
    assert (reader.whole, reader.keep) == (True, True)
    assert reader.trailers == ([("x-sum", "1")] if trailed else [])
    for cut in range(len(said)):
        assert not read(said[:cut], closed=False)[0].whole


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=80).filter(lambda noise: not noise.lstrip().startswith(b"HTTP/")))
def test_noise_is_refused_and_never_whole(noise: bytes) -> None:
    with pytest.raises(Broken):
        read(noise)


def test_interim_answers_come_first() -> None:
    heard: list[tuple[int, list[tuple[str, str]]]] = []
    reader = AnswerReader("GET", lambda status, lines: heard.append((status, list(lines))))
    reader.feed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: <a>\r\n\r\nHTTP/1.1 204 No\r\n\r\n")
    assert heard == [(103, [("link", "<a>")])]
    assert (reader.status, reader.whole, reader.keep) == (204, True, True)


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("said", "keeps"),
    [
        (OK + b"Content-Length: 4\r\n\r\nnews", True),
        (OK + b"Content-Length: 4\r\nConnection: close\r\n\r\nnews", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nnews", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 4\r\nConnection: Keep-Alive\r\n\r\nnews", True),
        (OK + b"Content-Length: 4\r\n\r\nnewsHTTP/1.1 200 OK\r\n\r\nforged", False),
        (OK + b"Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nnews\r\n0\r\n\r\n", False),
        (OK + b"Content-Length: 4, 4\r\nContent-Length: 4\r\n\r\nnews", True),
        (b"HTTP/1.1 200\nA : b\nContent-Length: 4\n\nnews", True),
        (OK + b"Transfer-Encoding: made-up\r\n\r\nnews", False),
        (OK + b"\r\nnews", False),
    ],
)
def test_which_connections_are_used_again(said: bytes, keeps: bool) -> None:
    reader, body = read(said)
    assert (body, reader.keep) == (b"news", keeps)


@pytest.mark.parametrize(
    "said",
    [
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        OK + b"no colon\r\n\r\n",
        OK + b"a b: c\r\n\r\n",
        OK + b"a: b\0c\r\n\r\n",
        OK + b"a: b\rc\r\n\r\n",
        OK + b" folded: first\r\n\r\n",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"0" * 17 + b"\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 5000,
        OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        OK + b"a: b\r\n" * (MOST_HEAD // 6 + 1),
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * (MOST_HEAD // 28 + 1),
        OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * (MOST_HEAD // 6 + 1),
    ],
)
def test_what_is_refused_at_once(said: bytes) -> None:
    with pytest.raises(Broken):
        read(said, closed=False)


def test_a_head_has_no_body() -> None:
    reader, body = read(OK + b"Content-Length: 4\r\n\r\n", "HEAD", closed=False)
    assert (body, reader.whole, reader.keep) == (b"", True, True)
