"""Secrets in addresses: they are sent, and nothing that is kept or told has them."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from support.loopback import Loopback, answer
from unstale.cli.fetchers import Fetchers
from unstale.cli.settings import Http, Settings
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Fetched, Listing, what_counts

SETTINGS = replace(Settings(), http=replace(Http(), allow_networks=("127.0.0.1/32",), robots=False))


async def _looked(address: str, kind: str = "http") -> Fetched:
    fetchers = Fetchers(SETTINGS, lambda: 1.8e9)
    try:
        return await fetchers.look(Claim(1, 1, address, kind, 0.0))
    finally:
        await fetchers.close()


def test_a_name_in_an_address_is_filled_when_it_is_polled_and_never_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "a+b/c=")

    async def scene() -> None:
        speeches = {
            "/x?key=a%2Bb%2Fc%3D&$top=5": answer(b"one"),
            "/a%2Bb%2Fc%3D/feed": answer(status="302 Found", location="/y?k=a%2Bb%2Fc%3D&sig=0a&b=1"),
            "/y?k=a%2Bb%2Fc%3D&sig=0a&b=1": answer(b"two"),
        }
        async with Loopback(speeches) as server:
            got = await _looked(f"{server.origin}/x?key=$TOKEN&$top=5")
            assert (got.body, got.address) == (b"one", f"{server.origin}/x?key=$TOKEN&$top=5")
            got = await _looked(f"{server.origin}/${{TOKEN}}/feed")
            assert (got.body, got.address) == (b"two", f"{server.origin}/y?k=${{TOKEN}}&sig=$SIG&b=1")

    asyncio.run(scene())


def test_a_name_that_is_not_set_fails_without_dialling() -> None:
    got = asyncio.run(_looked("http://127.0.0.1:9/x?key=$NOT_SET_HERE"))
    assert got.answer is Answer.FAILED
    assert got.reason.startswith("environment variable NOT_SET_HERE is not set")


def test_a_kind_that_is_none_is_a_failure() -> None:
    assert asyncio.run(_looked("memory:a", "memory")).reason.startswith("kind 'memory' is unknown: choose one of")


@pytest.mark.parametrize(
    ("form", "fingerprint", "asks"),
    [
        # As it was read: only if it has changed.
        ("sitemap", b"x" * 32, True),
        # Its last copy was a page, or was read by other words: all of it, or a sitemap that rests would never be read.
        ("sitemap", None, False),
        # The validator is the point up to which all was told: without it something would be missed.
        ("changes", None, True),
        ("", None, True),
    ],
)
def test_a_collection_that_is_read_by_other_words_is_asked_for_whole(
    form: str, fingerprint: bytes | None, asks: bool
) -> None:
    async def scene() -> None:
        async with Loopback({"/x": answer(b"<urlset/>"), "/x?since=7&limit=1000": answer(b'{"results":[]}')}) as server:
            etag = '"since-7"' if form == "changes" else '"1"'
            held = Claim(1, 1, f"{server.origin}/x", "http", 0.0, {"collection": form}, 5.0, version=1, etag=etag)
            fetchers = Fetchers(SETTINGS, lambda: 1.8e9)
            await fetchers.look(replace(held, fingerprint=fingerprint))
            await fetchers.close()
            (asked,) = server.asked
            assert ("if-none-match" in asked or "since=7" in asked[""]) == asks

    asyncio.run(scene())


def test_what_a_collection_is_read_by_counts() -> None:
    def counts(**options: object) -> tuple[object, ...]:
        return what_counts(Listing("https://example.org/x", options=options))

    assert counts() != counts(collection="sitemap") != counts(collection="feed")
    for name in ("only", "never", "most_members", "depth", "items", "next"):
        assert counts(collection="table", **{name: "1"}) != counts(collection="table")
        assert counts(**{name: "1"}) == counts()
    assert counts(collection="table", weights={"*": 3}, title="x") == counts(collection="table")
