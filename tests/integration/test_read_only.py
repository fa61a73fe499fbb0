"""Where nothing may be written, everything that only reads works, and what must write says so in one sentence."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.keeper.outcomes import Answer
from unstale.ports import Body, Entry, Listing

READING = [
    "status",
    "status --json",
    "list",
    "get a.org",
    "history a.org",
    "explain a.org",
    "doctor --quick",
    "doctor --scrub",
    "signals",
    "budget",
]
WRITING = ["run --for 1s", "add https://c.org/", "edit a.org --weight 2", "hint a.org", "import list.txt"]
#: runs commands one after the other, and prints what each printed, as JSON
COMMANDS = """
import json, sys
from click.testing import CliRunner
from unstale.cli.main import unstale
for line in sys.argv[1:]:
    done = CliRunner().invoke(unstale, line.split())
    print(json.dumps([line, done.exit_code, done.stdout, done.stderr, repr(done.exception)]))
"""


def _store(folder: Path, *, log: bool) -> Path:
    """A store with one copy; with `log`, what was written last stands in its log only, as after a power cut."""
    made = SqliteStore(folder / "made.db")
    made.add([Listing("https://a.org/", host="a.org"), Listing("https://b.org/", host="b.org")], 1e9)
    claim = made.claim(2e9, 1, owner="test", lease=60.0)[0]
    made.record([Entry(claim, Answer.CHANGED, 1.7e9, 1.9e9, body=Body(b"hello", "text/plain"))])
    there = folder / "there"
    there.mkdir()
    (there / "list.txt").write_text("https://d.org/\n")
    if not log:
        # Closing brings what is in the log into the file, and removes it.
        made.close()
    for file in folder.glob("made.db*"):
        if not file.name.endswith("-shm"):
            shutil.copy(file, there)
    made.close()
    assert (there / "made.db-wal").exists() == log
    return there / "made.db"


def _said(store: Path, *lines: str) -> dict[str, tuple[int, str, str, str]]:
    """What commands say in a world of their own, in which the folder of the store is mounted for reading only."""
    inside = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && cd "$0" && exec "$@"'
    command = [sys.executable, "-c", COMMANDS, *lines]
    world = ["unshare", "--map-root-user", "--mount", "sh", "-c", inside, str(store.parent), *command]
    env = {"UNSTALE_STORE": str(store), "HOME": str(store.parent)}
    done = subprocess.run(world, capture_output=True, text=True, check=False, timeout=300, env=env)
    if done.returncode:
        pytest.skip(f"no file system can be made read-only here: {done.stderr.strip()[-300:]}")
    return {line: tuple(rest) for line, *rest in map(json.loads, done.stdout.splitlines())}


@pytest.mark.parametrize("log", [True, False], ids=["with a log", "without"])
def test_what_reads_works_and_what_writes_says_so(log: bool, tmp_path: Path) -> None:
    if shutil.which("unshare") is None:
        pytest.skip("unshare is not installed: no file system can be made read-only")
    store = _store(tmp_path, log=log)
    before = {file.name: file.read_bytes() for file in store.parent.iterdir()}
    exported, copied = f"export {tmp_path}/fleet.csv", f"backup {tmp_path}/backup.db"
    said = _said(store, *READING, exported, copied, *WRITING)
    for line in (*READING, exported, copied):
        code, out, err, error = said[line]
        # Old copies and paused engines are told by exit codes 1 and 2; an error would be an exception.
        assert code == 0 or "SystemExit" in error, (line, err, error)
        assert out, (line, err)
    assert said["get a.org"][1].startswith("hello")
    assert "2 sources" in said["list"][1]
    assert said[exported][1].startswith("wrote 2 sources")
    for line in WRITING:
        code, _, _, error = said[line]
        assert code == 1, (line, said[line])
        assert error.startswith("StoreError("), (line, said[line])
        assert "writ" in error, (line, said[line])
    assert {file.name: file.read_bytes() for file in store.parent.iterdir()} == before
