"""Depths of tests: quick (`make check`), full (`make test`), and fresh random cases each time (`make soak`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
settings.register_profile("quick", max_examples=8, **_common)
settings.register_profile("full", max_examples=150, **_common)
settings.register_profile("soak", max_examples=1500, **(_common | {"derandomize": False}))
settings.load_profile("quick")

#: whole rooms of tests that take their time: statistics need samples, a report all its figures, and crashes many rounds
SLOW_ROOMS = {"simulation", "integration", "e2e"}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Rooms that will not be run are not even read: importing what they need takes longer than many a fast test."""
    parts = collection_path.relative_to(Path(__file__).parent).parts if collection_path.is_dir() else ()
    return True if parts and parts[0] in SLOW_ROOMS and config.option.markexpr == "not slow" else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).parts[0] in SLOW_ROOMS:
            item.add_marker(pytest.mark.slow)
