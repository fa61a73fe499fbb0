"""Only entries count, and their times teach: what else moves in a feed makes no change."""

from __future__ import annotations

import asyncio
import json

import pytest

from unstale.adapters.feed_content import MOST_TIMED, feed_content
from unstale.adapters.feed_fetcher import FeedFetcher
from unstale.adapters.memory_fetcher import MemoryFetcher
from unstale.feed_links import advertised
from unstale.keeper.outcomes import Answer
from unstale.ports import Fetched, Request

NOW = 1_800_000_000.0
MAY = 1_714_557_600.0  # 2024-05-01 10:00 UTC
ITEMS = (
    "<item><guid>1</guid><title>one</title><slash:comments>{n}</slash:comments></item>",
    "<item><guid>2</guid><title>two</title></item>",
)


def rss(*items: str, n: int = 0) -> bytes:
    head = f"<rss xmlns:slash='s'><channel><lastBuildDate>{n}</lastBuildDate><generator>g{n}</generator>"
    return f"{head}{''.join(items).format(n=n)}</channel></rss>".encode()


def looked(body: bytes, changed_at: float | None = None) -> Fetched:
    async def scene() -> Fetched:
        inner = MemoryFetcher(now=lambda: NOW)
        inner.put("memory:a", body, changed_at=changed_at)
        return await FeedFetcher(inner).fetch(Request("memory:a"))

    return asyncio.run(scene())


def test_noise_is_no_change() -> None:
    first = feed_content(rss(*ITEMS, n=1))
    assert first == b'[["1"],[],["one"],[],[]]\n[["2"],[],["two"],[],[]]'
    assert feed_content(rss(*ITEMS, n=2)) == first
    assert feed_content(rss(*ITEMS[::-1], n=3)) == first
    # one dialect's words are another's
    atom = "<feed xmlns='http://www.w3.org/2005/Atom'><entry><id>1</id><title>one</title></entry>{}</feed>"
    assert feed_content(atom.format("<entry><title>two</title><id>2</id></entry>").encode()) == first
    items = [{"id": "2", "title": "two", "_views": 9}, {"id": "1", "title": "one"}]
    assert feed_content(json.dumps({"items": items}).encode()) == first


@pytest.mark.parametrize(
    "item",
    [
        "<guid>2</guid><title>two!</title>",
        "<guid>3</guid><title>two</title>",
        "<guid>2</guid><link>two</link>",
        "<guid>2</guid><title>two</title><description>x</description>",
        "<guid>2</guid><title>two</title><pubDate>x</pubDate>",
        "<guid>2</guid><title>two</title><enclosure url='x'/>",
    ],
)
def test_what_an_entry_says_is_a_change(item: str) -> None:
    assert feed_content(rss(ITEMS[0], f"<item>{item}</item>")) != feed_content(rss(*ITEMS))


def test_entries_come_and_go() -> None:
    assert len({feed_content(rss(*items)) for items in (ITEMS, ITEMS[:1], ITEMS[1:], (), (*ITEMS, ITEMS[1]))}) == 5


@pytest.mark.parametrize("body", [b"", b"<html>\xff</html>", b"{}", b"[1]", b'<!DOCTYPE a [<!ENTITY b "c">]><rss/>'])
def test_what_is_no_feed_counts_whole(body: bytes) -> None:
    assert feed_content(body, "application/rss+xml") == body


def test_a_broken_feed_is_compared_by_its_entries_too() -> None:
    one, two = (rss("<item><title>A &nbsp; & B</title></item>", n=n) for n in (1, 2))
    assert feed_content(one) == feed_content(two) != one


def test_times_of_entries_are_when_it_changed() -> None:
    times = [
        "Wed, 01 May 2024 12:02:00 +0200",
        "2024-05-01T10:01:00Z",
        "Wed, 01 May 2024 10:00:00 GMT",
        "2024-05-01T10:01:00+00:00",
    ]
    body = rss(*(f"<item><pubDate>{text}</pubDate></item>" for text in times))
    got = looked(body, changed_at=MAY - 9.0)
    assert (got.answer, got.body) == (Answer.CHANGED, body)
    assert got.changed_at == (MAY, MAY + 60.0, MAY + 120.0)


def test_times_that_cannot_be_believed_teach_nothing() -> None:
    texts = [
        "",
        "nan",
        "NaN",
        "inf",
        "soon",
        "1e308",
        "9999-12-31T23:59:59Z",
        "2030-01-01T00:00:00Z",
        "2024-05-01",
        "2024-05-01T10:00:00",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "0001-01-01T00:00:00+14:00",
        "0000-00-00",
        "Wed, 01 May 2024 25:00:00 GMT",
        "Wed, 32 May 2024 10:00:00 GMT",
        "9" * 5000,
        "Wed, 01 May 99999999999 10:00:00 GMT",
        "2024-05-01T10:00:00Z" + " " * 99 + "x",
    ]
    items = [f"<item><pubDate>{text}</pubDate></item>" for text in texts]
    assert looked(rss(*items), changed_at=MAY).changed_at == (MAY,)
    assert looked(rss(*items)).changed_at == ()
    good = "<item><pubDate>Wed, 01 May 2024 10:00:00 GMT</pubDate></item>"
    assert looked(rss(*items, good)).changed_at == (MAY,)


def test_a_long_archive_tells_times_from_its_top_only() -> None:
    items = (
        f"<item><pubDate>2024-05-01T{i // 3600:02}:{i // 60 % 60:02}:{i % 60:02}Z</pubDate></item>"
        for i in range(MOST_TIMED + 500)
    )
    assert looked(rss(*items)).changed_at == tuple(MAY - 36_000.0 + i for i in range(MOST_TIMED))


@pytest.mark.parametrize("body", [b"<html>we are closed</html>", b"", b"{}", b"plain words", b"<urlset/>", b"\xff\xfe"])
def test_what_is_no_feed_is_a_failure(body: bytes) -> None:
    got = looked(body, changed_at=MAY)
    assert (got.answer, got.body) == (Answer.FAILED, None)
    assert got.reason.endswith("it is no feed (RSS, Atom or JSON Feed), list it as kind http")


@pytest.mark.parametrize(
    "body", [b"<rss><channel><item>&#0;</rss>", b'<!DOCTYPE rss [<!ENTITY a "b">]><rss/>', '<feed x="'.encode("utf-16")]
)
def test_a_feed_that_cannot_be_read_is_an_answer_all_the_same(body: bytes) -> None:
    assert (looked(body).answer, looked(body).body) == (Answer.CHANGED, body)


def test_a_page_tells_where_its_feed_is() -> None:
    page = b"""<!DOCTYPE html><head><base href="https://example.org/blog/"><!-- <link rel="alternate"
      type="application/rss+xml" href="old.xml"> -->
      <LINK href='feed.xml' rel="alternate home" type="application/atom+xml"><link rel="alternate" type="text/html"
      href="/en"><link rel=alternate type=application/feed+json href=/j?token=abc>
      <link rel="alternate" type="application/rss+xml" href="javascript:alert(1)"></head>"""
    assert advertised(page, "https://a.org/") == [
        "https://example.org/blog/feed.xml",
        "https://example.org/j?token=abc",
    ]
    assert looked(page).reason.endswith(
        "it is no feed (RSS, Atom or JSON Feed), add https://example.org/blog/feed.xml or "
        "https://example.org/j?token=$TOKEN instead"
    )


def test_nothing_of_our_environment_is_filled_into_feeds_of_a_page() -> None:
    page = b"<base href='https://a.org/$HOME/'><link rel=alternate type='application/rss+xml' href='feed?a=$HOME'>"
    assert advertised(page, "https://a.org/") == ["https://a.org/%24HOME/feed?a=%24HOME"]
    assert advertised(page, "https://a.org/", "https://a.org/$KEY") == ["https://a.org/%24HOME/feed?a=%24HOME"]
    own = b"<link rel=alternate type='application/rss+xml' href='feed'>"
    assert advertised(own, "https://a.org/$KEY/", "https://a.org/$KEY/") == ["https://a.org/$KEY/feed"]
