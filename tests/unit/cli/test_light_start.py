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


def test_a_plan_loads_neither_a_compiler_nor_what_reads_other_tables(tmp_path: Path) -> None:
    """Arrow imports pandas, where that is installed, to make columns of its own or NumPy's: 0.2 s."""
    (tmp_path / "fleet.csv").write_text("id,change_rate,weight,cost\na,1,2,1\nb,2.5,,3\n", "utf-8")
    heavy = "numba,scipy,pandas,asyncio,pyarrow.parquet"
    call = [sys.executable, "-c", RUN, heavy, "plan", "fleet.csv", "--budget", "10/day"]
    for more in ([], ["-o", "plan.csv"]):
        said = subprocess.run([*call, *more], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        assert "10" in said
        assert said.splitlines()[-1] == ""
    rows = (tmp_path / "plan.csv").read_text("utf-8").splitlines()
    assert rows[0].endswith('"sync_rate","interval","freshness","age","abandoned"')
    assert [row.split(",")[-1] for row in rows[1:]] == ["false", "false"]


def test_an_address_is_no_picture(tmp_path: Path) -> None:
    added = [sys.executable, "-m", "unstale", "add", "https://example.org/:cat:"]
    subprocess.run(added, cwd=tmp_path, capture_output=True, check=True)
    for command in ("list", "status"):
        told = subprocess.run([*added[:3], command], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert "/:cat:" in told.stdout
