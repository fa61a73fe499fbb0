"""Pages of the list: told again as they were while nothing can have moved, and not a commit longer."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from support.booked import Booked
from unstale.ports import Listing
from unstale.server.told_sources import ToldSources
from unstale.service import documents

ASKED = {"limit": 3, "after": 1}


@pytest.fixture
def booked(tmp_path: Path) -> Iterator[Booked]:
    booked = Booked(tmp_path / "b.db", 5)
    booked.poll(b"a")
    yield booked
    booked.close()


def counted(booked: Booked, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    reads: list[list[int]] = []
    views = booked.service.views

    def seen(sources: Sequence[int]) -> Any:
        reads.append(list(sources))
        return views(sources)

    monkeypatch.setattr(booked.service, "views", seen)
    return reads


def test_a_page_is_what_the_service_says(booked: Booked) -> None:
    seen = booked.service.views([2, 3, 4])
    told = {"sources": [documents.source(one, booked.service.titles(seen)) for one in seen], "after": 4}
    assert json.loads(ToldSources(booked.service).read(ASKED)) == told
    assert booked.get("sources?limit=3&after=1") == told


def test_it_is_told_again_while_nothing_moves_and_of_other_pages_only_what_is_new_is_read(
    booked: Booked, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads, pages = counted(booked, monkeypatch), ToldSources(booked.service)
    assert pages.at_once(ASKED) is None
    page = pages.read(ASKED)
    booked.now += 0.9
    assert pages.at_once(ASKED) == page
    assert [one["id"] for one in json.loads(pages.read({"limit": 9, "after": 0}))["sources"]] == [1, 2, 3, 4, 5]
    assert reads == [[2, 3, 4], [1, 5]]


def test_after_a_second_it_is_read_anew(booked: Booked) -> None:
    pages = ToldSources(booked.service)
    page = json.loads(pages.read(ASKED))
    booked.now += 1.0
    assert pages.at_once(ASKED) is None
    later = json.loads(pages.read(ASKED))
    assert later["sources"][0]["fresh"] < page["sources"][0]["fresh"]


def test_every_commit_is_seen_at_once(booked: Booked) -> None:
    pages = ToldSources(booked.service)
    pages.read(ASKED)
    booked.store.add([Listing("https://b.example/")], booked.now)
    assert pages.at_once(ASKED) is None
    pages.read(ASKED)
    booked.store.remove([3])
    assert [one["id"] for one in json.loads(pages.read(ASKED))["sources"]] == [2, 4, 5]
    assert booked.send("PATCH", "sources/2", {"weight": 7.0}).status == 200
    assert booked.get("sources?limit=1&after=1")["sources"][0]["weight"] == 7.0


def test_where_the_store_cannot_tell_nothing_is_kept(booked: Booked, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = ToldSources(booked.service)
    monkeypatch.setattr(booked.service.store, "mark", lambda: None)
    pages.read(ASKED)
    assert pages.at_once(ASKED) is None
