"""What a record leaves behind at its bounds, in every store that forgets: prices, bytes, observations."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from support.postgres import postgres
from unstale.adapters import postgres_observations
from unstale.adapters.postgres_store import PostgresStore
from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Claim, Entry, Listing, Price

HORIZON = 1000.0
SCHEMAS = itertools.count()


@pytest.fixture(scope="module")
def server() -> Iterator[Callable[[], str]]:
    """The address of a server, which is started when somebody asks."""
    with ExitStack() as stack:
        yield lru_cache(lambda: stack.enter_context(postgres()).address())


@pytest.fixture(params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path: Path, server: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Any]:
    store: Any
    if request.param == "sqlite":
        store = SqliteStore(tmp_path / "store.db", horizon=HORIZON)
    else:
        # Partitions of ten polls, for one of a hundred thousand would hold all of them.
        for bound in ("FIRST", "SMALLEST", "LARGEST"):
            monkeypatch.setattr(postgres_observations, bound, 10)
        store = PostgresStore(server(), schema=f"b{next(SCHEMAS)}", horizon=HORIZON, own_time=False)
    yield store
    store.close()


def poll(store: Any, now: float, **given: Any) -> Claim:
    """Claim the one source, and record that nothing changed; it is due again at once."""
    (claim,) = store.claim(now, 1, lease=30.0, owner="a")
    assert store.record([Entry(claim, Answer.UNCHANGED, now, due=now, belief=bytes(8), **given)]) == [True]
    return claim


def test_prices_are_kept_for_the_horizon_and_no_longer(store: Any) -> None:
    store.add([Listing("http://a.example/")], 0.0)
    for at in (0.0, 500.0, 1000.0, 1500.0):
        store.record([], price=Price(at, 1.0, 1.0))
    # What is exactly as old as the horizon stays.
    assert [price.at for price in store.prices(-1.0)] == [500.0, 1000.0, 1500.0]
    store.record([], price=Price(1500.5, 1.0, 1.0))
    assert [price.at for price in store.prices(-1.0)] == [1000.0, 1500.0, 1500.5]


def test_only_bytes_of_what_is_recorded_are_counted(store: Any) -> None:
    store.add([Listing("http://a.example/"), Listing("http://b.example/")], 0.0)
    one, two = store.claim(0.0, 2, lease=10.0, owner="a")
    # Its lease ran out and another took it: what comes now comes too late.
    (again,) = store.claim(20.0, 1, lease=10.0, owner="b")
    assert again.source == one.source
    entries = [Entry(claim, Answer.UNCHANGED, 21.0, due=99.0, received=n) for claim, n in ((one, 7), (again, 100))]
    assert store.record(entries) == [False, True]
    assert store.counters()["bytes"] == 100
    assert store.record([Entry(two, Answer.UNCHANGED, 21.0, due=99.0, received=1000)]) == [False]
    assert store.counters()["bytes"] == 100


def test_observations_within_the_horizon_stay_and_older_ones_go(store: Any) -> None:
    (source,) = store.add([Listing("http://a.example/")], 0.0)
    for n in range(60):
        poll(store, 100.0 * n)
    times = [observation.polled_at for observation in store.observations(source)]
    newest, oldest = max(times), min(times)
    assert newest == 5900.0
    # All that is young enough is there; what is older goes, by and by.
    assert set(times) >= {100.0 * n for n in range(60) if 100.0 * n >= newest - HORIZON}
    # A partition goes as a whole: what is in it, and what the next one had to wait for.
    assert oldest >= newest - (2 if isinstance(store, SqliteStore) else 4) * HORIZON
    assert store.verify() == []
