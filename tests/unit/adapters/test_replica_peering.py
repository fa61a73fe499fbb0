"""Digests of strangers: read whole or refused in one sentence, within bounds of size and time."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.loopback import Loopback, answer
from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.adapters.replica_peering import LARGEST, MOST, ReplicaPeering, read_digest
from unstale.ports import Digest

HEAD = json.dumps({"replica": "a", "now": 1000.0, "next": None})


def line(**given: object) -> str:
    return json.dumps({"source": "https://a.example/", "as_of": 900.5, "version": 3, "sha256": "ab" * 32} | given)


def digest(said: bytes) -> tuple[Digest, list[dict[str, str]]]:
    async def scene() -> tuple[Digest, list[dict[str, str]]]:
        async with Loopback({"/digest?since=840.500&after=7": said}) as server:
            web = HttpFetcher(Gate(["127.0.0.0/8"]))
            try:
                return await ReplicaPeering(web, seconds=2.0).digest(server.origin + "/", 840.5, 7), server.asked
            finally:
                await web.close()

    return asyncio.run(scene())


def test_a_digest_is_read() -> None:
    found, _ = digest(answer(f"{HEAD}\n{line()}\n".encode()))
    assert found.rows == (("https://a.example/", 900.5, bytes.fromhex("ab" * 32)),)
    assert (found.now, found.further, found.reason, found.false) == (1000.0, None, "", False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no JSON"),
        ("[]", "no object"),
        ('{"now": "late"}', "its first line"),
        ('{"now": 1, "next": -1}', "its first line"),
        ('{"now": 1, "next": true}', "its first line"),
        ('{"now": NaN}', "its first line"),
        (f"{HEAD}\n{line(source=5)}", "no source"),
        (f"{HEAD}\n{line(source='a' * 9000)}", "no source"),
        (f"{HEAD}\n{line(source='a' + chr(10))}", "no source"),
        (f"{HEAD}\n{line(as_of=-1)}", "no time"),
        (f"{HEAD}\n{line(as_of=True)}", "no time"),
        (f"{HEAD}\n{line(sha256='ab')}", "no SHA-256"),
        (f"{HEAD}\n{line(sha256='x' * 64)}", "hexadecimal"),
        (f"{HEAD}\n{'[' * 100_000}", "no JSON"),
        (HEAD + "\n" * (MOST + 5), "lines"),
    ],
)
def test_a_line_that_is_none_spoils_the_digest(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_digest(text.encode())


def test_nonsense_and_floods_are_lies_but_silence_is_not() -> None:
    nonsense, _ = digest(answer(b"<html>"))
    assert (nonsense.false, nonsense.reason) == (True, "127.0.0.1: its digest: a line is no JSON")
    flood, _ = digest(answer(b"x" * (LARGEST + 1)))
    assert flood.false
    assert "more than" in flood.reason
    absent, _ = digest(answer(b"", "404 Not Found"))
    assert (absent.false, "does it share?" in absent.reason) == (False, True)
    cut, _ = digest(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nshort")
    assert not cut.false
    assert cut.reason
