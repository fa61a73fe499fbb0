"""Entries of feeds in every store: each once, in the order of their coming, within bounds."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from support.postgres import postgres
from unstale.adapters import memory_entries, postgres_entries, sqlite_entries
from unstale.adapters.memory_store import MemoryStore
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing
from unstale.service.entries import feed_entries

SCHEMAS = itertools.count()
HORIZON = 1000.0


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[], str]]:
    """The address of a server, which is started when somebody asks."""
    with ExitStack() as stack:
        yield lru_cache(lambda: stack.enter_context(postgres()).address())


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path, server: Callable[[], str]) -> Iterator[Any]:
    made: Any
    if request.param == "memory":
        made = MemoryStore()
    elif request.param == "sqlite":
        made = SqliteStore(tmp_path / "store.db", horizon=HORIZON)
    else:
        made = PostgresStore(server(), schema=f"e{next(SCHEMAS)}", horizon=HORIZON, own_time=False)
    made.add([Listing("http://a.example/feed", "feed")], 0.0)
    yield made
    made.close()


def poll(store: Any, at: float, items: list[dict[str, Any]], answer: Answer = Answer.CHANGED) -> None:
    """A poll that finds a JSON Feed with these items."""
    (claim,) = store.claim(at, 1, lease=30.0, owner="a")
    body = Body(json.dumps({"version": "https://jsonfeed.org/version/1.1", "items": items}).encode())
    assert store.record([Entry(claim, answer, at, due=at, body=body)]) == [True]


def item(number: int, title: str = "") -> dict[str, Any]:
    return {"id": str(number), "title": title or f"E{number}", "url": f"https://a.example/{number}"}


def window(newest: int, size: int = 3) -> list[dict[str, Any]]:
    return [item(n) for n in range(newest, newest - size, -1)]


def titles(store: Any, **asked: Any) -> list[str]:
    return [one.title for one in store.kept_entries(1, **asked)]


def test_what_scrolled_out_of_the_feed_and_of_all_versions_stays_each_once(store: Any) -> None:
    for n in range(3, 50):
        poll(store, float(n), window(n))
    assert len(store.versions(1)) == 30
    assert titles(store) == [f"E{n}" for n in range(49, 0, -1)]
    assert store.entry_count(1) == 49
    first = store.kept_entries(1)[-1]
    assert (first.first_at, first.last_at, first.first_version, first.last_version) == (3.0, 3.0, 1, 1)
    assert (first.link, first.edits, first.edited_at) == ("https://a.example/1", 0, None)
    # Ten at a time, no one twice and no one left out.
    parts, before = [], None
    while some := store.kept_entries(1, 10, before):
        parts += [one.title for one in some]
        before = some[-1].number
    assert parts == titles(store)


def test_an_entry_that_is_sent_again_is_known_and_an_edited_one_says_so(store: Any) -> None:
    poll(store, 1.0, [item(1), item(0)])
    poll(store, 2.0, [item(2), item(1, "E1, mended")])
    poll(store, 3.0, [item(3), item(2)])
    # The feed brings back its oldest one, and twice in one breath.
    poll(store, 4.0, [item(0), item(0), item(3)])
    assert titles(store) == ["E3", "E2", "E1, mended", "E0"]
    by_title = {one.title: one for one in store.kept_entries(1)}
    back, mended = by_title["E0"], by_title["E1, mended"]
    assert (back.first_at, back.last_at, back.edits) == (1.0, 4.0, 0)
    assert (mended.first_at, mended.last_at, mended.edits, mended.edited_at) == (1.0, 2.0, 1, 2.0)
    told = feed_entries(store, 1)
    assert [told.there(one) for one in told.entries] == [True, False, False, True]
    assert told.last_seen(back) == 4.0


def test_an_unchanged_feed_was_seen_with_all_it_has(store: Any) -> None:
    poll(store, 1.0, window(3))
    poll(store, 9.0, window(3), Answer.UNCHANGED)
    told = feed_entries(store, 1)
    assert [(one.last_at, told.last_seen(one)) for one in told.entries] == [(1.0, 9.0)] * 3


def test_entries_that_share_an_id_are_told_apart(store: Any) -> None:
    poll(
        store, 1.0, [item(7, "one") | {"url": "https://a.example/x"}, item(7, "other") | {"url": "https://a.example/y"}]
    )
    assert titles(store) == ["one", "other"]


def test_hostile_text_is_text_in_every_store(store: Any) -> None:
    bad = {"id": "a\0\ud800", "title": "<script>x</script>\0\ud800‮<b>T</b>" + "t" * 8000, "url": "javascript:alert(1)"}
    poll(store, 1.0, [bad, {"title": ""}, {"title": ""}])
    found = store.kept_entries(1)
    assert len(found) == 2, "an entry that says nothing is one entry"
    assert found[0].link == ""
    assert len(found[0].title) <= 300
    assert not {"\0", "\ud800", "<"} & set(found[0].title)


def test_they_are_bounded_and_what_the_feed_has_stays(store: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (memory_entries, sqlite_entries, postgres_entries):
        monkeypatch.setattr(module, "MOST_ENTRIES", 10)
    # One is pinned: in every version, first of all.
    for n in range(4, 40):
        poll(store, float(n), [*window(n), item(0, "pinned")])
    assert titles(store) == [f"E{n}" for n in range(39, 30, -1)] + ["pinned"]


def test_they_go_with_the_horizon_and_with_their_source(store: Any) -> None:
    for n, at in enumerate((0.0, 500.0, 1400.0, 1600.0), 3):
        poll(store, at, window(n))
    # At 1600 what was last seen before 600 goes; memory keeps all, as it does with observations.
    kept = [6, 5, 4, 3, 2, 1] if isinstance(store, MemoryStore) else [6, 5, 4, 3]
    assert titles(store) == [f"E{n}" for n in kept]
    store.remove([1])
    assert (store.entry_count(1), store.kept_entries(1)) == (0, [])


def test_what_comes_too_late_or_is_no_feed_leaves_nothing(store: Any) -> None:
    (claim,) = store.claim(0.0, 1, lease=10.0, owner="a")
    (again,) = store.claim(20.0, 1, lease=10.0, owner="b")
    body = Body(b"<rss><channel><item><guid>1</guid></item></channel></rss>")
    assert store.record([Entry(claim, Answer.CHANGED, 21.0, due=22.0, body=body)]) == [False]
    assert store.record([Entry(again, Answer.CHANGED, 21.0, due=22.0, body=Body(b"no feed at all"))]) == [True]
    assert store.entry_count(1) == 0
