"""The page of figures: every goal with what was measured beside it, and what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from beyond import BEYOND
from goals import GOALS, Goal

_HEAD = """# Chaos

What is done to Unstale, how often, and what came of it. `make chaos` repeats it, `make chaos SHARE=1` as often as the
goals say, which takes hours; it goes on where it was ended, so that it can be done in pieces: `make chaos SHARE=1
MINUTES=5 NAMES="kills"`. It writes this page: a goal that is missed stands here with its number, and what nothing
measures is said to be so. "Tests" are run by `make test`.

| # | what is done | goal | must hold | measured | tests | not measured |
|---|---|---|---|---|---|---|
"""


def _measured(goal: Goal, kept: Mapping[str, Any]) -> str:
    parts = []
    for name in goal.campaigns:
        if name not in kept:
            parts.append(f"{name}: not yet run")
            continue
        figures = dict(kept[name]["figures"])
        rounds = figures.pop("rounds", 0)
        told = [
            f"{value:,} {figure}" for figure, value in figures.items() if not figure.startswith(("crash:", "taken:"))
        ]
        parts.append(f"{name}, {rounds:,} rounds: {', '.join(told)}")
    return "; ".join(parts) or "-"


def _row(goal: Goal, kept: Mapping[str, Any]) -> str:
    tests = ", ".join(f"`{test}`" for test in goal.tests) or "-"
    number = str(goal.number) if goal.number <= len(GOALS) else "+"
    fields = (number, goal.fault, f"{goal.rounds:,}", goal.must_hold, _measured(goal, kept), tests, goal.gap or "-")
    return f"| {' | '.join(fields)} |\n"


def page(kept: Mapping[str, Any], goals: Sequence[Goal] = (*GOALS, *BEYOND)) -> str:
    """The whole page."""
    runs = [
        f"| {name} | {at['rounds']:,} | {at['date']} | {at['machine']} | {at['version']} | {at['seconds']:,.0f} s |\n"
        for name, campaign in sorted(kept.items())
        for at in campaign["stretches"]
    ]
    head = "| campaign | rounds | date | machine | version | took |\n|---|---|---|---|---|---|\n"
    tail = "\n## When and where\n\n" + head + "".join(runs)
    return _HEAD + "".join(_row(goal, kept) for goal in goals) + tail


def write_page(kept: Mapping[str, Any], path: Path) -> None:
    """Write it."""
    path.write_text(page(kept), "utf-8")
