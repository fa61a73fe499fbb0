"""Tables of measurements that the documentation cites say when and on which machine they were made."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = sorted((ROOT / "bench" / "tables").glob("*.md"))


def test_there_are_some() -> None:
    assert TABLES


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_a_table_names_its_day_and_its_machine(table: Path) -> None:
    facts = table.read_text("utf-8").splitlines()[2]
    assert re.match(r"measured \d{4}-\d\d-\d\d, cpu .+, cores \d+, load [\d.]+, system .+, python 3\.", facts)
    # What wrote it is there still, so that it can be written again.
    assert (ROOT / "bench" / f"bench_{table.stem}.py").exists()
