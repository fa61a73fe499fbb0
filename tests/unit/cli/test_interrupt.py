"""Ctrl-C in any command: one line, and the exit code that shells expect."""

from __future__ import annotations

import sys
from typing import NoReturn

import pytest

from unstale.cli.main import main


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
