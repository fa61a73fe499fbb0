"""Tests in another order: `pytest -p support.shuffled` shuffles the files, and the tests of each, by TEST_ORDER.

Files stay together, or what a file shares would be made and thrown away for each of its tests.
"""

from __future__ import annotations

import os
import random

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Shuffle, the same way in every process that runs a part of them."""
    dice = random.Random(os.environ.get("TEST_ORDER", "1"))
    files: dict[str, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(str(item.path), []).append(item)
    names = sorted(files)
    dice.shuffle(names)
    for name in names:
        dice.shuffle(files[name])
    items[:] = [item for name in names for item in files[name]]
