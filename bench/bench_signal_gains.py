"""What signals bring on histories that anybody can fetch: freshness of every set, kind of listing and budget.

    python bench/bench_signal_gains.py FOLDER [--sets scoop,mdn] [--cells listing,random] [--budgets 0.3,1,3]

FOLDER holds the histories by the names below, tables with the columns source and t. Each cell is one backtest with one
seed, listing polls counted. Cells that are not asked for stay as they stand in the table, with the day of each.
Without a folder nothing is measured.
"""

from __future__ import annotations

import argparse
from datetime import UTC, datetime
from pathlib import Path

from harness import TABLES, machine
from unstale.sim.backtest.run import signalled, trial
from unstale.sim.backtest.sees import Sees
from unstale.sim.backtest.setting import Setting
from unstale.traces.read import read

#: file, first year, year after the last; None: all of it
SETS: dict[str, tuple[str, int | None, int | None]] = {
    "wiki_articles": ("wiki_articles_2001_2008", 2005, 2008),
    "ublock": ("ublock_filters", 2016, 2024),
    "homebrew": ("homebrew_cask", 2019, 2025),
    "scoop": ("scoop_extras", 2019, 2025),
    "condaforge": ("condaforge_feedstocks", 2021, 2025),
    "mdn": ("mdn_pages", None, None),
    "sanmateo": ("sanmateo_dispatch", None, None),
}
CELLS: dict[str, Sees | None] = {
    "plain": None,
    "listing": Sees(),
    "dear": Sees(cost=10.0),
    "groups": Sees(groups=25),
    "noisy": Sees(precision=0.7, recall=0.8),
    "feed": Sees(entries=20),
    "random": Sees(liar="random"),
    "never": Sees(liar="never"),
    "always": Sees(liar="always"),
}
MEANING = {
    "plain": "no signals",
    "listing": "one exact listing of all",
    "dear": "the same, at the cost of ten polls",
    "groups": "listings of 25 members",
    "noisy": "30 % of its signals false, 20 % of changes silent",
    "feed": "a feed of the last 20 changes",
    "random": "signals by chance, as many as changes",
    "never": "a listing that never signals",
    "always": "a listing that signals everybody every time",
}


def setting(folder: Path, name: str, at_most: int) -> Setting:
    """One history, cut to its window."""
    file, first, last = SETS[name]

    def year(y: int | None) -> float | None:
        return None if y is None else datetime(y, 1, 1, tzinfo=UTC).timestamp()

    trace, _ = read(str(folder / f"{file}.parquet"))
    return Setting.of(trace, start=year(first), end=year(last), at_most=at_most)


HEAD = "| set | listing | polls per change | freshness | without signals | spent of the budget | measured |"
Row = tuple[float, float, str]


def known(table: Path) -> dict[tuple[str, str, str], Row]:
    """What stands in the table, by set, kind of listing and budget."""
    rows = table.read_text("utf-8").splitlines() if table.exists() else []
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| ")]
    return {(c[0], c[1], c[2]): (float(c[3]), float(c[5]), c[6]) for c in cells if c[0] in SETS}


def write(table: Path, found: dict[tuple[str, str, str], Row], at_most: int) -> None:
    """The table anew, in the order of sets, kinds of listings and budgets."""
    facts = {"measured": datetime.now(UTC).date().isoformat(), **machine()}
    lines = ["# Freshness with signals on open histories", "", ", ".join(f"{k} {v}" for k, v in facts.items()), ""]
    lines += [f"At most {at_most:,} sources of a set, one seed.", ""]
    lines += [*(f"- {name}: {said}" for name, said in MEANING.items()), "", HEAD, "|---" * 7 + "|"]
    order = {(s, c): k for k, (s, c) in enumerate((s, c) for s in SETS for c in CELLS)}
    for key in sorted(found, key=lambda one: (order[one[0], one[1]], float(one[2]))):
        name, cell, each = key
        fresh, spent, day = found[key]
        plain = found[name, "plain", each][0] if (name, "plain", each) in found else float("nan")
        lines.append(f"| {name} | {cell} | {each} | {fresh:.4f} | {plain:.4f} | {spent:.3f} | {day} |")
    table.write_text("\n".join(lines) + "\n", "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--cells", default=",".join(CELLS))
    parser.add_argument("--budgets", default="0.3,1,3")
    parser.add_argument("--at-most", type=int, default=500)
    options = parser.parse_args()
    if options.folder is None:
        print("nothing is measured: say in which folder the histories are")
        return
    table = TABLES / "signal_gains.md"
    for name in options.sets.split(","):
        world = setting(options.folder, name, options.at_most)
        for cell in options.cells.split(","):
            for each in map(float, options.budgets.split(",")):
                seen = CELLS[cell]
                row = trial(world, "unstale", each, 1) if seen is None else signalled(world, each, 1, seen)
                found = known(table)
                found[name, cell, f"{each:g}"] = (
                    row.freshness,
                    row.polls / row.budget,
                    datetime.now(UTC).date().isoformat(),
                )
                write(table, found, options.at_most)
                print(f"{name:14} {cell:8} {each:4g} {row.freshness:.4f} / {row.polls / row.budget:.3f}", flush=True)


if __name__ == "__main__":
    main()
