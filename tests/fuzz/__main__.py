"""Parsers that strangers feed, fuzzed with coverage: `python tests/fuzz [--seconds N] [NAME ...]`.

Each runs in a process of its own for so many seconds, from the inputs in corpus/ on; a line per parser says how many
runs there were, and what broke. What breaks one is written to corpus/ under its name, so that tests try it ever after.
What only reaches new code stays in .fuzz/, and the next run goes on from there.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

HERE = Path(__file__).resolve().parent
CORPUS, REACHED = HERE / "corpus", HERE.parents[1] / ".fuzz"
#: seconds and megabytes that one input may take
SLOWEST, FATTEST = 5, 1024


def fuzz(name: str, seconds: int) -> None:
    """Run one parser here until its time is over or it breaks; libFuzzer ends the process itself."""
    import atheris

    sys.path.insert(0, str(HERE))
    with atheris.instrument_imports(include=["unstale"]):
        from parsers import PARSERS
    reached = REACHED / name
    reached.mkdir(parents=True, exist_ok=True)
    bounds = [f"-max_total_time={seconds}", f"-timeout={SLOWEST}", f"-rss_limit_mb={FATTEST}", "-max_len=4096"]
    places = [f"-artifact_prefix={reached}/broken-", str(reached), str(CORPUS / name)]
    atheris.Setup([name, *bounds, *places], PARSERS[name])
    atheris.Fuzz()


def main() -> int:
    """Fuzz one after the other; 1 if something broke."""
    ask = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    ask.add_argument("names", nargs="*")
    ask.add_argument("--seconds", type=int, default=60, help="for each parser")
    ask.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = ask.parse_args()
    if given.here:
        fuzz(given.names[0], given.seconds)
        return 0
    names, broken = given.names or sorted(path.name for path in CORPUS.iterdir()), 0
    for name in names:
        run = [sys.executable, str(HERE), "--here", "--seconds", str(given.seconds), name]
        done = subprocess.run(run, capture_output=True, text=True)
        runs = re.findall(r"Done (\d+) runs|#(\d+)\s", done.stderr)
        count = int(next(filter(None, runs[-1]))) if runs else 0
        crashes = sorted((REACHED / name).glob("broken-*"))
        for crash in crashes:
            data = crash.read_bytes()
            (CORPUS / name / sha256(data).hexdigest()[:12]).with_suffix(".bin").write_bytes(data)
            crash.unlink()
        bad = bool(crashes) or done.returncode != 0
        broken += bad
        print(f"{name:12} {count:>10,} runs  {'BROKEN' if bad else 'fine'}", flush=True)
        if bad:
            print("\n".join(line for line in done.stderr.splitlines()[-60:] if not line.startswith("#"))[-3000:])
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
