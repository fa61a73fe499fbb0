"""Lists of many sources on PostgreSQL, which are packed and copied: each is there as it was said, and read as new."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from unstale.adapters import postgres_new_rows
from unstale.adapters.postgres_crew import PostgresCrew
from unstale.ports import Listing


def said(n: int) -> Listing:
    """Sources of all kinds, no two alike."""
    return Listing(
        f"https://é{n % 7}.example/{'ü' * (n % 5)}{n}",
        kind=("http", "feed", "json")[n % 3],
        weight=float(n % 11),
        cost=1 + n % 4,
        host=("", "shared.example")[n % 2],
        shortest=float(n % 3),
        longest=math.inf if n % 5 else 86_400,
        options={} if n % 4 else {"title": f"№ {n}", "tags": ["ä", "b"]},
        paused=n % 6 == 5,
    )


@pytest.mark.parametrize("piece", [1, 3, 8192])
def test_each_source_is_there_as_it_was_said(store: PostgresCrew, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(postgres_new_rows, "_PIECE", piece)
    listings = [said(n) for n in range(50)]
    ids = store.add(listings, 1.5)
    assert ids == list(range(1, 51))
    assert store.listings(ids) == [replace(one, id=i, added_at=1.5) for i, one in zip(ids, listings, strict=True)]
    # Once more, with what is new among what is known; one of them twice.
    more = [*listings[:10], *(said(n) for n in range(50, 60)), said(59)]
    again = store.add(more, 2.5, duplicates="replace")
    assert again == [*range(1, 11), *range(51, 61), 60]
    assert [one.added_at for one in store.listings(again)] == [1.5] * 10 + [2.5] * 11
    standing = store.fleet(15)
    assert standing.source.tolist() == list(range(1, 61))
    assert set(standing.due.tolist()) == {1.5, 2.5}
    assert set(standing.last.tolist()) | set(standing.found.tolist()) == {-math.inf}
    assert (standing.failures == 0).all()
    assert not standing.beliefs.any()
    assert standing.paused.tolist() == [one.paused for one in (said(n) for n in range(60))]
    store.beat("w", 0.0, 0.0, 1.0, {}, None)
    assert sorted(claim.source for claim in store.take(ids, lease=9.0, owner="w")) == [
        i for i in ids if not said(i - 1).paused
    ]
    sites = store._read(lambda db: db.execute("SELECT source, h.name FROM schedule JOIN hosts h ON h.id = site"))
    assert dict(sites.fetchall()) == {
        i: "shared.example" if i % 2 == 0 else f"é{(i - 1) % 7}.example" for i in range(1, 61)
    }


def test_statistics_are_made_anew_when_the_tables_have_grown_and_not_for_every_list(
    store: PostgresCrew, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []
    execute = psycopg.Connection.execute

    def heard(db: psycopg.Connection[Any], query: Any, *given: Any, **more: Any) -> Any:
        made.extend(["made"] if str(query).startswith("ANALYZE") else [])
        return execute(db, query, *given, **more)

    monkeypatch.setattr(psycopg.Connection, "execute", heard)
    counts = []
    for first, beyond in pairwise([0, 11_000, 22_000, 32_001, 43_002]):
        store.add([Listing(f"s{i}") for i in range(first, beyond)], 0.0)
        counts.append(len(made))
    # Made of 11,000 and 22,000; of 32,001 they need not be yet, of 43,002 they must.
    assert counts == [1, 2, 2, 3]
