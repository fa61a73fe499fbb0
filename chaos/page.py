"""The page of figures: every goal with what was measured beside it, and what was not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from beyond import BEYOND
from campaigns import CAMPAIGNS, missed
from goals import GOALS, Goal

_HEAD = """# Chaos

What is done to Unstale, how often, and what came of it. `make chaos` repeats it, `make chaos SHARE=1` as often as the
goals say, which takes hours; it goes on where it was ended, so that it can be done in pieces: `make chaos SHARE=1
MINUTES=5 NAMES="kills"`. It writes this page: a goal that is missed stands here with its number, and again
[below](#not-reached), and what nothing measures is said to be so. "Tests" are run by `make test`.

| # | what is done | goal | must hold | measured | tests | not measured |
|---|---|---|---|---|---|---|
"""

_SHORT = """
## Not reached

Goals of which there were fewer rounds than they say, or of which something did not hold.

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


def _number(goal: Goal) -> str:
    return str(goal.number) if goal.number <= len(GOALS) else "+"


def _row(goal: Goal, kept: Mapping[str, Any]) -> str:
    tests = ", ".join(f"`{test}`" for test in goal.tests) or "-"
    fields = (
        _number(goal),
        goal.fault,
        f"{goal.rounds:,}",
        goal.must_hold,
        _measured(goal, kept),
        tests,
        goal.gap or "-",
    )
    return f"| {' | '.join(fields)} |\n"


def _short_of(goal: Goal, kept: Mapping[str, Any]) -> list[str]:
    """What of a goal is not reached: rounds, and what must hold and does not."""
    parts = []
    for name in goal.campaigns:
        whole, one = CAMPAIGNS[name].whole, kept.get(name, {"next": 0, "figures": {}})
        rounds = one["figures"].get("rounds", 0)
        if one["next"] < whole and rounds < max(whole, goal.rounds):
            parts.append(f"{name}: {rounds:,} of {goal.rounds if rounds > whole else whole:,} rounds")
        parts += missed(name, one["figures"]) if rounds else []
    return parts


def page(kept: Mapping[str, Any], goals: Sequence[Goal] = (*GOALS, *BEYOND)) -> str:
    """The whole page."""
    runs = [
        f"| {name} | {at['rounds']:,} | {at['date']} | {at['machine']} | {at['version']} | {at['seconds']:,.0f} s |\n"
        for name, campaign in sorted(kept.items())
        for at in campaign["stretches"]
    ]
    short = [(goal, parts) for goal in goals if (parts := _short_of(goal, kept))]
    fallen = "".join(f"- {_number(goal)}, {goal.fault}: {'; '.join(parts)}\n" for goal, parts in short)
    head = "| campaign | rounds | date | machine | version | took |\n|---|---|---|---|---|---|\n"
    tail = _SHORT + (fallen or "None\n") + "\n## When and where\n\n" + head + "".join(runs)
    return _HEAD + "".join(_row(goal, kept) for goal in goals) + tail


def write_page(kept: Mapping[str, Any], path: Path) -> None:
    """Write it."""
    path.write_text(page(kept), "utf-8")
