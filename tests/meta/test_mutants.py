"""The mistakes that `make mutants` makes can be made: each names a place that is there, once."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
LISTED: list[Any] = runpy.run_path(str(ROOT / "tests/mutants/listed.py"))["MUTANTS"]


@pytest.mark.parametrize("mutant", LISTED, ids=[mutant.name for mutant in LISTED])
def test_a_mistake_can_be_made_and_has_tests_near_it(mutant: Any) -> None:
    (file,) = ROOT.glob(mutant.file)
    assert file.read_text("utf-8").count(mutant.old) == 1
    assert mutant.old != mutant.new
    assert any((ROOT / "tests" / name).exists() for name in mutant.tests)
