"""Ctrl-C in any command, from its first moment on, and readers who have enough: no traceback, ever."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.main import main
from unstale.ports import Listing


def test_ctrl_c_is_one_line_and_exit_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def interrupted(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("unstale.cli.one_copy.parse_rate", interrupted, raising=True)
    monkeypatch.setattr(sys, "argv", ["unstale", "freshness", "--change-rate", "1/day", "--sync-rate", "1/day"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.strip().startswith("unstale: stopped by Ctrl-C")
    assert len(printed.err.strip().splitlines()) == 1


def test_ctrl_c_while_the_command_is_loaded_is_one_line_and_exit_130(tmp_path: Path) -> None:
    # A click that waits: the command is being loaded when the signal comes.
    (tmp_path / "click.py").write_text("import time; print('loading', flush=True); time.sleep(60)")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from unstale.__main__ import main; main()"
    running = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert running.stdout is not None
    assert running.stdout.readline() == "loading\n"
    running.send_signal(signal.SIGINT)
    _, told = running.communicate(timeout=30)
    assert running.returncode == 130
    assert told.startswith("unstale: stopped by Ctrl-C before anything was done")
    assert len(told.splitlines()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("args", [["list", "--limit", "2000"], ["list", "--json", "--limit", "2000"], ["list"]])
def test_a_reader_who_has_enough_is_no_error(args: list[str], tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "unstale.db")
    store.add([Listing(f"https://a.org/{i:0200}") for i in range(2000)], 1e9)
    store.close()
    running = subprocess.Popen(
        [sys.executable, "-m", "unstale", *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert running.stdout is not None
    assert running.stderr is not None
    # Nobody reads: the pipe breaks with the first byte, or at the end where all fits into it.
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait(60) == 141
    running.stderr.close()
