"""Feeds of every dialect say the same, broken ones are mended, and hostile ones are over in a moment."""

from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.errors import InputError
from unstale.feeds import DEEPEST, MOST_MARKS, MOST_SIGNS, FeedEntry, read_feed

RSS = b"""<?xml version="1.0"?>
<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" xmlns:slash="http://purl.org/rss/1.0/modules/slash/"
 xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd" xmlns:media="http://search.yahoo.com/mrss/"
 xmlns:c="http://purl.org/rss/1.0/modules/content/"><channel>
<title>Feed</title><lastBuildDate>x</lastBuildDate><atom:link rel="hub" href="https://hub.example/"/>
<atom:link rel="self" href="https://a.example/feed"/>
<item><guid>7</guid><title>A &amp; B</title><itunes:title>other</itunes:title><link> https://a.example/7 </link>
<media:content url="https://a.example/7.jpg"/><slash:comments>12</slash:comments>
<description>short</description><c:encoded><![CDATA[<p>long</p>]]></c:encoded>
<enclosure url="https://a.example/7.mp3" length="5"/><pubDate>Wed, 01 May 2024 10:00:00 GMT</pubDate>
<atom:updated>2024-05-02T10:00:00Z</atom:updated></item></channel></rss>"""
ENTRY = FeedEntry(
    id=("7",),
    link=("https://a.example/7", "https://a.example/7.mp3"),
    title=("A & B",),
    content=("short", "<p>long</p>"),
    times=("Wed, 01 May 2024 10:00:00 GMT", "2024-05-02T10:00:00Z"),
)


def test_rss_with_its_modules() -> None:
    feed = read_feed(RSS)
    assert feed.entries == (ENTRY,)
    assert feed.hubs == ("https://hub.example/",)


def test_rss_1_names_its_entries_in_an_attribute() -> None:
    feed = b"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/">
    <channel rdf:about="https://a.example/"/><item rdf:about="https://a.example/7"><title>T</title></item></rdf:RDF>"""
    assert read_feed(feed).entries == (FeedEntry(id=("https://a.example/7",), title=("T",)),)


def test_atom() -> None:
    feed = b"""<feed xmlns="http://www.w3.org/2005/Atom"><id>feed</id><link rel="hub" href="https://hub.example/"/>
    <entry><id>7</id><title type="html">T</title><link rel="alternate" href="https://a.example/7"/>
    <link rel="replies" href="https://a.example/7?comments=5"/><updated>2024-05-02T10:00:00Z</updated>
    <content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml"><a href="x" class="y">one</a> two</div></content>
    <source><id>elsewhere</id><updated>2023-01-01T00:00:00Z</updated></source></entry></feed>"""
    entry = FeedEntry(
        ("7",), ("https://a.example/7",), ("T",), ("<div><a class='y' href='x'>one two",), ("2024-05-02T10:00:00Z",)
    )
    assert read_feed(feed).entries == (entry,)
    assert read_feed(feed).hubs == ("https://hub.example/",)


def test_json_feed() -> None:
    item = {"id": 7, "url": "u", "title": "T", "content_html": "<p>", "date_modified": "2024", "tags": ["x"], "n": 1}
    feed = json.dumps({"items": [item, 5, {"id": None, "title": []}], "hubs": [{"url": "h"}, 1, {"url": 2}]})
    got = read_feed(b"\xef\xbb\xbf " + feed.encode())
    assert got.entries == (FeedEntry(("7",), ("u",), ("T",), ("<p>",), ("2024",)), FeedEntry(), FeedEntry())
    assert got.hubs == ("h",)


@pytest.mark.parametrize(
    ("broken", "title"),
    [
        (b"A&nbsp;B", "A\xa0B"),
        (b"A & B && C&", "A & B && C&"),
        (b"A &LT; &bogus; &#8211; &eacute;", "A < &bogus; – é"),
        (b"A\x00\x0b\x1fB", "AB"),
        (b"caf\xe9", "caf�"),
    ],
)
def test_what_is_often_broken_is_mended(broken: bytes, title: str) -> None:
    feed = (
        b"\n<?xml version='1.0'?><!DOCTYPE rss SYSTEM 'x'><rss><channel><item><title>%s</title></item></channel></rss>"
    )
    with pytest.raises(InputError):
        read_feed(feed % broken)
    assert read_feed(feed % broken, repair=True).entries == (FeedEntry(title=(title,)),)


def test_a_declared_encoding_is_believed_if_it_is_one() -> None:
    feed = "<?xml version='1.0' encoding='%s'?><rss><channel><item><title>é &nbsp;</title></item></channel></rss>"
    for declared, real in (("windows-1252", "cp1252"), ("ISO-8859-1", "latin-1"), ("nonsense", "utf-8")):
        assert read_feed((feed % declared).encode(real), repair=True).entries[0].title == ("é",)


def _filled(head: bytes, unit: bytes, tail: bytes = b"", size: int = 2**24) -> bytes:
    return head + unit * ((size - len(head) - len(tail)) // len(unit)) + tail


HEAD, TAIL = b"<rss><channel><item><title>", b"</title></item></channel></rss>"
HOSTILE = {
    "laughs": b'<!DOCTYPE r [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>' + HEAD + b"&b;" + TAIL,
    "other files": b'<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/hostname">]>' + HEAD + b"&a;" + TAIL,
    "document types": _filled(b"", b"<!DOCTYPE a "),
    "deep": b"<rss>" * (MOST_MARKS - 1),
    "as many marks as may be": b"<rss><channel>" + b"<item/>" * (MOST_MARKS - 4) + b"</channel></rss>",
    "more": b"<rss><channel>" + b"<item/>" * MOST_MARKS + b"</channel></rss>",
    "attributes": b"<rss " + b" ".join(b"a%d=''" % i for i in range(MOST_SIGNS)) + b"/>",
    "more attributes": b"<rss " + b" ".join(b"a%d=''" % i for i in range(MOST_SIGNS + 1)) + b"/>",
    "entities": _filled(HEAD, b"&amp;", TAIL),
    "names of HTML": HEAD + b"&nbsp;" * MOST_SIGNS + TAIL,
    "ampersands": _filled(HEAD, b"&", TAIL),
    "an endless tag": _filled(b"<rss x='", b"a"),
    "an endless comment": _filled(b"<rss><!--", b"a"),
    "an endless document type": _filled(b"<!DOCTYPE ", b"a"),
    "no text": _filled(b"", b"\x00"),
    "no encoding": _filled(HEAD, b"\xff", TAIL),
    "deep JSON": _filled(b'{"items":', b"["),
    "nested JSON": b'{"items":' + b"[" * 100_000,
    "much JSON": _filled(b'{"items":[', b"{},", b"0]}"),
    "a long number": _filled(b'{"items":[', b"9", b"]}"),
    "nothing": b"",
    "spaces": b" \n" * 1000,
    "another document": b"<html><body/></html>",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_is_hostile_is_over_in_a_moment(what: str) -> None:
    body = HOSTILE[what]
    begin, said = time.process_time(), ""
    try:
        assert len(read_feed(body, repair=True).entries) <= MOST_MARKS
    except InputError as error:
        said = str(error)
    assert time.process_time() - begin < 2.0
    assert said == "" or said.startswith("feed '' cannot be read: ")
    assert "\n" not in said
    assert len(said) < 200


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("laughs", "document type"),
        ("other files", "document type"),
        ("deep", f"more than {DEEPEST} deep"),
        ("more", f"more than {MOST_MARKS} marks"),
        ("much JSON", f"more than {MOST_MARKS} marks"),
        ("another document", "it is <html>"),
    ],
)
def test_why_it_is_refused(what: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        read_feed(HOSTILE[what], repair=True)


@given(st.binary(max_size=300), st.integers(0, len(RSS)), st.integers(0, 50))
def test_no_bytes_raise_anything_else(noise: bytes, at: int, cut: int) -> None:
    for body in (noise, b"{" + noise, RSS[:at] + noise + RSS[at + cut :]):
        with contextlib.suppress(InputError):
            read_feed(body, repair=True)
