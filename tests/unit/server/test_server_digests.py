"""`/digest` tells what there is, in portions, and what it writes the other side reads."""

from __future__ import annotations

import gzip
from hashlib import sha256
from pathlib import Path

import pytest

from support.asgi import START, Kept, asked
from unstale.adapters.replica_peering import read_digest
from unstale.ports import Listing
from unstale.server import digests
from unstale.server.app import replica


def test_every_copy_is_told_with_its_time_and_digest(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "store.db", sources=3)
    app = replica(kept.shelf, clock=kept.clock, more=[digests.digest_route(kept.shelf, kept.clock, "me")])
    assert read_digest(asked(app, "/digest").body) == ([], START, None)
    kept.poll(b"hello")
    kept.now += 60.25
    kept.poll()
    got = asked(app, "/digest", accept_encoding="gzip")
    assert (got.status, got.fields["content-encoding"]) == (200, "gzip")
    rows, now, further = read_digest(gzip.decompress(got.body))
    assert rows == [(f"https://a.example/{i}", START + 60.25, sha256(b"hello").digest()) for i in range(3)]
    assert (now, further) == (START + 60.25, None)
    assert read_digest(asked(app, f"/digest?since={START + 61}").body)[0] == []
    kept.store.add([Listing("https://a.example/1", paused=True)], kept.now, duplicates="replace")
    assert len(read_digest(asked(app, "/digest").body)[0]) == 2
    kept.close()


def test_portions_follow_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "MOST", 2)
    kept = Kept(tmp_path / "store.db", sources=5)
    app = replica(kept.shelf, clock=kept.clock, more=[digests.digest_route(kept.shelf, kept.clock, "me")])
    kept.poll(b"hello")
    found, after = [], 0
    for _ in range(3):
        rows, _, further = read_digest(asked(app, f"/digest?after={after}").body)
        found += [address for address, _, _ in rows]
        after = further or 0
    assert found == [f"https://a.example/{i}" for i in range(5)]
    assert further is None
    kept.close()


@pytest.mark.parametrize("query", ["since=soon", "since=-1", "since=nan", "after=1e99", "after="])
def test_a_bad_question_is_one_sentence(tmp_path: Path, query: str) -> None:
    kept = Kept(tmp_path / "store.db")
    app = replica(kept.shelf, clock=kept.clock, more=[digests.digest_route(kept.shelf, kept.clock, "me")])
    got = asked(app, f"/digest?{query}")
    assert got.status == 400
    assert b"must be a number, 0 or more" in got.body
    kept.close()


def test_without_the_route_nothing_is_told(tmp_path: Path) -> None:
    kept = Kept(tmp_path / "store.db")
    assert asked(replica(kept.shelf, clock=kept.clock), "/digest").status == 404
    kept.close()
