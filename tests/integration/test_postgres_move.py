"""From a file to a database: everything arrives, or nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from support.postgres import Postgres, postgres
from unstale.adapters import postgres_move
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.worker import move
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing, Price

WIDTH = 15


@pytest.fixture(scope="module")
def server() -> Iterator[Postgres]:
    with postgres() as running:
        yield running


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A store with a past: copies in versions, failures, pauses, removals, a claim, events, epochs and prices."""
    path, rng = tmp_path / "store.db", np.random.default_rng(3)
    store = SqliteStore(path, versions=2, horizon=400.0)
    listings = [
        Listing(
            f"http://h{n % 7}.example/{n}",
            weight=1.0 + n,
            host=f"h{n % 3}" if n % 2 else "",
            options={"n": n} if n % 5 == 0 else {},
            longest=900.0,
        )
        for n in range(60)
    ]
    ids = store.add(listings, 0.0)
    store.subscribe(["log", "Ähm"])
    for step in range(1, 30):
        now = 20.0 * step
        entries = []
        for claim in store.claim(now, 25, lease=60.0, owner="a"):
            answer = [Answer.UNCHANGED, Answer.CHANGED, Answer.FAILED][int(rng.integers(3))]
            body = Body(rng.bytes(50) * 10, "text/plain", '"ü"', "Mon", b"print", "there", "peer")
            entries.append(
                Entry(
                    claim,
                    answer,
                    now,
                    now + float(rng.uniform(10.0, 100.0)),
                    rng.random(WIDTH).tobytes(),
                    received=7,
                    reason="né\0t" if answer is Answer.FAILED else "",
                    body=body if answer is Answer.CHANGED else None,
                )
            )
        state = {"learner": rng.bytes(8)} if step % 5 == 0 else {"other": b"x"}
        store.record(entries, settings=state, price=Price(now, float(step), 5.0, 0.5, 0.25, 1, 2, 3, 4.0))
    store.told("log", 3)
    store.remove(ids[3:5])
    store.add([Listing(listings[10].address, paused=True)], 600.0, duplicates="replace")
    assert store.claim(700.0, 2, lease=60.0, owner="b")
    store.close()
    return path


def told(store: Any) -> dict[str, Any]:
    """All that a store says."""
    fleet = store.fleet(WIDTH)
    ids = fleet.source.tolist()
    columns = {name: getattr(fleet, name).tolist() for name in ("source", "weight", "due", "last", "found", "failures")}
    return columns | {
        "hosts": [fleet.hosts[host] for host in fleet.host],
        "paused": fleet.paused.tolist(),
        "beliefs": fleet.beliefs.tobytes(),
        "settings": dict(fleet.settings),
        "listings": store.listings(ids),
        "copies": [[store.copy(source, version) for version in store.versions(source)] for source in ids],
        "observations": [repr(store.observations(source)).replace("\\x00", "\ufffd") for source in ids],
        "checkpoints": [store.checkpoint(source) for source in ids],
        "prices": store.prices(0.0),
        "epochs": store.epochs(),
        "events": [store.events(name, 999) for name in ("log", "Ähm")],
    }


def test_everything_arrives_and_goes_on(server: Postgres, file: Path) -> None:
    server.run("CREATE DATABASE whole")
    address = server.address("whole")
    answer = CliRunner().invoke(move, ["--from", f"sqlite:{file}", "--to", address], catch_exceptions=False)
    assert answer.exit_code == 0
    assert answer.output.startswith("moved and compared 58 sources, ")
    old, new = SqliteStore(file, versions=2, horizon=400.0), PostgresStore(address, versions=2, horizon=400.0)
    assert told(new) == told(old)
    tally = old.counters()
    assert new.counters() == tally | {"expired": tally.get("expired", 0) + 2}
    # The claims that were held have ended; tokens and ids go on where they were.
    claims = new.claim(10_000.0, 100, lease=60.0, owner="c")
    assert len(claims) == 57
    assert claims[0].token == tally["claimed"] + 1
    assert new.record([Entry(claims[0], Answer.UNCHANGED, 10_000.0, 10_100.0)]) == [True]
    assert new.add([Listing("http://new/")], 10_000.0) == [61]
    assert new.verify() == []
    with pytest.raises(StoreError, match="holds sources already: choose an empty database"):
        postgres_move.moved(file, address)
    for store in (old, new):
        store.close()


def test_what_is_not_the_same_is_not_kept(server: Postgres, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.run("CREATE DATABASE part")
    address = server.address("part")
    copied = postgres_move._copied

    def wrong(db: Any, table: Any, rows: Any) -> int:
        count = copied(db, table, rows)
        if table.name == "copies":
            db.execute("UPDATE copies SET body = body || '\\x00'::bytea WHERE source = 7")
        return count

    monkeypatch.setattr(postgres_move, "_copied", wrong)
    with pytest.raises(StoreError, match="does not hold the copies that were moved, nothing was kept"):
        postgres_move.moved(file, address)
    store = PostgresStore(address)
    assert store.counters() == {}
    assert len(store.fleet(1).source) == 0
    store.close()


def test_what_cannot_be_moved_is_said_in_a_sentence(server: Postgres, tmp_path: Path) -> None:
    address = server.address()
    with pytest.raises(StoreError, match="does not exist"):
        postgres_move.moved(tmp_path / "none.db", address)
    for given, words in (
        (("--from", "x.db", "--to", address), "write sqlite:FILE"),
        (("--from", "sqlite:x.db", "--to", "mysql://h/d"), "is no PostgreSQL database"),
    ):
        answer = CliRunner().invoke(move, given)
        assert words in str(answer.exception)
