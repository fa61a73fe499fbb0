"""The demo of a minute starts without a compiler: compiling takes a large part of its minute in a new installation."""

from __future__ import annotations

import subprocess
import sys


def test_the_demo_loads_no_compiler_before_it_says_whether_to_compile() -> None:
    code = "import sys, unstale.cli.demo; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
