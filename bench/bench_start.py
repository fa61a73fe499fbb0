"""How long one waits before anything happens: importing the package, asking for help, or how a small fleet stands."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from harness import Table
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

SOURCES = 20
STARTS = {
    "python -c pass": ["-c", "pass"],
    "import unstale": ["-c", "import unstale"],
    "import numpy": ["-c", "import numpy"],
    "unstale --help": ["-m", "unstale", "--help"],
    "unstale status": ["-m", "unstale", "status"],
    "unstale plan": ["-m", "unstale", "plan", "list.csv", "--budget", "100/day"],
}
#: seconds by the clock
BARS = {"import unstale": "0.3", "unstale --help": "0.4"}


def start(arguments: list[str], folder: Path) -> tuple[float, float]:
    """Seconds by the clock and of the processor until a fresh process has ended."""
    begin = time.perf_counter()
    child = subprocess.Popen([sys.executable, *arguments], cwd=folder, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, arguments
    return time.perf_counter() - begin, used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    table = Table("start", f"Starting up; the fleet has {SOURCES} sources")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = SqliteStore(folder / "unstale.db")
        store.add([Listing(f"https://example.org/{i}") for i in range(SOURCES)], time.time())
        store.close()
        rows = "\n".join(f"{i},{i}" for i in range(1, SOURCES))
        (folder / "list.csv").write_text(f"id,change_rate\n{rows}\n")
        seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in STARTS}
        for _ in range(options.rounds):
            for name, arguments in STARTS.items():
                seconds[name].append(start(arguments, folder))
    nothing = statistics.median(cpu for _, cpu in seconds["python -c pass"])
    for name, each in seconds.items():
        clock, cpu = (statistics.median(column) for column in zip(*each, strict=True))
        table.row("a fresh process", name, clock, cpu, cpu / nothing, options.rounds)
        table.fact(f"{name}, seconds", f"{clock:.3f} ({cpu:.3f} of the processor)", BARS.get(name, "-"))
    table.write()


if __name__ == "__main__":
    main()
