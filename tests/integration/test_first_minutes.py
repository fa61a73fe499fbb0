"""The first minutes of `unstale run`, seen from outside: the site's own log is the truth that all told must equal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from unstale.adapters.sqlite_store import SqliteStore
from unstale.cli.service import service_of
from unstale.cli.settings import load
from unstale.ports import Listing

COMMAND = "from unstale.cli.main import main; main()"
SOURCES, MOVED = 40, 5
PATIENCE = 120.0


class Site:
    """Answers /s/N, sends /moved/N on to it, has a robots.txt, and logs every request."""

    def __init__(self) -> None:
        log = self.log = []  # type: list[str]

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                log.append(self.path)
                moved = self.path.startswith("/moved/")
                self.send_response(302 if moved else 404 if self.path == "/robots.txt" else 200)
                if moved:
                    self.send_header("Location", self.path.replace("moved", "s"))
                body = b"" if moved else self.path.encode()
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                """Nobody reads it."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.server.shutdown()
    site.server.server_close()


def place(folder: Path, site: Site, settings: str) -> Path:
    """A folder with settings and a store of sources at the site, some of which have moved."""
    config = folder / "unstale.toml"
    config.write_text(f'store = "s.db"\n{settings}\n[http]\nallow_networks = ["127.0.0.0/8"]\n')
    store = SqliteStore(folder / "s.db")
    paths = [f"/moved/{i}" if i < MOVED else f"/s/{i}" for i in range(SOURCES)]
    store.add([Listing(site.address + path, host="127.0.0.1") for path in paths], time.time())
    store.close()
    return config


def command(config: Path, *words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words, "--config", str(config)],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
        cwd=config.parent,
        env={**os.environ, "COLUMNS": "170"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


class Running:
    """`unstale run` in a process of its own."""

    def __init__(self, config: Path, *words: str) -> None:
        self.out = config.parent / "out.txt"
        with self.out.open("w") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, "run", "--no-serve", *words, "--config", str(config)],
                stdout=file,
                stderr=subprocess.STDOUT,
                cwd=config.parent,
                env={name: value for name, value in os.environ.items() if not name.startswith("UNSTALE_")},
            )

    def end(self, by: signal.Signals = signal.SIGINT) -> str:
        self.process.send_signal(by)
        self.process.wait(PATIENCE)
        return self.out.read_text()


def until(true: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if found := true():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not happen in time")


def status(config: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(command(config, "status", "--json"))
    return found


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_first_copies_come_soon_and_all_that_was_done_is_told(tmp_path: Path, site: Site, how: signal.Signals) -> None:
    # A budget of one poll an hour: without an allowance the first round would take a day and a half.
    config = place(tmp_path, site, 'budget = "1/h"\nburst = 1\nfirst_round = "20/s"')
    before = status(config)
    assert (before["first_round"]["done"], before["first_round"]["of"]) == (0, SOURCES)
    assert before["first_round"]["left"] == pytest.approx(SOURCES / (20 + 1 / 3600), rel=1e-6)
    assert (before["freshness"], before["freshness_even"], before["totals"]["polls"]) == (0.0, None, 0)
    text = command(config, "status")
    assert re.search(r"first round +0 +of 40 sources polled, about 2 s left once an engine runs", text)
    running = Running(config)
    service = service_of(load(config))
    try:
        until(lambda: service.status(limit=0).first_round is None)
    finally:
        said = running.end(how)
        service.close()
    told = status(config)
    seen = Counter(path.rpartition("/")[0] for path in site.log)
    polls = seen["/s"]
    # What the site saw is what is told, to the last request, however the engine ended.
    assert told["totals"]["polls"] == told["totals"]["unchanged"] + told["totals"]["changed"] == polls >= SOURCES
    assert told["totals"]["requests"] == len(site.log)
    assert len(site.log) == polls + seen["/moved"] + 1, "one for each that moved, and robots.txt once"
    assert told["totals"]["first"] == SOURCES
    assert told["spent_hour"] == told["spent_day"] == told["totals"]["spent"] == polls
    assert told["engine"]["polls"] == polls
    assert told["engine"]["running"] is False
    assert told["freshness_even"] is None, "nothing was looked at twice"
    assert polls <= SOURCES + 2, "the allowance is for first polls alone"
    if how is signal.SIGINT:
        assert re.search(rf"Stopped after {polls} polls", said)
    assert re.search(
        rf"polls +{polls} +recorded, 0 of them failed, {MOVED + 1} requests beside", command(config, "status")
    )


def test_the_last_word_on_the_budget_counts(tmp_path: Path, site: Site) -> None:
    config = place(tmp_path, site, 'budget = "24/day"\nfirst_round = ""')
    service = service_of(load(config))
    running = None
    try:
        assert service.set_budget(2.0, "api").rate == 2.0

        def in_force() -> tuple[float, str]:
            """What the engine goes by, as it says itself, and who said so."""
            budget = service.budget()
            said = json.loads(service.setting("engine") or b"{}").get("budget")
            return (budget.rate, budget.by) if said == budget.rate else (0.0, "")

        # An option of the command is later than what the API said before.
        running = Running(config, "--budget", "720/h")
        until(lambda: in_force() == (0.2, "option"))
        assert status(config)["budget_per_day"] == pytest.approx(17280.0)
        # And what is said while it runs is later than the option.
        assert "budget 1.39/min, as was said with `unstale budget`" in command(config, "budget", "2000/day")
        until(lambda: in_force() == (2000 / 86400, "command"))
        # The file waits for a restart, and that is told.
        config.write_text(config.read_text().replace("24/day", "48/day"))
        os.utime(config, (time.time() + 60.0,) * 2)
        found = status(config)
        assert found["budget"]["by"] == "command"
        assert "restart the engine to take it up" in found["budget"]["waiting"]
        said = running.end()
        running = None
        assert "budget 12/min, as was said with --budget" in said
        assert "polling, budget 12/min" in said
    finally:
        service.close()
        if running is not None:
            running.end(signal.SIGKILL)
    # At the next start the file is the last word.
    again = status(config)
    assert (again["budget_per_day"], again["budget"]["by"]) == (pytest.approx(48.0), "settings")
    running = Running(config)
    until(lambda: "polling, budget 2/h" in running.out.read_text())
    running.end()
    assert status(config)["budget"]["by"] == "settings"
