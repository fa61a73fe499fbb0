"""The list of slow tests names tests that exist: a test that was renamed would be taken for a fast one again."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
NAMES = (ROOT / "tests/slow.txt").read_text("utf-8").splitlines()


def defined(file: str) -> set[str]:
    """The tests of a file, those of classes behind the class's name; none if it is gone."""
    path = ROOT / file
    if not path.exists():
        return set()
    found = set()
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{one.name}" for one in node.body if isinstance(one, ast.FunctionDef)} | {node.name}
        elif isinstance(node, ast.Assign):
            # a machine of Hypothesis becomes a test by its name
            found |= {f"{one.id}::runTest" for one in node.targets if isinstance(one, ast.Name)}
    return found


def test_every_test_in_the_list_exists() -> None:
    assert sorted(set(NAMES)) == NAMES
    gone = [name for name in NAMES if name.partition("::")[2] not in defined(name.partition("::")[0])]
    assert gone == [], "measure them again with `make slow`"
