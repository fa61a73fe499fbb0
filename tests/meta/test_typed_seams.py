"""mypy sees through the seams: who misspells a call of a store, in the engine, is told before anything runs."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import unstale.engine

ENGINE = Path(unstale.engine.__file__).parent
ROOT = ENGINE.parent.parent
PROJECT = Path(__file__).parents[2]
#: calls of a store in the engine, the misspelt ones, and what mypy says of them
BREAKS = {
    "claiming.py": ((r"store\.claim\(", "store.clam(", '"Store" has no attribute "clam"'),),
    "planner.py": (
        (r"store\.elect\(", "store.elekt(", '"SharedStore" has no attribute "elekt"'),
        (r"store\.divide\(config\.rate, first\)", 'store.divide("much")', 'Argument 1 to "divide"'),
        (r"lesson\.number", "lesson.numbr", '"Lesson" has no attribute "numbr"'),
    ),
    "peers.py": ((r"mine\.digests\[0\]", "mine.digest[0]", '"Holding" has no attribute "digest"'),),
}


@pytest.mark.slow
def test_a_misspelt_call_of_a_store_fails_mypy(tmp_path: Path) -> None:
    copy = tmp_path / "src"
    shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
    expected = []
    for name, breaks in BREAKS.items():
        path = copy / "unstale" / "engine" / name
        text = path.read_text()
        for pattern, wrong, said in breaks:
            text, count = re.subn(pattern, wrong, text)
            assert count, (name, pattern)
            expected.append(said)
        path.write_text(text)
    shutil.copy(PROJECT / "pyproject.toml", tmp_path)
    # What `make lint` has found out is true of the copy as well, but for what was broken: a second instead of a minute.
    if (PROJECT / ".mypy_cache").is_dir():
        shutil.copytree(PROJECT / ".mypy_cache", tmp_path / ".mypy_cache")
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "src/unstale/engine"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={"MYPYPATH": "src", "PATH": "/usr/bin:/bin"},
        check=False,
    )
    assert run.returncode == 1, run.stdout + run.stderr
    for said in expected:
        assert said in run.stdout, said


def test_nothing_crosses_a_port_untyped() -> None:
    for path in sorted((ROOT / "unstale" / "ports").glob("*.py")):
        assert not re.search(r"\bAny\b", path.read_text("utf-8")), path.name
