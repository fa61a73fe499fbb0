"""Damaged copies are found, not served, and polled anew; a backup goes back into the place of the store."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import numpy as np
import pytest
from click.testing import CliRunner, Result

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.locking import locked
from unstale.cli.maintenance import backup, doctor
from unstale.cli.restoring import restore
from unstale.errors import StoreError
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

WORDS = [b"first " * 50, b"second " * 50]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Ten sources with two versions each, half of them with the same bytes as another."""
    path = tmp_path / "unstale.db"
    made = SqliteStore(path)
    made.add([Listing(f"http://example.org/{n}") for n in range(10)], 0.0)
    for at, words in enumerate(WORDS, 1):
        claims = made.claim(float(at), 10, lease=60.0, owner="me")
        entries = [
            Entry(c, Answer.CHANGED, float(at), at + 0.5, body=Body(words + b"%d" % (c.source // 2), etag='"x"'))
            for c in claims
        ]
        assert all(made.record(entries))
    made.close()
    return path


def call(command: object, store: Path, *args: str) -> Result:
    return CliRunner().invoke(command, [*args, "--store", str(store)])  # type: ignore[arg-type]


def flip(store: Path, number: int, byte: int = 20) -> None:
    """Change one bit in the body of a content."""
    db = apsw.Connection(str(store))
    body = bytearray(db.execute("SELECT body FROM contents WHERE id = ?", (number,)).get)
    body[byte % len(body)] ^= 1
    db.execute("UPDATE contents SET body = ? WHERE id = ?", (bytes(body), number))
    db.close()


def test_a_scrub_of_a_whole_store_finds_nothing(store: Path) -> None:
    done = call(doctor, store, "--scrub")
    assert (done.exit_code, done.stdout) == (0, "every copy matches its sum\n")


def test_every_flipped_bit_is_found_and_no_wrong_byte_is_served(store: Path) -> None:
    rng = np.random.default_rng(1)
    original = store.read_bytes()
    opened = SqliteStore(store)
    assert opened._db is not None
    contents = [number for (number,) in opened._db.execute("SELECT id FROM contents ORDER BY 1")]
    opened.close()
    for _ in range(40):
        store.write_bytes(original)
        content = int(rng.choice(contents))
        flip(store, content, int(rng.integers(0, 1000)))
        hurt = SqliteStore(store)
        damaged = hurt.damaged()
        assert damaged
        for source in range(1, 11):
            for version in (1, 2):
                if (source, version) in damaged:
                    with pytest.raises(StoreError, match="damaged"):
                        hurt.copy(source, version)
                else:
                    copy = hurt.copy(source, version)
                    assert copy is not None
                    assert copy.body.data == WORDS[version - 1] + b"%d" % (source // 2)
        hurt.close()


def test_repair_polls_anew_and_unconditionally_what_is_damaged(store: Path) -> None:
    opened = SqliteStore(store)
    assert opened._db is not None
    old, new = (
        opened._db.execute("SELECT content FROM copies WHERE source = 4 AND version = ?", (version,)).get
        for version in (1, 2)
    )
    opened.close()
    flip(store, old)
    flip(store, new)
    found = call(doctor, store, "--scrub", "--json")
    assert found.exit_code == 1
    pairs = [(one["source"], one["version"]) for one in json.loads(found.stdout)["damaged"]]
    # Sources 4 and 5 hold the same bytes.
    assert pairs == [(4, 1), (4, 2), (5, 1), (5, 2)]
    repaired = call(doctor, store, "--repair")
    assert repaired.exit_code == 1
    end = "4 damaged: 2 polled anew as the budget allows, 2 are old versions that no poll brings back\n"
    assert repaired.stdout.endswith(end)
    mended = SqliteStore(store)
    with pytest.raises(StoreError, match="damaged"):
        mended.copy(4)
    claims = {claim.source: claim for claim in mended.claim(1e10, 99, lease=60.0, owner="me")}
    # They ask for everything, the others only for what is new.
    assert {source for source, claim in claims.items() if claim.etag is None} == {4, 5}
    body = Body(WORDS[1] + b"2", etag='"x"')
    assert all(mended.record([Entry(claims[source], Answer.CHANGED, 3.0, 4.0, body=body) for source in (4, 5)]))
    copy = mended.copy(4)
    assert copy is not None
    assert (copy.version, copy.body.data) == (3, WORDS[1] + b"2")
    # What was damaged goes when newer versions have taken its place.
    assert mended.damaged() == pairs
    mended.close()


def test_a_backup_says_what_is_damaged_in_it(store: Path, tmp_path: Path) -> None:
    assert call(backup, store, str(tmp_path / "whole.db")).exit_code == 0
    flip(store, 1)
    done = call(backup, store, str(tmp_path / "hurt.db"))
    assert done.exit_code == 1
    assert "is damaged, in the store as in its backup" in done.stdout
    assert (tmp_path / "hurt.db").exists()


def test_a_backup_goes_back_and_what_was_there_is_kept(store: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.db"
    assert call(backup, store, str(kept)).exit_code == 0
    before = kept.read_bytes()
    later = SqliteStore(store)
    later.add([Listing("http://example.org/later")], 5.0)
    # Not closed: what it wrote is still in its log.
    done = call(restore, store, str(kept))
    assert done.exit_code == 0, done.output
    later.close()
    restored = SqliteStore(store)
    assert restored.find("http://example.org/later") is None
    assert restored.find("http://example.org/1") is not None
    assert restored.verify() == []
    restored.close()
    (aside,) = tmp_path.glob("unstale.db.before-*[0-9Z]")
    was = SqliteStore(aside)
    assert was.find("http://example.org/later") is not None
    was.close()
    assert kept.read_bytes() == before
    assert not list(tmp_path.glob(".*"))


def test_a_backup_can_be_restored_where_nothing_is(store: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.db"
    assert call(backup, store, str(kept)).exit_code == 0
    done = call(restore, tmp_path / "other.db", str(kept))
    assert done.exit_code == 0
    assert call(doctor, tmp_path / "other.db", "--scrub").exit_code == 0


def test_what_is_damaged_or_in_use_is_not_put_in_place(store: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept.db"
    assert call(backup, store, str(kept)).exit_code == 0
    original = store.read_bytes()
    with locked(store):
        assert "is kept fresh by another process" in str(call(restore, store, str(kept)).exception)
    flip(kept, 1)
    assert "is damaged" in str(call(restore, store, str(kept)).exception)
    (tmp_path / "text.db").write_text("no store")
    refused = call(restore, store, str(tmp_path / "text.db")).exception
    # By the name that was given, not by that of the copy that is looked at.
    assert isinstance(refused, StoreError)
    assert f"backup '{tmp_path / 'text.db'}' is damaged" in str(refused)
    assert ".restored" not in str(refused)
    assert isinstance(call(restore, store, str(tmp_path / "none.db")).exception, StoreError)
    assert store.read_bytes() == original
    assert call(restore, store, str(kept), "--anyway").exit_code == 0
