"""The README is the first thing a newcomer believes."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import click
import pytest

from support.documents import PAGES, ROOT, blocks, commands, name

README = ROOT / "README.md"
MAKEFILE = (ROOT / "Makefile").read_text("utf-8")


def test_its_make_targets_exist() -> None:
    named = set(re.findall(r"\bmake ([a-z]+)\b", " ".join(re.findall(r"`[^`]+`", README.read_text("utf-8")))))
    shown = "\n".join(block.text for block in blocks(README, "sh"))
    named |= set(re.findall(r"^make ([a-z]+)", shown, re.MULTILINE))
    targets = set(re.findall(r"^([a-z]+):", MAKEFILE, re.MULTILINE))
    assert {"demo", "test"} <= named
    assert named <= targets


def test_it_shows_every_command() -> None:
    from unstale.cli.main import COMMANDS

    shown = {command.split()[1] for command, _ in commands(README) if command.startswith("unstale ")}
    named = set(re.findall(r"`unstale ([a-z-]+)`", README.read_text("utf-8")))
    typed = {line[1] for line in _typed()}
    assert shown | named | typed == set(COMMANDS)


def test_what_it_types_without_showing_an_answer_can_be_typed() -> None:
    from unstale.cli.main import unstale

    for words in _typed():
        command = unstale.get_command(click.Context(unstale), words[1])
        assert command is not None, words
        known = {name for option in command.params for name in option.opts}
        assert {word for word in words if word.startswith("-")} <= known, words


def _typed() -> list[list[str]]:
    """The command lines of blocks that are not executed, without their comments."""
    lines = "\n".join(block.text for block in blocks(README, "sh")).splitlines()
    return [shlex.split(line, comments=True) for line in lines if line.startswith("unstale ")]


def test_its_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)", README.read_text("utf-8"))
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_it_is_short() -> None:
    assert README.read_text("utf-8").count("\n") <= 120


@pytest.mark.parametrize("page", [page for page in PAGES if page.name != "CHANGELOG.md"], ids=name)
def test_every_path_that_a_page_names_is_there(page: Path) -> None:
    named = re.findall(r"`((?:src|tests|docs|bench|deploy|requirements)/[\w./-]+)`", page.read_text("utf-8"))
    missing = [path for path in named if not (ROOT / path).exists()]
    assert not missing, f"{name(page)} names what is not there"
