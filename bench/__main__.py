"""Run every measurement, one after the other; `make bench` calls this. Tables land in bench/tables/."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent

for script in sorted(HERE.glob("bench_*.py")):
    print(f"\n== {script.stem}", flush=True)
    subprocess.run([sys.executable, str(script)], check=True)
