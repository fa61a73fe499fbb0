"""The README and the pages of docs/, cut into the fenced blocks that can be executed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, the file it stands for if it has a title, and where its text begins."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(page: Path, language: str) -> list[Block]:
    """All blocks of a page in one language, in order."""
    text = page.read_text("utf-8")
    found = (Block(m[1], m[2], m[3], text.count("\n", 0, m.start(3))) for m in _FENCE.finditer(text))
    return [block for block in found if block.language == language]


def files(page: Path) -> dict[str, str]:
    """The files a page shows in full, by name: blocks with a title."""
    text = page.read_text("utf-8")
    return {m[2]: m[3] for m in _FENCE.finditer(text) if m[2]}


def commands(page: Path) -> list[tuple[str, str]]:
    """What a page types at a prompt, and what it says is then printed."""
    found = []
    for block in blocks(page, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            found.append((command, output))
    return found


def typed(page: Path) -> list[tuple[str, str]]:
    """Every line that a page has its reader type, in order, with the language of its block.

    Lines that go on after a backslash are one; comments are left out.
    """
    text = page.read_text("utf-8")
    found = []
    for m in _FENCE.finditer(text):
        if m[1] == "console":
            found += [("console", part.partition("\n")[0]) for part in re.split(r"^\$ ", m[3], flags=re.MULTILINE)[1:]]
        elif m[1] in ("sh", "bash"):
            lines = m[3].replace("\\\n", " ").splitlines()
            found += [("sh", re.sub(r"\s{2,}#.*$", "", line).strip()) for line in lines if line.strip()]
    return found


def name(page: Path) -> str:
    """A page as tests call it."""
    return page.relative_to(ROOT).as_posix()
