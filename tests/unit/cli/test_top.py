"""`unstale top`: numbers that the store holds, live on a terminal, once elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from support.hand_store import HOUR, NOW, belief, make, poll, survival
from support.patience import BUSY
from unstale.cli import panel as module
from unstale.cli.panel import Panel
from unstale.cli.settings import load
from unstale.cli.top import top
from unstale.keeper.outcomes import Answer
from unstale.ports import Listing


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(time, "time", lambda: NOW)
    monkeypatch.setenv("COLUMNS", "130")
    path = tmp_path / "a.db"
    held = make(path, [Listing("https://known.example/"), Listing("https://down.example/", weight=0.1)])
    poll(held, 1, NOW - HOUR, Answer.CHANGED, row=belief(3.0, 6 * HOUR), body=b"text")
    poll(held, 2, NOW - HOUR, Answer.FAILED, reason="it [hangs] up")
    held.close()
    return path


def test_without_a_terminal_it_is_printed_once(store: Path) -> None:
    done = CliRunner().invoke(top, ["--store", str(store)])
    assert done.exit_code == 0, done.output
    fresh = survival(HOUR, 3.0, 6 * HOUR)
    rows = [line.split() for line in done.output.splitlines()]
    assert ["freshness", f"{100 * fresh / 1.1:.1f}", "%"] in [row[:3] for row in rows]
    assert ["polls", "2", "so", "far"] in rows
    assert ["new", "copies", "1", "so", "far"] in rows
    assert ["failures", "1", "so", "far"] in rows
    assert "https://down.example/: it [hangs] up" in done.output
    assert "not running" in done.output
    known = next(line for line in done.output.splitlines() if "known.example" in line)
    assert known.split()[:2] == [f"{100 * fresh:.0f}", "%"]


def test_the_pace_is_what_was_recorded_while_we_looked(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    from unstale.adapters.sqlite_store import SqliteStore
    from unstale.cli.service import service_of

    held = SqliteStore(store)
    service = service_of(load(store=str(store)))
    panel = Panel(service, "here")
    shown = Console(width=130)

    def rows() -> list[list[str]]:
        with shown.capture() as got:
            shown.print(panel.draw(130, 5), highlight=False)
        return [line.split() for line in got.get().splitlines()]

    rows()
    for _ in range(3):
        poll(held, 1, NOW - 60, Answer.UNCHANGED, row=belief(3.0, 7 * HOUR))
    clock[0] += 6.0
    seen = rows()
    assert ["polls", "5", "so", "far,", "30/min", "now"] in seen
    assert ["new", "copies", "1", "so", "far,", "0", "now"] in seen
    # What lies more than a minute back no longer counts.
    clock[0] += 59.0
    assert ["polls", "5", "so", "far,", "0", "now"] in rows()
    held.close()


def test_the_line_and_the_panel_of_a_run_say_what_the_service_says(store: Path) -> None:
    from unstale.cli.service import serving

    fresh = survival(HOUR, 3.0, 6 * HOUR) / 1.1
    with serving(load(store=str(store))) as service:
        said = module.line(service.status(limit=0))
        shown = Console(width=130)
        with shown.capture() as got:
            shown.print(Panel(service, "mine", lambda: [("truth", "12 %", "by somebody else")]).draw(130, -5))
    assert said.startswith(f"freshness {100 * fresh:.1f} % (")
    assert said.endswith("2 polls, 0 changes, 1 failure")
    lines = got.get().splitlines()
    assert lines[0].split() == ["mine"]
    assert ["truth", "12", "%"] in [line.split()[:3] for line in lines]


def test_a_missing_store_is_one_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(top, ["--store", str(tmp_path / "none.db")])
    assert "does not exist: add sources with `unstale add`" in str(done.exception)


def on_a_terminal(words: list[str], until: Callable[[bytes], bool]) -> tuple[bytes, int]:
    """What a process shows on a terminal and its exit code, if it is interrupted once `until` is content."""
    main, other = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    seen, told = b"", False
    with subprocess.Popen(
        words, stdin=other, stdout=other, stderr=other, env=environment, close_fds=True, preexec_fn=os.setsid
    ) as process:
        os.close(other)
        end = time.monotonic() + 20.0 * BUSY
        try:
            while chunk := os.read(main, 65536):
                seen += chunk
                if not told and (until(seen) or time.monotonic() > end):
                    process.send_signal(2)
                    told = True
        except OSError:
            pass  # So Linux says that the other side has gone.
        code = process.wait(timeout=20.0 * BUSY)
    os.close(main)
    return seen, code


@pytest.mark.slow
def test_a_terminal_shows_it_live_until_ctrl_c(tmp_path: Path) -> None:
    make(tmp_path / "a.db", [Listing("https://known.example/")]).close()
    code = "from unstale.cli.top import top; top()"
    words = [sys.executable, "-c", code, "--store", str(tmp_path / "a.db")]
    seen, ended = on_a_terminal(words, lambda seen: seen.count(b"known.example") >= 2)
    assert ended == 0
    assert seen.count(b"known.example") >= 2, "it was drawn again"
    assert b"Traceback" not in seen
    assert b"\x1b[?1049l" in seen, "the screen is given back"


@pytest.mark.slow
def test_it_ends_with_its_terminal(tmp_path: Path) -> None:
    make(tmp_path / "a.db", [Listing("https://known.example/")]).close()
    main, other = pty.openpty()
    words = [sys.executable, "-c", "from unstale.cli.top import top; top()", "--store", str(tmp_path / "a.db")]
    # In a session without a controlling terminal nobody is sent a signal when it goes.
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    process = subprocess.Popen(words, stdin=other, stdout=other, stderr=other, env=environment, start_new_session=True)
    try:
        os.close(other)
        seen = b""
        while seen.count(b"known.example") < 2:
            seen += os.read(main, 65536)
        # Between two looks, when nothing is being written that would fail.
        os.close(main)
        process.wait(timeout=20.0 * BUSY)
    finally:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_run_on_a_terminal_shows_the_same_panel(tmp_path: Path) -> None:
    make(tmp_path / "a.db", [Listing("https://known.example/", paused=True)]).close()
    code = "from unstale.cli.run import run; run()"
    words = [sys.executable, "-c", code, "--no-serve", "--store", str(tmp_path / "a.db")]
    seen, ended = on_a_terminal(words, lambda seen: seen.count(b"all sources are paused") >= 2)
    assert ended == 0
    assert seen.count(b"all sources are paused") >= 2, "it was drawn again"
    assert b"Stopped after 0 polls" in seen
    assert b"Traceback" not in seen
