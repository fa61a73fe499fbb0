"""Sources go by what their copies call themselves, where nobody gave them a title."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing
from unstale.service.news import news
from unstale.service.search import parse

PAGE = b"<title>Trains &amp; buses</title><script>document.title = 'x'</script>"


def poll(store: SqliteStore, body: bytes, media_type: str, at: float) -> None:
    claims = store.claim(at, 10, lease=60.0, owner="test")
    store.record([Entry(one, Answer.CHANGED, at, at + 60.0, body=Body(body, media_type)) for one in claims])


def test_titles_of_copies_are_shown_searched_and_told_but_not_written(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with closing(SqliteStore(place)) as store:
        given = Listing("https://b.example/", options={"title": "Mine"})
        store.add([Listing("https://a.example/"), given, Listing("https://c.example/data")], 0.0)
        service = service_of(Settings(store=str(place)))
        before = service.columns()
        assert service.titles(before.views([1, 2, 3])) == {2: "Mine"}
        poll(store, PAGE, "text/html; charset=utf-8", 10.0)
        seen = service.columns(before)
        assert service.titles(seen.views([1, 2, 3])) == {1: "Trains & buses", 2: "Mine", 3: "Trains & buses"}
        assert seen.all(parse("title:trains")) == seen.all(parse("buses")) == [1, 3]
        assert service.columns(seen).names is seen.names
        # What is told names it too; the list of sources stays what somebody wrote.
        poll(store, PAGE.replace(b"buses", b"ships"), "text/html", 100.0)
        assert [one.title for one in news(service.store, 10)] == ["Trains & ships", "Mine", "Trains & ships"]
        assert [one.options for one in service.store.listings([1, 2])] == [{}, {"title": "Mine"}]
        service.close()


def test_what_is_no_page_has_none(tmp_path: Path) -> None:
    place = tmp_path / "s.db"
    with closing(SqliteStore(place)) as store:
        store.add([Listing("https://a.example/")], 0.0)
        poll(store, b'{"a": "<title>no</title>"}', "application/json", 10.0)
        service = service_of(Settings(store=str(place)))
        assert service.titles(service.views([1])) == {}
        service.close()
