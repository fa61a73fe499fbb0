"""Docstrings are there, short, and their examples run."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module

import pytest

from support.source import MODULES, nodes, text

#: modules with examples, by the name under which they are imported
NAMES = [
    ".".join(("unstale", *module.removesuffix(".py").removesuffix("__init__").split("/"))).rstrip(".")
    for path, module in MODULES.items()
    if ">>> " in text(path)
]
#: lines a docstring of a formula may have
LONGEST = 25


@pytest.mark.examples
@pytest.mark.parametrize("module", NAMES)
def test_examples_run(module: str) -> None:
    failed, _ = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert failed == 0


def test_the_examples_are_found() -> None:
    finder = doctest.DocTestFinder()
    examples = sum(len(test.examples) for m in NAMES for test in finder.find(import_module(m)))
    assert examples > 150


def test_what_is_public_is_explained_briefly() -> None:
    for path, module in MODULES.items():
        tree = nodes(path)[0]
        assert isinstance(tree, ast.Module)
        assert ast.get_docstring(tree) or not tree.body, f"{module} says nothing about itself"
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                said = ast.get_docstring(node) or ""
                assert said or node.name.startswith("_"), f"{module}: {node.name} has no docstring"
                assert len(said.splitlines()) <= LONGEST, f"{module}: {node.name} needs {len(said.splitlines())} lines"
