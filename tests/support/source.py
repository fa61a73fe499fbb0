"""The sources of the product, read and parsed once for all tests that look at them."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from support.documents import ROOT

SOURCE = ROOT / "src/unstale"
#: every module, and how it is called in what a test says
MODULES = {path: path.relative_to(SOURCE).as_posix() for path in sorted(SOURCE.rglob("*.py"))}


@cache
def text(path: Path) -> str:
    """What a file says."""
    return path.read_text("utf-8")


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that a module is made of, the module itself first."""
    return tuple(ast.walk(ast.parse(text(path))))
