"""The campaign: faults without number, and one page of figures. `python chaos [--share 0.01] [NAME ...]`.

Rules of this file:
1. `--share` of the goals' rounds are done: a hundredth takes a minute or two, all of them hours. What was done before
   counts: a campaign goes on where it was, for every round has its own seed. `--minutes` ends one after so long, to be
   gone on with; every stretch is kept with its date, machine and version.
2. Every few rounds the figures are written, so that whoever ends it loses nothing. They stand in chaos/figures.json
   with date and kind of machine, and docs/chaos.md is made of them.
3. A figure that must be 0 and is not makes the exit code 1, and stands on the page.
"""

from __future__ import annotations

import argparse
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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT, FIGURES = HERE.parent, HERE / "figures.json"
PAGE = ROOT / "docs/chaos.md"
sys.path[:0] = [str(HERE), str(ROOT / "tests")]

from page import write_page  # noqa: E402  it is beside, and no package

import unstale  # noqa: E402
from unstale.writing import whole_file  # noqa: E402

Chunk = Callable[[int, int, Path], "Counter[str]"]


@dataclass(frozen=True, slots=True)
class Campaign:
    """`whole` rounds at share 1, so many `at_once`, at least `fewest`; these figures must be 0 (or reach `least`).

    One that is `measured` begins anew each time: its figures are of one run. Those of one that is `told_whole` are of
    all its rounds so far: the last are not added to them, they take their place.
    """

    module: str
    function: str
    whole: int
    at_once: int
    zero: tuple[str, ...]
    fewest: int = 0
    least: tuple[str, int] | None = None
    measured: bool = False
    told_whole: bool = False


_KILLED = ("lost", "corrupt", "torn", "miscounted", "halves")
_TAIL = (
    "lost beside the tail",
    "not polled again",
    "numbers given twice",
    "false words",
    "corrupt",
    "over ten seconds",
)
_CREW = ("miscounted", "not polled again", "too close at a host", "damaged")
_CLOCK = ("late sources", "seconds over twice the budget", "faults", "negative durations", "observations dropped")
_GROWN = ("files grown by a fifth", "memory grown by 16 MB", "more open files", "damaged", "miscounted")
_OVERLOAD = (
    "others ten points before the valuable",
    "below 95 % of the best freshness",
    "not recovered in two minutes",
    "unbounded",
)
_SIMULATED = (
    "miscounted",
    "applied twice",
    "copies nobody sent",
    "old copies",
    "late sources",
    "over the budget",
    "broken beliefs",
)
_LEFT = ("tasks left behind", "handles left behind")
_LIARS = ("bogus", "of the future", "honest ones left alone", "asked without end")
_BETWEEN = ("not as fresh again", "wrong copies", "honest ones banned", "damaged")
_SLOW = ("health over 1 s", "health not told", "over 64 MB more")
CAMPAIGNS = {
    "kills": Campaign("kills", "polling", 10_000, 50, _KILLED),
    "command kills": Campaign("kills", "commands", 3_000, 30, _KILLED),
    "power cuts": Campaign("store_faults", "power_cuts", 10_000, 100, _KILLED),
    "failing disk": Campaign("store_faults", "failing", 1_000, 10, (*_KILLED, "crashes")),
    "failover": Campaign("failover", "failover", 50, 5, _TAIL, 1),
    "server kills": Campaign("stores", "crashes", 500, 10, ("lost", "corrupt"), 3),
    "sleepers": Campaign("stores", "sleepers", 500, 50, ("applied twice", "miscounted", "corrupt"), 10),
    "stores": Campaign("stores", "steps", 1_000_000, 25_000, ("differences",), 200),
    "seeds": Campaign("simulated", "seeds", 20_000, 200, (*_SIMULATED, "not the same again"), 5),
    "fail-points": Campaign(
        "simulated", "fail_points", 500, 50, (*_SIMULATED, "tasks left behind", "handles left behind"), 20
    ),
    "liars": Campaign("liars", "liars", 10_000, 500, _LIARS, 112),
    "noisy": Campaign(
        "noisy",
        "noisy",
        1_000,
        1_000,
        ("kinds over 20 % off",),
        12,
        ("percent of changes caught in two intervals", 99),
        True,
    ),
    "canaries": Campaign("canaries", "canaries", 1, 1, ("shows a secret", "sources refused"), 1, measured=True),
    "slow": Campaign("served", "slow", 2_000, 2_000, _SLOW, 200, measured=True),
    "cases": Campaign("served", "cases", 10_000, 1_000, ("breaches",), 300),
    "renders": Campaign("renders", "renders", 20_000, 1_000, ("scripts that ran",), 200),
    "workers": Campaign("workers", "faults", 2_200, 50, _CREW, 10),
    "flips": Campaign("flips", "flips", 1_000, 50, ("wrong bytes served",)),
    "inner addresses": Campaign("inputs", "inside", 5_000, 500, ("dialled",), 1_000),
    "bombs": Campaign("inputs", "bombs", 500, 10, ("not stopped", "over 32 MB"), 10),
    "numbers": Campaign("inputs", "numbers", 1, 1, ("taken",), 1, measured=True),
    "draining": Campaign(
        "telling", "draining", 50_000, 50_000, ("missing", "out of order"), 5_000, ("told a second", 1000), True
    ),
    "telling kills": Campaign("telling", "killed", 1_000, 50, ("missing", "out of order"), 10),
    "month down": Campaign("telling", "month", 300_000, 300_000, ("missing", "out of order"), 6_000, measured=True),
    "clock jumps": Campaign("clocks", "jumps", 1_000, 100, _CLOCK, 10),
    "hostile": Campaign("hostile", "hostile", 120, 120, (), 10, ("percent kept", 95), True),
    "memory": Campaign("memory", "memory", 1, 1, ("over 256 MB of its own",), 1, measured=True),
    "network": Campaign("network", "network", 500, 500, ("miscounted", "wrong copies", "damaged"), 60, measured=True),
    "database network": Campaign("network", "database", 500, 100, _CREW, 40),
    "replica network": Campaign("network", "replicas", 500, 100, _BETWEEN, 40),
    "branches": Campaign(
        "branches",
        "branches",
        21,
        1,
        ("important branches not taken",),
        1,
        ("percent of branches", 95),
        told_whole=True,
    ),
    "mutants": Campaign("branches", "mutants", 30, 6, ("not noticed",), 2),
    "restarts": Campaign(
        "resuming",
        "restarts",
        100,
        100,
        ("never polled", "over two seconds of processor time", "damaged"),
        3,
        measured=True,
    ),
    "full disk": Campaign(
        "resuming", "full_disk", 200, 200, ("miscounted", "damaged", "not within 30 s"), 5, measured=True
    ),
    "soak": Campaign("long", "soak", 365, 365, _GROWN, 30, measured=True),
    "overload": Campaign("overload", "overload", 3, 3, _OVERLOAD, 3, measured=True),
    "fuzzing": Campaign("__main__", "_fuzzing", 600, 10, ("broken",), 2),
}


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
        kept[name] = {"figures": dict(sorted(found.items())), "next": done, "stretches": stretches}
        # Whole or not at all: who is ended while writing would lose what took hours.
        with whole_file(figures) as file:
            file.write((json.dumps(kept, indent=1, sort_keys=True) + "\n").encode())
    wrong = [f"{name}: {found[figure]:,} {figure}" for figure in one.zero if found[figure]]
    if one.least is not None and found[one.least[0]] < one.least[1]:
        wrong.append(f"{name}: {found[one.least[0]]:,} {one.least[0]}, wanted {one.least[1]:,}")
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
        kept = {name: one for name, one in kept.items() if given.names and name not in given.names}
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
