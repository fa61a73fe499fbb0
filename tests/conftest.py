"""Depths of tests: quick (`make check`), full (`make test`), and fresh random cases each time (`make soak`)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def _log_left_as_it_was() -> Iterator[None]:
    """Who listens to the log during a test, as pages and commands do, is gone after it."""
    loggers = logging.getLogger(), logging.getLogger("unstale")
    before = [(list(one.handlers), one.level) for one in loggers]
    yield
    for one, (handlers, level) in zip(loggers, before, strict=True):
        for handler in [h for h in one.handlers if h not in handlers and not type(h).__module__.startswith("_pytest")]:
            one.removeHandler(handler)
        one.setLevel(level)
