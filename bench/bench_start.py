"""How long one waits before anything happens: importing the package, asking the command for help."""

from __future__ import annotations

import argparse
import subprocess
import sys

from harness import Table

STARTS = {
    "python -c pass": ["-c", "pass"],
    "import unstale": ["-c", "import unstale"],
    "unstale --help": ["-c", "import sys; sys.argv = ['unstale', '--help']; from unstale.cli.main import main; main()"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    table = Table("start", "Starting up")

    def start(arguments: list[str]) -> None:
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)

    runs = {name: (lambda a=a: start(a)) for name, a in STARTS.items()}
    seconds = table.measure("a fresh process", runs, reference="python -c pass", rounds=options.rounds)
    table.fact("import unstale, seconds", f"{seconds['import unstale']:.3f}", "0.3")
    table.fact("unstale --help, seconds", f"{seconds['unstale --help']:.3f}", "0.4")
    table.write()


if __name__ == "__main__":
    main()
