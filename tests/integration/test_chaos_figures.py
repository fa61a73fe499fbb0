"""Figures of campaigns: kept, gone on with, added up, and told on the page."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from support.campaigns import CHAOS, campaign_modules, main_module
from support.documents import ROOT


@pytest.fixture
def chaos(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """The campaign's modules."""
    return campaign_modules(monkeypatch)


@pytest.fixture
def main(chaos: dict[str, ModuleType], monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The command, whose campaigns are those modules."""
    return main_module(monkeypatch)


def test_the_page_says_what_the_figures_say(chaos: dict[str, ModuleType]) -> None:
    kept = json.loads((CHAOS / "figures.json").read_text())
    assert (ROOT / "docs/chaos.md").read_text("utf-8") == chaos["page"].page(kept)


def test_the_page_tells_what_is_not_reached(chaos: dict[str, ModuleType]) -> None:
    goal = chaos["goals"].Goal(13, "seeds", 20_000, "all", ("seeds", "memory"))
    kept = {"seeds": {"next": 60, "figures": {"rounds": 60, "late sources": 2}, "stretches": []}}
    said = chaos["page"].page(kept, [goal])
    short = "- 13, seeds: seeds: 60 of 20,000 rounds; seeds: 2 late sources; memory: 0 of 1 rounds\n"
    assert f"\n\n{short}\n## When" in said
    kept = {name: {"next": 20_000, "figures": {"rounds": 20_000}, "stretches": []} for name in goal.campaigns}
    assert "\n\nNone\n\n## When" in chaos["page"].page(kept, [goal])


def test_every_goal_has_a_row_and_names_what_there_is(chaos: dict[str, ModuleType]) -> None:
    goals = chaos["goals"].GOALS
    assert [goal.number for goal in goals] == list(range(1, 33))
    for goal in (*goals, *chaos["beyond"].BEYOND):
        assert goal.campaigns or goal.tests or goal.gap
        assert set(goal.campaigns) <= set(chaos["campaigns"].CAMPAIGNS), goal
        assert all((ROOT / test).exists() for test in goal.tests), goal


def test_figures_that_are_told_whole_take_the_place_of_those_before(
    chaos: dict[str, ModuleType], main: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    said = iter([40, 70, 96])

    def parts(first: int, count: int, folder: Path) -> Counter[str]:
        return Counter({"rounds": count, "percent": next(said), "left": 3 - first})

    monkeypatch.setattr(chaos["branches"], "parts", parts, raising=False)
    one = chaos["campaigns"].Campaign("branches", "parts", 3, 1, ("left",), 1, ("percent", 95), told_whole=True)
    monkeypatch.setitem(chaos["campaigns"].CAMPAIGNS, "parts", one)
    kept: dict[str, Any] = {}
    assert main.campaign("parts", 0.5, tmp_path, kept, tmp_path / "figures") == [
        "parts: 2 left",
        "parts: 70 percent, wanted 95",
    ]
    # Those who go on with it later have all of it too.
    assert main.campaign("parts", 1.0, tmp_path, kept, tmp_path / "figures") == ["parts: 1 left"]
    assert kept["parts"]["figures"] == {"left": 1, "percent": 96, "rounds": 3}


def test_campaigns_that_run_beside_each_other_keep_the_figures_of_each(
    chaos: dict[str, ModuleType], main: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    figures, ours = tmp_path / "figures", {"figures": {"rounds": 7}, "next": 7, "stretches": []}

    def one(first: int, count: int, folder: Path) -> Counter[str]:
        # Another campaign ends meanwhile.
        main._change(figures, {"other": ours})
        return Counter({"rounds": count})

    monkeypatch.setattr(chaos["branches"], "one", one, raising=False)
    monkeypatch.setitem(chaos["campaigns"].CAMPAIGNS, "one", chaos["campaigns"].Campaign("branches", "one", 2, 1, ()))
    kept: dict[str, Any] = {}
    main.campaign("one", 1.0, tmp_path, kept, figures)
    assert json.loads(figures.read_text()) == kept
    assert (kept["one"]["next"], kept["other"]) == (2, ours)
    assert main._change(figures, {"other": None}) == {"one": kept["one"]}


def test_all_parts_of_the_tests_and_all_mutants_are_tried(chaos: dict[str, ModuleType], main: ModuleType) -> None:
    listed = subprocess.run([sys.executable, str(ROOT / "tests/mutants"), "--list"], capture_output=True, text=True)
    assert chaos["campaigns"].CAMPAIGNS["mutants"].whole == len(listed.stdout.splitlines())
    branches = chaos["branches"]
    assert chaos["campaigns"].CAMPAIGNS["branches"].whole == branches.whole()
    parts = [branches.tests_of(part) for part in range(branches.whole())]
    assert all(tests for tests, _ in parts)
    for which in ("slow", "not slow"):
        tried = {path for tests, those in parts if those == which for path in tests}
        assert tried == set((ROOT / "tests").rglob("test_*.py"))
    for name in chaos["branches"].NEAREST:
        assert list((ROOT / "tests").glob(name)), f"no test is called {name}"


def test_branches_are_counted_of_all_and_of_the_important_ones(chaos: dict[str, ModuleType]) -> None:
    def of(taken: int, there: int) -> dict[str, dict[str, int]]:
        return {"summary": {"covered_branches": taken, "num_branches": there, "missing_branches": there - taken}}

    files = {"src/unstale/server/auth.py": of(9, 10), "src/unstale/units.py": of(30, 30), "a/b.py": of(0, 0)}
    judged = chaos["branches"].judged(files)
    assert (judged["percent of branches"], judged["percent of branches of auth"]) == (97, 90)
    assert judged["important branches not taken"] == 1
    # What is not there at all is not taken for whole.
    assert judged["percent of branches of gate"] == 0
    for named in chaos["branches"].IMPORTANT.values():
        assert all((ROOT / "src/unstale" / file).exists() for file in named), named
