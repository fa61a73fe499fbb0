"""The modules of the campaign, which import each other as neighbours, for tests of them."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.documents import ROOT

CHAOS = ROOT / "chaos"
#: who is imported by another comes before it
NAMES = (
    "disk",
    "campaigns",
    "goals",
    "beyond",
    "page",
    "store_faults",
    "flips",
    "long",
    "noisy",
    "overload",
    "failover",
    "stores",
    "simulated",
    "relay",
    "branches",
    "resuming",
    "served",
    "rules",
)


def campaign_modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, ModuleType]:
    """Each by its name, for as long as a test takes."""
    monkeypatch.syspath_prepend(str(CHAOS))
    return {name: loaded(name, CHAOS / f"{name}.py", monkeypatch) for name in NAMES}


def main_module(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The command itself, once the others are there."""
    return loaded("chaos_main", CHAOS / "__main__.py", monkeypatch)


def loaded(name: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """One file as a module."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    found = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, name, found)
    spec.loader.exec_module(found)
    return found
