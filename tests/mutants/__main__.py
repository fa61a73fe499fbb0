"""Do the nearest tests notice a mistake? Each listed one is made in a copy of the sources and its tests are run there.

`python tests/mutants` prints a line for each and the survivors at the end; it exits with 1 if there is one.
`python tests/mutants use record` tries those whose names have one of these words; `--list` only tells the names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

from listed import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
#: what tests read of the repository
COPIED = ("src", "tests", "docs", "README.md", "pyproject.toml")


@contextmanager
def copies(count: int) -> Iterator[Queue[Path]]:
    """Copies of the repository: one for each mutation that is tried at a time."""
    with tempfile.TemporaryDirectory(prefix="mutants") as folder:
        free: Queue[Path] = Queue()
        for number in range(count):
            place = Path(folder) / str(number)
            for name in COPIED:
                if (ROOT / name).is_dir():
                    shutil.copytree(ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__"))
                else:
                    shutil.copy(ROOT / name, place / name)
            free.put(place)
        yield free


def run_tests(place: Path, names: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """Run tests on the sources of a copy, up to the first that fails."""
    words = ["-m", "pytest", "-x", "-q", "--tb=line", "-p", "no:cacheprovider"]
    files = [str(path) for name in names if (path := place / "tests" / name).exists()]
    # No bytecode is kept: a file that is changed within a second must not be taken for the one before. What numba
    # compiles is kept, for its stamp is made of the text.
    given = os.environ | {
        "PYTHONPATH": str(place / "src"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(place / "compiled"),
    }
    assert files, f"none of {', '.join(names)} exists"
    return subprocess.run([sys.executable, *words, *files], cwd=place, env=given, capture_output=True, text=True)


def check_place(place: Path) -> None:
    """Refuse to go on if the tests would not see the copy."""
    seen = "import unstale; print(unstale.__file__)"
    given = os.environ | {"PYTHONPATH": str(place / "src")}
    found = subprocess.run([sys.executable, "-c", seen], cwd=place, env=given, capture_output=True, text=True)
    assert found.stdout.startswith(str(place)), f"tests would see {found.stdout.strip()} and not the copy"


def mutated(place: Path, mutant: Mutant) -> tuple[Path, str, str]:
    """The file of a mutant in a copy, its text as it is, and as it will be."""
    files = sorted(place.glob(mutant.file))
    assert len(files) == 1, f"{mutant.name}: {mutant.file} fits {len(files)} files, give the one it is now"
    text = files[0].read_text("utf-8")
    times = text.count(mutant.old)
    assert times == 1, f"{mutant.name}: {mutant.old!r} is there {times} times in {mutant.file}, renew the entry"
    return files[0], text, text.replace(mutant.old, mutant.new)


def noticed(free: Queue[Path], mutant: Mutant) -> bool:
    """Whether some test fails when the mistake is made."""
    place, begun = free.get(), time.monotonic()
    try:
        path, before, after = mutated(place, mutant)
        path.write_text(after, "utf-8")
        try:
            done = run_tests(place, mutant.tests)
        finally:
            path.write_text(before, "utf-8")
    finally:
        free.put(place)
    # 0: all passed; 1: some failed. Anything else is no verdict.
    said = done.stdout[-2000:] + done.stderr[-2000:]
    assert done.returncode in (0, 1), f"{mutant.name}: the tests did not run\n{said}"
    verdict = "noticed" if done.returncode else "SURVIVED"
    print(f"{verdict:9} {time.monotonic() - begun:5.1f} s  {mutant.name}", flush=True)
    return done.returncode == 1


def main(words: list[str]) -> int:
    """Try all mutants, or those with one of these words in their names."""
    if words == ["--list"]:
        print("\n".join(mutant.name for mutant in MUTANTS))
        return 0
    chosen = [mutant for mutant in MUTANTS if not words or any(word in mutant.name for word in words)]
    count = min(os.cpu_count() or 1, 4, len(chosen))
    with copies(count) as free, ThreadPoolExecutor(count) as pool:
        place = free.get()
        check_place(place)
        for mutant in chosen:
            mutated(place, mutant)
        # A test that fails anyway notices nothing.
        sound = run_tests(place, tuple(sorted({name for mutant in chosen for name in mutant.tests})))
        assert sound.returncode == 0, f"tests fail without any mutation\n{sound.stdout[-3000:]}{sound.stderr[-2000:]}"
        free.put(place)
        verdicts = list(pool.map(lambda mutant: noticed(free, mutant), chosen))
    survivors = [mutant.name for mutant, dead in zip(chosen, verdicts, strict=True) if not dead]
    print(f"\n{len(chosen)} mutants, survivors: {len(survivors) or 'none'}")
    for name in survivors:
        print(f"  {name}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
