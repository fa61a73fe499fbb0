"""What is looked at rather than tried: every route by everybody, the code by rules, and builds of SQLite."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import apsw
from served import tested

from unstale.adapters.sqlite_store import SqliteStore
from unstale.errors import StoreError

ROOT = Path(__file__).resolve().parents[1]
#: builds of SQLite that can lose what they have committed, and those that cannot
BROKEN, MENDED = ("3.40.1", "3.44.5", "3.50.6", "3.51.2", "3.52.0"), ("3.44.6", "3.50.7", "3.51.3", "3.54.1")


def routes(first: int, count: int, folder: Path) -> Counter[str]:
    """Every route with every method by nobody, by guesses, by tokens of each scope and by the operator."""
    found: Counter[str] = Counter({"unexpected": 0, "let in": 0})
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for may_be, (*_, status) in tested("unit/server/test_every_route").tried(Path(place)):
            found.update({"rounds": 1, "unexpected": int(not may_be), "let in": int(status < 300)})
    return found


def code(first: int, count: int, folder: Path) -> Counter[str]:
    """Findings of the rules for security and all others, of types, and of which room may know which."""
    ruff = _said("ruff", "check", "--output-format", "concise")
    rules = _said("ruff", "check", "--show-settings", "src/unstale/__init__.py")
    types, rooms = _said("mypy"), _said("lint-imports", "--no-cache")
    files = re.search(r"in (\d+) (?:source )?files?", types)
    kept = re.search(r"Contracts: (\d+) kept, (\d+) broken", rooms)
    assert files is not None, types[-2000:]
    assert kept is not None, rooms[-2000:]
    return Counter(
        {
            "rounds": 1,
            "rules for security": len(set(re.findall(r"\((S\d{3})\)", rules))),
            "findings": len(re.findall(r"^\S+:\d+:\d+: ", ruff, re.MULTILINE)),
            "exceptions, each in its line": sum(
                len(re.findall(r"noqa: [^#]*\bS\d{3}", path.read_text("utf-8"))) for path in ROOT.glob("src/**/*.py")
            ),
            "wrong types": len(re.findall(r": error: ", types)),
            "files with types": int(files[1]),
            "rules of rooms": int(kept[1]) + int(kept[2]),
            "rules of rooms broken": int(kept[2]),
        }
    )


def _said(program: str, *words: str) -> str:
    command = [str(Path(sys.executable).with_name(program)), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return done.stdout + done.stderr


def builds(first: int, count: int, folder: Path) -> Counter[str]:
    """Stores opened with builds of SQLite that can lose commits, by their number, and with those that are mended."""
    found: Counter[str] = Counter({"taken though it loses commits": 0, "refused though it is mended": 0})
    own = apsw.sqlite_lib_version
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for version in (*BROKEN, *MENDED):
            apsw.sqlite_lib_version = lambda version=version: version
            try:
                SqliteStore(Path(place) / f"{version}.db").close()
                found["taken though it loses commits"] += version in BROKEN
            except StoreError:
                found["refused though it is mended"] += version in MENDED
            finally:
                apsw.sqlite_lib_version = own
            found["rounds"] += 1
    return found
