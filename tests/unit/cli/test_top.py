"""`unstale top`: numbers that the store holds, live on a terminal, once elsewhere."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from support.hand_store import HOUR, NOW, belief, make, poll, survival
from unstale.cli import top as module
from unstale.cli.settings import load
from unstale.cli.top import Watch, top
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
    watch = Watch(service, "here")
    shown = Console(width=130)

    def rows() -> list[list[str]]:
        with shown.capture() as got:
            shown.print(watch.draw(130, 5), highlight=False)
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


def test_a_missing_store_is_one_sentence(tmp_path: Path) -> None:
    done = CliRunner().invoke(top, ["--store", str(tmp_path / "none.db")])
    assert "does not exist: add sources with `unstale add`" in str(done.exception)


def test_a_terminal_shows_it_live_until_ctrl_c(tmp_path: Path) -> None:
    make(tmp_path / "a.db", [Listing("https://known.example/")]).close()
    main, other = pty.openpty()
    code = "from unstale.cli.top import top; top()"
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    words = [sys.executable, "-c", code, "--store", str(tmp_path / "a.db")]
    seen = b""
    with subprocess.Popen(
        words, stdin=other, stdout=other, stderr=other, env=environment, close_fds=True, preexec_fn=os.setsid
    ) as process:
        os.close(other)
        end = time.monotonic() + 60
        while seen.count(b"known.example") < 2 and time.monotonic() < end:
            seen += os.read(main, 65536)
        process.send_signal(2)
        try:
            while chunk := os.read(main, 65536):
                seen += chunk
        except OSError:
            pass  # So Linux says that the other side has gone.
        assert process.wait(timeout=30) == 0
    os.close(main)
    assert seen.count(b"known.example") >= 2, "it was drawn again"
    assert b"Traceback" not in seen
    assert b"\x1b[?1049l" in seen, "the screen is given back"
