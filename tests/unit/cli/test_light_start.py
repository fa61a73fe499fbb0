"""A command loads what it uses: to list sources takes no compiler, no solver and no event loop."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = (
    *("numba", "scipy", "numpy.ma", "asyncio", "pyarrow", "pycurl", "rich._emoji_codes"),
    *("unstale.core.values", "unstale.feeds", "unstale.listings.readers"),
)
#: what a command may load of these: who adds sources asks all kinds
USED = {"list": set[str](), "add": {"asyncio"}, "status": set[str](), "get": set[str]()}

RUN = """
import sys
from click.testing import CliRunner
from unstale.cli.main import unstale
done = CliRunner().invoke(unstale, sys.argv[2:])
sys.stdout.write(done.output + str(done.exception or ""))
print("\\n" + " ".join(name for name in sys.argv[1].split(",") if name in sys.modules))
"""


@pytest.mark.parametrize("command", list(USED))
def test_a_command_loads_what_it_uses_and_no_more(command: str, tmp_path: Path) -> None:
    def run(*said: str) -> str:
        call = [sys.executable, "-c", RUN, ",".join(HEAVY), *said]
        return subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=True).stdout

    added = run("add", "https://example.org/")
    said = added if command == "add" else run(command, *(["https://example.org/"] if command == "get" else []))
    assert "example.org" in said or "1 source" in said
    assert set(said.splitlines()[-1].split()) <= USED[command]


def test_an_address_is_no_picture(tmp_path: Path) -> None:
    added = [sys.executable, "-m", "unstale", "add", "https://example.org/:cat:"]
    subprocess.run(added, cwd=tmp_path, capture_output=True, check=True)
    for command in ("list", "status"):
        told = subprocess.run([*added[:3], command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "/:cat:" in told.stdout
