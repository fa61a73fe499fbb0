"""Which branches of the code the fast tests take: of all of it, and of what must be right before anything else.

Rules of this file:
1. Processes that tests begin are measured too. What numba compiled is not: nobody can look into it.
2. The important ones are named by files: the gate to the network, who may do what, leases, the commit of outcomes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
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
#: seconds for all tests; on a quiet machine they take a few minutes
PATIENCE = 3600.0


def branches(first: int, count: int, folder: Path, tests: Iterable[str] = ("tests",)) -> Counter[str]:
    """All tests but the slow ones, once."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        settings = Path(place) / "settings"
        settings.write_text(_SETTINGS.format(folder=place))
        # Tests of speed and of whole programs may fail for being watched: what counts is which branches were taken.
        told = _coverage(
            settings, "run", "-m", "pytest", "-q", "-n", "2", "-m", "not slow", "-p", "no:cacheprovider", *tests
        )
        print(told.strip().splitlines()[-1:], flush=True)
        _coverage(settings, "combine", "-q")
        _coverage(settings, "json", "-q", "-o", f"{place}/told.json")
        files = json.loads((Path(place) / "told.json").read_text())["files"]
    return Counter({"rounds": 1, **judged(files)})


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


def _coverage(settings: Path, *words: str) -> str:
    command = [sys.executable, "-m", "coverage", words[0], f"--rcfile={settings}", *words[1:]]
    environment = os.environ | {"COVERAGE_RCFILE": str(settings)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout + done.stderr
