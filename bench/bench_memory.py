"""The memory of `unstale run` with 1,000 sources, polled 64 at a time as fast as they answer.

What a process holds at most (with the files of libraries, which others share), its own share of that, and what of it
is in no file. The same with a calm budget, which is what most people have.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

import apsw

from bench_run import FLIGHTS, SETTINGS, memory, reach, recorded, serving
from harness import Table
from unstale.adapters.sqlite_store import SqliteStore
from unstale.ports import Listing

SOURCES = 1000
BUDGETS = {"as fast as they answer": ("600000000/min", 15), "20 a second": ("20/s", 1)}


def shares(pid: int) -> tuple[float, float]:
    """MB that a process has for itself, files of libraries divided among those that use them; and MB in no file."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text("ascii").splitlines()
    found = {line.partition(":")[0]: int(line.split()[1]) / 1024 for line in lines[1:]}
    return found["Pss"], found["Anonymous"]


def held(budget: str, rounds: int) -> tuple[float, float, float]:
    """MB at most, of its own and in no file, once all sources were polled so many times."""
    with serving() as port, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said = SETTINGS.replace("600000000/min", budget)
        (folder / "unstale.toml").write_text(said, encoding="utf-8")
        with closing(SqliteStore(folder / "fleet.db")) as store:
            store.add([Listing(f"http://127.0.1.1:{port}/page/{n}") for n in range(SOURCES)], time.time())
        command = [sys.executable, "-m", "unstale", "run", "--no-serve"]
        with (folder / "said").open("w", encoding="utf-8") as out:
            engine = subprocess.Popen(command, cwd=folder, stdout=out, stderr=out)
        try:
            with closing(apsw.Connection(str(folder / "fleet.db"))) as db:
                reach(db, rounds * SOURCES)
                print(f"{recorded(db):,} polls", flush=True)
            return memory(engine.pid), *shares(engine.pid)
        finally:
            engine.terminate()
            engine.wait(30)


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    table = Table("memory", f"`unstale run` with {SOURCES:,} sources, {FLIGHTS} polled at a time: memory in MB")
    for case, (budget, rounds) in BUDGETS.items():
        most, own, anonymous = held(budget, rounds)
        table.fact(f"at most, {case}", f"{most:.0f}", "150")
        table.fact(f"its share of what is held, {case}", f"{own:.0f}", "-")
        table.fact(f"in no file, {case}", f"{anonymous:.0f}", "-")
    table.write()


if __name__ == "__main__":
    main()
