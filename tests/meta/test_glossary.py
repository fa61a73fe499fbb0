"""One word per thing: what docs/glossary.md forbids is not the name of anything in the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.documents import PAGES, ROOT, name
from support.source import MODULES, nodes

#: names that contain a forbidden word for a reason
ALLOWED = {
    "update_staleness": "the penalty summed over changes is the update penalty of 003",
    "mean_update_penalty": "the same",
    "UpdateValue": "the same",
    "update": "the module of UpdateValue",
    "_score": "the standard score of a normal law",
    "fetch": "the network act inside a poll",
    "on_url": "a callback, as httptools calls it",
    "result": "what a command prints, not what a poll taught",
}


def _glossary() -> list[list[str]]:
    text = (ROOT / "docs/glossary.md").read_text("utf-8")
    rows = [line.strip("| ").split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows[1:] if not set(row[0].strip()) <= {"-"}]


def _forbidden() -> set[str]:
    return {word for row in _glossary() for word in re.findall(r"[a-z]+", row[3])}


def _words(identifier: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r"_\1", identifier).lower()))


def _names(path: Path) -> list[tuple[str, int]]:
    found = [(path.stem, 0)]
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append((node.name, node.lineno))
        elif isinstance(node, ast.arg):
            found.append((node.arg, node.lineno))
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.append((node.target.id, node.lineno))
    return found


def test_the_glossary_has_the_words() -> None:
    words = {word for row in _glossary() for word in re.findall(r"\w+", row[0])}
    assert {
        "source",
        "copy",
        "change_rate",
        "poll",
        "sync_rate",
        "freshness",
        "age",
        "price",
        "carousel",
    } <= words
    assert {"crawl", "page", "mirror", "snapshot", "url", "frequency", "bandwidth"} <= _forbidden()
    assert not words & _forbidden()


def test_names_in_the_code_are_the_glossary_s() -> None:
    forbidden, broken = _forbidden(), []
    for path, module in MODULES.items():
        odd = ((n, line) for n, line in _names(path) if _words(n) & forbidden and n not in ALLOWED)
        broken += [f"{module}:{line}: {n}" for n, line in odd]
    assert not broken, "docs/glossary.md has other words for these"


def test_every_exception_is_still_needed() -> None:
    used = {n for path in MODULES for n, _ in _names(path)}
    assert set(ALLOWED) <= used


@pytest.mark.parametrize("page", [p for p in PAGES if p.parent.name in ("howto", ROOT.name)], ids=name)
def test_readers_meet_the_same_words(page: Path) -> None:
    words = set(re.findall(r"[a-z]+", page.read_text("utf-8").lower()))
    assert not words & {"crawl", "crawler", "crawling", "refresh", "mirror", "snapshot", "url"}
