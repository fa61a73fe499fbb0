"""The table of all sources: sorted, searched and filtered as a plain sort of everything would."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import Settings
from unstale.core.learning.outlook import WIDTH, outlook
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Listing
from unstale.server.dashboard.reader import Reader
from unstale.service import FleetService
from unstale.service.columns import SourceColumns
from unstale.service.search import parse

NOW = 1_763_236_800.0
COUNT = 120


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sources of several hosts; some failed, one is paused, the last ten were never polled."""
    path = tmp_path_factory.mktemp("columns") / "s.db"
    rng = np.random.default_rng(3)
    store = SqliteStore(path)
    store.add(
        [
            Listing(
                f"https://h{i % 3}.example/{'Even' if i % 2 == 0 else 'odd'}/{i}",
                host=f"h{i % 3}.example",
                weight=float(rng.integers(1, 9)),
                paused=i == 5,
            )
            for i in range(COUNT)
        ],
        NOW - 5000.0,
    )
    claims = [claim for claim in store.claim(NOW, COUNT, lease=60.0, owner="t") if claim.source <= COUNT - 10]
    store.record(
        [
            Entry(
                claim,
                Answer.FAILED if claim.source % 11 == 0 else Answer.CHANGED,
                NOW - float(rng.uniform(1, 4000)),
                NOW + float(rng.uniform(1, 4000)),
                belief=rng.uniform(1, 9000, WIDTH).tobytes(),
            )
            for claim in claims
        ]
    )
    store.close()
    return path


@pytest.fixture
def service(place: Path) -> Iterator[FleetService]:
    service = service_of(Settings(store=str(place)))
    service.clock = lambda: NOW
    yield service
    service.close()


@pytest.fixture
def fleet(service: FleetService) -> SourceColumns:
    return service.columns()


def rows_of(service: FleetService) -> list[dict[str, Any]]:
    """Everything anew, without the columns."""
    standing = service.store.fleet(WIDTH)
    seen = outlook(standing, NOW)
    names = {source: address for source, address, _ in service.store.names()}
    return [
        {
            "id": int(source),
            "address": names[int(source)].lower(),
            "host": standing.hosts[standing.host[i]],
            "paused": bool(standing.paused[i]),
            "failures": int(standing.failures[i]),
            "fresh": float(seen.fresh[i]),
            "never": math.isinf(standing.last[i]),
            "weight": float(standing.weight[i]),
            "due": float(standing.due[i]),
            "change_rate": float(seen.change_rate[i]),
        }
        for i, source in enumerate(standing.source)
    ]


@pytest.mark.parametrize("sort", ["id", "weight", "failures", "fresh", "due", "change_rate"])
@pytest.mark.parametrize("down", [False, True])
def test_order_is_that_of_a_plain_sort(service: FleetService, fleet: SourceColumns, sort: str, down: bool) -> None:
    lost = {"fresh", "due", "change_rate"}

    def key(row: dict[str, Any]) -> tuple[bool, float, int]:
        last = sort in lost and (row["paused"] or not math.isfinite(row[sort]))
        return last, 0.0 if last else (-row[sort] if down else row[sort]), row["id"]

    want = [row["id"] for row in sorted(rows_of(service), key=key)]
    got = [
        one for offset in range(0, COUNT, 25) for one in fleet.find(sort=sort, down=down, offset=offset, limit=25)[0]
    ]
    assert got == want


@pytest.mark.parametrize("text", ["even", "ODD/1", "h2.example", "/77", "%", "_", "\n", "nowhere"])
def test_search_finds_what_contains_the_text(service: FleetService, fleet: SourceColumns, text: str) -> None:
    want = [
        row["id"]
        for row in sorted(rows_of(service), key=lambda row: (-row["weight"], row["id"]))
        if text.strip().lower() in row["address"]
    ]
    got, total = fleet.find(parse(text), sort="weight", down=True, limit=COUNT)
    assert (got, total) == (want, len(want))
    assert fleet.find(parse(text), sort="weight", down=True, offset=3, limit=4)[0] == want[3:7]


def test_states_and_hosts(service: FleetService, fleet: SourceColumns) -> None:
    rows = rows_of(service)
    for state, has in {
        "failing": lambda row: row["failures"] > 0 and not row["paused"],
        "paused": lambda row: row["paused"],
        "never": lambda row: row["never"] and not row["paused"],
        "stale": lambda row: row["fresh"] < 0.5 and not row["never"] and not row["paused"],
    }.items():
        want = [row["id"] for row in rows if has(row)]
        assert fleet.find(parse(state), limit=COUNT) == (want, len(want))
        assert want, state
    want = [row["id"] for row in rows if row["host"] == "h1.example" and "even" in row["address"]]
    assert fleet.find(parse("host:h1.example even"), limit=COUNT) == (want, len(want))
    assert fleet.find(parse("host:elsewhere")) == ([], 0)


def test_addresses_are_read_again_only_after_an_edit(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "s.db")
    store.add([Listing("https://a.example/1")], NOW)
    service = service_of(Settings(store=str(tmp_path / "s.db")))
    service.clock = lambda: NOW
    first = service.columns()
    assert service.columns(first).names is first.names
    store.add([Listing("https://a.example/2")], NOW)
    second = service.columns(first)
    assert second.find(parse("/2")) == ([2], 1)
    store.remove([1])
    stale = SourceColumns(
        **{name: getattr(service.columns(), name) for name in SourceColumns.__slots__ if name != "names"},
        names=second.names,
    )
    assert stale.find(parse("example")) == ([2], 1), "a name of a source that is gone finds nothing"
    service.close()
    store.close()


def test_an_empty_store_has_an_empty_table(tmp_path: Path) -> None:
    SqliteStore(tmp_path / "s.db").close()
    service = service_of(Settings(store=str(tmp_path / "s.db")))
    service.clock = lambda: NOW
    assert service.columns().find(parse("a"), sort="fresh") == ([], 0)
    assert service.columns().find(sort="fresh") == ([], 0)
    service.close()


def test_only_the_first_look_waits(service: FleetService) -> None:
    async def looks() -> tuple[object, object, object]:
        reader = Reader(service)
        none = reader.now()
        first = await reader.ready(30.0)
        return none, first, reader.now()

    none, first, again = asyncio.run(looks())
    assert none is None
    assert isinstance(first, SourceColumns)
    assert again is first


@pytest.fixture
def own(tmp_path: Path) -> Iterator[FleetService]:
    """One that a test may edit."""
    SqliteStore(tmp_path / "s.db").close()
    with closing(service_of(Settings(store=str(tmp_path / "s.db")))) as found:
        yield found


def test_who_edits_while_all_is_read_finds_it_in_the_next_look(own: FleetService) -> None:
    """The reading under way may have begun before the edit, and its end must not count for it."""
    read, begun, go_on = own.columns, threading.Event(), threading.Event()

    def slowly(before: SourceColumns | None = None) -> SourceColumns:
        found = read(before)
        begun.set()
        go_on.wait(30.0)
        return found

    async def looks() -> list[int]:
        reader = Reader(own)
        own.columns = slowly  # type: ignore[method-assign]
        reader.now()
        await asyncio.to_thread(begun.wait, 30.0)
        (new,) = await asyncio.to_thread(own.add, [{"address": "https://new.example/"}])
        asyncio.get_running_loop().call_later(0.05, go_on.set)
        found = await reader.ready(30.0)
        assert found is not None
        return [new, *found.find(parse("new.example"))[0]]

    new, *found = asyncio.run(looks())
    assert found == [new]


def test_where_reading_is_slow_an_edit_is_read_soon_and_nobody_waits(own: FleetService) -> None:
    async def looks() -> tuple[float, bool]:
        reader = Reader(own)
        await reader.ready(30.0)
        reader._took, reader._ended, reader._next = 2.0, time.monotonic(), time.monotonic() + 40.0
        await asyncio.to_thread(own.add, [{"address": "https://new.example/"}])
        await reader.ready(0.25)
        return reader._next - reader._ended, reader._reading is not None and reader._reading.done()

    soon, idle = asyncio.run(looks())
    assert idle
    assert soon == pytest.approx(2.0), "after as long as a reading takes, and not before"
