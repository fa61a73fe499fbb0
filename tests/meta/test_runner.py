"""What the command that runs the tests promises of itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_a_test_that_ends_its_process_ends_the_run_with_its_name(tmp_path: Path) -> None:
    """Not only the test that was running fails: nobody waits for the tests that its process still had before it."""
    (tmp_path / "test_dying.py").write_text(
        "import os\ndef test_well(): pass\ndef test_dying(): os._exit(3)\ndef test_after(): pass\n"
    )
    for other in range(3):
        (tmp_path / f"test_{other}.py").write_text("def test_one(): pass\ndef test_two(): pass\n")
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path]
    options = ["-p", "no:cacheprovider", "-n", "2", "--dist", "loadfile", "--no-loadscope-reorder", tmp_path]
    ended = subprocess.run([*command, *options], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert "crashed while running 'test_dying.py::test_dying'" in ended.stdout
