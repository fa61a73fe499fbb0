"""Exports of other monitors: what we have a word for is taken over, the rest is named."""

from __future__ import annotations

import io
import json
import sqlite3
import zipfile
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unstale.adapters.admission import checked_options
from unstale.errors import InputError
from unstale.lists import archives
from unstale.lists.read import format_of, read_list

CHANGEDETECTION: dict[str, Any] = {
    "app_guid": "x",
    "settings": {"application": {"tags": {"t1": {"title": "prices"}, "t2": {"title": "news"}}}},
    "watching": {
        "a": {
            "url": "https://a.example/page",
            "title": "A page",
            "tags": ["t1", "t2", "gone"],
            "include_filters": ["main .price", "xpath://div", "/html/body", "json:$.a"],
            "subtractive_selectors": [".clock"],
            "headers": {"Accept-Language": "de"},
            "paused": True,
            "method": "GET",
            "time_between_check": {"weeks": None, "hours": 3},
            "trigger_text": ["in stock", "/sold/i"],
            "ignore_text": ["sale"],
        },
        "b": {
            "url": "https://b.example/",
            "tag": "old, older",
            "time_between_check": {"hours": None},
            "fetch_backend": "html_webdriver",
        },
        "c": {"url": "https://c.example/", "method": "POST"},
        "d": "broken",
    },
}
KUMA: dict[str, Any] = {
    "version": "1.23.0",
    "notificationList": [],
    "monitorList": [
        {"name": "site", "type": "http", "url": "https://a.example/", "interval": 60, "active": False},
        {"name": "word", "type": "keyword", "url": "https://b.example/", "keyword": "ok", "tags": [{"name": "shop"}]},
        {"name": "router", "type": "ping", "hostname": "10.0.0.1"},
    ],
}


def checked(address: str, kind: str, options: Any) -> str:
    """As sources are judged when they are added, but for the gate."""
    checked_options(options)
    return address


def read(export: dict[str, Any]) -> Any:
    return read_list(json.dumps(export).encode())


def test_watches_of_changedetection() -> None:
    found = read(CHANGEDETECTION)
    assert found.problems == []
    first, second = found.listings
    assert (first.address, first.paused) == ("https://a.example/page", True)
    assert first.options == {
        "title": "A page",
        "tags": ["prices", "news"],
        "normalise": {
            "keep": ["main .price"],
            "xpath": ["//div", "/html/body"],
            "selectors": [".clock"],
            "drop_patterns": ["^.*sale.*$"],
        },
        "triggers": {"appear": ["in stock"]},
        "headers": {"Accept-Language": "de"},
    }
    assert (second.address, second.paused, second.options) == ("https://b.example/", False, {"tags": ["old", "older"]})
    assert [one.kind for one in found.listings] == ["http", "browser"]
    assert found.unused == (
        "include_filters that are neither CSS nor XPath",
        "time_between_check",
        "trigger_text that is an expression",
        "watch 'https://c.example/', which is not asked with GET",
        "watch 4, which is not asked with GET",
    )


def test_monitors_of_uptime_kuma() -> None:
    found = read(KUMA)
    assert found.problems == []
    assert [(one.address, one.paused, one.options) for one in found.listings] == [
        ("https://a.example/", True, {"title": "site"}),
        ("https://b.example/", False, {"title": "word", "tags": ["shop"]}),
    ]
    assert found.unused == ("interval", "keyword", "monitor 'router', which is of no web address")


URLWATCH = b"""# my jobs
---
name: Prices
url: https://a.example/prices
tags: [shop]
filter:
  - css: main .price
  - xpath: //h2
  - html2text
  - grep: EUR
  - grepv: {re: sale}
  - shellpipe: "rm -rf /"
headers: {Accept-Language: de}
timeout: 5
---
name: Drawn
navigate: https://b.example/
filter: css:body,strip
---
name: Disk
command: df -h
"""


def test_jobs_of_urlwatch() -> None:
    pytest.importorskip("yaml")
    assert format_of("urls.yaml", URLWATCH) == format_of("list", URLWATCH) == "urlwatch"
    found = read_list(URLWATCH, check=checked)
    assert found.problems == []
    first, second = found.listings
    assert (first.address, first.kind, second.address, second.kind) == (
        *("https://a.example/prices", "http"),
        *("https://b.example/", "browser"),
    )
    assert first.options == {
        "title": "Prices",
        "tags": ["shop"],
        "headers": {"Accept-Language": "de"},
        "normalise": {
            "keep": ["main .price"],
            "xpath": ["//h2"],
            "text": True,
            "patterns": ["^.*(?:EUR).*$"],
            "drop_patterns": ["^.*(?:sale).*$"],
        },
    }
    assert second.options["normalise"] == {"keep": ["body"], "whitespace": True}
    assert found.unused == ("filter shellpipe", "job 'Disk', which is no page", "timeout")
    for broken in (b"url: [", b"url: 7\n", b"- url: x\n", b"url: !!python/object:os.system x\n", b"url: &a [*a]\n"):
        with pytest.raises(InputError):
            read_list(broken, format="urlwatch")


@pytest.mark.parametrize(("export", "form"), [(CHANGEDETECTION, "changedetection"), (KUMA, "uptime-kuma")])
def test_they_are_known_by_their_content(export: dict[str, Any], form: str) -> None:
    assert format_of("backup.json", json.dumps(export, indent=2).encode()) == form
    with pytest.raises(InputError, match="is no export in JSON"):
        read_list(b"[]", format=form)


NAMES = ["url", "tags", "tag", "type", "name", "headers", "include_filters", "title", "paused"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.just("http"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=5),
)


@given(JSON, st.sampled_from(["watching", "monitorList"]))
def test_no_export_breaks_it(found: Any, name: str) -> None:
    good = {"url": "https://a.example/", "name": "a", "type": "http"}
    listed = {"a": good, "b": found} if name == "watching" else [good, found]
    assert "https://a.example/" in [one.address for one in read_list(json.dumps({name: listed}).encode()).listings]


#: as its serializer writes it, with the namespace of its own
MINIFLUX = b"""<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0" xmlns:miniflux="https://miniflux.app/opml">
    <head>
        <title>Miniflux</title>
        <dateCreated>Wed, 18 Nov 2026 01:00:00 UTC</dateCreated>
    </head>
    <body>
        <outline text="All">
            <outline title="A &amp; B" text="A &amp; B" type="rss" xmlUrl="https://a.example/feed.xml"
                htmlUrl="https://a.example/" description="Notes" miniflux:crawler="true"
                miniflux:scraperRules="article" miniflux:proxyUrl="http://me:s3cret@proxy/"
                miniflux:hideGlobally="false"></outline>
        </outline>
        <outline text="Work">
            <outline title="Off" text="Off" type="rss" xmlUrl="https://b.example/rss"
                miniflux:disabled="true"></outline>
            <outline title="A &amp; B" text="A &amp; B" type="rss" xmlUrl="https://a.example/feed.xml"></outline>
        </outline>
    </body>
</opml>
"""
#: as its template writes it
FRESHRSS = """<?xml version="1.0" encoding="UTF-8"?>
<opml xmlns:frss="https://freshrss.org/opml" version="2.0">
  <head><title>FreshRSS</title><dateCreated>Wed, 18 Nov 2026 01:00:00 +0000</dateCreated></head>
  <body>
    <outline text="Uncategorized">
      <outline text="Releases" type="rss" xmlUrl="https://a.example/releases.atom" htmlUrl="https://a.example/"
        description="" frss:priority="important" frss:filtersActionRead="intitle:⚡&#10;beta"/>
      <outline text="News by XPath" type="HTML+XPath" xmlUrl="https://b.example/news.html" htmlUrl=""
        frss:xPathItem="//div[@class='item']" frss:xPathItemTitle="descendant::h2"
        frss:CURLOPT_COOKIE="session=s3cret"/>
      <outline text="By dots" type="JSON+DotNotation" xmlUrl="https://c.example/api" frss:jsonItem="data.items"/>
      <outline text="JSON" type="JSONFeed" xmlUrl="https://d.example/feed.json"/>
    </outline>
    <outline text="Shared" frss:opmlUrl="https://e.example/list.opml"/>
  </body>
</opml>
""".encode()


def test_feeds_of_miniflux_in_its_own_export() -> None:
    found = read_list(MINIFLUX, check=checked)
    assert found.problems == []
    assert [(one.address, one.kind, one.options, one.paused) for one in found.listings] == [
        ("https://a.example/feed.xml", "feed", {"title": "A & B", "tags": ["All", "Work"]}, False),
        ("https://b.example/rss", "feed", {"title": "Off", "tags": ["Work"]}, True),
    ]
    assert found.unused == ("crawler of miniflux", "proxyUrl of miniflux", "scraperRules of miniflux")
    assert "s3cret" not in repr(found)


def test_feeds_and_pages_of_freshrss_in_its_own_export() -> None:
    found = read_list(FRESHRSS, check=checked)
    assert found.problems == []
    kinds = {one.address: (one.kind, one.options.get("normalise")) for one in found.listings}
    assert kinds == {
        "https://a.example/releases.atom": ("feed", None),
        "https://b.example/news.html": ("http", {"xpath": ["//div[@class='item']"]}),
        "https://c.example/api": ("http", {"keep_pointers": ["/data/items"]}),
        "https://d.example/feed.json": ("feed", None),
    }
    assert {tuple(one.options["tags"]) for one in found.listings} == {("Uncategorized",)}
    assert found.unused == (
        "CURLOPT_COOKIE of FreshRSS",
        "filtersActionRead of FreshRSS",
        "opmlUrl of FreshRSS",
        "priority of FreshRSS",
        "xPathItemTitle of FreshRSS",
    )
    assert "s3cret" not in repr(found)


def backup(parts: dict[str, bytes]) -> bytes:
    """As changedetection.io 0.55 packs it: a folder with one file for each watch and tag."""
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in parts.items():
            packed.writestr(name, text)
    return held.getvalue()


def test_a_backup_of_changedetection_is_read_as_it_is_packed() -> None:
    parts = {"changedetection.json": b"{}", "url-list.txt": b"https://x.example/\r\n", "a/1.txt": b"<html>"}
    for name, watch in CHANGEDETECTION["watching"].items():
        parts[f"{name}/watch.json"] = json.dumps(watch).encode()
    for name, tag in CHANGEDETECTION["settings"]["application"]["tags"].items():
        parts[f"{name}/tag.json"] = json.dumps(tag).encode()
    assert read_list(backup(parts)) == read(CHANGEDETECTION)
    # Older ones have everything in one file.
    assert read_list(backup({"url-watches.json": json.dumps(CHANGEDETECTION).encode()})) == read(CHANGEDETECTION)
    for bad in (backup({"a.opml": b"<opml/>"}), backup({"a/watch.json": b"{"}), backup(parts)[:-30]):
        with pytest.raises(InputError):
            read_list(bad)


@pytest.mark.parametrize(
    ("more", "triggers", "left"),
    [
        ({"filter_text_removed": False, "filter_text_replaced": False}, {"added": True}, ()),
        ({"filter_text_added": False}, None, ("filter_text_added, removed or replaced",)),
        ({"conditions": [{"field": "x"}], "proxy": ""}, None, ("conditions",)),
        ({"processor": "restock_diff"}, None, ("processor restock_diff",)),
        ({"time_schedule_limit": {"enabled": True}}, None, ("time_schedule_limit",)),
    ],
)
def test_what_a_watch_says_of_changes(more: dict[str, Any], triggers: Any, left: tuple[str, ...]) -> None:
    found = read({"watching": {"a": {"url": "https://a.example/", **more}}})
    assert (found.listings[0].options.get("triggers"), found.unused) == (triggers, left)


def test_a_database_of_uptime_kuma_is_read_as_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(sqlite3.connect(":memory:")) as db:
        db.executescript(
            "CREATE TABLE monitor (id INTEGER, name, active, interval, url, type, keyword, method, headers);"
            "CREATE TABLE tag (id INTEGER PRIMARY KEY, name); CREATE TABLE monitor_tag (id, monitor_id, tag_id, value);"
            "INSERT INTO tag VALUES (5, 'shop'); INSERT INTO monitor_tag VALUES (1, 2, 5, '');"
        )
        for k, one in enumerate(KUMA["monitorList"], 1):
            said = [one.get(name) for name in ("name", "active", "interval", "url", "type", "keyword")]
            db.execute("INSERT INTO monitor VALUES (?, ?, ?, ?, ?, ?, ?, 'GET', NULL)", [k, *said])
        db.execute("UPDATE monitor SET active = coalesce(active, 1)")
        db.execute("INSERT INTO monitor VALUES (9, 'post', 1, 60, 'https://c.example/', 'http', NULL, 'POST', NULL)")
        db.commit()
        data = db.serialize()
    want, found = read(KUMA), read_list(data[:18] + b"\2\2" + data[20:])
    assert (found.listings, found.problems) == (want.listings, want.problems)
    assert found.unused == (
        *("interval", "keyword", "monitor 'post', which is not asked with GET"),
        "monitor 'router', which is of no web address",
    )
    monkeypatch.setattr(archives, "_STEPS", 100)
    with closing(sqlite3.connect(":memory:")) as db:
        endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x FROM n) SELECT x AS id FROM n"
        db.execute(f"CREATE VIEW monitor AS {endless} WHERE x > 1")
        for bad in (db.serialize(), data[:2000], b"SQLite format 3\0" + bytes(200)):
            with pytest.raises(InputError, match="no database of Uptime Kuma"):
                read_list(bad)
