"""Files of large copies: whole, bounded, gone when nobody needs them, and left to nobody by those who were killed."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unstale.server import spooling
from unstale.server.ranges import Stretch
from unstale.server.spooling import SpooledCopies


class Spool:
    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.copies = SpooledCopies(folder, lambda: self.now)

    def path(self, name: str, size: int = 100) -> Path | None:
        data = name.encode() * size
        found = asyncio.run(self.copies.path(Stretch(f'"{name}"', data, 0, len(data))))
        if found is None:
            return None
        assert Path(found).read_bytes() == data
        return Path(found)


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path)


def test_a_copy_is_written_once_and_others_may_not_read_it(spool: Spool) -> None:
    (Path(spool.copies._parent) / "unstale-copies-link").symlink_to("/")
    first, other = spool.path("a"), spool.path("b")
    assert first is not None
    assert spool.path("a") == first != other
    assert first.parent.stat().st_mode & 0o077 == 0


def test_readers_of_a_new_copy_share_its_file(spool: Spool) -> None:
    async def ask() -> list[str | None]:
        copy = Stretch('"a"', b"a" * 100_000, 0, 100_000)
        return await asyncio.gather(*(spool.copies.path(copy) for _ in range(20)))

    (path,) = set(asyncio.run(ask()))
    assert path is not None
    assert [one.name for one in Path(path).parent.iterdir() if one.name != "held"] == [Path(path).name]
    assert spool.copies._bytes == 100_000


def test_there_are_few_and_none_goes_that_may_be_opened_yet(spool: Spool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spooling, "FILES", 3)
    monkeypatch.setattr(spooling, "BYTES", 250)
    first = spool.path("a")
    assert first is not None
    assert spool.path("b") is not None
    # There is no room for its bytes, and who asked for the others may not have opened them yet.
    assert spool.path("c") is None
    spool.now = spooling.OPENED - 1.0
    assert spool.path("b") is not None
    spool.now = spooling.OPENED
    assert spool.path("c") is not None
    assert not first.exists()
    # The files are few, too.
    assert spool.path("d", 10) is not None
    assert spool.path("e", 10) is None


def test_what_nobody_asks_for_goes_when_somebody_asks_for_another(spool: Spool) -> None:
    first, second = spool.path("a"), spool.path("b")
    assert first is not None
    assert second is not None
    spool.now = spooling.UNUSED - 1.0
    spool.path("b")
    spool.now = spooling.UNUSED
    spool.path("c")
    assert (first.exists(), second.exists()) == (False, True)
    assert spool.path("a") is not None


def test_files_that_somebody_else_removed_are_made_again(spool: Spool) -> None:
    first = spool.path("a")
    assert first is not None
    first.unlink()
    again = spool.path("a")
    assert again is not None
    shutil.rmtree(again.parent)
    assert spool.path("a") is not None
    assert spool.copies._bytes == 100


def test_where_nothing_can_be_written_there_is_no_file(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "missing")
    assert spool.path("a") is None
    assert spool.copies._bytes == 0


def test_a_killed_server_leaves_nothing_behind_for_long_and_a_living_one_keeps_its_files(tmp_path: Path) -> None:
    living = Spool(tmp_path)
    kept = living.path("a")
    program = (
        "import asyncio, pathlib, sys\n"
        "from unstale.server.ranges import Stretch\n"
        "from unstale.server.spooling import SpooledCopies\n"
        "copies = SpooledCopies(pathlib.Path(sys.argv[1]))\n"
        "print(asyncio.run(copies.path(Stretch('b', b'b' * 9, 0, 9))), flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        left = Path(other.stdout.readline().strip())
        assert left.read_bytes() == b"b" * 9
        Spool(tmp_path).path("c")
        assert left.exists(), "it lives"
        other.send_signal(signal.SIGKILL)
        other.wait()
    assert left.exists()
    Spool(tmp_path).path("c")
    assert not left.parent.exists()
    assert kept is not None
    assert kept.exists()
