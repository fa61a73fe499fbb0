"""Docstrings are there, short, and their examples run."""

from __future__ import annotations

import ast
import doctest
import pkgutil
from importlib import import_module
from pathlib import Path

import pytest

import unstale
from support.documents import ROOT

SOURCE = ROOT / "src/unstale"
MODULES = ["unstale", *(m.name for m in pkgutil.walk_packages(unstale.__path__, "unstale."))]
#: lines a docstring of a formula may have
LONGEST = 25


@pytest.mark.examples
@pytest.mark.parametrize("module", MODULES)
def test_examples_run(module: str) -> None:
    failed, _ = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_the_examples_are_found() -> None:
    finder = doctest.DocTestFinder()
    examples = sum(len(test.examples) for m in MODULES for test in finder.find(import_module(m)))
    assert examples > 150


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda p: p.relative_to(SOURCE).as_posix())
def test_what_is_public_is_explained_briefly(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert ast.get_docstring(tree) or not tree.body, "the module says nothing about itself"
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            text = ast.get_docstring(node) or ""
            assert text or node.name.startswith("_"), f"{node.name} has no docstring"
            assert len(text.splitlines()) <= LONGEST, f"{node.name} needs {len(text.splitlines())} lines"
