"""The README is the first thing a newcomer believes."""

from __future__ import annotations

import re

from support.documents import ROOT, blocks, commands

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
    assert shown == set(COMMANDS)


def test_its_links_lead_to_files() -> None:
    links = re.findall(r"\]\(([^)#]+)", README.read_text("utf-8"))
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]
