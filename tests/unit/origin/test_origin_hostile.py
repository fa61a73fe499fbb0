"""Each way to misbehave, as the HTTP fetcher meets it."""

from __future__ import annotations

import asyncio
import zlib

import pytest

from unstale.adapters.addresses import Gate
from unstale.adapters.http_fetcher import HttpFetcher
from unstale.keeper.outcomes import Answer
from unstale.origin.hostile import BOMB, DONE, SAID
from unstale.origin.server import Origin
from unstale.origin.site import Site
from unstale.ports import Fetched, Request

#: kind -> words of the reason for which a poll of it fails
FAILING = {
    "hang": "no whole answer within",
    "drip": "no whole answer within",
    "endless": "more than 1048576 bytes",
    "reset": "closed the connection|cut",
    "redirect-loop": "redirects more than 5 times",
    "bomb": "more than 1048576 bytes",
    "truncated": "ended before its stated end",
    "garbage": "did not answer in HTTP",
    "huge-headers": "headers are too large",
    "too-many": "answered 429",
    "unavailable": "answered 503",
    "unasked-304": "answered 304",
}
#: those that look well at first
LYING = {"wrong-length", "same-etag", "noise"}


def looks(kind: str, times: int = 1, **request: object) -> list[Fetched]:
    async def play() -> list[Fetched]:
        fetcher = HttpFetcher(Gate(["127.0.0.1/32"]))
        try:
            async with Origin(Site.of(1, 0.0)) as origin:
                asked = Request(f"{origin.address}/hostile/{kind}", limit=2**20, **request)  # type: ignore[arg-type]
                return [await fetcher.fetch(asked) for _ in range(times)]
        finally:
            await fetcher.close()

    return asyncio.run(play())


def test_every_kind_is_met_here() -> None:
    assert set(FAILING) | LYING == set(SAID) | set(DONE)
    assert not set(SAID) & set(DONE)


@pytest.mark.parametrize("kind", FAILING)
def test_a_poll_fails_with_a_reason(kind: str) -> None:
    (got,) = looks(kind, seconds=0.3 if kind in ("hang", "drip") else 10.0)
    assert got.answer is Answer.FAILED
    assert any(words in got.reason for words in FAILING[kind].split("|")), got.reason
    assert got.retry_after == (2.0 if kind in ("too-many", "unavailable") else None)


def test_the_bomb_is_small_on_the_wire_and_large_within() -> None:
    body = SAID["bomb"]().split(b"\r\n\r\n", 1)[1]
    assert len(body) < 200_000
    unpacker, size = zlib.decompressobj(wbits=31), 0
    while not unpacker.eof:
        size += len(unpacker.decompress(body, 2**22))
        body = unpacker.unconsumed_tail
    assert size == BOMB


def test_the_same_validator_comes_with_other_bodies() -> None:
    one, two = looks("same-etag", 2, etag='"always-the-same"')
    assert one.etag == two.etag == '"always-the-same"'
    assert one.body != two.body


def test_noise_changes_around_what_stays() -> None:
    one, two = looks("noise", 2)
    assert one.body != two.body
    assert one.etag is None
    assert (one.body or b"").split(b"</p>")[0] == (two.body or b"").split(b"</p>")[0]


def test_more_than_promised_is_cut_at_the_promise() -> None:
    one, two = looks("wrong-length", 2)
    assert (one.body, two.body) == (b"longe", b"longe")


def test_a_kind_that_is_none_names_those_that_are() -> None:
    (got,) = looks("nonsense")
    assert "404" in got.reason
