"""How sources stand: never older than the last commit, and not asked of the store more often than needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from support.asgi import START, Kept
from unstale.keeper.outcomes import Answer
from unstale.ports import Entry, Head
from unstale.server.heads import Heads


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    kept = Kept(tmp_path / "s.db", sources=3)
    kept.poll(b"a")
    yield kept
    kept.close()


def counted(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    reads: list[list[int]] = []
    rows = kept.shelf.heads
    monkeypatch.setattr(kept.shelf, "heads", lambda sources: [reads.append(sorted(sources)), rows(sources)][1])
    return reads


def test_the_mark_moves_with_every_commit_and_with_nothing_else(kept: Kept) -> None:
    mark = kept.shelf.mark()
    assert mark is not None
    kept.shelf.counters()
    kept.store.fleet(15)
    assert kept.shelf.mark() == mark
    seen = {mark}
    for i in range(50):
        kept.store.set_due([1], [START + i])
        seen.add(kept.shelf.mark())
    assert len(seen) == 51


def test_every_commit_is_seen(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, heads = counted(kept, monkeypatch), Heads(kept.shelf)
    assert heads.of(1) == Head(1, 1, 1, START, START + 60, 0)
    assert heads.of(1) == heads.of(1)
    assert heads.of(2) is not None
    assert reads == [[1], [2]]
    kept.store.set_due([2], [START + 500])
    head = heads.of(2)
    assert head is not None
    assert head.due == START + 500
    assert reads[2:] == [], "what was asked for before is looked at together"
    kept.store.remove([1])
    assert heads.of(1) is None
    assert heads.of(4) is None


def test_a_hint_withdraws_nothing_that_was_promised(kept: Kept) -> None:
    heads = Heads(kept.shelf)
    assert heads.of(1) == Head(1, 1, 1, START, START + 60, 0)
    kept.store.set_due([1], [START + 5])
    assert heads.of(1) == Head(1, 1, 1, START, START + 60, 0)
    kept.store.set_due([1], [START + 90])
    assert heads.of(1) == Head(1, 1, 1, START, START + 90, 0)


def test_where_the_store_cannot_tell_it_is_asked_each_time(kept: Kept, monkeypatch: pytest.MonkeyPatch) -> None:
    reads, heads = counted(kept, monkeypatch), Heads(kept.shelf)
    monkeypatch.setattr(kept.shelf, "mark", lambda: None)
    assert heads.of(1) == heads.of(1)
    assert reads == [[1], [1]]


def test_only_those_that_were_polled_again_are_told_of(kept: Kept) -> None:
    told: list[Head] = []
    heads = Heads(kept.shelf, told.extend)
    assert heads.of(1) == Head(1, 1, 1, START, START + 60, 0)
    assert heads.of(2) is not None
    kept.store.set_due([1], [START + 90])
    assert heads.of(2) is not None
    assert told == []
    kept.now = START + 90
    kept.poll()
    heads.of(2)
    assert sorted(head.source for head in told) == [1, 2], "3 was never asked for"
    assert all(head.checked == START + 90 for head in told)


def test_after_a_commit_only_who_stands_otherwise_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Kept(tmp_path / "many.db", sources=90)
    kept.poll(b"a")
    told: list[Head] = []
    heads = Heads(kept.shelf, told.extend)
    before = {source: heads.of(source) for source in kept.ids}
    reads, looked = counted(kept, monkeypatch), list[int]()
    unlike = kept.shelf.heads_unlike

    def look(told: Mapping[int, Head]) -> tuple[list[Head], list[int]]:
        others, gone = unlike(told)
        looked.append(len(others))
        return others, gone

    monkeypatch.setattr(kept.shelf, "heads_unlike", look)
    kept.now += 60
    claims = kept.store.claim(kept.now, 5, lease=60.0, owner="test")
    assert {source: heads.of(source) for source in kept.ids} == before
    kept.store.record([Entry(claim, Answer.UNCHANGED, kept.now, kept.now + 60) for claim in claims])
    kept.store.set_due([80], [kept.now + 90])
    kept.store.remove([81])
    after = {source: heads.of(source) for source in kept.ids}
    polled = sorted(claim.source for claim in claims)
    assert sorted(head.source for head in told) == polled
    assert [one for one in kept.ids if after[one] != before[one]] == sorted([*polled, 80, 81])
    assert after[81] is None
    assert looked == [0, 6]
    assert reads == [[81]], "what is gone is asked for by itself"
    kept.close()
