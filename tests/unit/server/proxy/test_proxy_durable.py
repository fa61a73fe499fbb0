"""What a proxy keeps outlives it: written behind, read at the start, and never more than was written whole."""

from __future__ import annotations

import asyncio
from pathlib import Path

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unstale.adapters.sqlite_stock import SqliteStock
from unstale.errors import StoreError
from unstale.server.proxy import durable as durably
from unstale.server.proxy.durable import Durable
from unstale.server.proxy.fields import Fields
from unstale.server.proxy.pricing import Known, Pricing
from unstale.server.proxy.stored import Stock, Stored, StoredPart

text = st.text(st.characters(min_codepoint=32, max_codepoint=255), max_size=12)
lines = st.lists(st.tuples(text, text), max_size=3).map(lambda found: Fields(tuple(found)))
responses = st.builds(
    Stored,
    st.sampled_from(["http://a.example/1", "http://a.example/ü?2"]),
    st.sampled_from([200, 206, 404]),
    lines,
    st.binary(max_size=60),
    st.floats(0, 2e9),
    st.floats(0, 100),
    st.floats(0, 1e9),
    st.dictionaries(text, st.none() | text, max_size=2),
    st.lists(st.tuples(text, st.none() | text), max_size=2).map(tuple),
    lines,
    st.none() | st.builds(StoredPart, st.integers(0, 9), st.integers(9, 99), st.none() | st.just(100)),
    st.booleans(),
)


def kept(rows: SqliteStock, *puts: Stored, pricing: Pricing | None = None, gone: str = "") -> Stock:
    """A stock that was filled from these rows, after some more were put in, its file closed again."""

    async def play() -> Stock:
        durable = Durable(rows, pricing)
        stock = Stock(2**20, watchers=(durable,))
        durable.fill(stock)
        for stored in puts:
            stock.put(stored)
        stock.forget(gone)
        await durable.close()
        return stock

    return asyncio.run(play())


@settings(max_examples=40, deadline=None)
@given(st.lists(responses, max_size=6))
def test_everything_is_as_it_was(tmp_path_factory: pytest.TempPathFactory, puts: list[Stored]) -> None:
    path = tmp_path_factory.mktemp("stock") / "stock.db"
    before = kept(SqliteStock(path), *puts)
    after = kept(SqliteStock(path))
    for address in {stored.address for stored in puts}:
        assert after.variants(address) == before.variants(address)
    assert (len(after), after.size) == (len(before), before.size)


def response(address: str, body: bytes = b"news", taken_at: float = 0.0) -> Stored:
    return Stored(address, 200, Fields(), body, taken_at, 0.0, 60.0, {})


def test_what_is_forgotten_is_gone_and_beliefs_are_kept(tmp_path: Path) -> None:
    pricing = Pricing(1.0, 0.0)
    pricing.known["b"] = Known(2.0, 50.0, 7.0, 1.0)
    kept(SqliteStock(tmp_path / "s.db"), response("a"), response("b"), pricing=pricing, gone="a")
    again = Pricing(1.0, 0.0)
    stock = kept(SqliteStock(tmp_path / "s.db"), pricing=again)
    assert [address in stock for address in "ab"] == [False, True]
    assert again.known == {"b": Known(2.0, 50.0, 7.0, 1.0)}


def test_a_body_that_stays_is_not_written_again(tmp_path: Path) -> None:
    written: list[object] = []

    class Spy(SqliteStock):
        def write(self, rows: object, gone: object) -> None:
            written.append(rows)
            super().write(rows, gone)  # type: ignore[arg-type]

    kept(SqliteStock(tmp_path / "s.db"), response("a"))

    async def play() -> None:
        durable = Durable(Spy(tmp_path / "s.db"))
        stock = Stock(2**20, watchers=(durable,))
        durable.fill(stock)
        body = stock.variants("a")[0].body
        stock.put(response("a", body, taken_at=9.0))
        await durable.close()

    asyncio.run(play())
    ((row,),) = written  # type: ignore[misc]
    assert row[2] is None
    assert kept(SqliteStock(tmp_path / "s.db")).variants("a") == [response("a", taken_at=9.0)]


def test_it_is_written_while_the_proxy_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durably, "EVERY", 0.0)

    async def play() -> list[str]:
        rows = SqliteStock(tmp_path / "s.db")
        durable = Durable(rows)
        stock = Stock(2**20, watchers=(durable,))
        durable.fill(stock)
        stock.put(response("a"))
        assert durable._task is not None
        await durable._task
        found = [address for address, *_ in rows.load()]
        await durable.close()
        return found

    assert asyncio.run(play()) == ["a"]


def test_damaged_rows_are_left_out(tmp_path: Path) -> None:
    kept(SqliteStock(tmp_path / "s.db"), response("a"), response("b"), response("c"))
    db = apsw.Connection(str(tmp_path / "s.db"))
    db.execute("UPDATE stock SET told = 'x' WHERE address = 'a'; UPDATE stock SET body = 'cut' WHERE address = 'b'")
    db.close()
    stock = kept(SqliteStock(tmp_path / "s.db"))
    assert [address in stock for address in "abc"] == [False, False, True]


def test_a_file_belongs_to_one_proxy_and_must_be_a_stock(tmp_path: Path) -> None:
    rows = SqliteStock(tmp_path / "s.db")
    with pytest.raises(StoreError, match="held by another process"):
        SqliteStock(tmp_path / "s.db")
    rows.close()
    SqliteStock(tmp_path / "s.db").close()
    other = apsw.Connection(str(tmp_path / "other.db"))
    other.execute("CREATE TABLE t (x)")
    other.close()
    with pytest.raises(StoreError, match="no stock of this version"):
        SqliteStock(tmp_path / "other.db")
    (tmp_path / "text").write_text("not a database, but long enough to be read as one. " * 50)
    with pytest.raises(StoreError, match="no database"):
        SqliteStock(tmp_path / "text")


def test_a_disk_that_fails_takes_nothing_from_memory(tmp_path: Path) -> None:
    class Full(SqliteStock):
        def write(self, rows: object, gone: object) -> None:
            raise StoreError("no room")

    assert "a" in kept(Full(tmp_path / "s.db"), response("a"))
