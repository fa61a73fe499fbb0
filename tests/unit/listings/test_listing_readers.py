"""Readers of listings against what real programs print, and against what strangers may send."""

from __future__ import annotations

import functools
import gzip
import hashlib
import http.server
import json
import subprocess
import threading
import tracemalloc
import urllib.request
import xmlrpc.client
from contextlib import suppress
from pathlib import Path

import pytest

from unstale.errors import InputError
from unstale.listings import changelog
from unstale.listings.packed import unpacked
from unstale.listings.readers import READERS, read_all, read_listing
from unstale.listings.records import CollectionMember, ListingEntry, ListingPoll, Told, signal
from unstale.listings.taking import Scope, Taker

NOW = 1_750_000_000.0
SITE = "https://example.org/"


def read(kind: str, data: bytes, base: str = SITE) -> ListingPoll:
    return read_listing(kind, data, base, now=NOW)


# --- what real programs print


def test_the_directory_of_pythons_own_server(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("one")
    (tmp_path / "sub").mkdir()
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(tmp_path))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}/"
        with urllib.request.urlopen(base) as answer:
            page = answer.read()
        server.shutdown()
    got = read("index", page, base)
    # a collection at a private address may have members there
    assert [entry.address for entry in got.entries] == [f"{base}a%20b.txt"]
    assert got.more == (f"{base}sub/",)


def test_the_references_that_git_prints(tmp_path: Path) -> None:
    def git(*args: str) -> str:
        own = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
        done = subprocess.run(["git", *own, *args], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout

    git("init", "-q", "-b", "main")
    git("commit", "-q", "--allow-empty", "-m", "one")
    git("tag", "-a", "v1", "-m", "first")
    got = read("refs", git("ls-remote", ".").encode(), "https://example.org/a.git")
    refs = {
        entry.address.removeprefix("https://example.org/a/archive/").removesuffix(".tar.gz"): entry.tag
        for entry in got.entries
    }
    assert set(refs) == {"refs/heads/main", "refs/tags/v1"}
    assert refs["refs/heads/main"] == git("rev-parse", "main").strip()
    assert refs["refs/tags/v1"] == git("rev-parse", "v1").strip()


def test_pages_of_an_object_store() -> None:
    """The answer to ListObjectsV2 as the S3 API reference prints it, shortened."""
    page = b"""<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>bucket</Name><Prefix/><NextContinuationToken>1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM=</NextContinuationToken>
  <KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys><IsTruncated>true</IsTruncated>
  <Contents><Key>happyface.jpg</Key><LastModified>2014-11-21T19:40:05.000Z</LastModified>
    <ETag>"70ee1738b6b21e2c8a43f3a5ab0eee71"</ETag><Size>11</Size><StorageClass>STANDARD</StorageClass></Contents>
  <Contents><Key>folder/</Key><LastModified>2014-11-21T19:40:05.000Z</LastModified><ETag>"0"</ETag></Contents>
</ListBucketResult>"""
    got = read("objects", page, "s3://bucket/")
    assert got.entries == (ListingEntry("s3://bucket/happyface.jpg", 1416598805.0, "70ee1738b6b21e2c8a43f3a5ab0eee71"),)
    assert got.cursor == "1ueGcxLPRx1Tr/XYExHnhbYLgveDs2J/wm36Hy4vbOwM="


def test_the_directories_of_apache_and_nginx() -> None:
    apache = b"""<table><tr><th><a href="?C=N;O=D">Name</a></th></tr>
<tr><td><a href="/pub/">Parent Directory</a></td><td>&nbsp;</td></tr>
<tr><td><a href="old/">old/</a></td><td align="right">2024-04-30 09:00  </td><td align="right">  - </td></tr>
<tr><td><a href="a.tar.gz">a.tar.gz</a></td><td align="right">2024-05-01 12:30  </td><td align="right">1.5M</td></tr>
</table>"""
    got = read("index", apache, "https://example.org/pub/files/")
    assert got.entries == (
        ListingEntry("https://example.org/pub/files/a.tar.gz", 1714566600.0, "2024-05-01 12:30 1.5M", 60.0),
    )
    assert got.more == ("https://example.org/pub/files/old/",)
    nginx = b"""<h1>Index of /files/</h1><hr><pre><a href="../">../</a>
<a href="b.iso">b.iso</a>                                              01-May-2024 12:30           123456789
</pre>"""
    assert read("index", nginx, "https://example.org/files/").entries == (
        ListingEntry("https://example.org/files/b.iso", 1714566600.0, "2024-05-01 12:30 123456789", 60.0),
    )


def test_objects_have_the_names_that_they_have() -> None:
    names = ("a b.csv", "100%?#.csv", "a\x07")
    rows = json.dumps([{"name": name, "kind": "file"} for name in names]).encode()
    got = read("folder", rows, "s3://bucket/logs/")
    assert [entry.address for entry in got.entries] == ["s3://bucket/logs/a b.csv", "s3://bucket/logs/100%?#.csv"]
    assert got.refused == {"not an address": 1}


def test_a_date_in_the_name_of_a_file_is_no_time() -> None:
    page = b"""<pre><a href="dump-2024-01-31.sql">dump-2024-01-31.sql</a>   01-May-2024 12:30     7
<A HREF="log-2024-01-31">log-2024-01-31</A >   2024-05-01 12:30  1.2K
<a href="bare-2024-01-31">bare-2024-01-31</a></pre>"""
    dump, log, bare = read("index", page).entries
    assert (dump.time, dump.tag) == (1714566600.0, "2024-05-01 12:30 7")
    assert (log.time, log.tag) == (1714566600.0, "2024-05-01 12:30 1.2K")
    assert (bare.time, bare.tag) == (None, None)


def test_sitemaps_and_sitemaps_of_sitemaps_packed_or_not() -> None:
    urls = b"""<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
<url><loc>https://example.org/a?x=1&amp;y=2</loc><lastmod>2024-05-01T12:30:00+02:00</lastmod></url>
<url><loc>https://example.org/b</loc><lastmod>2024-05-01</lastmod></url><url><loc>/c</loc></url></urlset>"""
    for data in (urls, gzip.compress(urls)):
        assert read("sitemap", data).entries == (
            ListingEntry("https://example.org/a?x=1&y=2", 1714559400.0),
            ListingEntry("https://example.org/b", 1714521600.0, None, 86_400.0),
            ListingEntry("https://example.org/c"),
        )
    index = b"<sitemapindex><sitemap><loc>https://example.org/s1.xml.gz</loc></sitemap></sitemapindex>"
    assert read("sitemap", index).more == ("https://example.org/s1.xml.gz",)


def test_feeds_tell_of_the_pages_they_link_to() -> None:
    rss = b"""<rss><channel><item><link>https://example.org/1</link><guid>x</guid>
<pubDate>Wed, 01 May 2024 10:30:00 GMT</pubDate></item></channel></rss>"""
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><link href="https://example.org/1"/>
<published>2024-04-01T00:00:00Z</published><updated>2024-05-01T10:30:00Z</updated></entry></feed>"""
    json_feed = b'{"items": [{"id": 1, "url": "https://example.org/1", "date_modified": "2024-05-01T10:30:00Z"}]}'
    for data in (rss, atom, json_feed):
        assert read("feed", data).entries == (ListingEntry("https://example.org/1", 1714559400.0),)


def test_package_indexes() -> None:
    simple = b'{"meta": {"api-version": "1.1"}, "projects": [{"name": "flask", "_last-serial": 42}]}'
    assert read("simple", simple, "https://example.org/simple/").entries == (
        ListingEntry("https://example.org/simple/flask/", None, "serial 42"),
    )
    page = b'<!DOCTYPE html><a href="/files/a-1.0.tar.gz#sha256=ab12">a-1.0.tar.gz</a><br/>'
    assert read("simple", page).entries == (
        ListingEntry("https://example.org/files/a-1.0.tar.gz", None, "sha256=ab12"),
    )
    changes = b'{"results": [{"seq": 7, "id": "left-pad", "changes": [{"rev": "2-a"}]}], "last_seq": 7}'
    got = read("changes", changes)
    assert (got.entries, got.cursor) == ((ListingEntry("https://example.org/left-pad", None, "2-a"),), "7")
    digest = hashlib.sha256(b"").hexdigest()
    packages = f"Package: a\nFilename: pool/a_1.deb\nSHA256: {digest}\n\nPackage: b\nFilename: pool/b_1.deb\n".encode()
    assert [(e.address, e.tag) for e in read("debian", packages).entries] == [
        ("https://example.org/pool/a_1.deb", digest),
        ("https://example.org/pool/b_1.deb", None),
    ]
    release = f"Suite: stable\nSHA256:\n {digest} 0 main/Packages\n".encode()
    assert read("debian", release).entries == (ListingEntry("https://example.org/main/Packages", None, digest),)


def test_the_changelog_of_a_package_index() -> None:
    """As Python's own library writes answers; what it cannot say is refused by row."""
    rows = [
        ["Zope.Interface", "5.0", 1714559400, "new release", 41],
        ["flask", None, 1714559500, "create", 42],
        ["zope.interface", "5.1", 1714559600, "new release", 44],
        ["Zope.Interface", "5.1", 1714559700, "add source file", 43],
        ["short", 1],
        ["", "1", 2, "x", 45],
        ["odd", "1", 2, "x", "never"],
    ]
    got = read("changelog", xmlrpc.client.dumps((rows,), methodresponse=True, allow_none=True).encode(), f"{SITE}RPC2")
    assert got.entries == (
        ListingEntry(f"{SITE}simple/zope-interface/", 1714559600.0, "serial 44"),
        ListingEntry(f"{SITE}simple/flask/", 1714559500.0, "serial 42"),
    )
    assert (got.cursor, got.complete, dict(got.refused)) == ("44", True, {"no row": 3})
    last = xmlrpc.client.dumps((44,), methodresponse=True).encode()
    assert (read("changelog", last).cursor, read("changelog", last).entries) == ("44", ())
    nothing = xmlrpc.client.dumps(([],), methodresponse=True).encode()
    assert (read("changelog", nothing).cursor, read("changelog", nothing).entries) == (None, ())
    shape = {"member": "/{name}/{version}/json"}
    one = xmlrpc.client.dumps(([["a/../b", "1?x", 5, "new release", 9]],), methodresponse=True).encode()
    (entry,) = read_listing("changelog", one, SITE, now=NOW, options=shape).entries
    assert entry.address == f"{SITE}a%2F..%2Fb/1%3Fx/json"
    for refused in (xmlrpc.client.Fault(-32500, "too many requests\n\x85 by you"), ("text",), ({"a": 1},)):
        answer = xmlrpc.client.dumps(refused, methodresponse=True).encode()
        with pytest.raises(InputError, match=r"is no changelog|was not given: too many requests by you$"):
            read("changelog", answer)


def test_a_changelog_that_is_full_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changelog, "FULL", 3)
    rows = [[f"p{k}", "1", 5, "x", k] for k in range(1, 4)]
    for count, whole in ((2, True), (3, False)):
        got = read("changelog", xmlrpc.client.dumps((rows[:count],), methodresponse=True).encode())
        assert (got.complete, got.cursor) == (whole, str(count))


def test_tables() -> None:
    rows = b'[{"url": "https://example.org/a", "updated_at": 1714559400, "etag": "x"}]'
    lines = b'{"url": "https://example.org/a", "updated_at": 1714559400, "etag": "x"}\n' * 2
    csv = b"url,updated_at,etag\nhttps://example.org/a,1714559400,x\n"
    for data in (rows, lines, csv, b'{"items": ' + rows + b"}"):
        assert read("table", data).entries == (ListingEntry("https://example.org/a", 1714559400.0, "x"),)


# --- what strangers may send


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("javascript:alert(1)", "another scheme"),
        ("file:///etc/passwd", "another scheme"),
        ("https://other.example/", "another host"),
        ("http://127.0.0.1/admin", "a private address"),
        ("http://169.254.169.254/latest", "a private address"),
        ("http://[::1]/", "a private address"),
        ("http://printer.local/", "a private address"),
        ("https://example.org@evil.example/", "another host"),
        ("https://example.org:6379/", "another port"),
        ("http://example.org:22/", "another port"),
        ("https://example.org:x/", "another port"),
        ("https://example.org/" + "a" * 3000, "too long"),
        ("https://example.org/a b", "not an address"),
        ("https://example.org/\x07", "not an address"),
    ],
)
def test_an_entry_out_of_scope_is_refused_and_counted(address: str, reason: str) -> None:
    to = Taker(SITE, NOW, Scope.of(SITE))
    assert to.take(address)
    assert to.take("https://www.example.org/good")
    assert to.inner(address) is None
    got = to.poll()
    assert [entry.address for entry in got.entries] == ["https://www.example.org/good"]
    assert (dict(got.refused), got.more) == ({reason: 2}, ())


def test_a_site_is_at_its_own_port_and_at_those_of_the_web() -> None:
    there = "http://example.org:8080/sitemap.xml"
    to = Taker(there, NOW, Scope.of(there))
    for place in (
        "http://example.org:8080",
        "http://example.org:08080",
        "https://www.example.org",
        "http://example.org:80",
    ):
        assert to.take(f"{place}/a")
    assert to.take("http://example.org:8081/a")
    assert (len(to.poll().entries), dict(to.poll().refused)) == (4, {"another port": 1})


def test_a_date_in_the_future_is_no_date_but_the_entry_stays() -> None:
    page = (
        b"<urlset><url><loc>/a</loc><lastmod>2199-01-01</lastmod></url>"
        b"<url><loc>/b</loc><lastmod>soon</lastmod></url></urlset>"
    )
    got = read("sitemap", page)
    assert [entry.time for entry in got.entries] == [None, None]
    assert dict(got.refused) == {"in the future": 1, "no time": 1}


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    bomb = gzip.compress(b"\0" * 2**26)
    tracemalloc.start()
    with pytest.raises(InputError, match="unpacks to more than"):
        unpacked(bomb, most=2**16)
    assert tracemalloc.get_traced_memory()[1] < 2**21
    tracemalloc.stop()
    laughs = b'<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]><urlset><url><loc>&b;</loc></url></urlset>'
    for kind, data in (
        ("sitemap", laughs),
        ("objects", laughs),
        ("changelog", laughs),
        ("sitemap", b"<a>" * 1000),
        ("table", b"[" * 100_000),
    ):
        with pytest.raises(InputError, match="cannot be read"):
            read(kind, data)


def test_entries_without_end_are_cut_and_the_listing_is_not_complete() -> None:
    page = b"<urlset>" + b"".join(b"<url><loc>/%d</loc></url>" % i for i in range(500)) + b"</urlset>"
    got = read_listing("sitemap", page, SITE, now=NOW, most=100)
    assert (len(got.entries), got.complete) == (100, False)
    # what is cut off is not even read
    broken = page[:-20] + b"<broken"
    assert len(read_listing("sitemap", broken, SITE, now=NOW, most=100).entries) == 100


def test_sitemaps_that_name_each_other_are_read_once() -> None:
    def load(address: str) -> bytes:
        if address.endswith("bad.xml"):
            raise InputError("listing cannot be fetched: it is gone")
        inner = ("a.xml", "b.xml", "bad.xml", "https://evil.example/c.xml")
        names = "".join(f"<sitemap><loc>{n}</loc></sitemap>" for n in inner)
        return f"<sitemapindex>{names}<url><loc>/from?{address[-5:]}</loc></url></sitemapindex>".encode()

    pages = list(read_all("sitemap", f"{SITE}a.xml", load, now=NOW))
    assert [entry.address for page in pages for entry in page.entries] == [f"{SITE}from?a.xml", f"{SITE}from?b.xml"]
    assert [page.complete for page in pages] == [True, True, False]
    assert pages[0].refused["another host"] == 1


def test_listings_within_listings_end() -> None:
    count = iter(range(10**9))

    def load(_: str) -> bytes:
        return b"<sitemapindex>%b</sitemapindex>" % b"".join(
            b"<sitemap><loc>/%d.xml</loc></sitemap>" % next(count) for _ in range(3)
        )

    pages = list(read_all("sitemap", f"{SITE}a.xml", load, now=NOW, most_listings=20))
    assert len(pages) == 20
    assert not all(page.complete for page in pages)


@pytest.mark.parametrize("kind", sorted(READERS))
def test_any_bytes_are_read_or_refused_in_a_sentence(kind: str) -> None:
    for seed in range(200):
        data = hashlib.sha512(f"{kind}{seed}".encode()).digest() * 3
        for whole in (data, b"<a href=" + data, b'{"results": ' + data, b"<urlset>" + data, b"\x1f\x8b" + data):
            with suppress(InputError):
                assert all(entry.address.startswith(SITE) for entry in read(kind, whole).entries)


# --- what entries say


def test_tags_decide_before_times_and_wrong_clocks_are_not_believed() -> None:
    member = CollectionMember(1, 2, "a", time=100.0, tag="x")
    cases = [
        (None, Told.NO_WORD, None),
        (ListingEntry("a"), Told.NO_WORD, None),
        (ListingEntry("a", 200.0, "x"), Told.UNCHANGED, None),
        (ListingEntry("a", 200.0, "y"), Told.CHANGED, 200.0),
        (ListingEntry("a", 200.0, None, 86_400.0), Told.CHANGED, 300.0),
        (ListingEntry("a", 100.0), Told.UNCHANGED, None),
        (ListingEntry("a", 50.0, "y"), Told.CHANGED, None),
        (ListingEntry("a", 400.0, "y"), Told.CHANGED, None),
    ]
    for entry, told, at in cases:
        got = signal(member, entry, now=300.0)
        assert (got.told, got.at) == (told, at), entry


def test_a_page_where_a_sitemap_should_be_is_called_one() -> None:
    with pytest.raises(InputError, match="it is a page of HTML, so say how it is read with --listing"):
        read("sitemap", b"<!DOCTYPE html><html><body>Not found</body></html>")
    with pytest.raises(InputError, match="declares a document type, which may hide anything"):
        read("sitemap", b'<!DOCTYPE x [<!ENTITY a "b">]><urlset/>')
