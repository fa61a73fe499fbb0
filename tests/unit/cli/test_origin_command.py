"""`unstale origin` as a newcomer runs it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from unstale.cli.origin import origin
from unstale.errors import InputError
from unstale.origin import log as logs
from unstale.traces.read import read


def run(*args: str) -> Result:
    return CliRunner().invoke(origin, ["--port", "0", *args], catch_exceptions=True)


def test_it_says_where_it_is_what_to_try_and_what_happened(tmp_path: Path) -> None:
    truth = tmp_path / "truth.csv"
    done = run("--sources", "50", "--changes", "40/s", "--for", "0.4s", "--truth", str(truth))
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert lines[0].startswith("50 sources at http://127.0.0.1:")
    assert "/s changes in all" in lines[0]
    assert any(line.strip().startswith("unstale add --from http://127.0.0.1:") for line in lines)
    # what a poll of this machine needs is said before it fails for want of it
    assert any('allow_networks = ["127.0.0.0/8"] under [http]' in line for line in lines)
    assert "0 requests, 0 answered not modified, 0.0 % found a change" in lines
    changes = int(next(line for line in lines if "changes of 50 sources" in line).split()[0].replace(",", ""))
    trace, _ = read(str(truth))
    assert len(trace.times) == changes > 200


def test_json_is_two_lines() -> None:
    done = run("--json", "--for", "0.1s", "--sources", "3")
    begin, end = (json.loads(line) for line in done.output.splitlines())
    assert begin["sources"] == 3
    assert begin["address"].startswith("http://127.0.0.1:")
    assert 0.1 <= end["seconds"] < 5.0
    assert (end["requests"], end["found"], end["truth"]) == (0, 0, None)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_being_ended_still_writes_what_was_promised(tmp_path: Path, number: signal.Signals) -> None:
    log, truth = tmp_path / "requests.jsonl", tmp_path / "truth.csv"
    code = "from unstale.cli.origin import origin; origin()"
    command = [
        sys.executable,
        "-c",
        code,
        "--port",
        "0",
        "--json",
        "--sources",
        "2",
        "--changes",
        "1000/s",
        "--spread",
        "0",
        "--log",
        str(log),
        "--truth",
        str(truth),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = json.loads(process.stdout.readline())["address"]
        for _ in range(3):
            with urllib.request.urlopen(f"{address}/s/1", timeout=10) as answer:
                assert answer.status == 200
        process.send_signal(number)
        summary = json.loads(process.stdout.readline())
    assert process.returncode == 0
    assert summary["requests"] == 3
    asked = logs.read(str(log))
    assert [a.path for a in asked] == [b"/s/1"] * 3
    trace, _ = read(str(truth))
    assert len(trace.times) == summary["changes"]
    assert (trace.changes(list(trace.names).index(f"{address}/s/1")) <= asked[-1].t).sum() == asked[-1].version


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--changes", "often"], "changes 'often' is not a rate"),
        (["--process", "fractal"], "process 'fractal' is not known"),
        (["--sources", "0"], "sources 0"),
        (["--for", "soon"], "for 'soon' is not a length of time"),
        (["--truth", "truth.xlsx"], "truth 'truth.xlsx' has an unknown ending"),
        (["--truth", "nowhere/truth.csv"], "is in no folder that exists"),
        (["--log", "nowhere/log.jsonl"], "log 'nowhere/log.jsonl' cannot be written"),
        (["--host", "203.0.113.1"], "cannot be served at"),
    ],
)
def test_what_is_wrong_is_said_at_once(args: list[str], words: str) -> None:
    done = run(*args, "--json")
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)
    assert done.output == ""
