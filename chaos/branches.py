"""Which branches of the code the fast tests take, and which mistakes in it they notice.

Rules of this file:
1. Processes that tests begin are measured too. Into what numba compiled nobody can look: for one part it compiles
   nothing, and the tests of such code see it run as the Python it is written in.
2. The important ones are named by files: the gate to the network, who may do what, leases, the commit of outcomes.
3. The fast tests are run a part at a time, every twentieth file; then the slow ones that are nearest to the important
   files; then those of compiled code; then all slow ones, of units first. From the part of the important files on there
   are figures, and each part more makes them larger. What a part took is kept in .branches/ under a sum of the code:
   parts of other code count for nothing, and are run again.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / ".branches"
#: parts that the fast tests are run in, the slow ones of units, and all other slow ones
PARTS, SLOW_UNITS, SLOW = 20, 8, 12
#: rooms of tests of compiled code, as far as it is not too slow as Python
COMPILED = ("unit/core", "unit/sim")
#: tests of the important files, of which many are slow
NEAREST = (
    "contracts/test_store*.py",
    "integration/test_postgres_store.py",
    "unit/adapters/test_addresses.py",
    "unit/adapters/test_admission.py",
    "unit/adapters/test_dialling.py",
    "unit/adapters/test_sqlite_*.py",
    "unit/server/test_dashboard_door.py",
    "unit/server/test_every_route.py",
    "unit/server/test_scoped_tokens.py",
    "unit/server/test_sessions.py",
)
IMPORTANT = {
    "gate": ("adapters/addresses.py", "adapters/dialling.py", "adapters/admission.py"),
    "auth": ("server/auth.py", "server/scopes.py", "server/sessions.py"),
    "leases": ("adapters/sqlite_claims.py", "adapters/postgres_claims.py"),
    "commit": ("adapters/sqlite_recording.py", "adapters/sqlite_store.py", "adapters/postgres_recording.py"),
}
_SETTINGS = """[run]
branch = true
core = ctrace
patch = subprocess, _exit
parallel = true
source_pkgs = unstale
data_file = {folder}/data
disable_warnings = no-data-collected, module-not-imported, couldnt-parse
[report]
exclude_also =
    if TYPE_CHECKING:
    \\.\\.\\.$
"""
#: seconds for one part; on a quiet machine it takes less than a minute
PATIENCE = 1200.0


def branches(first: int, count: int, folder: Path) -> Counter[str]:
    """So many parts of the tests; the figures are there with the last part, for adding up takes as long as a part."""
    place = KEPT / _stamp()
    for other in KEPT.glob("*"):
        if other != place:
            shutil.rmtree(other)
    place.mkdir(parents=True, exist_ok=True)
    for part in range(first + count):
        if not (place / f"{part}").exists():
            _take(part, place)
    # Adding up takes as long as a part.
    if first + count <= PARTS:
        return Counter({"rounds": count})
    with tempfile.TemporaryDirectory(dir=folder) as name:
        settings = _settings(Path(name))
        parts = [str(place / f"{part}") for part in range(first + count)]
        _coverage(settings, "combine", "-q", "--keep", *parts)
        _coverage(settings, "json", "-q", "-o", f"{name}/told.json")
        files = json.loads((Path(name) / "told.json").read_text())["files"]
    return Counter({"rounds": count, **judged(files)})


def whole() -> int:
    """How many parts there are."""
    return PARTS + 2 + SLOW_UNITS + SLOW


def tests_of(part: int) -> tuple[list[Path], str]:
    """Files of tests of a part, and which of their tests: the fast ones, the slow ones or all."""
    rooms = ROOT / "tests"
    every = sorted(rooms.rglob("test_*.py"))
    if part < PARTS:
        return every[part::PARTS], "not slow"
    if part == PARTS:
        return sorted({path for name in NEAREST for path in rooms.glob(name)}), ""
    if part == PARTS + 1:
        return [path for name in COMPILED for path in sorted((rooms / name).rglob("test_*.py"))], "not slow"
    units, part = [path for path in every if path.is_relative_to(rooms / "unit")], part - PARTS - 2
    if part < SLOW_UNITS:
        return units[part::SLOW_UNITS], "slow"
    return [path for path in every if path not in units][part - SLOW_UNITS :: SLOW], "slow"


def _take(part: int, place: Path) -> None:
    """Run one part of the tests, watched."""
    tests, which = tests_of(part)
    with tempfile.TemporaryDirectory(dir=place) as name:
        settings = _settings(Path(name))
        # Tests of speed and of whole programs may fail for being watched: what counts is which branches were taken.
        words = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", *(("-m", which) if which else ())]
        compiles = {} if part != PARTS + 1 else {"NUMBA_DISABLE_JIT": "1"}
        told = _coverage(settings, "run", *words, *map(str, tests), **compiles)
        ended = next((line for line in reversed(told.splitlines()) if " passed" in line), told[-300:])
        print(f"part {part + 1} of {whole()}: {ended}", flush=True)
        _coverage(settings, "combine", "-q")
        (Path(name) / "data").rename(place / f"{part}")


def _settings(place: Path) -> Path:
    settings = place / "settings"
    settings.write_text(_SETTINGS.format(folder=place))
    return settings


def _stamp() -> str:
    """A sum of the code, and of its tests."""
    files = sorted(path for room in ("src", "tests") for path in (ROOT / room).rglob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def judged(files: Mapping[str, Any]) -> dict[str, int]:
    """Percent of branches that were taken, of all files and of the important ones; and how many of these were not."""
    figures = {"percent of branches": _percent(files.values())}
    missing = 0
    for name, which in IMPORTANT.items():
        chosen = [one for file, one in files.items() if file.endswith(which)]
        missing += sum(one["summary"]["missing_branches"] for one in chosen)
        figures[f"percent of branches of {name}"] = _percent(chosen)
    return figures | {"important branches not taken": missing}


def _percent(files: Iterable[Mapping[str, Any]]) -> int:
    pairs = [(one["summary"]["covered_branches"], one["summary"]["num_branches"]) for one in files]
    taken, there = (sum(column) for column in zip(*pairs, strict=True)) if pairs else (0, 0)
    return int(100 * taken / there) if there else 0


def _coverage(settings: Path, *words: str, **more: str) -> str:
    command = [sys.executable, "-m", "coverage", words[0], f"--rcfile={settings}", *words[1:]]
    environment = os.environ | {"COVERAGE_RCFILE": str(settings)} | more
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout + done.stderr


def mutants(first: int, count: int, folder: Path) -> Counter[str]:
    """So many of the listed mistakes, made one at a time: the tests that are nearest must notice each."""
    listed = subprocess.run([sys.executable, str(ROOT / "tests/mutants"), "--list"], capture_output=True, text=True)
    names = listed.stdout.splitlines()[first : first + count]
    done = subprocess.run([sys.executable, str(ROOT / "tests/mutants"), *names], capture_output=True, text=True)
    verdicts = re.findall(r"^(noticed|SURVIVED) .* s  (.*)$", done.stdout, re.MULTILINE)
    told = Counter(verdict for verdict, name in verdicts if name in names)
    assert told.total() == len(names), done.stdout[-2000:] + done.stderr[-2000:]
    return Counter({"rounds": len(names), "noticed": told["noticed"], "not noticed": told["SURVIVED"]})
