"""Depths of tests: quick (`make check`), full (`make test`), and fresh random cases each time (`make soak`).

What is slow is left to `make test`: whole rooms, single tests that are marked, and those that `make slow` has measured
and written into `slow.txt`.
"""

from __future__ import annotations

import gc
import logging
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from support.own_shell import unsaid

unsaid()
_common = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "derandomize": True}
settings.register_profile("quick", max_examples=8, **_common)
settings.register_profile("full", max_examples=30, **_common)
settings.register_profile("soak", max_examples=1500, **(_common | {"derandomize": False}))
settings.load_profile("quick")

#: whole rooms of tests that take their time: statistics need samples, a report all its figures, and crashes many rounds
SLOW_ROOMS = {"simulation", "integration", "e2e"}

#: files that take longest, most of it waiting: they come first
FIRST = (
    "e2e/test_dashboard.py",
    "integration/test_lab.py",
    "integration/test_pages_as_written.py",
    "integration/test_postgres_workers.py",
)

#: tests that take long, measured; and what is long: seconds of one case, and of all cases of a test together
LIST, CASE, TOGETHER = Path(__file__).with_name("slow.txt"), 0.1, 0.4


def name_of(item: pytest.Item) -> str:
    """A test without its case, as it stands in the list."""
    return item.nodeid.partition("[")[0]


class Measure:
    """Takes the time of every test and writes the list anew: on a quiet machine, please."""

    def __init__(self) -> None:
        self.cases: defaultdict[str, list[float]] = defaultdict(list)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        begin = time.perf_counter()
        done = yield
        self.cases[name_of(item)].append(time.perf_counter() - begin)
        return done

    def pytest_sessionfinish(self) -> None:
        slow = sorted(name for name, took in self.cases.items() if max(took) > CASE or sum(took) > TOGETHER)
        LIST.write_text("".join(f"{name}\n" for name in slow), "utf-8")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--find-slow", action="store_true", help="measure which tests are slow, and list them")


def pytest_configure(config: pytest.Config) -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        # So a shell begins what it runs beside itself, and so would all be that tests begin and interrupt.
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.option.find_slow:
        config.pluginmanager.register(Measure())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Rooms that will not be run are not even read: importing what they need takes longer than many a fast test."""
    parts = collection_path.relative_to(Path(__file__).parent).parts if collection_path.is_dir() else ()
    return True if parts and parts[0] in SLOW_ROOMS and config.option.markexpr.startswith("not slow") else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Nothing that is collected is garbage before the end: it is not looked for, neither meanwhile nor in any test."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listed = set() if config.option.find_slow or not LIST.exists() else set(LIST.read_text("utf-8").splitlines())
    slow: Counter[str] = Counter()

    def file(item: pytest.Item) -> str:
        return item.nodeid.partition("::")[0].removeprefix("tests/")

    for item in items:
        if file(item).partition("/")[0] in SLOW_ROOMS or name_of(item) in listed:
            item.add_marker(pytest.mark.slow)
            slow[file(item)] += 1

    def rank(item: pytest.Item) -> tuple[bool, bool, bool]:
        name = file(item)
        return name not in FIRST, name.partition("/")[0] not in SLOW_ROOMS, not slow[name]

    # What is short fills the end, where a core would idle while another works at something long.
    items.sort(key=rank)


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
