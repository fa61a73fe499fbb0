"""Any moment of a store can be had back by who copies its write-ahead log, as Litestream does.

Litestream holds a read transaction open, so that nobody begins the log anew before it was copied, and appends what is
new in it to its own. The same is done here by hand.
"""

from __future__ import annotations

import shutil
from itertools import pairwise
from pathlib import Path

import apsw
import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

NOW = 1.7e9


def change(store: SqliteStore, n: int) -> None:
    """One more version of the one source."""
    (claim,) = store.claim(NOW + n, 1, owner="test", lease=60.0)
    body = Body(b"version %d " % n * 500, "text/plain")
    store.record([Entry(claim, Answer.CHANGED, NOW + n, NOW + n + 1, body=body)])


@pytest.mark.parametrize("torn", [0, 1, 4000], ids=["whole", "a byte short", "a page short"])
def test_a_store_is_what_it_was_at_any_moment_of_its_log(tmp_path: Path, torn: int) -> None:
    path = tmp_path / "unstale.db"
    store = SqliteStore(path, versions=50)
    store.add([Listing("https://example.org/")], NOW)
    keeper = apsw.Connection(str(path))
    keeper.execute("BEGIN")
    keeper.execute("SELECT count(*) FROM sources").fetchall()
    began = tmp_path / "began.db"
    shutil.copy(path, began)
    points = []
    for n in range(1, 6):
        change(store, n)
        points.append(Path(f"{path}-wal").read_bytes())
    # The log only grew while somebody read it: every earlier state of it is the beginning of a later one.
    for earlier, later in pairwise(points):
        assert later[32 : len(earlier)] == earlier[32:]
    keeper.execute("COMMIT")
    keeper.close()
    store.close()
    for n, log in enumerate(points, 1):
        there = tmp_path / f"at-{n}.db"
        shutil.copy(began, there)
        Path(f"{there}-wal").write_bytes(log[: len(log) - torn])
        restored = SqliteStore(there, create=False, versions=50)
        assert restored.verify() == []
        # A log that was cut somewhere gives back all that was whole in it.
        seen = len(restored.observations(1))
        assert seen == n if not torn else seen in (n - 1, n)
        assert restored.versions(1)[:1] == ([seen] if seen else [])
        restored.close()
