"""What was freed is the system's again, in a process that asked for it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from unstale.adapters import spare_memory

#: columns of 5 MB that are freed while something small lies behind each: what they leave is nobody's, and stays
CHURN = """
import numpy as np
from unstale.adapters.spare_memory import keep_none_spare
keep_none_spare()
def held():
    return int(open("/proc/self/status").read().partition("RssAnon:")[2].split()[0]) // 1024
before = held()
# The first that is freed says what counts as large from then on.
np.ones(30 * 2**17)[0] = 2.0
columns, small = [], []
for i in range(12):
    columns.append(np.ones(5 * 2**17))
    small.append(np.ones(2000))
columns.clear()
print(held() - before)
"""


def left() -> int:
    """Megabytes that a process still holds after it has freed nearly all."""
    done = subprocess.run([sys.executable, "-c", CHURN], capture_output=True, text=True, check=True)
    return int(done.stdout)


#: kilobytes of the compiler's own code in memory, before it is let go of and then; and that it goes on to compile
COMPILER = """
import numba
from unstale.adapters import spare_memory
def held():
    found, mine = 0, False
    for line in open("/proc/self/smaps"):
        mine = spare_memory.COMPILER in line if "-" in line.split()[0] else mine
        found += int(line.split()[1]) if mine and line.startswith("Rss:") else 0
    return found
numba.njit(lambda x: x + 1)(1)
before = held()
spare_memory.give_back_compiler()
print(before, held(), numba.njit(lambda x: x + 2)(1))
"""


@pytest.mark.skipif(spare_memory._library() is None, reason="no glibc: nothing is kept that could be given back")
def test_large_columns_are_given_back_when_they_are_freed() -> None:
    # Unasked it is some 60, where the first that was freed has taught the library so: not on every machine, every time.
    assert left() < 8


def test_where_there_is_no_such_library_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spare_memory, "_library", lambda: None)
    spare_memory.keep_none_spare()
    spare_memory.give_back()
    spare_memory.give_back_compiler()


@pytest.mark.skipif(spare_memory._library() is None, reason="no glibc: nothing is kept that could be given back")
def test_the_compiler_s_own_code_is_let_go_of_and_comes_back_when_it_is_needed() -> None:
    pytest.importorskip("numba")
    told = subprocess.run([sys.executable, "-c", COMPILER], capture_output=True, text=True, check=True).stdout
    before, then, three = map(int, told.split())
    assert then < before / 2
    assert three == 3
