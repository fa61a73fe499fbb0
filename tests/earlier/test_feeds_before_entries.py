"""A store of before entries of feeds were kept by themselves: what its versions hold is taken up. See `make_feeds`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import zstandard

from earlier.make_feeds import feed
from support.postgres import postgres
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Store
from unstale.service.entries import feed_entries

HERE = Path(__file__).parent


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    unpack = zstandard.ZstdDecompressor().decompress
    if request.param == "sqlite":
        (tmp_path / "store.db").write_bytes(unpack((HERE / "store-feeds.db.zst").read_bytes()))
        with closing(SqliteStore(tmp_path / "store.db")) as opened:
            yield opened
        return
    with postgres() as server:
        server.run(unpack((HERE / "store-feeds.sql.zst").read_bytes()).decode())
        with closing(PostgresStore(server.address(), own_time=False)) as moved:
            yield moved


def test_nothing_that_versions_hold_is_lost_and_nothing_comes_twice(store: Store) -> None:
    assert (store.versions(1), store.entry_count(1)) == ([5, 4, 3, 2, 1], 0)
    # Before the next poll they are read from the versions.
    before = feed_entries(store, 1)
    assert [one.title for one in before.entries] == [
        "Renamed 5",
        "Renamed 4",
        "Entry 3",
        "Entry 2",
        "Entry 1",
        "Entry 0",
    ]
    claims = store.claim(100.0, 9, lease=5.0, owner="a")
    body = Body(feed(6, "Renamed"), "application/rss+xml")
    store.record([Entry(one, Answer.CHANGED, 100.0, 200.0, body=body) for one in claims])
    found = store.kept_entries(1)
    assert [one.title for one in found] == [
        "Renamed 6",
        "Renamed 5",
        "Renamed 4",
        "Entry 3",
        "Entry 2",
        "Entry 1",
        "Entry 0",
    ]
    assert [(one.first_at, one.last_at) for one in found][:4] == [(100, 100), (50, 100), (40, 50), (30, 40)]
    # Entry 4 was renamed in version 5: that is an edit, also in hindsight.
    assert [(one.edits, one.edited_at) for one in found][:4] == [(0, None), (0, None), (1, 50.0), (0, None)]
    assert store.entry_count(2) == 0, "a page that looks like a feed is none"
    assert store.verify() == []
    # Nor was who changed what kept; from now on it is.
    assert store.edits() == []
    store.note_edit(1.0, "anna", "paused a source")
    assert [one.what for one in store.edits()] == ["paused a source"]
