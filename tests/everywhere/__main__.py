"""The fast tests under everything that differs from machine to machine, as far as this machine can have it.

`python tests/everywhere` runs every pair of conditions in some row, prints what is missing and a table, and exits with
1 if a row failed. `--few` is one row that differs in all the ways that need nothing special: for every CI run.
`--list` prints the rows alone.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any

from conditions import DESCRIPTORS, PACKAGED, PRIVATE, Condition, conditions, rows

ROOT = Path(__file__).resolve().parents[2]
#: of each kind the one that differs most from a developer's own machine and needs nothing but this tree
FEW = ("3.13", "plain", "narrow, Turkish, Chatham", "shuffled", "talkative, private")
#: characters of a log that are printed where nobody can look it up
SHOWN = 20_000
#: rows that run beside each other: one alone waits for nearly half of its time
LANES = 2
Row = dict[str, Condition]
#: tests that run now, of all lanes
running: set[subprocess.Popen[str]] = set()


def environment_of(python: str) -> Path:
    """The interpreter of the environment for tests on this Python, which is made if need be."""
    if python == sys.executable:
        return Path(python)
    asked = subprocess.run(["make", "-s", f"PYTHON={python}", "environment"], cwd=ROOT, capture_output=True, text=True)
    assert asked.returncode == 0, f"no environment on {python}: {asked.stderr[-1000:]}"
    return ROOT / asked.stdout.split()[-1] / "bin/python"


@contextmanager
def tree(folder: Path, name: str) -> Iterator[Path]:
    """The sources as they are, or in a folder whose name is hard to quote, where nothing can be written."""
    if name == "as it is":
        yield ROOT
        return
    place = folder / name
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    for path in filter(None, listed.decode().split("\0")):
        if (ROOT / path).exists():
            (place / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, place / path)
    for path in (*place.rglob("*"), place):
        path.chmod(path.stat().st_mode & ~0o222)
    try:
        yield place
    finally:
        for path in (place, *place.rglob("*")):
            path.chmod(path.stat().st_mode | 0o200)


@contextmanager
def load(busy: bool) -> Iterator[None]:
    """As many busy loops beside as there are processors."""
    count = (os.cpu_count() or 1) if busy else 0
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def bare_path(folder: Path) -> str:
    """A PATH with everything but the programs of Debian packages."""
    place = folder / "bin"
    place.mkdir()
    for one in os.environ["PATH"].split(os.pathsep):
        for program in Path(one).iterdir() if Path(one).is_dir() else ():
            if program.name not in PACKAGED and not (place / program.name).is_symlink():
                (place / program.name).symlink_to(program)
    return str(place)


def opened(python: Path, folder: Path) -> tuple[Path, dict[str, str]]:
    """The same environment where everybody may use it, with a copy of its Python; and what must be set to run it."""
    ask = "import sys, sysconfig; print(sys.base_prefix, sysconfig.get_path('purelib'), sep='\\n')"
    base, packages = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=True).stdout.splitlines()
    left_out = shutil.ignore_patterns("test", "site-packages", "__pycache__", "share", "include")
    shutil.copytree(base, folder / "python", symlinks=True, ignore=left_out)
    given = {"LD_LIBRARY_PATH": str(folder / "python/lib")}
    copied, place = folder / "python/bin" / python.resolve().name, folder / "environment"
    subprocess.run([copied, "-m", "venv", "--without-pip", place], env=os.environ | given, check=True)
    made = place / "bin/python"
    own = subprocess.run([made, "-c", ask], env=os.environ | given, capture_output=True, text=True, check=True).stdout
    (Path(own.splitlines()[1]) / "packages.pth").write_text(f"{packages}\n", "utf-8")
    return made, given


@contextmanager
def fresh(folder: Path) -> Iterator[Path]:
    """An empty folder that everybody reads, called alike for every row of a lane: what is compiled serves again."""
    folder.mkdir(mode=0o755)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def compiled(base: Path) -> dict[str, str]:
    """Where every user, from every folder, finds and keeps what Python and numba have compiled."""
    place = base / "compiled"
    place.mkdir(exist_ok=True)
    for path in (place, *place.rglob("*")):
        path.chmod(0o777)
    locator = "support.compiled_anywhere.CompiledAnywhere"
    return {
        "PYTHONPYCACHEPREFIX": str(place / "python"),
        "NUMBA_CACHE_DIR": str(place / "numba"),
        "NUMBA_CACHE_LOCATOR_CLASSES": locator,
    }


def compile_for(chosen: list[Row], base: Path) -> float:
    """Compile for each Python and processor of these rows, side by side: no row does it twice; how long it took.

    That is most of what a first row would take, and both of its workers would do it.
    """
    begun = time.monotonic()
    usual = os.environ | compiled(base) | {"PYTHONPATH": os.pathsep.join([f"{ROOT}/src", f"{ROOT}/tests"])}
    asked = {}
    for row in chosen:
        settings = row["processor"].environment
        python = environment_of(row["python"].environment["PYTHON"])
        asked[python, *sorted(settings.items())] = [python, ROOT / "tests/support/compiled.py"], usual | settings
    running = [subprocess.Popen(words, cwd=ROOT, env=given) for words, given in asked.values()]
    try:
        assert not any(one.wait() for one in running), "what is compiled before the rows could not be"
    finally:
        # Whoever ends this does not wait for them.
        for one in running:
            one.kill()
    return time.monotonic() - begun


def run(row: Row, tests: list[str], examples: bool, lane: Path, log: Path) -> tuple[int, str, float]:
    """Run the fast tests, with examples if told, under these conditions; exit code, what pytest says, and seconds."""
    with ExitStack() as stack:
        folder = stack.enter_context(fresh(lane / "row"))
        python = environment_of(row["python"].environment["PYTHON"])
        place = stack.enter_context(tree(folder, row["folder"].name))
        given = dict(os.environ)
        for condition in row.values():
            given |= condition.environment
        del given["PYTHON"]
        as_user: dict[str, Any] = {}
        if row["user"].name == "nobody":
            (folder / "home").mkdir()
            shutil.chown(folder / "home", "nobody")
            as_user = {"user": "nobody", "group": 65534, "extra_groups": []}
            python, found = opened(python, folder)
            given |= {"HOME": str(folder / "home"), "TMPDIR": str(folder / "home"), **found}
        given |= compiled(lane)
        # The sources of this place, not those that the environment was made for; what is compiled is kept apart.
        given["PYTHONPATH"] = os.pathsep.join([str(place / "src"), str(place / "tests")])
        given["PATH"] = f"{python.parent}{os.pathsep}{given['PATH']}"
        if row["packages"].name == "none":
            given["PATH"] = bare_path(folder)
        shell: tuple[str, ...] = ()
        if row["shell"].environment:
            temporary = folder / "tëmp orary"
            temporary.mkdir()
            if as_user:
                shutil.chown(temporary, "nobody")
            given["TMPDIR"] = str(temporary)
            as_user["umask"] = PRIVATE
            shell = ("sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$@"', "sh")
        words = [*shell, str(python), "-m", "pytest", "-n", "2", "-q", "-p", "no:cacheprovider", "-m"]
        words.append("not slow or examples" if examples else "not slow")
        for condition in row.values():
            words += [word for plugin in condition.plugins for word in ("-p", plugin)]
        stack.enter_context(load(row["load"].name == "busy"))
        begun = time.monotonic()
        with log.open("w") as output:
            done = subprocess.Popen([*words, *tests], cwd=place, env=given, stdout=output, stderr=output, **as_user)
            running.add(done)
            done.wait()
            running.remove(done)
        said = re.findall(r"^(?:=+ )?(\d+ .* in [\d.]+s.*?)(?: =+)?$", log.read_text(errors="replace"), re.MULTILINE)
        return done.returncode, said[-1] if said else "no tests ran", time.monotonic() - begun


def few(known: list[Condition]) -> list[Row]:
    """One row of what differs most, and of how things are where that is missing."""
    row: Row = {}
    for one in known:
        if one.kind not in row or (one.name in FEW and not one.missing):
            row[one.kind] = one
    return [row]


def main() -> int:
    """Run the rows and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--few", action="store_true", help="one row, for every CI run")
    parser.add_argument("--list", action="store_true", help="print the rows and run nothing")
    parser.add_argument("tests", nargs="*", help="these tests instead of all fast ones")
    asked = parser.parse_args()
    known = conditions()
    for one in known:
        if one.missing and (not asked.few or one.name in FEW):
            print(f"left out: {one.kind} {one.name}: {one.missing}")
    chosen = few(known) if asked.few else rows(known)
    kinds = list(chosen[0])
    widths = [max(len(kind), *(len(row[kind].name) for row in chosen)) for kind in kinds]
    print("  ".join(kind.ljust(width) for kind, width in zip(kinds, widths, strict=True)), flush=True)
    if asked.list:
        for row in chosen:
            print(shown(row, widths))
        return 0
    logs, failed = Path(tempfile.mkdtemp(prefix="everywhere")), 0
    lanes = [logs / f"lane{number}" for number in range(1 if asked.few else LANES)]
    for folder in (logs, *lanes):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)
    if not asked.few:
        print(f"compiled in {compile_for(chosen, lanes[0]):.0f} s", flush=True)
        shutil.copytree(lanes[0] / "compiled", lanes[1] / "compiled")
    with ThreadPoolExecutor(len(lanes)) as pool:
        results = in_lanes(pool, chosen, lanes, asked.tests, logs)
        try:
            for number, row in enumerate(chosen):
                print(shown(row, widths), end="", flush=True)
                code, said, took = next(results)
                failed += code != 0
                log = logs / f"{number}.txt"
                print(f"  {took:4.0f} s  {said}" + (f"  see {log}" if code else ""), flush=True)
                if code and asked.few:
                    # Where it runs unattended the log is gone with the machine.
                    print(f"{log.read_text(errors='replace')[-SHOWN:]}", flush=True)
        except BaseException:
            # Whoever ends this does not wait for its tests.
            pool.shutdown(wait=False, cancel_futures=True)
            for each in list(running):
                each.kill()
            raise
    for lane in lanes:
        shutil.rmtree(lane, ignore_errors=True)
    return 1 if failed else 0


def shown(row: Row, widths: list[int]) -> str:
    """A row of the table."""
    return "  ".join(one.name.ljust(width) for one, width in zip(row.values(), widths, strict=True))


def in_lanes(
    pool: ThreadPoolExecutor, chosen: list[Row], lanes: list[Path], tests: list[str], logs: Path
) -> Iterator[tuple[int, str, float]]:
    """Run rows, as many beside each other as there are lanes, each lane in folders of its own; results in order."""
    free: SimpleQueue[Path] = SimpleQueue()
    for lane in lanes:
        free.put(lane)
    shown_on = {"as it is"}

    def one(row: Row, examples: bool, log: Path) -> tuple[int, str, float]:
        lane = free.get()
        try:
            return run(row, tests, examples, lane, log)
        finally:
            free.put(lane)

    waiting = []
    for number, row in enumerate(chosen):
        # What documents show must not depend on the processor: once on each, where it takes least.
        processor = row["processor"].name
        examples = processor not in shown_on and row["load"].name == "quiet"
        shown_on |= {processor} if examples else set()
        waiting.append(pool.submit(one, row, examples, logs / f"{number}.txt"))
    return (each.result() for each in waiting)


if __name__ == "__main__":
    # Whoever ends it ends its busy loops and tests, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
