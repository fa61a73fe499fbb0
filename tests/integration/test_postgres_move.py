"""From a file to a database: everything arrives, or nothing does."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from support.postgres import Postgres, postgres
from unstale.adapters import postgres_move, sqlite_move
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.moving import move
from unstale.errors import InputError, StoreError
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
            "feed" if n % 4 == 0 else "http",
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
            shown = b"<item><guid>%d</guid><title>%d</title></item>"
            data = b"".join(shown % (k, k + step % 2) for k in range(step, step - 3, -1))
            data = b"<rss><channel>" + data + b"</channel></rss>" if claim.kind == "feed" else rng.bytes(50) * 10
            body = Body(data, "text/plain", '"ü"', "Mon", b"print", "there", "peer")
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
    for step in range(3):
        store.note_edit(float(step), "anna", f"did {step}")
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
        "entries": [store.kept_entries(source) for source in ids],
        "edits": store.edits(),
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
    old, new = (
        SqliteStore(file, versions=2, horizon=400.0),
        PostgresStore(address, versions=2, horizon=400.0, own_time=False),
    )
    assert told(new) == told(old)
    tally = old.counters()
    assert new.counters() == tally | {"expired": tally.get("expired", 0) + 2}
    # The claims that were held have ended; tokens and ids go on where they were.
    claims = new.claim(10_000.0, 100, lease=60.0, owner="c")
    assert len(claims) == 57
    assert claims[0].token == tally["claimed"] + 1
    assert new.record([Entry(claims[0], Answer.UNCHANGED, 10_000.0, 10_100.0)]) == [True]
    assert new.add([Listing("http://new/")], 10_000.0) == [61]
    new.note_edit(10_000.0, "ben", "did more")
    assert [one.number for one in new.edits(2)] == [4, 3]
    for n in range(10):
        new.record([], price=Price(10_000.0 + n, 1.0, 5.0, 0.5, 0.25, 1, 2, 3, 4.0))
    assert len(new.prices(10_000.0)) == 10
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


def stopped_after(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, calls: int) -> list[int]:
    """Let a step of a move fail as a kill would after so many times; how often it was taken."""
    step, taken = getattr(module, name), [0]

    def taking(*args: Any, **given: Any) -> Any:
        taken[0] += 1
        if taken[0] > calls:
            raise KeyboardInterrupt
        return step(*args, **given)

    monkeypatch.setattr(module, name, taking)
    return taken


def test_who_was_killed_goes_on_where_it_was(server: Postgres, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.run("CREATE DATABASE resumed")
    address = server.address("resumed")
    monkeypatch.setattr(postgres_move, "CHUNK", 20)
    with monkeypatch.context() as patched:
        stopped_after(patched, postgres_move, "_copied", 20)
        with pytest.raises(KeyboardInterrupt):
            postgres_move.moved(file, address)
    # Until all is there, nothing is.
    with closing(PostgresStore(address)) as empty:
        assert len(empty.fleet(1).source) == 0
    with monkeypatch.context() as patched:
        taken = stopped_after(patched, postgres_move, "_copied", 999)
        assert postgres_move.moved(file, address)["sources"] == 58
    whole = taken[0]
    with closing(SqliteStore(file)) as old, closing(PostgresStore(address)) as new:
        assert told(new) == told(old)
    # Had it begun anew, it would have taken all steps again.
    server.run("CREATE DATABASE again")
    with monkeypatch.context() as patched:
        taken = stopped_after(patched, postgres_move, "_copied", 20)
        with pytest.raises(KeyboardInterrupt):
            postgres_move.moved(file, server.address("again"))
    with closing(SqliteStore(file)) as old:
        old.add([Listing("http://meanwhile.example/")], 900.0)
    with monkeypatch.context() as patched:
        taken = stopped_after(patched, postgres_move, "_copied", 999)
        assert postgres_move.moved(file, server.address("again"))["sources"] == 59
    assert taken[0] == whole + 20


def test_there_and_back_again(server: Postgres, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server.run("CREATE DATABASE back")
    address, path = server.address("back"), tmp_path / "back.db"
    postgres_move.moved(file, address)
    with closing(PostgresStore(address, versions=2, horizon=400.0, own_time=False)) as store:
        claims = store.claim(10_000.0, 5, lease=60.0, owner="c")
        same = store.copy(claims[1].source)
        entries = [Entry(claims[0], Answer.UNCHANGED, 10_000.0, 10_100.0, belief=bytes(8 * WIDTH))]
        if same is not None:
            # Two sources hold the same bytes: in a file they are kept once.
            entries.append(Entry(claims[2], Answer.CHANGED, 10_000.0, 10_200.0, body=same.body))
        assert all(store.record(entries))
        before, tally = told(store), store.counters()
    monkeypatch.setattr(sqlite_move, "CHUNK", 20)
    with monkeypatch.context() as patched:
        stopped_after(patched, sqlite_move, "_asked", 700)
        with pytest.raises(KeyboardInterrupt):
            sqlite_move.moved_back(address, path)
    assert not path.exists()
    answer = CliRunner().invoke(move, ["--from", address, "--to", f"sqlite:{path}"], catch_exceptions=False)
    assert answer.exit_code == 0, answer.output
    assert answer.output.startswith("moved and compared 58 sources, ")
    with closing(SqliteStore(path, versions=2, horizon=400.0)) as back:
        assert told(back) == before
        held = 5 - len(entries)
        assert back.counters() == tally | {"expired": tally["expired"] + held}
        assert back.verify() == []
        # Tokens and ids go on where they were.
        (claim,) = back.claim(20_000.0, 1, lease=60.0, owner="d")
        assert claim.token == tally["claimed"] + 1
        assert back.add([Listing("http://new/")], 20_000.0) == [61]
    with pytest.raises(InputError, match="is there already: choose another name"):
        sqlite_move.moved_back(address, path)
    with closing(PostgresCrew(address)) as crew:
        crew.beat("w", 0.0, 0.0, 0.0, {}, None)
        with pytest.raises(StoreError, match="has workers that are alive: end them first"):
            sqlite_move.moved_back(address, tmp_path / "other.db")
