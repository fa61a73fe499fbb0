"""Ten million sources in one SQLite file: what grows with them; of a million `bench_large_store` tells the rest."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from bench_large_store import added, first_poll, polled, started
from bench_run import serving
from harness import Table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sources", type=int, default=10_000_000)
    parser.add_argument("--keep", metavar="FOLDER", help="work here and leave everything")
    parser.add_argument("--dry", action="store_true", help="write no table")
    options = parser.parse_args()
    table = Table("larger_store", f"{options.sources:,} sources in one SQLite file")
    with tempfile.TemporaryDirectory() as name, serving() as port:
        folder = Path(options.keep or name)
        folder.mkdir(exist_ok=True)
        added(table, folder, options.sources, port, "-")
        started(table, "nothing known", first_poll(folder), "3,000", "-")
        polled(table, folder / "fleet.db", 0.0)
    if not options.dry:
        table.write()


if __name__ == "__main__":
    main()
