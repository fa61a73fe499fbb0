"""`/changes.atom` and `/changes.json`: what changed lately, for feed readers; what strangers wrote stays text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import etree

from support.asgi import asked
from support.hand_store import HOUR, NOW, make, poll
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import load
from unstale.feeds import read_feed
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing
from unstale.server.app import App, replica

ATOM = "{http://www.w3.org/2005/Atom}"
HOSTILE = "<script>alert(1)</script>]]>\x0b\x1b[31m\u202e&amp;\ud7ff\n"


@pytest.fixture
def app(tmp_path: Path) -> Iterator[App]:
    path = tmp_path / "s.db"
    listings = [
        Listing("https://a.example/", options={"title": "A <b>\x07", "tags": ["news", "daily"]}),
        Listing("https://b.example/?access_token=$TOKEN", options={"tags": "news"}),
        Listing("javascript:alert(1)", kind="http"),
        Listing("https://first.example/"),
        Listing("https://pictures.example/"),
    ]
    made: SqliteStore = make(path, listings)
    for hour in range(3):
        text = f"same\nline {hour}\n{HOSTILE if hour == 2 else ''}"
        poll(made, 1, NOW - (9 - hour) * HOUR, Answer.CHANGED, body=text.encode(), media_type="text/plain")
    for source, (old, new) in enumerate(((b"x", b"y"), (b"1", b"2")), 2):
        poll(made, source, NOW - 5 * HOUR, Answer.CHANGED, body=old, media_type="text/plain")
        poll(made, source, NOW - (5 - source) * HOUR, Answer.CHANGED, body=new, media_type="text/plain")
    poll(made, 4, NOW - HOUR, Answer.CHANGED, body=b"new here", media_type="text/plain")
    for hour in (4, 0.5):
        poll(made, 5, NOW - hour * HOUR, Answer.CHANGED, body=bytes([0, int(hour)]), media_type="image/png")
    made.close()
    service = service_of(load(store=str(path)))
    yield replica(service.store, service=service)
    service.close()


def entries(app: App, path: str = "/changes.atom") -> list[etree._Element]:
    got = asked(app, path)
    assert got.status == 200, got.body
    assert got.fields["content-type"] == "application/atom+xml"
    return list(etree.fromstring(got.body).iter(f"{ATOM}entry"))


def test_changes_come_newest_first_and_a_first_copy_is_none(app: App) -> None:
    names = [one.findtext(f"{ATOM}id") for one in entries(app)]
    assert names == [
        "urn:unstale:source:5:version:2",
        "urn:unstale:source:3:version:2",
        "urn:unstale:source:2:version:2",
        "urn:unstale:source:1:version:3",
        "urn:unstale:source:1:version:2",
    ]
    told = json.loads(asked(app, "/changes.json").body)
    assert [one["id"] for one in told["items"]] == names
    # Who reads feeds reads ours: the reader that polls others' finds the same.
    for form in ("atom", "json"):
        assert [one.id for one in read_feed(asked(app, f"/changes.{form}").body).entries] == [(name,) for name in names]


def test_a_change_says_what_changed(app: App) -> None:
    told = {one["id"]: one for one in json.loads(asked(app, "/changes.json").body)["items"]}
    assert told["urn:unstale:source:1:version:2"]["content_html"] == "<pre>- line 0\n+ line 1</pre>"
    # Bytes that are no text have no lines.
    assert told["urn:unstale:source:5:version:2"]["content_html"] == "<pre>…</pre>"


def test_what_strangers_wrote_is_text(app: App) -> None:
    (one,) = [one for one in entries(app) if one.findtext(f"{ATOM}id") == "urn:unstale:source:1:version:3"]
    content = one.findtext(f"{ATOM}content") or ""
    assert "<script>" not in content
    assert "&lt;script&gt;alert(1)&lt;/script&gt;]]&gt;" in content
    assert "\x0b" not in content
    assert one.findtext(f"{ATOM}title") == "A <b>"
    links = {
        entry.findtext(f"{ATOM}id", "").split(":")[3]: [link.get("href") for link in entry.iter(f"{ATOM}link")]
        for entry in entries(app)
    }
    assert links["3"] == []
    assert links["1"] == ["https://a.example/"]


def test_a_tag_and_a_limit_choose(app: App) -> None:
    assert [one.findtext(f"{ATOM}id") for one in entries(app, "/changes.atom?tag=daily&limit=1")] == [
        "urn:unstale:source:1:version:3"
    ]
    assert len(entries(app, "/changes.atom?tag=news")) == 3
    assert entries(app, "/changes.atom?tag=none") == []
    assert asked(app, "/changes.atom?limit=0").status == 400


def test_who_has_it_is_told_so(app: App) -> None:
    etag = asked(app, "/changes.json").fields["etag"]
    again = asked(app, "/changes.json", if_none_match=etag)
    assert (again.status, again.body) == (304, b"")
