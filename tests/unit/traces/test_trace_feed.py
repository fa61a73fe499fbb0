"""Feeds of every kind: the same four entries, the same changes."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from unstale.errors import InputError
from unstale.traces.feed import read_feed

NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def direct(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy of the machine that runs the tests must not come between."""
    monkeypatch.setenv("no_proxy", "*")


MAY = 1_714_557_600  # 2024-05-01 10:00 UTC

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>
<title>T</title><pubDate>Mon, 01 Jan 2024 00:00:00 GMT</pubDate><lastBuildDate>x</lastBuildDate>
<item><title>c &amp; d</title><pubDate>Wed, 01 May 2024 12:02:00 +0200</pubDate>
<dc:date>2024-05-01T10:02:00Z</dc:date></item>
<item><pubDate>Wed, 01 May 2024 10:01:00 GMT</pubDate></item>
<item><pubDate><![CDATA[Wed, 01 May 2024 06:00:00 EDT]]></pubDate></item>
</channel></rss>"""
RDF = """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><channel><dc:date>2024-01-01T00:00:00Z</dc:date></channel>
<item><dc:date>2024-05-01T10:00:00Z</dc:date></item><item><dc:date>2024-05-01T10:01:00Z</dc:date></item>
<item><dc:date>2024-05-01T10:02:00Z</dc:date></item></rdf:RDF>"""
ATOM = """<?xml version="1.0"?>
<feed xmlns="http://www.w3.org/2005/Atom"><updated>2024-01-01T00:00:00Z</updated>
<entry><published>2024-05-01T10:01:00Z</published><updated>2024-05-01T12:02:00+02:00</updated>
<source><updated>2023-01-01T00:00:00Z</updated></source></entry>
<entry><published>2024-05-01T10:00:00Z</published><updated>2024-05-01T10:00:00Z</updated></entry></feed>"""
JSON = json.dumps(
    {
        "version": "https://jsonfeed.org/version/1.1",
        "items": [
            {"id": "2", "date_published": "2024-05-01T10:01:00Z", "date_modified": "2024-05-01T10:02:00Z"},
            {"id": "1", "date_published": "2024-05-01T12:00:00+02:00"},
        ],
    }
)
LAUGHS = """<!DOCTYPE x [<!ENTITY a "ha"><!ENTITY b "&a;&a;">]>
<rss><channel><item><pubDate>&b;</pubDate></item></channel></rss>"""


def saved(tmp_path: Path, text: str | bytes) -> str:
    file = tmp_path / "feed"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(file)


@pytest.mark.parametrize(
    "text",
    [
        RSS,
        RDF,
        ATOM,
        JSON,
        "\ufeff" + JSON,
        "\ufeff" + ATOM,
        RSS.replace("UTF-8", "utf-16").encode("utf-16"),
        RSS.replace("UTF-8", "iso-8859-1").replace("<title>T", "<title>é").encode("iso-8859-1"),
    ],
    ids=["RSS 2", "RSS 1", "Atom", "JSON", "JSON with mark", "Atom with mark", "UTF-16", "Latin-1"],
)
def test_every_kind_of_feed(tmp_path: Path, text: str | bytes) -> None:
    path = saved(tmp_path, text)
    trace, problems = read_feed([path], now=NOW)
    assert trace.names == (path,)
    assert trace.times.tolist() == [MAY, MAY + 60, MAY + 120]
    assert not problems.counts()


def test_several_feeds_are_several_sources(tmp_path: Path) -> None:
    paths = []
    for name, text in (("b", RSS), ("a", ATOM)):
        (tmp_path / name).write_text(text)
        paths.append(str(tmp_path / name))
    trace, _ = read_feed(paths, now=NOW)
    assert trace.names == tuple(sorted(paths))
    assert trace.counts().tolist() == [3, 3]


def test_entries_without_a_usable_time_are_counted(tmp_path: Path) -> None:
    times = [
        "Wed, 01 May 2024 10:00:00 GMT",
        "",
        "soon",
        "Wed, 01 May 2024 10:00:00 GMT",
        "2030-01-01T00:00:00Z",
        "2024-05-01T10:05",
    ]
    items = "".join(f"<item><pubDate>{t}</pubDate></item>" for t in times) + "<item><title>x</title></item>"
    trace, problems = read_feed([saved(tmp_path, f"<rss><channel>{items}</channel></rss>")], now=NOW)
    assert trace.times.tolist() == [MAY, MAY + 300]
    assert problems.counts() == {"malformed": 1, "missing_time": 2, "future": 1, "duplicate": 1, "zoneless": 1}
    assert problems.rows == 7
    assert problems.examples["malformed"] == "'soon' in row 3"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (LAUGHS, "it declares a document type"),
        ('<!DOCTYPE x SYSTEM "file:///etc/hostname"><rss/>', "it declares a document type"),
        ("<html><body>no</body></html>", "it is <html>, not RSS or Atom"),
        ("<rss><channel>", "its XML is broken"),
        ("", "its XML is broken"),
        ("\x00\x01", "its XML is broken"),
        ('<?xml version="1.0" encoding="nonsense"?><rss/>', "its XML is broken|cannot be decoded"),
        ("<x>" * 100_000, "it is <x>, not RSS or Atom"),
        ("<rss>" * 100_000, "it is nested more than 200 deep"),
        ("{", "its JSON is broken"),
        ('{"a":' * 100_000, "its JSON is broken"),
        ("{}", "its JSON has no items"),
        ("<rss/>", "has no change that can be used: it has no rows"),
        ("<rss><item/></rss>", "has no change that can be used: 1 row has no time"),
    ],
    ids=range(14),
)
def test_what_is_no_feed_is_refused_in_a_sentence(tmp_path: Path, text: str, match: str) -> None:
    with pytest.raises(InputError, match=match) as error:
        read_feed([saved(tmp_path, text)])
    assert "\n" not in str(error.value)


def test_a_missing_file() -> None:
    with pytest.raises(InputError, match=r"file 'no\.xml' does not exist"):
        read_feed(["no.xml"])


def test_an_address() -> None:
    class Site(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(ATOM.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/é.xml"
    trace, _ = read_feed([address], now=NOW)
    server.shutdown()
    server.server_close()
    assert trace.names == (address,)
    assert trace.times.tolist() == [MAY, MAY + 60, MAY + 120]
