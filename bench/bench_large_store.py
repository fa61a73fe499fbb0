"""A million sources in one SQLite file, as a user meets them: added from a list, started, asked about, polled.

Commands are processes of their own; what they used is user and system time, the wall clock stands beside it. Sources
answer over loopback. `status` is asked of a fleet that knows its sources: every belief has been taught, due times are
spread over a day.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import chdir, closing, contextmanager
from functools import partial
from pathlib import Path

import apsw
import numpy as np

from bench_run import memory, serving, spent
from bench_store import BATCH, BODY, SPREAD
from harness import Table
from unstale.adapters.sqlite_schema import connect
from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import serving as serving_fleet
from unstale.cli.settings import load
from unstale.core.learning.learner import Learner
from unstale.core.learning.state import WIDTH, kept
from unstale.engine.fleet_sums import SUMS, KeptSums
from unstale.keeper.outcomes import Answer
from unstale.ports import LEARNER, Entry
from unstale.service import documents

SETTINGS = """
store = "fleet.db"
budget = "600/min"
[http]
allow_networks = ["127.0.0.0/8"]
"""
HOSTS = 200
#: polls that are claimed and recorded in the file by itself
POLLS = 40_000
#: polls for each source before that, so that what is measured is what lasts
FILL = 1.5
PAGE = 60
#: by then everybody is due
YEAR = 365 * SPREAD
PATIENCE = 240.0


def command(folder: Path, *words: str) -> tuple[float, float, str]:
    """Seconds by the clock, seconds of all cores and what was printed, of one command."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "unstale", *words], cwd=folder, env=installed(folder), capture_output=True, check=False
    )
    took, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode in (0, 1), done.stderr.decode()[-2000:]
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return took, used, done.stdout.decode()


def installed(folder: Path) -> dict[str, str]:
    """The environment of a command that is installed: its modules were compiled when it was."""
    ours = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return ours | {"PYTHONPYCACHEPREFIX": str(folder / "compiled")}


def listed(folder: Path, sources: int, port: int) -> None:
    """A list as people keep them, an address a line."""
    with (folder / "sources.txt").open("w", encoding="utf-8") as lines:
        for n in range(sources):
            lines.write(f"http://127.0.{1 + n % HOSTS // 250}.{1 + n % HOSTS % 250}:{port}/page/{n:x}\n")


def counted(db: apsw.Connection, name: str) -> int:
    return int(db.execute("SELECT value FROM counters WHERE name = ?", (name,)).get or 0)


@contextmanager
def engine_of(folder: Path) -> Iterator[int]:
    """An engine that runs: its process."""
    with (folder / "said").open("w", encoding="utf-8") as said:
        engine = subprocess.Popen(
            [sys.executable, "-m", "unstale", "run", "--no-serve"],
            cwd=folder,
            env=installed(folder),
            stdout=said,
            stderr=said,
        )
    try:
        yield engine.pid
    finally:
        engine.terminate()
        engine.wait(60)


def awaited(folder: Path, reached: Callable[[], bool]) -> None:
    """Wait until something is so."""
    until = time.perf_counter() + PATIENCE
    while not reached():
        assert time.perf_counter() < until, (folder / "said").read_text("utf-8")[-2000:]
        time.sleep(0.05)


def first_poll(folder: Path) -> dict[str, tuple[float, float]]:
    """Seconds by the clock and of all cores from the start of `unstale run` until the first poll was begun, and until
    one was in the store; and its memory in MB once it has planned and added up its fleet: at most until then, and then,
    that which is in no file.
    """
    found: dict[str, tuple[float, float]] = {}
    with closing(apsw.Connection(str(folder / "fleet.db"))) as db:
        begun = time.time()
        before, began = {name: counted(db, name) for name in ("claimed", "recorded")}, time.perf_counter()
        with engine_of(folder) as pid:
            for name, count in before.items():
                awaited(folder, partial(_more, db, name, count))
                found[name] = time.perf_counter() - began, spent(pid)
            awaited(folder, partial(_added_up, db, begun))
            found["memory"], found["steady"] = (memory(pid), 0.0), (_held(pid, "VmRSS"), _held(pid, "RssAnon"))
    return found


def _held(pid: int, what: str) -> float:
    return int(Path(f"/proc/{pid}/status").read_text().partition(f"{what}:")[2].split()[0]) / 1024


def _added_up(db: apsw.Connection, begun: float) -> bool:
    kept = KeptSums.read(db.execute("SELECT value FROM settings WHERE name = ?", (SUMS,)).get or b"")
    return kept is not None and kept.at > begun


def _more(db: apsw.Connection, name: str, count: int) -> bool:
    return counted(db, name) > count


def beside_an_engine(folder: Path) -> tuple[tuple[float, float], list[tuple[float, float]]]:
    """What `unstale status` takes while an engine runs that has added up its fleet, and three pages."""
    with closing(apsw.Connection(str(folder / "fleet.db"))) as db, engine_of(folder):
        awaited(folder, partial(_added_up, db, time.time()))
        return stated(folder), pages(folder)


def stated(folder: Path) -> tuple[float, float]:
    """The median of three `unstale status`: seconds by the clock and of all cores."""
    took, used = sorted(command(folder, "status")[:2] for _ in range(3))[1]
    return took, used


def teach(path: Path) -> None:
    """Every source was polled a few times, and is due at some time of the day to come, some of them now."""
    rng, now = np.random.default_rng(1), time.time()
    with closing(SqliteStore(path)) as store:
        ids = store.fleet(WIDTH).source
        learner = Learner(len(ids), 1e5, start=now - 3 * SPREAD)
        every, often = np.arange(len(ids)), 10.0 ** rng.uniform(-6.0, -4.0, len(ids))
        for day in (3.0, 2.0, 1.0):
            at = now - SPREAD * (day - rng.random(len(ids)))
            learner.observe(every, at, rng.random(len(ids)) < -np.expm1(-often * SPREAD))
        store.record([], settings={LEARNER: kept(learner)})
    columns, due = learner.columns, now + rng.uniform(-600.0, SPREAD, len(ids))
    beliefs = [row.tobytes() for row in columns.rows]
    with closing(connect(path)) as db:
        db.execute("BEGIN IMMEDIATE")
        db.executemany(
            "UPDATE beliefs SET due = ?, last = ?, found = ?, belief = ? WHERE source = ?",
            zip(due.tolist(), columns.last.tolist(), columns.found.tolist(), beliefs, ids.tolist(), strict=True),
        )
        db.execute("COMMIT")


def written(pid: int) -> int:
    """Bytes that a process has handed to the system for files."""
    fields = Path(f"/proc/{pid}/io").read_text().split()
    return int(fields[fields.index("wchar:") + 1])


def claim_and_record(path: Path, fill: float) -> tuple[float, float, float]:
    """Seconds by the clock and of all cores, and bytes written, per poll that found nothing new, in batches.

    Who is claimed is known, as it is to an engine, and stands anywhere in the file. Every source is polled daily on
    average, and has been for so long that as many old states go as new ones come.
    """
    rng, now = np.random.default_rng(2), time.time() + YEAR
    belief = rng.random(WIDTH).tobytes()
    with closing(SqliteStore(path)) as store:
        # As an engine has, which leaves the file a smaller cache.
        count = len(store.fleet(WIDTH).source)
        size = min(BATCH, count // 2)

        def poll(batches: int) -> None:
            nonlocal now
            for _ in range(batches):
                now += SPREAD * size / count
                among = np.unique(rng.integers(1, count + 1, 2 * size))
                among = rng.permutation(among)[:size].tolist()
                claims = store.claim(now, size, lease=60.0, owner="bench", among=among)
                entries = [Entry(claim, Answer.UNCHANGED, now, now + 1.0, belief, received=BODY) for claim in claims]
                assert all(store.record(entries))
                assert len(entries) == len(among)

        poll(int(fill * count / size))
        polls = POLLS // size
        took, used, wrote = -time.perf_counter(), -time.process_time(), -written(os.getpid())
        poll(polls)
        took, used, wrote = took + time.perf_counter(), used + time.process_time(), wrote + written(os.getpid())
    return took / (polls * size), used / (polls * size), wrote / (polls * size)


def pages(folder: Path) -> list[tuple[float, float]]:
    """Seconds by the clock and of all cores of three pages of 60 sources in turn, as the API makes them."""
    with chdir(folder), serving_fleet(load(None)) as service:

        def page(after: int) -> tuple[float, float]:
            began, used = time.perf_counter(), time.process_time()
            found = service.views(service.store.search(after=after, limit=PAGE))
            assert len(json.dumps([documents.source(one) for one in found])) > PAGE
            return time.perf_counter() - began, time.process_time() - used

        return [page(after) for after in (0, 1000, 2000)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=1_000_000)
    parser.add_argument("--keep", metavar="FOLDER", help="work here and leave everything")
    parser.add_argument("--dry", action="store_true", help="write no table")
    options = parser.parse_args()
    table = Table("large_store", f"{options.sources:,} sources in one SQLite file")
    with tempfile.TemporaryDirectory() as name, serving() as port:
        folder = Path(options.keep or name)
        folder.mkdir(exist_ok=True)
        added(table, folder, options.sources, port)
        started(table, "nothing known", first_poll(folder))
        teach(folder / "fleet.db")
        started(table, "all known", first_poll(folder))
        (folder / "empty").mkdir(exist_ok=True)
        (folder / "empty" / "unstale.toml").write_text(SETTINGS)
        listed(folder / "empty", 1, port)
        command(folder / "empty", "add", "--from", "sources.txt")
        least = stated(folder / "empty")
        table.row("status of one source", "unstale status", *least, least[0] / 0.5, 3)
        running, shown = beside_an_engine(folder)
        for case, (took, used) in (("an engine runs", running), ("none runs", stated(folder))):
            table.row(f"status, {case}", "unstale status", took, used, took / 0.5, 3)
            table.fact(f"status, CPU seconds, {case}", f"{used:.2f}, {used - least[1]:.2f} beside the start", "0.5")
        for case, some in (("an engine runs", shown), ("none runs", pages(folder))):
            for name, (took, used) in zip(("first", "second", "third"), some, strict=True):
                table.row(f"{name} page of {PAGE} sources, {case}", "service", took, used, took / 0.5, 1)
        polled(table, folder / "fleet.db", FILL)
    if not options.dry:
        table.write()


def added(table: Table, folder: Path, sources: int, port: int, bar: str = "15") -> None:
    """What adding so many took."""
    (folder / "unstale.toml").write_text(SETTINGS)
    listed(folder, sources, port)
    command(folder, "add", "--dry-run", "http://127.0.0.1/")
    took, used, _ = command(folder, "add", "--from", "sources.txt")
    table.row("add from a list", "unstale add --from", took, used, used / 15.0, 1)
    table.fact("add, CPU seconds", f"{used:.1f}", bar)
    table.fact("memory of adding, MB", f"{resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.0f}", "-")


def started(table: Table, case: str, found: dict[str, tuple[float, float]], bar: str = "400", first: str = "3") -> None:
    """What a start took."""
    for name, words in (("claimed", "begun"), ("recorded", "in the store")):
        table.row(f"first poll {words}, {case}", "unstale run", *found[name], found[name][0] / 3.0, 1)
    table.fact(f"first poll begun, seconds, {case}", f"{found['claimed'][0]:.1f}", first)
    table.fact(f"memory of the engine at most, MB, {case}", f"{found['memory'][0]:.0f}", bar)
    steady, own = found["steady"]
    table.fact(f"and then, MB, {case}", f"{steady:.0f}, {own:.0f} of it in no file", bar)


def polled(table: Table, path: Path, fill: float) -> None:
    """What polls took."""
    took, used, wrote = claim_and_record(path, fill)
    table.row("claim and record, per poll", "store", took, used, used / 20e-6, 1)
    table.fact("claim and record, CPU µs per poll", f"{used * 1e6:.1f}", "20")
    table.fact("written per poll, bytes", f"{wrote:.0f}", "1,500")


if __name__ == "__main__":
    main()
