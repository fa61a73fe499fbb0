"""`unstale papers` as users run it: the whole report, offline, and its check."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest


def run(*words: str, code: str = "", cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, after `code`."""
    program = f"import sys\n{code}\nsys.argv = {['unstale', *words]!r}\nfrom unstale.cli.main import main\nmain()"
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "100"},
    )


#: a value.json with one number moved by a millionth, read instead of the real one
PERTURBED = """
from unstale.report.papers import item
read = item._read
def moved(name):
    found = read(name)
    if name == "values.json":
        next(e for e in found if e["id"] == "C.T6.F_unif")["value"] += 1e-6
    return found
item._read = moved
"""
NO_MATPLOTLIB = "sys.modules['matplotlib'] = None"


def test_check_passes_without_matplotlib_and_writes_nothing(tmp_path: Path) -> None:
    done = run("papers", "--check", "--no-simulation", "--only", "003", code=NO_MATPLOTLIB, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"[1-9]\d+ numbers computed, 0 outside their tolerance", done.stdout)
    assert not list(tmp_path.iterdir())


def test_check_fails_when_a_value_leaves_its_tolerance(tmp_path: Path) -> None:
    done = run("papers", "--check", "--no-simulation", "--only", "001", code=PERTURBED, cwd=tmp_path)
    assert done.returncode == 1
    assert "1 outside their tolerance" in done.stdout
    assert "C.T6.F_unif" in done.stdout


def test_a_report_needs_matplotlib_and_says_so(tmp_path: Path) -> None:
    done = run("papers", "--only", "001", "--no-simulation", code=NO_MATPLOTLIB, cwd=tmp_path)
    assert done.returncode == 1
    assert "unstale[plot]" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_directory_that_cannot_be_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file", "utf-8")
    done = run("papers", "--only", "001", "--no-simulation", "--check", "-o", str(tmp_path / "taken"))
    assert done.returncode == 1
    assert "name another directory" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_the_whole_report(tmp_path: Path) -> None:
    done = run("papers", "--check", "-o", str(tmp_path / "new" / "report"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "249 numbers computed, 0 outside their tolerance, 26 errata" in done.stdout
    text = (tmp_path / "new" / "report" / "papers.html").read_text("utf-8")
    assert len(text) < 4_000_000
    # nothing is loaded: no address, no script, no import; links stay inside
    assert not re.search(r"https?:|@import|<script|<link|<img|<iframe|src=", text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', text)) | set(re.findall(r"url\(#([^)]+)\)", text)) <= set(ids)
    assert text.count("<figure ") == 27
    assert text.count("±&nbsp;") > 60
    for entry in json.loads((files("unstale.report.papers") / "values.json").read_text("utf-8")):
        assert entry["id"].replace("<", "&lt;").replace(">", "&gt;") in text
