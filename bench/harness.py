"""Side-by-side measurements: candidates take turns in one run, medians are compared, only ratios are claimed.

    table = Table("price", "finding the price of a poll")
    table.measure("1e6 sources", {"ours": solve, "scipy": slow}, reference="scipy", rounds=5)
    table.write()

prints and writes `tables/<name>.md`, with the machine's facts and the day. Tables are kept in the repository: what the
documentation says was measured stands in one of them.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

TABLES = Path(__file__).parent / "tables"
LIBRARIES = ("numpy", "scipy", "numba", "unstale")


def machine() -> dict[str, Any]:
    """The facts without which a measurement means nothing."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = importlib.metadata.version(library)
        except importlib.metadata.PackageNotFoundError:
            versions[library] = "absent"
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [s.split(":", 1)[1].strip() for s in cpuinfo.read_text().splitlines() if s.startswith("model name")]
        model = names[0] if names else model
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        **versions,
    }


def peak_memory() -> int:
    """The most memory this process has held, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


class Table:
    """Rows of one benchmark: a case, a candidate, its seconds by the clock and of all cores, its ratio."""

    def __init__(self, name: str, title: str) -> None:
        self.name, self.title = name, title
        self.rows: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}

    def measure(
        self, case: str, candidates: Mapping[str, Callable[[], object]], *, reference: str, rounds: int = 5
    ) -> dict[str, float]:
        """Median seconds of each candidate; they take turns, so that a busy machine is busy for all."""
        seconds: dict[str, list[float]] = {name: [] for name in candidates}
        processor: dict[str, list[float]] = {name: [] for name in candidates}
        for _ in range(rounds):
            for name, candidate in candidates.items():
                begin, begin_cpu = time.perf_counter(), time.process_time()
                candidate()
                seconds[name].append(time.perf_counter() - begin)
                processor[name].append(time.process_time() - begin_cpu)
        medians = {name: statistics.median(s) for name, s in seconds.items()}
        for name, median in medians.items():
            cpu, ratio = statistics.median(processor[name]), median / medians[reference]
            self.row(case, name, median, cpu, ratio, rounds)
            print(
                f"{case:20} {name:32} {median:10.4f} s ({cpu:.4f} of all cores), ratio {ratio:.4f}",
                flush=True,
            )
        return medians

    def row(self, case: str, candidate: str, seconds: float, cpu: float, ratio: float, rounds: int) -> None:
        """A row that was measured elsewhere."""
        self.rows.append(
            {
                "case": case,
                "candidate": candidate,
                "seconds": seconds,
                "cpu_seconds": cpu,
                "ratio": ratio,
                "rounds": rounds,
            }
        )

    def fact(self, name: str, value: object, bar: str = "") -> None:
        """A number that is not a time: an error, a ratio of memory; `bar` is what it should not exceed."""
        self.facts[name] = {"value": value, "bar": bar}
        print(f"{name}: {value} {bar and f'(bar: {bar})'}", flush=True)

    def write(self) -> None:
        """Write the table, the machine's facts and the day."""
        TABLES.mkdir(exist_ok=True)
        facts = {"measured": datetime.now(UTC).date().isoformat(), **machine()}
        lines = [f"# {self.title}", "", ", ".join(f"{k} {v}" for k, v in facts.items()), ""]
        lines += [
            "| case | candidate | median s | of all cores, s | ratio | rounds |",
            "|---|---|---|---|---|---|",
        ]
        for row in self.rows:
            case, candidate, seconds, cpu, ratio, rounds = row.values()
            lines.append(f"| {case} | {candidate} | {seconds:.4g} | {cpu:.4g} | {ratio:.4g} | {rounds} |")
        lines += ["", "| fact | value | bar |", "|---|---|---|"]
        lines += [f"| {name} | {f['value']} | {f['bar']} |" for name, f in self.facts.items()]
        (TABLES / f"{self.name}.md").write_text("\n".join(lines) + "\n", "utf-8")
