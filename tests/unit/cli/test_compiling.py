"""Compiling beside the polls: asked for once, by a process where nothing is kept, and nobody waits for it."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from typing import Any

import pytest

from support.patience import SOON
from unstale.cli import compiling, rehearsal
from unstale.cli.compiling import Compiling
from unstale.core import compiling as core_compiling
from unstale.core.learning import compiled
from unstale.listings.records import CHANNELS


class Stage:
    """A rehearsal that goes on as long as the test wants; the processes that were begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, kept: bool) -> None:
        pytest.importorskip("numba")
        self.goes_on, self.rehearsed, self.begun = threading.Event(), list[str](), list[list[str]]()
        self.here: list[bool] = []
        monkeypatch.setattr(compiled._Way, "loaded", False)
        monkeypatch.setattr(core_compiling, "was_kept", lambda made: kept)
        monkeypatch.setattr(rehearsal, "rehearse", self._rehearse)
        monkeypatch.setattr(compiling.subprocess, "Popen", self._popen)

    def _rehearse(self, objective: str) -> None:
        self.here.append(compiled._here.loaded)
        assert self.goes_on.wait(SOON)
        self.rehearsed.append(objective)

    def _popen(self, command: list[str], **more: Any) -> subprocess.Popen[bytes]:
        self.begun.append(command)
        return real(["sleep", "60"] if not self.goes_on.is_set() else ["true"], stdin=subprocess.DEVNULL)


real = subprocess.Popen


def until(true: Any) -> None:
    ends = time.monotonic() + SOON
    while not true():
        assert time.monotonic() < ends
        time.sleep(0.005)


def test_who_asks_is_answered_at_once_and_it_is_begun_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, one = Stage(monkeypatch, kept=True), Compiling("age")
    assert not one.ready()
    until(lambda: stage.here == [True])
    assert not one.ready()
    assert not compiled._Way.loaded
    stage.goes_on.set()
    until(one.ready)
    assert stage.rehearsed == ["age"]
    assert stage.begun == []
    assert compiled._Way.loaded


def test_what_was_not_kept_is_compiled_by_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, one = Stage(monkeypatch, kept=False), Compiling("freshness")
    stage.goes_on.set()
    until(one.ready)
    assert stage.begun == [[sys.executable, "-m", "unstale.cli.rehearsal", "freshness"]]
    assert stage.rehearsed == ["freshness"]


def test_an_engine_that_ends_ends_that_process(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, one = Stage(monkeypatch, kept=False), Compiling("freshness")
    assert not one.ready()
    until(lambda: one._child is not None)
    one.close()
    assert one._thread is not None
    one._thread.join(SOON)
    assert not one._thread.is_alive()
    assert one._child is not None
    assert one._child.returncode == -9
    assert not one.ready()
    assert stage.rehearsed == []
    assert not compiled._Way.loaded


def test_what_is_read_after_the_end_is_used_by_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    stage, one = Stage(monkeypatch, kept=True), Compiling("freshness")
    assert not one.ready()
    until(lambda: stage.here)
    one.close()
    stage.goes_on.set()
    assert one._thread is not None
    one._thread.join(SOON)
    assert stage.rehearsed
    assert not compiled._Way.loaded


def test_where_it_fails_who_needs_it_compiles_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Stage(monkeypatch, kept=True)

    def fails(objective: str) -> None:
        raise RuntimeError

    monkeypatch.setattr(rehearsal, "rehearse", fails)
    one = Compiling("freshness")
    until(one.ready)


def test_a_rehearsal_decides_by_all_that_an_engine_decides_by() -> None:
    engine = rehearsal.rehearse()
    collected = engine.scheduler.collected
    assert collected is not None
    assert collected.collections.used[0], "the sitemap"
    assert collected.worth_of(collected.channels[CHANNELS["hint"]]).members == 2, "the hints"
    assert engine.counters.failed > 0
    assert engine.counters.changed > 10
