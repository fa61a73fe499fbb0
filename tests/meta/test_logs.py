"""The log: every event that code names is known and documented, and none is documented that nobody names."""

from __future__ import annotations

import ast
import json
import logging
import re
from io import StringIO

import pytest

from support.documents import ROOT
from support.source import MODULES, nodes
from unstale.logs import EVENTS, LOGGER, JsonLines, log

#: what writes an event, its first argument is the name: anywhere, and in the engine, which tells of all it logs
CALLS, ENGINE = {"log"}, {"log", "_tell", "tell"}


def named() -> set[str]:
    """The events that code names, in calls of what writes or tells them."""
    found = set()
    for path in MODULES:
        calls = ENGINE if path.parent.name == "engine" else CALLS
        for node in nodes(path):
            if isinstance(node, ast.Call) and node.args:
                function = node.func
                name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
                if name in calls:
                    for leaf in ast.walk(node.args[0]):
                        if isinstance(leaf, ast.Constant) and isinstance(leaf.value, str):
                            found.add(leaf.value)
    return found


def test_code_and_table_name_the_same_events() -> None:
    assert named() == set(EVENTS)


def test_the_page_says_what_the_table_says() -> None:
    page = (ROOT / "docs/howto/logs.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (.*) \|$", page, re.MULTILINE)
    assert rows == [(name, logging.getLevelName(kind.level).lower(), kind.meaning) for name, kind in EVENTS.items()]


def test_a_line_has_event_facts_and_traceback_but_not_what_a_driver_said(monkeypatch: pytest.MonkeyPatch) -> None:
    out = StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(JsonLines())
    monkeypatch.setattr(LOGGER, "handlers", [handler])
    said = "password=hunter2"
    try:
        raise RuntimeError(said)
    except RuntimeError:
        log("fault", {"source": 7})
        log("driver_failed", {"kind": "sql"})
        log("poll_failed", {"reason": "no"})
    fault, driver = (json.loads(line) for line in out.getvalue().splitlines())
    assert (fault["event"], fault["level"], fault["source"]) == ("fault", "error", 7)
    assert "test_a_line_has_event" in fault["traceback"]
    assert "RuntimeError: password=hunter2" in fault["traceback"]
    assert "test_a_line_has_event" in driver["traceback"]
    assert "RuntimeError" in driver["traceback"]
    assert "hunter2" not in driver["traceback"]
