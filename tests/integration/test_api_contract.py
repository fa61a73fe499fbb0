"""The API against its own OpenAPI document: schemathesis sends what the document allows, and what it does not."""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from support.booked import TOKEN, WHO
from support.kept_store import keep
from unstale.cli.serve import run
from unstale.cli.settings import Settings

pytest.importorskip("schemathesis")

SETTINGS = Path(__file__).parents[1] / "support/schemathesis.toml"
#: cases of each operation, all of which take about half a minute; and sources in the store
CASES, SOURCES = 6, 12
#: a stream has no end, and a poll waits for an engine that is not there
LEFT_OUT = ("/api/v1/events", "/api/v1/sources/{source}/poll")


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(tmp_path_factory.mktemp("api") / "s.db") as address:
        yield address


@contextmanager
def served(path: Path) -> Iterator[str]:
    """A real server on a store that an engine kept for a day."""
    keep(path, 24.0, sources=SOURCES)
    loop, stop, ports = asyncio.new_event_loop(), asyncio.Event(), []
    ready = threading.Event()

    def told(port: int) -> None:
        ports.append(port)
        ready.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNSTALE_TOKEN", TOKEN)
        serving = threading.Thread(
            target=lambda: loop.run_until_complete(
                run(Settings(store=str(path)), "127.0.0.1", 0, ready=told, stop=stop)
            )
        )
        serving.start()
        assert ready.wait(60.0)
        yield f"http://127.0.0.1:{ports[0]}"
        loop.call_soon_threadsafe(stop.set)
        serving.join(20.0)
        assert not serving.is_alive()
        loop.close()


def test_nothing_fails_and_everything_is_as_the_document_says(tmp_path: Path) -> None:
    """All checks of schemathesis, in all its phases; what it is told of the API is in its settings."""
    with served(tmp_path / "s.db") as origin:
        done = checked(origin, tmp_path)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    sent = re.search(r"(\d+) generated, (\d+) passed", done.stdout)
    assert sent, done.stdout
    assert int(sent[1]) >= 500
    counted = re.search(r"Selected: (\d+)/(\d+)\s+Tested: (\d+)", done.stdout)
    assert counted, done.stdout[-3000:]
    assert int(counted[3]) == int(counted[1]) == int(counted[2]) - len(LEFT_OUT), "every operation but the two"


def checked(origin: str, folder: Path, seed: int = 1) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).with_name("schemathesis")), "--config-file", str(SETTINGS)]
    command += ["run", f"{origin}/api/v1/openapi.json", "--header", f"Authorization: Bearer {TOKEN}", "--no-color"]
    command += [word for path in LEFT_OUT for word in ("--exclude-path", path)]
    command += ["--checks", "all", "--max-examples", str(CASES), "--seed", str(seed), "--generation-database", "none"]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_the_document_is_one_that_clients_are_made_from(origin: str) -> None:
    told = requests.get(f"{origin}/api/v1/openapi.json", timeout=60).json()
    operations = [one for ways in told["paths"].values() for one in ways.values()]
    names = [one["operationId"] for one in operations]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z_]+", name) for name in names), names
    assert {
        "/copies/{source}",
        "/copies/{source}/_meta",
        "/copy",
        "/metrics",
        "/healthz",
        "/readyz",
        "/api/v1/events",
    } <= set(told["paths"])
    models = told["components"]["schemas"]
    assert {"Source", "Status", "Budget", "Version", "Observation", "Explanation", "Problem"} <= set(models)
    for one in operations:
        for answer in one["responses"].values():
            for media, content in answer.get("content", {}).items():
                if media == "application/json" and one["operationId"] != "get_openapi":
                    assert "$ref" in content["schema"], f"{one['operationId']} gives something without a name"


@pytest.mark.parametrize("path", ["sources", "sources/1", "status", "plan", "hosts", "prices", "budget"])
def test_reading_is_open_on_this_machine(origin: str, path: str) -> None:
    assert requests.get(f"{origin}/api/v1/{path}", timeout=10).status_code == 200


def test_a_listener_hears_and_does_not_keep_the_server_from_ending(origin: str) -> None:
    with requests.get(f"{origin}/api/v1/events", stream=True, timeout=10) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        said = [next(lines) for _ in range(4)]
    assert said[0] == b": listening"
    assert said[2] == b"event: status"
    assert said[3].startswith(b"id: ")


def test_large_lists_are_added_at_once(origin: str) -> None:
    body = [{"address": f"https://many.example/{i}"} for i in range(50_000)]
    added = requests.post(f"{origin}/api/v1/sources", json=body, headers=WHO, timeout=60)
    assert added.status_code == 201
    assert len(added.json()["ids"]) == 50_000
    there = requests.get(f"{origin}/api/v1/sources?text=many.example/49999", timeout=10).json()
    assert len(there["sources"]) == 1
