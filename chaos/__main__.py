"""The campaign: faults without number, and one page of figures. `python chaos [--share 0.01] [NAME ...]`.

Rules of this file:
1. `--share` of the goals' rounds are done: a hundredth takes a minute or two, all of them hours. What was done before
   counts: a campaign goes on where it was, for every round has its own seed. `--minutes` ends one after so long, to be
   gone on with; every stretch is kept with its date, machine and version.
2. Every few rounds the figures are written, so that whoever ends it loses nothing, and campaigns may run beside each
   other. They stand in chaos/figures.json with date and kind of machine, and docs/chaos.md is made of them.
3. A figure that must be 0 and is not makes the exit code 1, and stands on the page.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT, FIGURES = HERE.parent, HERE / "figures.json"
PAGE = ROOT / "docs/chaos.md"
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

from campaigns import CAMPAIGNS, missed  # noqa: E402  they are beside, and no package
from page import write_page  # noqa: E402

import unstale  # noqa: E402
from unstale.writing import whole_file  # noqa: E402

Chunk = Callable[[int, int, Path], "Counter[str]"]


def _fuzzing(first: int, count: int, folder: Path) -> Counter[str]:
    """Every parser for so many seconds more: each goes on with what it has reached."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "tests/fuzz"), "--seconds", str(count)], capture_output=True, text=True
    )
    runs = [int(text.replace(",", "")) for text in re.findall(r"([\d,]+) runs", done.stdout)]
    parsers = {} if first else {"parsers": len(runs)}
    return Counter({"rounds": sum(runs), "broken": done.stdout.count("BROKEN"), **parsers})


def kind_of_machine() -> str:
    """Enough to compare figures by, and nothing of whose it is."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


def _change(figures: Path, news: Mapping[str, dict[str, Any] | None]) -> dict[str, Any]:
    """Write some campaigns' figures, or forget them, beside what others wrote meanwhile; all there are."""
    folder = os.open(figures.parent, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        there = json.loads(figures.read_text()) if figures.exists() else {}
        kept = {name: one for name, one in (there | dict(news)).items() if one is not None}
        # Whole or not at all: who is ended while writing would lose what took hours.
        with whole_file(figures) as file:
            file.write((json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
    finally:
        os.close(folder)
    return kept


def campaign(
    name: str, share: float, folder: Path, kept: dict[str, Any], figures: Path, until: float = math.inf
) -> list[str]:
    """Go on with one campaign up to its share or a moment, and keep the figures; what must not be and is."""
    one = CAMPAIGNS[name]
    module = __import__(one.module) if one.module != "__main__" else sys.modules["__main__"]
    chunk: Chunk = getattr(module, one.function)
    wanted = max(round(one.whole * share), one.fewest, 1)
    before = {} if one.measured else kept.get(name, {})
    found: Counter[str] = Counter(before.get("figures", {}))
    done, stretches = int(before.get("next", 0)), list(before.get("stretches", []))
    here = {"date": datetime.now(UTC).date().isoformat(), "machine": kind_of_machine(), "version": unstale.__version__}
    if done < wanted and not (stretches and here.items() <= stretches[-1].items()):
        stretches.append({**here, "rounds": 0, "seconds": 0.0})
    while done < wanted and time.monotonic() < until:
        size, begun = min(one.at_once, wanted - done), time.monotonic()
        new = chunk(done, size, folder)
        if one.told_whole:
            found = Counter(new | {"rounds": found["rounds"] + new["rounds"]})
        else:
            found.update(new)
        done += size
        stretches[-1]["rounds"] += new["rounds"]
        stretches[-1]["seconds"] = round(stretches[-1]["seconds"] + time.monotonic() - begun, 1)
        mine = {"figures": dict(sorted(found.items())), "next": done, "stretches": stretches}
        kept.update(_change(figures, {name: mine}))
    wrong = missed(name, found)
    print(f"{name:16} {found['rounds']:>10,} rounds  {'; '.join(wrong) or 'held'}", flush=True)
    return wrong


def main() -> int:
    """Run campaigns one after the other, write the page; 1 if something did not hold."""
    ask = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    ask.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CAMPAIGNS))
    ask.add_argument("--share", type=float, default=0.01, help="of the goals' rounds (default 0.01)")
    ask.add_argument("--minutes", type=float, default=math.inf, help="for each campaign at most, to be gone on with")
    ask.add_argument("--anew", action="store_true", help="forget what was done before of these")
    ask.add_argument("--into", type=Path, help="a folder for figures and page, instead of the repository's")
    ask.add_argument("--page", action="store_true", help="only write the page")
    given = ask.parse_args()
    figures, page = (given.into / "figures.json", given.into / "chaos.md") if given.into else (FIGURES, PAGE)
    figures.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(figures.read_text()) if figures.exists() else {}
    if given.anew:
        kept = _change(figures, dict.fromkeys(given.names or kept))
    wrong = []
    if not given.page:
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
            # Fuzzing takes its seconds for each of the parsers, watched tests take minutes: no short campaign.
            left = ("fuzzing", "branches", "mutants") if given.share < 0.1 else ()
            for name in given.names or [name for name in CAMPAIGNS if name not in left]:
                until = time.monotonic() + 60.0 * given.minutes
                wrong += campaign(name, given.share, Path(folder), kept, figures, until)
    write_page(kept, page)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
