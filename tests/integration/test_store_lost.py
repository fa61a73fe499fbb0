"""A store's file that goes away under an engine, and a second engine that comes by another name."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from unstale.adapters import sqlite_file
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.compose import Application, alone
from unstale.cli.service import engine_runs, read_store, write_store
from unstale.cli.settings import load
from unstale.errors import StoreError, StoreLostError
from unstale.ports import Listing


def _deleted(path: Path) -> None:
    path.unlink()


def _replaced(path: Path) -> None:
    SqliteStore(path.with_name("other.db")).close()
    path.with_name("other.db").rename(path)


def _cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size // 2)


def _emptied(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(0)


def _overwritten(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"\xa5" * path.stat().st_size)


def _without_log(path: Path) -> None:
    Path(f"{path}-wal").unlink()


def _older(path: Path) -> None:
    """As `cp backup.db unstale.db` does: the same file, with what it held before."""
    path.write_bytes(path.with_name("backup.db").read_bytes())


def _filled(path: Path) -> SqliteStore:
    """A store whose pages are in its file, not in the log beside it."""
    store = SqliteStore(path)
    store.add([Listing(f"file:///nowhere/{i}", kind="file") for i in range(300)], time.time())
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[union-attr]
    return store


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (_deleted, "was deleted"),
        (_replaced, "was replaced"),
        (_cut, "was cut"),
        (_emptied, "was cut"),
        (_overwritten, "was overwritten"),
        (_without_log, "lost its log"),
    ],
)
def test_an_engine_notices_stops_and_does_not_begin_another_store(
    tmp_path: Path, harm: Callable[[Path], None], said: str
) -> None:
    path = tmp_path / "unstale.db"
    _filled(path).close()
    (tmp_path / "unstale.toml").write_text(f'store = "{path}"\nbudget = "1000/s"\n')
    told: list[str] = []

    async def main() -> None:
        application = Application(load(str(tmp_path / "unstale.toml")), lambda name, facts: told.append(name))
        running = asyncio.create_task(application.run(asyncio.Event()))
        while "loaded" not in told:
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        harm(path)
        await asyncio.wait_for(running, 60.0)

    with pytest.raises(StoreLostError, match=said):
        asyncio.run(main())
    assert "store_lost" in told
    if harm is _deleted:
        assert not path.exists()


def test_a_file_that_was_compacted_is_not_lost(tmp_path: Path) -> None:
    store = _filled(tmp_path / "unstale.db")
    store.remove(range(1, 290))
    assert store._db is not None
    before = store.path.stat().st_size
    store._db.execute("VACUUM")
    store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert store.path.stat().st_size < before
    store.check_file()
    store.close()


def test_an_older_copy_in_the_place_of_the_content_is_noticed(tmp_path: Path) -> None:
    store = _filled(tmp_path / "unstale.db")
    (tmp_path / "backup.db").write_bytes(store.path.read_bytes())
    for n in range(3):
        store.add([Listing(f"file:///{n}/{i}", kind="file") for i in range(900)], time.time())
        store._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # type: ignore[union-attr]
        store.check_file()
    _older(store.path)
    with pytest.raises(StoreLostError, match="was overwritten"):
        store.add([Listing("file:///nowhere/else", kind="file")], time.time())


def test_a_file_that_nobody_writes_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading it holds up all threads: where a disk hangs, also the one that ends the process."""
    now, reads, read = [100.0], [0], sqlite_file._Head.of

    def counted(db: apsw.Connection) -> sqlite_file._Head:
        reads[0] += 1
        return read(db)

    monkeypatch.setattr(sqlite_file.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sqlite_file._Head, "of", counted)
    store = _filled(tmp_path / "unstale.db")
    store.check_file()
    # What is written within the tick of the file system's clock shows in no time: the next look reads it still.
    now[0] += 1.0
    store.check_file()
    before = reads[0]
    for _ in range(5):
        store.check_file()
    assert reads[0] == before
    os.utime(store.path)
    store.check_file()
    assert reads[0] == before + 1
    store.close()


def test_looking_at_a_file_that_shrank_lets_go_of_no_lock(tmp_path: Path) -> None:
    """By that lock, on 510 bytes that no store reaches, others see that somebody uses the file and its log."""
    store = _filled(tmp_path / "unstale.db")
    store.remove(range(1, 290))
    for statement in ("VACUUM", "PRAGMA wal_checkpoint(TRUNCATE)"):
        store._db.execute(statement)  # type: ignore[union-attr]
    store.check_file()
    asked = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+b'), fcntl.LOCK_EX | fcntl.LOCK_NB, 510, 0x40000002)"
    other = subprocess.run([sys.executable, "-c", asked, str(store.path)], capture_output=True, text=True)
    assert "BlockingIOError" in other.stderr
    store.close()


def test_a_hard_link_opens_nothing_while_an_engine_writes_under_the_other_name(tmp_path: Path) -> None:
    _filled(tmp_path / "unstale.db").close()
    other = tmp_path / "same.db"
    other.hardlink_to(tmp_path / "unstale.db")
    mine, theirs = (load(None, store=str(path)) for path in (tmp_path / "unstale.db", other))
    with alone(mine):
        for opened in (read_store, write_store):
            opened(mine).close()
            with pytest.raises(StoreError, match=r"another name of the same file \(a hard link\)"):
                opened(theirs)
            opened(mine).close()
        assert engine_runs(mine)
    write_store(theirs).close()
    read_store(theirs).close()


@pytest.mark.parametrize("link", [Path.symlink_to, Path.hardlink_to])
def test_a_link_to_a_store_starts_no_second_engine(
    tmp_path: Path, link: Callable[[Path, Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    _filled(tmp_path / "unstale.db").close()
    (tmp_path / "elsewhere").mkdir()
    other = tmp_path / "elsewhere" / "same.db"
    link(other, tmp_path / "unstale.db")
    mine, theirs = (load(None, store=str(path)) for path in (tmp_path / "unstale.db", other))
    with alone(mine):
        # As another process would: with a handle of its own.
        monkeypatch.setattr("unstale.cli.locking._HANDLES", {})
        with pytest.raises(StoreError, match="kept fresh by another process"), alone(theirs):
            pass
    with alone(theirs):
        pass
