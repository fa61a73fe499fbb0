"""Lists over the API, many sources changed at once, searches that are kept."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.booked import Booked


@pytest.fixture
def booked(tmp_path: Path) -> Iterator[Booked]:
    booked = Booked(tmp_path / "b.db", 5)
    yield booked
    booked.close()


def put(booked: Booked, path: str, body: Any, status: int = 200, method: str = "POST") -> Any:
    got = booked.send(method, path, body)
    assert got.status == status, got.body
    return json.loads(got.body)


OPML = """<opml><body><outline text="News"><outline type="rss" text="A" xmlUrl="https://a.example/feed"/></outline>
<outline type="rss" text="B" xmlUrl="https://b.example/feed"/></body></opml>"""
KUMA = '{"monitorList": [{"type": "http", "name": "Home", "url": "https://k.example/", "interval": 60}]}'


def test_a_list_is_looked_through_before_anything_is_added(booked: Booked) -> None:
    found = put(booked, "lists", {"content": "https://a.example/0\nhttps://n.example/ weight=3\n"})
    assert (found["sources"], found["new"], found["added"], found["bad"]) == (2, 1, False, 0)
    assert [(one["address"], one["new"]) for one in found["first"]] == [
        ("https://a.example/0", False),
        ("https://n.example/", True),
    ]
    assert len(booked.get("sources")["sources"]) == 5
    done = put(booked, "lists", {"content": "https://n.example/ weight=3", "add": True, "tags": ["x"]})
    assert done["added"]
    (new,) = booked.get("sources?after=5")["sources"]
    assert (new["address"], new["weight"], new["options"]) == ("https://n.example/", 3.0, {"tags": ["x"]})


@pytest.mark.parametrize(
    ("content", "addresses", "unused"),
    [
        (OPML, ["https://a.example/feed", "https://b.example/feed"], []),
        ("address,weight\nhttps://c.example/,2\n", ["https://c.example/"], []),
        ('{"address": "https://j.example/", "weight": 2}\n', ["https://j.example/"], []),
        (KUMA, ["https://k.example/"], ["interval"]),
    ],
    ids=["OPML", "CSV", "JSON", "Uptime Kuma"],
)
def test_lists_in_every_form(booked: Booked, content: str, addresses: list[str], unused: list[str]) -> None:
    packed = base64.b64encode(gzip.compress(content.encode())).decode()
    assert put(booked, "lists", {"content": packed, "base64": True})["new"] == len(addresses)
    put(booked, "lists", {"content": "ä", "base64": True}, 422)
    found = put(booked, "lists", {"content": content, "add": True})
    assert found["added"]
    assert [one["address"] for one in found["first"]] == addresses
    assert found["unused"] == unused
    assert [one["address"] for one in booked.get("sources?after=5")["sources"]] == addresses


def test_bad_lines_keep_a_list_out_unless_the_good_ones_are_wanted(booked: Booked) -> None:
    bad = {"content": "https://n.example/\nhttps://10.0.0.1/secret\nnonsense\n", "add": True}
    found = put(booked, "lists", bad)
    assert (found["added"], found["bad"]) == (False, 2)
    assert [one["line"] for one in found["problems"]] == [2, 3]
    assert put(booked, "lists", bad | {"keep_good": True})["added"]
    assert [one["address"] for one in booked.get("sources?after=5")["sources"]] == ["https://n.example/"]


@pytest.mark.parametrize("content", ["<rss></rss>", "<html>", "\n\n", "\0\0\0\0"])
def test_what_is_no_list_is_told(booked: Booked, content: str) -> None:
    put(booked, "lists", {"content": content}, 422)


def test_many_are_changed_at_once_by_id_or_by_search(booked: Booked) -> None:
    assert put(booked, "edits", {"sources": [1, 2, 99], "add_tags": ["news", "x"]}) == {"edited": 2, "unknown": 1}
    assert (
        put(booked, "edits", {"search": "tag:news -/0", "remove_tags": ["x"], "changes": {"weight": 7}})["edited"] == 1
    )
    one, two, three = (booked.get(f"sources/{i}") for i in (1, 2, 3))
    assert (one["options"], one["weight"]) == ({"tags": ["news", "x"]}, 1.0)
    assert (two["options"], two["weight"]) == ({"tags": ["news"]}, 7.0)
    assert three["options"] == {}
    assert put(booked, "edits", {"search": "tag:news", "remove_tags": ["news", "x"]})["edited"] == 2
    assert booked.get("sources/1")["options"] == {}
    assert put(booked, "hints", {"search": "weight>5"}, 202) == {"hinted": 1, "unknown": 0}
    assert put(booked, "removals", {"search": "weight>5"}) == {"removed": 1, "unknown": 0}
    put(booked, "edits", {"search": "fresh<x", "add_tags": ["y"]}, 422)
    put(booked, "edits", {"search": "", "add_tags": ["y"]}, 400)


def test_sources_are_found_by_a_search(booked: Booked) -> None:
    put(booked, "edits", {"sources": [2, 4, 5], "add_tags": ["news"]})
    found = booked.get("sources?search=tag:news&limit=2")
    assert ([one["id"] for one in found["sources"]], found["after"]) == ([2, 4], 4)
    found = booked.get("sources?search=tag:news&limit=2&after=4")
    assert ([one["id"] for one in found["sources"]], found["after"]) == ([5], None)
    assert booked.get("sources?search=tag:news&text=/3")["sources"][0]["id"] == 4


def test_searches_are_kept_for_everybody(booked: Booked) -> None:
    mine = {"name": "Mine", "search": "tag:me", "sort": "age", "down": True}
    assert put(booked, "searches", {"searches": [mine]}, method="PUT") == {"searches": [mine]}
    assert booked.get("searches") == {"searches": [mine]}
    put(booked, "searches", {"searches": [mine, mine]}, 422, "PUT")
    put(booked, "searches", {"searches": [mine | {"search": "fresh<x"}]}, 422, "PUT")
    assert booked.get("searches") == {"searches": [mine]}


def test_what_counts_can_be_a_list_inside_a_table(booked: Booked) -> None:
    put(booked, "sources/1", {"options": {"normalise": {"selectors": [".clock"], "digits": True}}}, method="PATCH")
    assert booked.get("sources/1")["options"] == {"normalise": {"selectors": [".clock"], "digits": True}}
    put(booked, "sources/1", {"options": {"normalise": None}}, method="PATCH")
    assert booked.get("sources/1")["options"] == {}
