"""The repository as a whole: what must not be in it, and that every golden number is somebody's."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from support import golden
from support.documents import ROOT, name

_SKIPPED = {"__pycache__", "build", "dist", "results", "site"}
_TEXT = {"", ".cfg", ".csv", ".json", ".lock", ".md", ".py", ".toml", ".txt", ".typed", ".yml"}


def _files() -> list[Path]:
    found = []
    for top in sorted(ROOT.iterdir()):
        if top.is_file() and top.name != ".git":
            found.append(top)
        elif top.is_dir() and (not top.name.startswith(".") or top.name == ".ci") and top.name not in _SKIPPED:
            found += [p for p in top.rglob("*") if p.is_file() and not _SKIPPED & set(p.parts)]
    return [p for p in found if p.suffix in _TEXT]


def _any(*words: str) -> str:
    """One of these; a dot stands for what this file must not contain itself."""
    return "(" + "|".join(word.replace(".", "") for word in words) + ")"


FORBIDDEN = {
    "a path of one machine": re.compile("/" + _any("w.ork", "r.oot", "h.ome", "t.mp") + "/"),
    "unfinished work": re.compile(r"\b" + _any("T.ODO", "F.IXME", "X.XX") + r"\b"),
    "a package registry": re.compile(_any("p.ypi", "python.hosted", "j.frog", "arti.factory", "ana.conda")),
}


def test_the_files_are_found() -> None:
    names = {name(p) for p in _files()}
    assert {
        "README.md",
        "Makefile",
        "pyproject.toml",
        "src/unstale/__init__.py",
        "src/unstale/report/papers/values.json",
    } <= names


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_file_contains(what: str) -> None:
    pattern = FORBIDDEN[what]
    broken = []
    for path in _files():
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if pattern.search(line):
                broken.append(f"{name(path)}:{number}: {line.strip()[:80]}")
    assert not broken, f"{what}:\n" + "\n".join(broken)


def test_locks_pin_hashes_and_name_no_place() -> None:
    locks = sorted((ROOT / "requirements").glob("*.lock"))
    assert len(locks) == 3
    for lock in locks:
        text = lock.read_text("utf-8")
        assert "://" not in text
        # a line that does not continue another one begins a requirement
        needed = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
        assert all("==" in line for line in needed)
        assert text.count("--hash=sha256:") >= len(needed)


def test_every_golden_number_is_claimed() -> None:
    for path in sorted((ROOT / "tests/golden").glob("test_*.py")):
        _load(path)
    assert not set(golden.ENTRIES) - golden.CLAIMED, "claimed by no test"


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"claims_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
